/* Guards each place by a sequence lock: a writer makes `turn` odd by a compare-and-swap, so that
 * there is one writer at a time, and readers that notice a change skip the place. A writer killed
 * half-way leaves a place that is reused when there is no other. */
#include "config.h"

#include "proto/signin.h"

#include <string.h>

#define TRIES 8

static void
place_read(const struct hr_signin_place *p, struct hr_signin *ret)
{
	uint64_t words[HR_SIGNIN_WORDS];
	size_t i;

	for (i = 0; i < HR_SIGNIN_WORDS; i++)
		words[i] = atomic_load(&p->words[i]);
	memcpy(ret->cookie, words, HR_KEYSUM);
	memcpy(ret->token, words + HR_KEYSUM / 8, HR_KEYSUM);
	memcpy(ret->key, words + 2 * (HR_KEYSUM / 8), HR_KEYSUM);
	ret->until_ns = atomic_load(&p->until_ns);
	ret->rights = atomic_load(&p->rights);
}

static void
place_write(struct hr_signin_place *p, const struct hr_signin *what)
{
	uint64_t words[HR_SIGNIN_WORDS];
	size_t i;

	memcpy(words, what->cookie, HR_KEYSUM);
	memcpy(words + HR_KEYSUM / 8, what->token, HR_KEYSUM);
	memcpy(words + 2 * (HR_KEYSUM / 8), what->key, HR_KEYSUM);
	for (i = 0; i < HR_SIGNIN_WORDS; i++)
		atomic_store(&p->words[i], words[i]);
	atomic_store(&p->rights, what->rights);
	atomic_store(&p->until_ns, what->until_ns);
}

/* Takes the place if it is still in the state that was seen. */
static bool
place_change(struct hr_signin_place *p, uint32_t turn, const struct hr_signin *what)
{
	const uint32_t mine = (turn | 1) == turn ? turn + 2 : turn + 1;

	if (!atomic_compare_exchange_strong(&p->turn, &turn, mine))
		return false;
	place_write(p, what);
	atomic_store(&p->turn, mine + 1);
	return true;
}

/* Chooses a free place, an expired one or the first to expire; half-written ones come last. */
static size_t
place_worst(const struct hr_signins *s, int64_t now_ns, uint32_t *ret_turn)
{
	int64_t until, best = INT64_MAX;
	size_t i, found = 0;
	uint32_t turn;

	*ret_turn = atomic_load(&s->v[0].turn);
	for (i = 0; i < HR_SIGNINS; i++) {
		turn = atomic_load(&s->v[i].turn);
		until = atomic_load(&s->v[i].until_ns);
		if ((turn & 1) != 0)
			until = INT64_MAX - 1;
		else if (until <= now_ns)
			until = 0;
		if (until < best) {
			best = until;
			found = i;
			*ret_turn = turn;
		}
	}
	return found;
}

bool
hr_signin_add(struct hr_signins *s, const struct hr_signin *what, int64_t now_ns)
{
	uint32_t turn;
	size_t at;
	int i;

	for (i = 0; i < TRIES; i++) {
		at = place_worst(s, now_ns, &turn);
		if (place_change(&s->v[at], turn, what))
			return true;
	}
	return false;
}

bool
hr_signin_find(const struct hr_signins *s, const unsigned char cookie[HR_KEYSUM],
    const unsigned char token[HR_KEYSUM], int64_t now_ns, struct hr_signin *ret)
{
	struct hr_signin one;
	bool found = false, same;
	uint32_t turn;
	size_t i;

	for (i = 0; i < HR_SIGNINS; i++) {
		turn = atomic_load(&s->v[i].turn);
		place_read(&s->v[i], &one);
		same = hr_keysum_equal(one.cookie, cookie);
		same &= hr_keysum_equal(one.token, token); /* compares both digests in any case */
		if (same && one.until_ns > now_ns && (turn & 1) == 0 &&
		    atomic_load(&s->v[i].turn) == turn) {
			*ret = one;
			found = true;
		}
	}
	return found;
}

void
hr_signin_end(struct hr_signins *s, const unsigned char cookie[HR_KEYSUM])
{
	const struct hr_signin none = {.until_ns = 0};
	struct hr_signin one;
	uint32_t turn;
	size_t i;

	for (i = 0; i < HR_SIGNINS; i++) {
		turn = atomic_load(&s->v[i].turn);
		place_read(&s->v[i], &one);
		/* A concurrent writer ends it, or replaces it by another sign-in. */
		if ((turn & 1) == 0 && hr_keysum_equal(one.cookie, cookie))
			(void)place_change(&s->v[i], turn, &none);
	}
}
