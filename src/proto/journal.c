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
#include "proto/journal_int.h"

#define MAGIC 0x484a3031u /* "HJ01": name and version */
#define KEY_MAX 1024
#define SPARE_MAX 65536  /* a longer file is not kept for the next entry */
#define ENTRY_BYTES 4096 /* of an entry without an answer */
#define SHARE 8          /* no answer takes more than this part of all the room */

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

/* Our own: nobody else of the same number lives. */
static void
spare_name(char *name)
{
	(void)snprintf(name, JOURNAL_NAME, JOURNAL_SPARE "%ld", (long)getpid());
}

void
hr_journal_init(struct hr_journal *j)
{
	memset(j, 0, sizeof(*j));
	j->dir = j->spare = -1;
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
	else
		return 0;
	hr_journal_close(j);
	return -1;
}

void
hr_journal_close(struct hr_journal *j)
{
	char spare[JOURNAL_NAME];

	if (j->spare >= 0) {
		spare_name(spare);
		(void)unlinkat(j->dir, spare, 0);
	}
	hr_fd_close(&j->spare);
	hr_fd_close(&j->dir);
}

/* FNV-1a; the whole key stands in the file. */
static uint64_t
digest_of(const char *key, size_t len)
{
	uint64_t h = 14695981039346656037u;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)key[i]) * 1099511628211u;
	return h;
}

void
journal_name(char *name, uint64_t digest)
{
	(void)snprintf(name, JOURNAL_NAME, "%016" PRIx64, digest);
}

static void
count(struct hr_journal *j, int64_t entries, int64_t bytes)
{
	if (j->counts == NULL)
		return;
	atomic_fetch_add(&j->counts->entries, entries);
	atomic_fetch_add(&j->counts->bytes, bytes);
}

