/* The slots of the journal: what is in journal.h about them. Invariants: everything about the entry
 * in a slot is decided by one atomic change of its word; whoever's number is in a word either has
 * the lock of that number or is dead; who gives that lock up for a moment is in no word. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "proto/journal_int.h"

#define SLOTS_NAME HR_JOURNAL_SLOTS
#define SLOTS_HALF ".slots.new"
#define SLOTS_MAGIC 0x48533031u /* "HS01": name and version */
#define SLOTS 128
#define SLOT_BYTES 4096
#define SLOT_TEXT (SLOT_BYTES - 32)
#define HOLDER_MAX 0xffffffu
/* Holder n has a lock on this byte of the file and n more, as long as it lives; who waits for it
 * has one on the other. */
#define LIVES ((off_t)1 << 32)
#define WAITS ((off_t)1 << 33)

/* of file systems that have room for what was written once, however often it changes */
#define FS_EXT 0xef53
#define FS_TMPFS 0x01021994
#define FS_XFS 0x58465342

enum state {
	FREE,
	CLAIMED, /* its key is being written */
	RESERVED,
	BEGUN,
	DONE,
	FILED, /* the answer is in a file, or was too long */
};

/* A word: the attempt, the holder (0: nobody), and these. */
#define STATE 0x07u
#define WAITED 0x08u /* somebody waits for the lock of the holder */
#define OVER 0x10u   /* with DONE, FILED: nobody will ask again */

struct journal_slot {
	_Atomic uint64_t word;
	_Atomic uint32_t elsewhere; /* so many entries that belong here may have a file */
	uint32_t key_len, answer_len, tag;
	_Atomic int64_t at_s; /* CLOCK_MONOTONIC: nobody is at it since; later than now: a boot */
	char text[SLOT_TEXT]; /* the key, then the answer */
};
_Static_assert(sizeof(struct journal_slot) == SLOT_BYTES, "a slot is a page");

struct journal_slots {
	uint32_t magic, slots, bytes;
	_Atomic uint32_t holders, attempts; /* the last ones */
	char rest[SLOT_BYTES - 20];
	struct journal_slot slot[SLOTS];
};

static uint64_t
word_of(uint32_t attempt, uint32_t holder, unsigned flags)
{
	return (uint64_t)attempt << 32 | (uint64_t)holder << 8 | flags;
}

static uint32_t
attempt_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static uint32_t
holder_of(uint64_t word)
{
	return (uint32_t)(word >> 8) & HOLDER_MAX;
}

static enum state
state_of(uint64_t word)
{
	return (enum state)(word & STATE);
}

/* ---- the file ---- */

/* 0; -1 with errno: EINVAL if it is not one of ours. Read, not mapped: the kernel would map much of
 * it around, and count it as used by each idle process. */
static int
slots_check(int fd)
{
	uint32_t head[3];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0 || (n = hr_fd_read_full(fd, head, sizeof(head), NULL)) < 0)
		return -1;
	errno = EINVAL;
	if (n < (ssize_t)sizeof(head) || st.st_size != (off_t)sizeof(struct journal_slots))
		return -1;
	return head[0] == SLOTS_MAGIC && head[1] == SLOTS && head[2] == SLOT_BYTES ? 0 : -1;
}

