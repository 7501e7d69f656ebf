/* Places with a turn, as a sequence lock: a writer makes it odd by a compare-and-swap, so that
 * there is one at a time, and readers that see it change look away. A writer that was killed
 * half-way leaves a place that is taken over when there is no other. */
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

/* Takes the place in the state in which it was seen. */
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

/* The one that is free, or whose time is over, or is over first; half-written ones last. */
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
		same &= hr_keysum_equal(one.token, token); /* both, whatever the first is */
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
		/* who changes it at the same time ends it, or makes it another one's */
		if ((turn & 1) == 0 && hr_keysum_equal(one.cookie, cookie))
			(void)place_change(&s->v[i], turn, &none);
	}
}
