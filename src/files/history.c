/* Keeps the undo history on disk:
 *   lock               locked with flock; holds the size of all entries
 *   d<part>/d<part>/…  the path, percent-encoded and cut into parts that fit a file name
 *   …/e<number>        a text; the highest number is the newest */
#include "config.h"

#include "files/history.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"

#define LOCK "lock"
#define PART_MAX 200
#define PIECE (64u << 10)
#define ENTRY_NAME 32
/* maximum entries of one path seen at once: at most ten remain after each push */
#define SEEN_MAX 64

/* ---- the directory and its lock ---- */

int
hr_history_open(struct hr_history *h, const char *dir, struct hr_err *err)
{
	h->dir = h->lock = -1;
	h->limit = HR_HISTORY_BYTES;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "%s", dir);
	h->dir = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (h->dir >= 0)
		h->lock = openat(h->dir, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (h->lock < 0) {
		(void)hr_err_sys(err, errno, "%s", dir);
		hr_history_close(h);
		return -1;
	}
	while (flock(h->lock, LOCK_EX) < 0) {
		if (errno == EINTR)
			continue;
		(void)hr_err_sys(err, errno, "%s", dir);
		hr_history_close(h);
		return -1;
	}
	return 0;
}

void
hr_history_close(struct hr_history *h)
{
	hr_fd_close(&h->lock);
	hr_fd_close(&h->dir);
}

static uint64_t
size_get(const struct hr_history *h)
{
	uint64_t size = 0;

	return pread(h->lock, &size, sizeof(size), 0) == (ssize_t)sizeof(size) ? size : 0;
}

/* Stores the size. A wrong size only changes the time at which old entries are removed. */
static void
size_set(const struct hr_history *h, uint64_t size)
{
	if (pwrite(h->lock, &size, sizeof(size), 0) < 0 && ftruncate(h->lock, 0) < 0)
		hr_log(HR_LOG_WARNING, "cannot write the undo history: %s", strerror(errno));
}

static void
size_move(const struct hr_history *h, uint64_t more, uint64_t less)
{
	uint64_t size = size_get(h) + more;

	size_set(h, size > less ? size - less : 0);
}

/* ---- the directory of a path ---- */