int
journal_slots_attach(struct hr_journal *j)
{
	void *p = MAP_FAILED;

	if (j->slots != NULL)
		return 0;
	j->slots_fd = openat(j->dir, SLOTS_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (j->slots_fd < 0)
		return errno == ENOENT ? 1 : -1;
	if (slots_check(j->slots_fd) == 0)
		p = mmap(NULL, sizeof(struct journal_slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		    j->slots_fd, 0);
	if (p != MAP_FAILED) {
		j->slots = p;
		return 0;
	}
	hr_fd_close(&j->slots_fd); /* errno stays */
	return -1;
}

void
journal_slots_detach(struct hr_journal *j)
{
	if (j->slots != NULL)
		(void)munmap(j->slots, sizeof(*j->slots)); /* cannot fail on what mmap gave */
	j->slots = NULL;
	j->holder = 0;
	hr_fd_close(&j->slots_fd);
}

/* All of it is written, so that no later change needs room: that would be a SIGBUS. */
int
journal_slots_write(int dir, bool existed, struct hr_err *err)
{
	HR_FREE struct journal_slots *t = calloc(1, sizeof(*t));
	int i, r = -1;
	HR_CLOSE int fd = -1;

	if (t == NULL)
		return hr_err_nomem(err);
	t->magic = SLOTS_MAGIC;
	t->slots = SLOTS;
	t->bytes = SLOT_BYTES;
	for (i = 0; i < SLOTS; i++)
		atomic_init(&t->slot[i].elsewhere, existed ? 1 : 0);
	fd = openat(dir, SLOTS_HALF, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		(void)hr_err_sys(err, errno, SLOTS_HALF);
	else if ((r = hr_fd_write_full(fd, t, sizeof(*t), err)) == 0 &&
		 (r = renameat(dir, SLOTS_HALF, dir, SLOTS_NAME)) != 0)
		(void)hr_err_sys(err, errno, SLOTS_NAME);
	if (r != 0)
		(void)unlinkat(dir, SLOTS_HALF, 0);
	return r;
}

int
hr_journal_make_slots(const char *path, bool existed, struct hr_err *err)
{
	struct hr_journal j;
	struct statfs fs;
	int r = -1;

	hr_journal_init(&j);
	j.dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j.dir >= 0)
		r = journal_slots_attach(&j);
	if (r < 0 && j.dir >= 0 && (errno == EINVAL || errno == ELOOP)) {
		/* of another version, or torn by a loss of power */
		(void)unlinkat(j.dir, SLOTS_NAME, 0);
		r = 1;
	}
	if (r < 0 || (r == 1 && fstatfs(j.dir, &fs) != 0))
		r = hr_err_sys(err, errno, "%s", path);
	else if (r == 1)
		r = fs.f_type == FS_EXT || fs.f_type == FS_TMPFS || fs.f_type == FS_XFS
			? journal_slots_write(j.dir, existed, err)
			: 0;
	hr_journal_close(&j);
	return r;
}

/* ---- holders ---- */

static int
holder_lock(const struct hr_journal *j, off_t which, uint32_t holder, short type, int cmd)
{
	struct flock l = {
	    .l_type = type, .l_whence = SEEK_SET, .l_start = which + (off_t)holder, .l_len = 1};
	int r;

	do
		r = fcntl(j->slots_fd, cmd, &l);
	while (r != 0 && errno == EINTR);
	return r;
}

static void
holder_unlock(const struct hr_journal *j, off_t which, uint32_t holder)
{
	int sys = errno;

	(void)holder_lock(j, which, holder, F_UNLCK, F_OFD_SETLK);
	errno = sys;
}

/* A number that nobody else has. */
static int
holder_take(struct hr_journal *j)
{
	uint32_t n;

	while (j->holder == 0) {
		n = (atomic_fetch_add(&j->slots->holders, 1) + 1) & HOLDER_MAX;
		if (n == 0)
			continue;
		if (holder_lock(j, LIVES, n, F_WRLCK, F_OFD_SETLK) == 0)
			j->holder = n;
		else if (errno != EAGAIN && errno != EACCES)
			return -1;
	}
	return 0;
}

/* We are in no word any more, and somebody waits: he may look. Who waits is let through first: one
 * that finds us locked again would wait for our next action. */
static void
holder_wake(struct hr_journal *j)
{
	uint32_t n = j->holder;

	holder_unlock(j, LIVES, n);
	if (holder_lock(j, WAITS, n, F_WRLCK, F_OFD_SETLKW) != 0 ||
	    holder_lock(j, LIVES, n, F_WRLCK, F_OFD_SETLKW) != 0)
		j->holder = 0; /* another one for the next action */
	holder_unlock(j, WAITS, n);
}

/* Whether the holder in *word is dead. 1: it is, and *word is what stands there. 0: it lives; after
 * waiting: the word is another one. */
static int
holder_look(struct hr_journal *j, struct journal_slot *s, uint64_t *word, int cmd)
{
	uint32_t holder = holder_of(*word);
	uint64_t now;

	if (holder_lock(j, LIVES, holder, F_RDLCK, cmd) != 0)
		return cmd == F_OFD_SETLK && (errno == EAGAIN || errno == EACCES) ? 0 : -1;
	now = atomic_load(&s->word);
	holder_unlock(j, LIVES, holder);
	return now == *word;
}

/* Nobody (0), or we, of an action that we left. */
static bool
holder_none(const struct hr_journal *j, uint64_t word)
{
	return holder_of(word) == 0 || holder_of(word) == j->holder;
}

/* Until the holder is dead (1) or out of this word (0: look again). */
static int
holder_wait(struct hr_journal *j, struct journal_slot *s, uint64_t *word)
{
	uint32_t holder = holder_of(*word);
	int r = 0;

	if (holder_none(j, *word))
		return 1;
	if (holder_lock(j, WAITS, holder, F_RDLCK, F_OFD_SETLKW) != 0)
		return -1;
	if (atomic_compare_exchange_strong(&s->word, word, *word | WAITED)) {
		*word |= WAITED;
		r = holder_look(j, s, word, F_OFD_SETLKW);
	}
	holder_unlock(j, WAITS, holder);
	return r;
}

/* ---- one slot ---- */

static struct journal_slot *
slot_of(const struct hr_journal *j, uint64_t digest)
{
	return &j->slots->slot[digest % SLOTS];
}

static bool
slot_has_key(const struct journal_slot *s, const char *key, size_t len)
{
	return s->key_len == len && len <= SLOT_TEXT && memcmp(s->text, key, len) == 0;
}

/* Whether what was read of the slot is of this word. */
static bool
slot_unchanged(struct journal_slot *s, uint64_t word)
{
	atomic_thread_fence(memory_order_acquire);
	return ((atomic_load(&s->word) ^ word) & ~(uint64_t)WAITED) == 0;
}

static uint32_t
next_attempt(struct hr_journal *j)
{
	return (atomic_fetch_add(&j->slots->attempts, 1) + 1) | JOURNAL_IN_SLOT;
}

/* From what we have made it to something else; who waits may look. */
static bool
slot_move(struct hr_journal *j, struct journal_slot *s, uint32_t attempt, unsigned flags)
{
	uint64_t word = atomic_load(&s->word);
	uint32_t left = (flags & STATE) == FREE ? 0 : attempt;

	do {
		if (attempt_of(word) != attempt)
			return false;
	} while (!atomic_compare_exchange_weak(&s->word, &word, word_of(left, 0, flags)));
	if ((word & WAITED) != 0)
		holder_wake(j);
	return true;
}

/* The entry of another key, which may be forgotten (1). */
static int
slot_is_old(struct hr_journal *j, struct journal_slot *s, uint64_t *word)
{
	uint64_t dead = *word;
	int64_t age;
	int r;

	if (!holder_none(j, *word)) {
		/* as files are: from the moment on in which it has no holder, as far as is known */
		r = holder_look(j, s, word, F_OFD_SETLK);
		if (r == 1) {
			atomic_store(&s->at_s, hr_now_ms() / 1000);
			(void)atomic_compare_exchange_strong(
			    &s->word, &dead, word_of(attempt_of(dead), 0, state_of(dead)));
		}
		return r < 0 ? r : 0;
	}
	age = hr_now_ms() / 1000 - atomic_load(&s->at_s);
	return age < 0 || age > j->age_max_ms / 1000;
}

/* 1: it is ours. 0: look again. */
static int
slot_claim(struct hr_journal *j, struct journal_slot *s, uint64_t word, struct hr_journal_entry *e)
{
	uint32_t attempt = next_attempt(j);
	uint64_t mine = word_of(attempt, j->holder, CLAIMED);

	if (!atomic_compare_exchange_strong(&s->word, &word, mine))
		return 0;
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(s->text, e->key, e->key_len);
	s->key_len = (uint32_t)e->key_len;
	s->answer_len = 0;
	atomic_store(&s->at_s, hr_now_ms() / 1000);
	if (!atomic_compare_exchange_strong(
		&s->word, &mine, word_of(attempt, j->holder, RESERVED))) {
		/* somebody waits to see the key, and will not see it before we are in no word */
		(void)slot_move(j, s, attempt, FREE);
		return 0;
	}
	e->slot = s;
	e->attempt = attempt;
	return 1;
}

/* Its holder is dead. */
static int
slot_take(struct hr_journal *j, struct journal_slot *s, uint64_t word, struct hr_journal_entry *e)
{
	uint32_t attempt = next_attempt(j);

	if (!atomic_compare_exchange_strong(
		&s->word, &word, word_of(attempt, j->holder, state_of(word))))
		return 0;
	e->slot = s;
	e->attempt = attempt;
	return 1;
}

static int
slot_answer(struct journal_slot *s, uint64_t word, const struct hr_journal_entry *e,
    uint32_t *ret_tag, struct hr_buf *answer)
{
	size_t len = s->answer_len;
	char *p;

	*ret_tag = s->tag;
	if (len > SLOT_TEXT - e->key_len) /* not of this word, or a disk lost it */
		len = 0;
	p = hr_buf_reserve(answer, len);
	if (p == NULL) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(p, s->text + e->key_len, len);
	if (!slot_unchanged(s, word))
		return 0;
	hr_buf_grew(answer, len);
	return 1;
}

/* Of our key, and not free. */
static int
slot_found(struct hr_journal *j, struct journal_slot *s, uint64_t word, struct hr_journal_entry *e,
    enum journal_slot_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer)
{
	int r;

	if (state_of(word) == FILED) {
		*ret_found = JOURNAL_SLOT_FILED;
		return 1;
	}
	if (state_of(word) == DONE) {
		*ret_found = JOURNAL_SLOT_DONE;
		return slot_answer(s, word, e, ret_tag, answer);
	}
	r = holder_wait(j, s, &word);
	*ret_found = state_of(word) == BEGUN ? JOURNAL_SLOT_BEGUN : JOURNAL_SLOT_NEW;
	return r == 1 ? slot_take(j, s, word, e) : r;
}

/* Of another key. 1: it may be replaced. */
static int
slot_replaceable(struct hr_journal *j, struct journal_slot *s, uint64_t *word)
{
	switch (state_of(*word)) {
	case FREE: return 1;
	case CLAIMED: return holder_wait(j, s, word);
	case RESERVED:
	case BEGUN: return slot_is_old(j, s, word);
	case DONE:
	case FILED: return (*word & OVER) != 0 ? 1 : slot_is_old(j, s, word);
	}
	return 1; /* a disk lost it */
}

/* 1: *ret_found; 0: look again. */
static int
slot_look(struct hr_journal *j, struct journal_slot *s, struct hr_journal_entry *e, bool make,
    enum journal_slot_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer)
{
	uint64_t word = atomic_load(&s->word);
	enum state state = state_of(word);
	int r;

	if (state != FREE && state != CLAIMED && slot_has_key(s, e->key, e->key_len))
		return slot_unchanged(s, word)
			   ? slot_found(j, s, word, e, ret_found, ret_tag, answer)
			   : 0;
	if (!slot_unchanged(s, word))
		return 0;
	r = slot_replaceable(j, s, &word);
	if (r < 0 || (r == 0 && state == CLAIMED))
		return r;
	*ret_found = r == 1 && make ? JOURNAL_SLOT_NEW : JOURNAL_SLOT_TAKEN;
	if (*ret_found == JOURNAL_SLOT_NEW)
		return slot_claim(j, s, word, e);
	if (state != CLAIMED)
		return 1;
	/* what a dead one was about to write is nobody's key */
	(void)atomic_compare_exchange_strong(&s->word, &word, 0);
	return 0;
}

int
journal_slot_enter(struct hr_journal *j, struct hr_journal_entry *e, bool make,
    enum journal_slot_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer)
{
	struct journal_slot *s = slot_of(j, e->digest);
	int r;

	do {
		if (holder_take(j) != 0)
			return -1;
		r = slot_look(j, s, e, make, ret_found, ret_tag, answer);
	} while (r == 0);
	return r < 0 ? -1 : 0;
}

_Atomic uint32_t *
journal_slot_elsewhere(const struct hr_journal *j, uint64_t digest)
{
	return &slot_of(j, digest)->elsewhere;
}

bool
journal_slot_has(const struct hr_journal *j, const struct hr_journal_entry *e)
{
	struct journal_slot *s = slot_of(j, e->digest);
	uint64_t word;
	bool has;

	do {
		word = atomic_load(&s->word);
		has = state_of(word) != FREE && slot_has_key(s, e->key, e->key_len);
	} while (!slot_unchanged(s, word));
	/* what is being written may be ours */
	return has || state_of(word) == CLAIMED;
}

bool
journal_slot_begin(
    struct hr_journal *j, uint64_t digest, const char *key, size_t key_len, uint32_t attempt)
{
	struct journal_slot *s = slot_of(j, digest);
	uint64_t word = atomic_load(&s->word);

	do {
		if (state_of(word) != RESERVED || attempt_of(word) != attempt ||
		    !slot_has_key(s, key, key_len))
			return false;
	} while (!atomic_compare_exchange_weak(&s->word, &word, (word & ~(uint64_t)STATE) | BEGUN));
	return true;
}

bool
journal_slot_begun(const struct hr_journal_entry *e)
{
	return state_of(atomic_load(&e->slot->word)) != RESERVED;
}

bool
journal_slot_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len)
{
	struct journal_slot *s = e->slot;

	if (len > SLOT_TEXT - e->key_len)
		return false;
	memcpy(s->text + e->key_len, p, len);
	s->answer_len = (uint32_t)len;
	s->tag = tag;
	atomic_store(&s->at_s, hr_now_ms() / 1000);
	(void)slot_move(j, s, e->attempt, DONE);
	return true;
}

void
journal_slot_filed(struct hr_journal *j, struct hr_journal_entry *e)
{
	atomic_store(&e->slot->at_s, hr_now_ms() / 1000);
	(void)slot_move(j, e->slot, e->attempt, FILED);
}

void
journal_slot_undo(struct hr_journal *j, struct hr_journal_entry *e)
{
	(void)slot_move(j, e->slot, e->attempt, FREE);
	e->slot = NULL;
}

void
journal_slot_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over)
{
	struct journal_slot *s = e->slot;
	uint64_t word = atomic_load(&s->word), next;
	enum state state;

	e->slot = NULL;
	atomic_store(&s->at_s, hr_now_ms() / 1000);
	do {
		state = state_of(word);
		if (attempt_of(word) != e->attempt)
			return;
		if (!over) /* it may begin in this moment */
			next = word_of(e->attempt, 0, state);
		else if (state == DONE || state == FILED)
			next = word_of(e->attempt, 0, state | OVER);
		else
			next = 0;
	} while (!atomic_compare_exchange_weak(&s->word, &word, next));
	if ((word & WAITED) != 0)
		holder_wake(j);
}