static int
write_at(int fd, const void *p, size_t len, off_t at)
{
	const char *s = p;
	ssize_t n;

	while (len > 0) {
		n = pwrite(fd, s, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		s += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int
read_at(int fd, void *p, size_t len, off_t at)
{
	char *s = p;
	ssize_t n;

	while (len > 0) {
		n = pread(fd, s, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		s += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool
head_read(int fd, struct head *h)
{
	return read_at(fd, h, sizeof(*h), 0) == 0 && h->magic == MAGIC && h->key_len <= KEY_MAX &&
	       h->state >= RESERVED && h->state <= DROPPED;
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
	struct stat mine, there;
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
		if (fstatat(j->dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    there.st_ino == mine.st_ino)
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
record_write(struct hr_journal *j, int fd, const struct hr_journal_entry *e, const char *key)
{
	struct {
		struct head head;
		char key[KEY_MAX];
	} record;
	size_t len = sizeof(record.head) + e->key_len;

	memset(&record.head, 0, sizeof(record.head));
	record.head.magic = MAGIC;
	record.head.state = RESERVED;
	record.head.attempt = e->attempt;
	record.head.key_len = (uint32_t)e->key_len;
	memcpy(record.key, key, e->key_len);
	if (write_at(fd, &record, len, 0) != 0)
		return -1;
	sync_file(j, fd);
	return 0;
}

/* A new entry, whole and locked when others see it. 1: somebody else made one meanwhile. Files are
 * used again: some file systems take long for a new one, ext4 the longer the more were removed in
 * the last seconds. */
static int
entry_make(struct hr_journal *j, struct hr_journal_entry *e, const char *name, const char *key)
{
	char spare[JOURNAL_NAME];

	spare_name(spare);
	if (j->spare < 0) {
		j->spare = openat(
		    j->dir, spare, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (j->spare < 0)
			return -1;
		if (lock_file(j->spare) != 0)
			goto fail;
	}
	if (record_write(j, j->spare, e, key) != 0)
		goto fail;
	if (publish(j, spare, name) != 0) {
		if (errno == EEXIST)
			return 1;
		goto fail;
	}
	if (j->sync)
		(void)fsync(j->dir);
	e->fd = j->spare;
	j->spare = -1;
	count(j, 1, ENTRY_BYTES);
	return 0;
fail:
	(void)unlinkat(j->dir, spare, 0);
	hr_fd_close(&j->spare); /* errno stays */
	return -1;
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
		r = write_at(
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

	if (p == NULL || read_at(fd, p, h->answer_len, (off_t)(sizeof(*h) + h->key_len)) != 0)
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
	char name[JOURNAL_NAME], its[KEY_MAX];
	struct head h;
	int made = 1;

	*e = (struct hr_journal_entry){
	    .fd = -1, .attempt = 1, .digest = digest_of(key, key_len), .key_len = key_len};
	journal_name(name, e->digest);
	*ret_found = HR_JOURNAL_NEW;
	while (made == 1 && (e->fd = open_locked(j, name)) < 0) {
		made = errno == ENOENT ? entry_make(j, e, name, key) : -1;
		if (made < 0)
			return hr_err_sys(err, errno, "journal");
	}
	if (made == 0)
		return 0;
	if (!head_read(e->fd, &h)) /* of another version, or a disk lost it */
		return record_write(j, e->fd, e, key) == 0 ? 0 : hr_err_sys(err, errno, "journal");
	if (h.key_len != key_len || read_at(e->fd, its, key_len, sizeof(h)) != 0 ||
	    memcmp(its, key, key_len) != 0)
		return hr_err_set(err, HR_E_INVAL, "another request has a key of the same digest");
	if (entry_found(j, e, &h, ret_found, ret_tag, answer) != 0)
		return hr_err_sys(err, errno, "journal");
	return 0;
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
	hr_assert(key_len <= KEY_MAX);
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
	if (err != NULL)
		*err = cause;
	return -1;
}

bool
hr_journal_begin(struct hr_journal *j, const char *key, size_t key_len, uint32_t attempt)
{
	static const uint32_t begun = BEGUN;
	char name[JOURNAL_NAME];
	struct head h;
	bool may;
	int fd;

	if (j->dir < 0 || key_len == 0 || attempt == 0)
		return true;
	journal_name(name, digest_of(key, key_len));
	fd = openat(j->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT; /* dropped, or never made */
	if (claim_lock(fd) != 0 || !head_read(fd, &h))
		may = false;
	else
		may = h.state == RESERVED && h.attempt == attempt &&
		      write_at(fd, &begun, sizeof(begun), offsetof(struct head, state)) == 0;
	sync_file(j, fd);
	hr_fd_close(&fd); /* and with it the claim */
	return may;
}

void
hr_journal_mark(struct hr_journal *j, struct hr_journal_entry *e)
{
	static const uint32_t begun = BEGUN;

	if (e->fd < 0)
		return;
	(void)write_at(e->fd, &begun, sizeof(begun), offsetof(struct head, state));
	sync_file(j, e->fd);
}

bool
hr_journal_begun(const struct hr_journal_entry *e)
{
	struct head h;

	return e->fd < 0 || !head_read(e->fd, &h) || h.state != RESERVED;
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

	if (e->fd < 0)
		return;
	if ((int64_t)len > j->bytes_max / SHARE || write_at(e->fd, p, len, at) != 0) {
		(void)!ftruncate(e->fd, at); /* nothing is to be read there */
		h.state = DROPPED;
		h.answer_len = 0;
	} else {
		sync_file(j, e->fd);
		count(j, 0, ((int64_t)len + at) / ENTRY_BYTES * ENTRY_BYTES);
	}
	(void)write_at(e->fd, &h, sizeof(h), 0); /* the page is there: no room is needed */
	sync_file(j, e->fd);
	(void)flock(e->fd, LOCK_UN); /* who waits need not wait until it is sent */
}

void
hr_journal_undo(struct hr_journal *j, struct hr_journal_entry *e)
{
	hr_journal_leave(j, e, true);
}

/* Its file becomes the next entry's. Whoever waits for it finds that it lost its name. */
static void
forget(struct hr_journal *j, struct hr_journal_entry *e)
{
	char name[JOURNAL_NAME], spare[JOURNAL_NAME];
	struct stat st;

	journal_name(name, e->digest);
	/* the lock was given up with the answer; one who has it now reads that */
	if (flock(e->fd, LOCK_EX | LOCK_NB) != 0 || fstat(e->fd, &st) != 0 || st.st_nlink == 0)
		return;
	spare_name(spare);
	if (j->spare >= 0 || st.st_size > SPARE_MAX || renameat(j->dir, name, j->dir, spare) != 0) {
		(void)unlinkat(j->dir, name, 0);
	} else {
		j->spare = e->fd;
		e->fd = -1;
	}
	count(j, -1, -(ENTRY_BYTES + st.st_size / ENTRY_BYTES * ENTRY_BYTES));
}

void
hr_journal_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over)
{
	if (e->fd < 0)
		return;
	if (over)
		forget(j, e);
	hr_fd_close(&e->fd);
}
