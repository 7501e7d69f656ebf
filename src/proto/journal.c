/* The journal. Invariant: the byte `state` of a file is written after everything that it stands
 * for, and what is below a page is written whole or not at all, whoever is killed when. */
#include "config.h"

#include "proto/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "proto/journal_int.h"

#define MAGIC 0x484a3031u /* "HJ01": name and version */
#define SPARE_MAX 65536   /* a longer file is not kept for the next entry */
#define PAGE_BYTES 4096   /* what one call writes whole or not at all */
#define SHARE 8           /* no answer takes more than this part of all the room */

enum state { RESERVED = 1, BEGUN, DONE, DROPPED };

/* At the start of each file, then the key, then the answer. */
struct head {
	uint32_t magic;
	uint32_t state;
	uint32_t attempt; /* how many have held it */
	uint32_t key_len;
	uint32_t tag;
	uint32_t zero;
	uint64_t answer_len;
};

struct record {
	struct head head;
	char key[HR_JOURNAL_KEY_MAX];
};

/* The whole key stands in the file. */
uint64_t
journal_digest(const char *key, size_t len)
{
	return hr_hash(HR_HASH, key, len);
}

void
journal_name(char *name, uint64_t digest)
{
	(void)snprintf(name, JOURNAL_NAME, "%016" PRIx64, digest);
}

void
hr_journal_init(struct hr_journal *j)
{
	memset(j, 0, sizeof(*j));
	j->dir = j->spare = j->slots_fd = -1;
}

int
hr_journal_open(struct hr_journal *j, const char *path, struct hr_err *err)
{
	struct stat st;

	j->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j->dir < 0)
		return hr_err_sys(err, errno, "journal %s", path);
	if (fstat(j->dir, &st) != 0)
		(void)hr_err_sys(err, errno, "journal %s", path);
	else if (st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		(void)hr_err_set(err, HR_E_INVAL, "journal %s: others may reach it", path);
	else if (journal_slots_attach(j) < 0)
		(void)hr_err_sys(err, errno, "journal %s: its slots", path);
	else
		return 0;
	hr_journal_close(j);
	return -1;
}

void
hr_journal_close(struct hr_journal *j)
{
	char spare[JOURNAL_NAME];

	if (journal_spare_take(j, spare))
		journal_spare_drop(j, spare);
	journal_slots_detach(j);
	hr_fd_close(&j->dir);
}

static bool
head_fits(const struct head *h)
{
	return h->magic == MAGIC && h->key_len <= HR_JOURNAL_KEY_MAX && h->state >= RESERVED &&
	       h->state <= DROPPED;
}

static bool
head_read(int fd, struct head *h)
{
	return hr_fd_pread_full(fd, h, sizeof(*h), 0) == 0 && head_fits(h);
}

static void
sync_file(const struct hr_journal *j, int fd)
{
	if (j->sync)
		(void)fdatasync(fd); /* EIO: there is nobody who could do better */
}

static int
lock_file(int fd)
{
	int r;

	do
		r = flock(fd, LOCK_EX);
	while (r != 0 && errno == EINTR);
	return r;
}

/* The file of the name, locked and still of that name. -1 with errno: ENOENT if there is none. */
static int
open_locked(struct hr_journal *j, const char *name)
{
	struct stat mine;
	int fd;

	for (;;) {
		fd = openat(j->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0)
			return -1;
		if (lock_file(fd) != 0 || fstat(fd, &mine) != 0) {
			hr_fd_close(&fd);
			return -1;
		}
		if (journal_has_name(j, name, mine.st_ino))
			return fd;
		hr_fd_close(&fd); /* undone, forgotten or dropped while we waited */
	}
}

