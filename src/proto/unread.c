/* Manages the places for unread answers. Invariant: a reader sees an action whole, since it
 * compares the place's word before and after; and only the worker whose number is in that word
 * writes it. A worker that is killed while writing leaves a place that stays unused until the next
 * start. */
#include "config.h"

#include "proto/unread.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum state { WRITING, HELD, ANSWERING, KEPT };

#define STATE 3u

static enum state
state_of(uint64_t word)
{
	return (enum state)(word & STATE);
}

static uint64_t
with_state(uint64_t word, enum state state)
{
	return (word & ~(uint64_t)STATE) | state;
}

/* Locks the number's byte of the file. Without locks no other process waits for the number. */
static void
lock(int board, int how, short type, uint64_t word)
{
	struct flock l = {
	    .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(word >> 2), .l_len = 1};
	int r;

	do
		r = board < 0 ? 0 : fcntl(board, how, &l);
	while (r != 0 && errno == EINTR);
}

void
hr_unread_wait(int board, const struct hr_unread_hold *found)
{
	lock(board, F_SETLKW, F_RDLCK, found->word);
	lock(board, F_SETLK, F_UNLCK, found->word);
}

static bool
is_over(const struct hr_unread_place *p, uint64_t word, int64_t now_ms)
{
	return state_of(word) == KEPT && now_ms - atomic_load(&p->ended_ms) > HR_UNREAD_MS;
}

bool
hr_unread_find(struct hr_unread *u, uint64_t client, int64_t now_ms, size_t *i,
    struct hr_unread_action *ret_action, struct hr_unread_hold *ret)
{
	struct hr_unread_place *p;
	uint64_t word;

	for (; *i < HR_UNREAD; (*i)++) {
		p = &u->v[*i];
		word = atomic_load(&p->word);
		if (word == 0 || state_of(word) == WRITING || p->action.client != client ||
		    is_over(p, word, now_ms))
			continue;
		*ret_action = p->action;
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load(&p->word) != word || ret_action->client != client)
			continue;
		*ret = (struct hr_unread_hold){p, word};
		return true;
	}
	return false;
}

bool
hr_unread_take(struct hr_unread *u, int board, struct hr_unread_hold *found,
    const struct hr_unread_action *action)
{
	uint64_t mine = (atomic_fetch_add(&u->numbers, 1) + 1) << 2 | WRITING;
	struct hr_unread_place *p = found->place;

	if (!atomic_compare_exchange_strong(&p->word, &(uint64_t){found->word}, mine))
		return false;
	lock(board, F_SETLK, F_WRLCK, mine);
	p->action = *action;
	found->word = with_state(mine, HELD);
	atomic_store(&p->word, found->word);
	return true;
}

bool
hr_unread_add(struct hr_unread *u, int board, const struct hr_unread_action *action, int64_t now_ms,
    struct hr_unread_hold *ret)
{
	size_t i;

	for (i = 0; i < HR_UNREAD; i++) {
		ret->place = &u->v[i];
		ret->word = atomic_load(&ret->place->word);
		if ((ret->word == 0 || is_over(ret->place, ret->word, now_ms)) &&
		    hr_unread_take(u, board, ret, action))
			return true;
	}
	*ret = (struct hr_unread_hold){NULL, 0};
	return false;
}

static bool
move(struct hr_unread_hold *h, uint64_t word)
{
	uint64_t had = h->word; /* avoids freeing a place that another worker has taken since */

	if (h->place == NULL || !atomic_compare_exchange_strong(&h->place->word, &had, word))
		return false;
	h->word = word;
	return true;
}

void
hr_unread_answering(struct hr_unread_hold *h)
{
	(void)move(h, with_state(h->word, ANSWERING));
}

bool
hr_unread_is_answering(const struct hr_unread_hold *h)
{
	return h->place != NULL && state_of(h->word) == ANSWERING;
}

void
hr_unread_keep(int board, struct hr_unread_hold *h, int64_t now_ms)
{
	/* has no effect on a place that another worker has taken */
	if (h->place != NULL)
		atomic_store(&h->place->ended_ms, now_ms);
	(void)move(h, with_state(h->word, KEPT));
	if (h->place != NULL)
		lock(board, F_SETLK, F_UNLCK, h->word);
}

bool
hr_unread_free(int board, struct hr_unread_hold *h)
{
	uint64_t word = h->word;
	bool freed = word != 0 && move(h, 0);

	if (word != 0)
		lock(board, F_SETLK, F_UNLCK, word);
	return freed;
}

void
hr_unread_bury(struct hr_unread *u, pid_t pid, int64_t now_ms)
{
	struct hr_unread_hold h;
	size_t i;

	for (i = 0; i < HR_UNREAD; i++) {
		h.place = &u->v[i];
		h.word = atomic_load(&h.place->word);
		if (h.word == 0 || h.place->action.pid != pid)
			continue;
		if (state_of(h.word) == HELD)
			hr_unread_keep(-1, &h, now_ms);
		else if (state_of(h.word) == ANSWERING)
			(void)hr_unread_free(-1, &h);
	}
}