/* Enters (and makes, if `make`) the directory of one part, and replaces *dir by it. */
static int
enter(int *dir, const char *part, bool make, struct hr_err *err)
{
	int next;

	if (make && mkdirat(*dir, part, 0700) < 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "undo history");
	next = openat(*dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return hr_err_sys(err, errno, "undo history");
	hr_fd_close(dir);
	*dir = next;
	return 0;
}

/* Opens the directory of a path's entries. Returns -1 with err->sys ENOENT if there is none. */
static int
place_open(const struct hr_history *h, struct hr_span path, bool make, struct hr_err *err)
{
	int dir = fcntl(h->dir, F_DUPFD_CLOEXEC, 3), r = 0;
	char part[PART_MAX + 8];
	size_t i = 0, n;
	unsigned char c;

	if (dir < 0)
		return hr_err_sys(err, errno, "undo history");
	while (r == 0 && i < path.len) {
		part[0] = 'd';
		for (n = 1; i < path.len && n < PART_MAX; i++) {
			c = (unsigned char)path.p[i];
			if (isalnum(c) || c == '.' || c == '_' || c == '-')
				part[n++] = (char)c;
			else
				n += (size_t)snprintf(part + n, 4, "%%%02X", c);
		}
		part[n] = '\0';
		r = enter(&dir, part, make, err);
	}
	if (r < 0)
		hr_fd_close(&dir);
	return dir;
}

static void
entry_name(char out[ENTRY_NAME], uint64_t number)
{
	(void)snprintf(out, ENTRY_NAME, "e%020" PRIu64, number);
}

static int
compare_numbers(const void *p, const void *q)
{
	const uint64_t *x = p, *y = q;

	return *x < *y ? -1 : *x > *y;
}

/* Lists the numbers of a path's entries, ascending. Returns how many, or -1. */
static int
entries_list(int place, uint64_t numbers[SEEN_MAX], struct hr_err *err)
{
	DIR *dir = hr_dir_take(openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *d;
	int n = 0;

	if (dir == NULL)
		return hr_err_sys(err, errno, "undo history");
	while ((d = hr_dir_next(dir)) != NULL && n < SEEN_MAX)
		if (d->d_name[0] == 'e')
			numbers[n++] = strtoull(d->d_name + 1, NULL, 10);
	if (d == NULL && errno != 0)
		n = hr_err_sys(err, errno, "undo history");
	(void)closedir(dir);
	if (n > 1)
		qsort(numbers, (size_t)n, sizeof(numbers[0]), compare_numbers);
	return n;
}

static void
entry_remove(const struct hr_history *h, int place, uint64_t number)
{
	char name[ENTRY_NAME];
	struct stat st;

	entry_name(name, number);
	if (fstatat(place, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st.st_size = 0;
	if (unlinkat(place, name, 0) == 0)
		size_move(h, 0, (uint64_t)st.st_size);
}

/* ---- the limit of all entries ---- */

struct aged {
	int64_t ns;
	uint64_t size;
};

struct sweep {
	struct hr_buf all; /* an array of struct aged */
	int64_t oldest_kept;
	uint64_t left;
	bool removing;
};

static int64_t
age_of(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int
sweep_visit(int dirfd, const char *name, const struct stat *st, void *arg)
{
	struct aged a = {.ns = age_of(st), .size = (uint64_t)st->st_size};
	struct sweep *s = arg;

	if (s->removing && S_ISDIR(st->st_mode)) {
		(void)unlinkat(dirfd, name, AT_REMOVEDIR); /* fails unless the directory is empty */
	} else if (S_ISREG(st->st_mode) && name[0] == 'e') {
		if (!s->removing)
			hr_buf_add(&s->all, &a, sizeof(a));
		else if (a.ns < s->oldest_kept)
			(void)unlinkat(dirfd, name, 0);
		else
			s->left += a.size;
	}
	return 0;
}

static int
compare_aged(const void *p, const void *q)
{
	const struct aged *x = p, *y = q;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0; /* sorts the youngest first */
}

/* Removes the oldest entries until half the limit is left. */
static int
remove_oldest(const struct hr_history *h, struct hr_err *err)
{
	struct sweep s = {.oldest_kept = INT64_MIN};
	const struct aged *a;
	char self[64];
	uint64_t sum = 0;
	size_t i, n;
	int r;

	/* hr_path_walk() takes a path, and follows no link below it */
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d/.", h->dir);
	hr_buf_init(&s.all, 64u << 20);
	r = hr_path_walk(self, sweep_visit, &s, NULL);
	if (r == 0)
		r = hr_buf_check(&s.all, err);
	if (r == 0) {
		n = s.all.len / sizeof(*a);
		a = (const struct aged *)(const void *)s.all.p;
		if (n > 1)
			qsort(s.all.p, n, sizeof(*a), compare_aged);
		for (i = 0; i < n; i++) {
			sum += a[i].size;
			if (sum > h->limit / 2) {
				s.oldest_kept = a[i].ns + 1;
				break;
			}
		}
		s.removing = true;
		r = hr_path_walk(self, sweep_visit, &s, NULL);
		size_set(h, s.left);
	}
	hr_buf_done(&s.all);
	return r;
}

/* ---- entries ---- */

static void
forget(const struct hr_history *h, int place)
{
	uint64_t numbers[SEEN_MAX];
	int n = entries_list(place, numbers, NULL);

	while (n > 0)
		entry_remove(h, place, numbers[--n]);
}

static int
entry_write(int place, uint64_t number, const char *text, size_t len, struct hr_err *err)
{
	char name[ENTRY_NAME];
	int r;
	HR_CLOSE int fd = openat(place, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return hr_err_sys(err, errno, "undo history");
	r = hr_fd_write_full(fd, text, len, err);
	entry_name(name, number);
	if (r == 0 && renameat(place, "new", place, name) < 0)
		r = hr_err_sys(err, errno, "undo history");
	if (r < 0)
		(void)unlinkat(place, "new", 0);
	return r;
}

static int
push(struct hr_history *h, struct hr_span path, const char *text, size_t len, struct hr_err *err)
{
	uint64_t numbers[SEEN_MAX];
	int n, i, r = -1;
	HR_CLOSE int place = -1;

	if (size_get(h) + len > h->limit && remove_oldest(h, err) < 0)
		return -1;
	place = place_open(h, path, true, err);
	if (place < 0)
		return -1;
	n = entries_list(place, numbers, err);
	if (n >= 0 && len > h->limit / 2)
		(void)hr_err_set(err, HR_E_TOOLARGE, "undo history: a text of %zu bytes", len);
	else if (n >= 0)
		r = entry_write(place, n > 0 ? numbers[n - 1] + 1 : 1, text, len, err);
	if (r == 0) {
		size_move(h, len, 0);
		for (i = 0; i <= n - HR_HISTORY_DEPTH; i++)
			entry_remove(h, place, numbers[i]);
	}
	return r;
}

int
hr_history_push(
    struct hr_history *h, struct hr_span path, const char *text, size_t len, struct hr_err *err)
{
	HR_CLOSE int place = -1;

	if (push(h, path, text, len, err) == 0)
		return 0;
	/* opens it again: push() may have failed to open it */
	place = place_open(h, path, false, NULL);
	if (place >= 0)
		forget(h, place);
	return -1;
}

/* Finds the newest entry of a path. Returns 1 with *ret_place, which the caller closes; 0: there is
 * none; -1: an error. */
static int
newest(struct hr_history *h, struct hr_span path, int *ret_place, uint64_t *ret_number,
    struct hr_err *err)
{
	struct hr_err why = {.code = HR_OK};
	uint64_t numbers[SEEN_MAX];
	int n;

	*ret_place = place_open(h, path, false, &why);
	if (*ret_place < 0) {
		if (why.sys == ENOENT)
			return 0;
		return hr_err_pass(err, &why);
	}
	n = entries_list(*ret_place, numbers, err);
	if (n > 0) {
		*ret_number = numbers[n - 1];
		return 1;
	}
	hr_fd_close(ret_place);
	return n;
}

static int
entry_read(int place, uint64_t number, struct hr_buf *text, struct hr_err *err)
{
	char name[ENTRY_NAME], *room;
	ssize_t n = 0;
	HR_CLOSE int fd = -1;

	entry_name(name, number);
	fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "undo history");
	while ((room = hr_buf_reserve(text, PIECE)) != NULL) {
		n = hr_fd_read(fd, room, PIECE);
		if (n <= 0)
			break;
		hr_buf_grew(text, (size_t)n);
	}
	if (n < 0)
		(void)hr_err_sys(err, errno, "undo history");
	return n < 0 ? -1 : hr_buf_check(text, err);
}

int
hr_history_peek(struct hr_history *h, struct hr_span path, struct hr_buf *text, struct hr_err *err)
{
	uint64_t number = 0;
	HR_CLOSE int place = -1;
	int r = newest(h, path, &place, &number, err);

	if (r <= 0)
		return r;
	r = entry_read(place, number, text, err);
	return r < 0 ? -1 : 1;
}

int
hr_history_drop(struct hr_history *h, struct hr_span path, struct hr_err *err)
{
	uint64_t number = 0;
	HR_CLOSE int place = -1;
	int r = newest(h, path, &place, &number, err);

	if (r <= 0)
		return r;
	entry_remove(h, place, number);
	return 0;
}