/* A name for a file that has none yet, unless another has the name. -1 with errno (EEXIST). */
static int
publish(struct hr_journal *j, const char *from, const char *to)
{
	if (renameat2(j->dir, from, j->dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -1;
	/* a file system that cannot */
	if (linkat(j->dir, from, j->dir, to, 0) != 0)
		return -1;
	return unlinkat(j->dir, from, 0);
}

static int
record_write(struct hr_journal *j, int fd, const struct hr_journal_entry *e)
{
	struct record record;
	size_t len = sizeof(record.head) + e->key_len;

	memset(&record.head, 0, sizeof(record.head));
	record.head.magic = MAGIC;
	record.head.state = RESERVED;
	record.head.attempt = e->attempt;
	record.head.key_len = (uint32_t)e->key_len;
	memcpy(record.key, e->key, e->key_len);
	if (hr_fd_pwrite_full(fd, &record, len, 0) != 0)
		return -1;
	sync_file(j, fd);
	return 0;
}

/* The spare file, which is locked, becomes the entry: whole when others see it. 1: somebody else
 * made one meanwhile. */
static int
entry_place(struct hr_journal *j, struct hr_journal_entry *e, const char *spare, const char *name)
{
	if (record_write(j, j->spare, e) < 0)
		return -1;
	if (publish(j, spare, name) != 0)
		return errno == EEXIST ? 1 : -1;
	if (j->sync)
		(void)fsync(j->dir);
	e->fd = j->spare;
	j->spare = -1;
	return 0;
}

/* A new entry of the file of one that is over, which loses its name only now: one call for two, and
 * an answer stays for as long as it is in nobody's way. 1: there is no such file, or it would not
 * do; or somebody has the name. */
static int
entry_reuse(struct hr_journal *j, struct hr_journal_entry *e, const char *name)
{
	char spare[JOURNAL_NAME];

	/* of the same key: its answer is what is asked for */
	if (!j->spare_named || j->spare_digest == e->digest || !journal_spare_take(j, spare))
		return 1;
	if (entry_place(j, e, spare, name) != 0) {
		journal_spare_drop(j, spare);
		return 1;
	}
	e->ino = j->spare_ino;
	if (j->spare_more > 0)
		journal_count(j, 0, -j->spare_more);
	return 0;
}

/* A new entry. 1: somebody else made one meanwhile. Files are used again: some file systems take
 * long for a new one, ext4 the longer the more were removed in the last seconds. */
static int
entry_make(struct hr_journal *j, struct hr_journal_entry *e, const char *name)
{
	char spare[JOURNAL_NAME];
	int made;

	if (j->spare >= 0 && j->spare_named)
		hr_fd_close(&j->spare); /* an entry as any other from now on */
	journal_spare_name(spare);
	if (j->spare < 0) {
		j->spare_named = false;
		j->spare = openat(
		    j->dir, spare, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (j->spare < 0)
			return -1;
		if (lock_file(j->spare) != 0) {
			journal_spare_drop(j, spare);
			return -1;
		}
	}
	made = entry_place(j, e, spare, name);
	if (made < 0)
		journal_spare_drop(j, spare);
	if (made == 0)
		journal_count(j, 1, JOURNAL_ENTRY_BYTES);
	return made;
}

/* Whoever comes between us and our own keeper loses: see hr_journal_begin(). The lock of a range
 * has nothing to do with that of the file. */
static int
claim_lock(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int r;

	do
		r = fcntl(fd, F_OFD_SETLKW, &l);
	while (r != 0 && errno == EINTR);
	return r;
}

static void
claim_unlock(int fd)
{
	struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};

	(void)fcntl(fd, F_OFD_SETLK, &l);
}

/* Its holder died. */
static int
entry_take(struct hr_journal *j, struct hr_journal_entry *e, struct head *h)
{
	int r = -1;

	if (claim_lock(e->fd) != 0)
		return -1;
	if (head_read(e->fd, h)) {
		e->attempt = ++h->attempt;
		r = hr_fd_pwrite_full(
		    e->fd, &h->attempt, sizeof(h->attempt), offsetof(struct head, attempt));
		sync_file(j, e->fd);
	}
	claim_unlock(e->fd);
	return r;
}

static int
answer_read(int fd, const struct head *h, struct hr_buf *answer)
{
	char *p = hr_buf_reserve(answer, h->answer_len);

	if (p == NULL ||
	    hr_fd_pread_full(fd, p, h->answer_len, (off_t)(sizeof(*h) + h->key_len)) != 0)
		return -1;
	hr_buf_grew(answer, h->answer_len);
	return 0;
}

/* 0; -1 with errno. */
static int
entry_found(struct hr_journal *j, struct hr_journal_entry *e, struct head *h,
    enum hr_journal_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer)
{
	switch (h->state) {
	case DONE:
		*ret_tag = h->tag;
		*ret_found = HR_JOURNAL_DONE;
		return answer_read(e->fd, h, answer);
	case DROPPED: *ret_found = HR_JOURNAL_DROPPED; return 0;
	default: break;
	}
	if (entry_take(j, e, h) != 0)
		return -1;
	*ret_found = h->state == BEGUN ? HR_JOURNAL_BEGUN : HR_JOURNAL_NEW;
	return 0;
}

static int
enter(struct hr_journal *j, const char *key, size_t key_len, struct hr_journal_entry *e,
    enum hr_journal_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer, struct hr_err *err)
{
	char name[JOURNAL_NAME], its[HR_JOURNAL_KEY_MAX];
	struct head h;
	int made;

	*e = (struct hr_journal_entry){
	    .fd = -1, .attempt = 1, .digest = journal_digest(key, key_len), .key_len = key_len};
	memcpy(e->key, key, key_len);
	journal_name(name, e->digest);
	*ret_found = HR_JOURNAL_NEW;
	made = entry_reuse(j, e, name);
	while (made == 1 && (e->fd = open_locked(j, name)) < 0) {
		made = errno == ENOENT ? entry_make(j, e, name) : -1;
		if (made < 0)
			return hr_err_sys(err, errno, "journal");
	}
	if (made == 0)
		return 0;
	if (!head_read(e->fd, &h)) /* of another version, or a disk lost it */
		return record_write(j, e->fd, e) == 0 ? 0 : hr_err_sys(err, errno, "journal");
	if (h.key_len != key_len || hr_fd_pread_full(e->fd, its, key_len, sizeof(h)) != 0 ||
	    memcmp(its, key, key_len) != 0)
		return hr_err_set(err, HR_E_INVAL, "another request has a key of the same digest");
	if (entry_found(j, e, &h, ret_found, ret_tag, answer) != 0)
		return hr_err_sys(err, errno, "journal");
	return 0;
}

static int64_t
beyond_first_page(const struct hr_journal_entry *e)
{
	return (int64_t)e->bytes / JOURNAL_ENTRY_BYTES * JOURNAL_ENTRY_BYTES;
}

/* ---- one action ---- */

int
hr_journal_enter(struct hr_journal *j, const char *key, size_t key_len,
    struct hr_journal_entry *ret, enum hr_journal_found *ret_found, uint32_t *ret_tag,
    struct hr_buf *answer, struct hr_err *err)
{
	struct hr_err cause = {0};
	size_t had = answer->len;
	int tries;

	*ret = (struct hr_journal_entry){.fd = -1};
	*ret_found = HR_JOURNAL_NEW;
	if (j->dir < 0 || key_len == 0)
		return 0;
	hr_assert(key_len <= HR_JOURNAL_KEY_MAX);
	for (tries = 0; tries < 2; tries++) {
		if (enter(j, key, key_len, ret, ret_found, ret_tag, answer, &cause) == 0) {
			j->failing = false;
			return 0;
		}
		hr_fd_close(&ret->fd);
		if (cause.sys != ENOSPC && cause.sys != EDQUOT)
			break;
		/* old answers are worth less than a new action */
		journal_drop_oldest(j, JOURNAL_HALF, j->bytes_max, j->age_max_ms);
		hr_assert(answer->len == had);
	}
	*ret = (struct hr_journal_entry){.fd = -1};
	return hr_err_pass(err, &cause);
}

bool
hr_journal_begin(struct hr_journal *j, const char *key, size_t key_len, uint32_t attempt)
{
	static const uint32_t begun = BEGUN;
	char name[JOURNAL_NAME];
	struct record r;
	bool may;
	int fd;

	if (j->dir < 0 || key_len == 0 || attempt == 0)
		return true;
	hr_assert(key_len <= HR_JOURNAL_KEY_MAX);
	if ((attempt & JOURNAL_IN_SLOT) != 0) /* made after we looked, perhaps */
		return journal_slots_attach(j) == 0 &&
		       journal_slot_begin(j, journal_digest(key, key_len), key, key_len, attempt);
	journal_name(name, journal_digest(key, key_len));
	fd = openat(j->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false; /* undone, or over: a later attempt was made, and had an entry of its
				 own */
	if (claim_lock(fd) != 0 || hr_fd_pread_full(fd, &r, sizeof(r.head) + key_len, 0) != 0 ||
	    !head_fits(&r.head))
		may = false;
	else /* a file that is about to become another's entry has that one's key */
		may =
		    r.head.state == RESERVED && r.head.attempt == attempt &&
		    r.head.key_len == key_len && memcmp(r.key, key, key_len) == 0 &&
		    hr_fd_pwrite_full(fd, &begun, sizeof(begun), offsetof(struct head, state)) == 0;
	sync_file(j, fd);
	hr_fd_close(&fd); /* and with it the claim */
	return may;
}

void
hr_journal_mark(struct hr_journal *j, struct hr_journal_entry *e)
{
	static const uint32_t begun = BEGUN;

	if (e->slot != NULL)
		(void)journal_slot_begin(j, e->digest, e->key, e->key_len, e->attempt);
	if (e->slot != NULL || e->fd < 0)
		return;
	(void)hr_fd_pwrite_full(e->fd, &begun, sizeof(begun), offsetof(struct head, state));
	sync_file(j, e->fd);
}

bool
hr_journal_begun(const struct hr_journal_entry *e)
{
	struct head h;

	if (e->slot != NULL)
		return journal_slot_begun(e);
	return e->fd < 0 || !head_read(e->fd, &h) || h.state != RESERVED;
}

/* Within the first page, which is there: no room is needed, and it is written whole or not at all.
 */
static void
done_at_once(const struct hr_journal_entry *e, const struct head *h, const void *p, size_t len)
{
	char page[PAGE_BYTES];

	memcpy(page, h, sizeof(*h));
	memcpy(page + sizeof(*h), e->key, e->key_len);
	memcpy(page + sizeof(*h) + e->key_len, p, len);
	(void)hr_fd_pwrite_full(e->fd, page, sizeof(*h) + e->key_len + len, 0);
}

void
hr_journal_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len)
{
	struct head h = {.magic = MAGIC,
	    .state = DONE,
	    .attempt = e->attempt,
	    .key_len = (uint32_t)e->key_len,
	    .tag = tag,
	    .answer_len = len};
	off_t at = (off_t)(sizeof(h) + e->key_len);

	if (e->slot != NULL)
		journal_brief_done(j, e, tag, p, len);
	if (e->slot != NULL || e->fd < 0)
		return;
	e->bytes = at + (off_t)len;
	if (!j->sync && e->bytes <= PAGE_BYTES && (int64_t)len <= j->bytes_max / SHARE) {
		done_at_once(e, &h, p, len);
		(void)flock(e->fd, LOCK_UN);
		return;
	}
	if ((int64_t)len > j->bytes_max / SHARE || hr_fd_pwrite_full(e->fd, p, len, at) != 0) {
		(void)!ftruncate(e->fd, at); /* nothing is to be read there */
		h.state = DROPPED;
		h.answer_len = 0;
		e->bytes = at;
	} else {
		sync_file(j, e->fd);
		journal_count(j, 0, beyond_first_page(e));
	}
	(void)hr_fd_pwrite_full(e->fd, &h, sizeof(h), 0); /* the page is there: no room is needed */
	sync_file(j, e->fd);
	(void)flock(e->fd, LOCK_UN); /* who waits need not wait until it is sent */
}

/* Without an answer. Whoever waits for it finds that it lost its name. */
void
hr_journal_undo(struct hr_journal *j, struct hr_journal_entry *e)
{
	char name[JOURNAL_NAME], spare[JOURNAL_NAME];

	if (e->slot != NULL)
		journal_slot_undo(j, e);
	if (e->fd < 0)
		return;
	journal_name(name, e->digest);
	journal_spare_name(spare);
	if (j->spare < 0 && renameat(j->dir, name, j->dir, spare) == 0) {
		j->spare = e->fd;
		j->spare_named = false;
		e->fd = -1;
	} else {
		(void)unlinkat(j->dir, name, 0);
	}
	journal_count(j, -1, -JOURNAL_ENTRY_BYTES);
	hr_fd_close(&e->fd);
	journal_brief_over(e);
}

/* Its file becomes the next entry's. */
static void
forget(struct hr_journal *j, struct hr_journal_entry *e)
{
	char name[JOURNAL_NAME];
	struct stat st;

	if (e->ino == 0 && fstat(e->fd, &st) == 0)
		e->ino = st.st_ino;
	if (j->spare < 0 && e->bytes <= SPARE_MAX) {
		j->spare = e->fd;
		j->spare_named = true;
		j->spare_digest = e->digest;
		j->spare_ino = e->ino;
		j->spare_more = beyond_first_page(e);
		e->fd = -1;
		return;
	}
	/* the lock was given up with the answer; one who has it now reads that */
	journal_name(name, e->digest);
	if (flock(e->fd, LOCK_EX | LOCK_NB) == 0 && journal_has_name(j, name, e->ino) &&
	    unlinkat(j->dir, name, 0) == 0)
		journal_count(j, -1, -(JOURNAL_ENTRY_BYTES + beyond_first_page(e)));
}

void
hr_journal_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over)
{
	if (e->slot != NULL)
		journal_slot_leave(j, e, over);
	if (e->fd < 0)
		return;
	if (over && e->bytes > 0)
		forget(j, e);
	else if (over)
		hr_journal_undo(j, e);
	if (over)
		journal_brief_over(e);
	hr_fd_close(&e->fd);
}
