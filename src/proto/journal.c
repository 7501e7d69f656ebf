/* Keeps the journal. Invariant: `state` is written after all data that it refers to, and writes
 * below a page are whole or absent, whichever process is killed at whatever time. */
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
#define SPARE_MAX 65536   /* the next entry does not reuse a longer file */
#define PAGE_BYTES 4096   /* minimum of a file; one write of it is atomic */
#define SHARE 8           /* no answer may use more than this fraction of the whole room */

enum state { RESERVED = 1, BEGUN, DONE, DROPPED };

/* The start of each file; the key and the answer follow. */
struct head {
	uint32_t magic;
	uint32_t state;
	uint32_t attempt; /* number of holders so far */
	uint32_t key_len;
	uint32_t tag;
	uint32_t zero;
	uint64_t answer_len;
};

struct record {
	struct head head;
	char key[HR_JOURNAL_KEY_MAX];
};

/* Computes the digest; the whole key is stored in the file. */
static uint64_t
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
	j->dir = j->spare = -1;
}

void
journal_count(struct hr_journal *j, int64_t entries, int64_t bytes)
{
	if (j->counts == NULL)
		return;
	atomic_fetch_add(&j->counts->entries, entries);
	atomic_fetch_add(&j->counts->bytes, bytes);
}

bool
journal_has_name(const struct hr_journal *j, const char *name, ino_t ino)
{
	struct stat st;

	return fstatat(j->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ino;
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
		(void)hr_err_set(
		    err, HR_E_INVAL, "journal %s: other accounts can read or write it", path);
	else
		return 0;
	hr_journal_close(j);
	return -1;
}

/* Locks the spare file and puts its name into `name`. Returns false if there is none, or if another
 * process uses it by now: that process reads the answer, or has dropped the file. */
static bool
spare_take(struct hr_journal *j, char *name)
{
	if (j->spare < 0)
		return false;
	journal_name(name, j->spare_digest);
	if (flock(j->spare, LOCK_EX | LOCK_NB) == 0 && journal_has_name(j, name, j->spare_ino))
		return true;
	hr_fd_close(&j->spare);
	return false;
}

/* Removes the spare file, which spare_take() has locked. */
static void
spare_drop(struct hr_journal *j, const char *name)
{
	if (unlinkat(j->dir, name, 0) == 0)
		journal_count(j, -1, -(PAGE_BYTES + j->spare_more));
	hr_fd_close(&j->spare);
}

void
hr_journal_close(struct hr_journal *j)
{
	char name[JOURNAL_NAME];

	if (spare_take(j, name))
		spare_drop(j, name);
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

/* Returns 1 if a file of that size has a head of this version, 0 if not, -1 with errno if it cannot
 * be read: the content may still be intact then. */
static int
entry_look(int fd, off_t size, struct head *h)
{
	if (size < (off_t)sizeof(*h))
		return 0;
	if (hr_fd_pread_full(fd, h, sizeof(*h), 0) != 0)
		return -1;
	return head_fits(h);
}

static void
sync_file(const struct hr_journal *j, int fd)
{
	if (j->sync)
		(void)fdatasync(fd); /* EIO cannot be repaired here */
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

/* Opens the file of that name, or makes it empty, and locks it. Returns -1 with errno. */
static int
open_locked(struct hr_journal *j, const char *name, struct stat *ret)
{
	int fd;

	for (;;) {
		fd = openat(j->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0)
			return -1;
		if (lock_file(fd) != 0 || fstat(fd, ret) != 0) {
			hr_fd_close(&fd);
			return -1;
		}
		if (journal_has_name(j, name, ret->st_ino))
			return fd;
		hr_fd_close(&fd); /* the holder dropped or renamed the file meanwhile */
	}
}

/* Renames a file unless the new name exists. Returns -1 with errno (EEXIST). */
static int
publish(struct hr_journal *j, const char *from, const char *to)
{
	if (renameat2(j->dir, from, j->dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -1;
	/* The file system lacks RENAME_NOREPLACE. */
	if (linkat(j->dir, from, j->dir, to, 0) != 0)
		return -1;
	return unlinkat(j->dir, from, 0);
}

static struct head
head_of(const struct hr_journal_entry *e, enum state state)
{
	return (struct head){
	    .magic = MAGIC, .state = state, .attempt = e->attempt, .key_len = (uint32_t)e->key_len};
}

/* Writes the used part of the first page: head, key, and an answer that fits. */
static int
page_write(struct hr_journal *j, int fd, const struct head *h, const struct hr_journal_entry *e,
    const void *answer, size_t len)
{
	char page[PAGE_BYTES];
	size_t at = sizeof(*h) + e->key_len;

	memcpy(page, h, sizeof(*h));
	memcpy(page + sizeof(*h), e->key, e->key_len);
	memcpy(page + at, answer, len);
	if (hr_fd_pwrite_full(fd, page, at + len, 0) != 0)
		return -1;
	sync_file(j, fd);
	return 0;
}

static int
entry_reserve(struct hr_journal *j, int fd, const struct hr_journal_entry *e)
{
	struct head h = head_of(e, RESERVED);

	return page_write(j, fd, &h, e, "", 0);
}

/* Makes a new entry from the file of the last finished one. Until then that answer remains
 * available, no further room is needed, and some file systems are slow to make a file (ext4 the
 * slower the more were removed in the last seconds). Returns false if that is not possible. */
static bool
entry_reuse(struct hr_journal *j, struct hr_journal_entry *e, const char *name)
{
	char old[JOURNAL_NAME];

	/* The spare file may belong to the same key, whose answer the caller requests. */
	if (j->spare_digest == e->digest || !spare_take(j, old))
		return false;
	if (entry_reserve(j, j->spare, e) != 0 || publish(j, old, name) != 0) {
		spare_drop(j, old);
		return false;
	}
	if (j->sync)
		(void)fsync(j->dir);
	e->fd = j->spare;
	e->ino = j->spare_ino;
	j->spare = -1;
	if (j->spare_more > 0)
		journal_count(j, 0, -j->spare_more);
	return true;
}

/* Makes a new entry in e->fd, which is empty or has no head of this version: its creator died, or a
 * disk or a command damaged the file. */
static int
entry_make(struct hr_journal *j, struct hr_journal_entry *e, const char *name, bool empty)
{
	int sys;

	if (entry_reserve(j, e->fd, e) == 0) {
		if (empty)
			journal_count(j, 1, PAGE_BYTES);
		if (empty && j->sync)
			(void)fsync(j->dir);
		return 0;
	}
	sys = errno;
	if (empty)
		(void)unlinkat(j->dir, name, 0); /* an unusable file would only take up room */
	errno = sys;
	return -1;
}

/* Excludes entry_take() and hr_journal_begin() from each other: the later one sees the other's
 * change. This range lock is independent of the lock of the file. */
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

/* Takes over an entry whose holder died. */
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

/* Returns 0, or -1 with errno. */
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
	struct stat st;
	struct head h;
	int there;

	*e = (struct hr_journal_entry){
	    .fd = -1, .attempt = 1, .digest = journal_digest(key, key_len), .key_len = key_len};
	memcpy(e->key, key, key_len);
	journal_name(name, e->digest);
	*ret_found = HR_JOURNAL_NEW;
	if (entry_reuse(j, e, name))
		return 0;
	e->fd = open_locked(j, name, &st);
	if (e->fd < 0)
		return hr_err_sys(err, errno, "journal");
	e->ino = st.st_ino;
	there = entry_look(e->fd, st.st_size, &h);
	if (there < 0 || (there == 0 && entry_make(j, e, name, st.st_size == 0) != 0))
		return hr_err_sys(err, errno, "journal");
	if (there == 0)
		return 0;
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
	return (int64_t)e->bytes / PAGE_BYTES * PAGE_BYTES;
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
		/* Drop old answers in favour of a new action. */
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
	journal_name(name, journal_digest(key, key_len));
	fd = openat(j->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		/* the action was undone or finished: a later attempt had an entry of its own */
		return false;
	if (claim_lock(fd) != 0 || hr_fd_pread_full(fd, &r, sizeof(r.head) + key_len, 0) != 0 ||
	    !head_fits(&r.head))
		may = false;
	else /* The other key is in a file that is about to become another entry's. */
		may =
		    r.head.state == RESERVED && r.head.attempt == attempt &&
		    r.head.key_len == key_len && memcmp(r.key, key, key_len) == 0 &&
		    hr_fd_pwrite_full(fd, &begun, sizeof(begun), offsetof(struct head, state)) == 0;
	sync_file(j, fd);
	hr_fd_close(&fd); /* closing releases the claim */
	return may;
}

void
hr_journal_mark(struct hr_journal *j, struct hr_journal_entry *e)
{
	static const uint32_t begun = BEGUN;

	if (e->fd < 0)
		return;
	(void)hr_fd_pwrite_full(e->fd, &begun, sizeof(begun), offsetof(struct head, state));
	sync_file(j, e->fd);
}

bool
hr_journal_begun(const struct hr_journal_entry *e)
{
	struct head h;

	return e->fd < 0 || !head_read(e->fd, &h) || h.state != RESERVED;
}

/* Rewrites the first page, which needs no further room because it exists. */
void
hr_journal_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len)
{
	off_t at = (off_t)(sizeof(struct head) + e->key_len);
	/* After a loss of power even a write within one page may be torn. */
	bool fits = !j->sync && at + (off_t)len <= PAGE_BYTES;
	struct head h = head_of(e, DONE);

	if (e->fd < 0)
		return;
	if ((int64_t)len > j->bytes_max / SHARE ||
	    (!fits && hr_fd_pwrite_full(e->fd, p, len, at) != 0)) {
		(void)!ftruncate(e->fd, at); /* the bytes there must not be read as an answer */
		h.state = DROPPED;
		len = 0;
	}
	e->bytes = at + (off_t)len;
	if (!fits && h.state == DONE) {
		sync_file(j, e->fd);
		journal_count(j, 0, beyond_first_page(e));
	}
	h.tag = tag;
	h.answer_len = len;
	(void)page_write(j, e->fd, &h, e, p, fits ? len : 0);
	(void)flock(e->fd, LOCK_UN); /* releases waiters before the answer is sent */
}

/* Removes the file: a waiter notices that its file lost its name, and makes another one. */
void
hr_journal_undo(struct hr_journal *j, struct hr_journal_entry *e)
{
	char name[JOURNAL_NAME];

	if (e->fd < 0)
		return;
	journal_name(name, e->digest);
	if (unlinkat(j->dir, name, 0) == 0)
		journal_count(j, -1, -PAGE_BYTES);
	hr_fd_close(&e->fd);
}

/* Keeps the file for the next entry. */
static void
forget(struct hr_journal *j, struct hr_journal_entry *e)
{
	char name[JOURNAL_NAME];

	if (j->spare < 0 && e->bytes <= SPARE_MAX) {
		j->spare = e->fd;
		j->spare_digest = e->digest;
		j->spare_ino = e->ino;
		j->spare_more = beyond_first_page(e);
		e->fd = -1;
		return;
	}
	/* The lock was released with the answer; another process may read the file now. */
	journal_name(name, e->digest);
	if (flock(e->fd, LOCK_EX | LOCK_NB) == 0 && journal_has_name(j, name, e->ino) &&
	    unlinkat(j->dir, name, 0) == 0)
		journal_count(j, -1, -(PAGE_BYTES + beyond_first_page(e)));
}

void
hr_journal_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over)
{
	if (e->fd < 0)
		return;
	if (over && e->bytes > 0)
		forget(j, e);
	else if (over)
		hr_journal_undo(j, e);
	hr_fd_close(&e->fd);
}
