/* Reads lines of a growing file. */
#include "config.h"

#include "host/common/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/err.h"

#define LINE_MAX_BYTES (1u << 20)
#define PIECE 65536

int
hr_logfile_keep(char *path, struct hr_err *err)
{
	HR_FREE char *kept = strndup(path, strlen(path) - strlen(HR_LOGFILE_NEW));

	if (kept == NULL)
		return hr_err_nomem(err);
	if (rename(path, kept) != 0)
		return hr_err_sys(err, errno, "rename %s", path);
	path[strlen(kept)] = '\0';
	return 0;
}

void
hr_logfile_tail(const char *path, char *ret, size_t cap)
{
	HR_CLOSE int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char *first;
	struct stat st;
	ssize_t n;

	ret[0] = '\0';
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)cap)
		(void)lseek(fd, -(off_t)(cap - 1), SEEK_END);
	n = hr_fd_read_full(fd, ret, cap - 1, NULL);
	ret[n > 0 ? n : 0] = '\0';
	if (n == (ssize_t)cap - 1 && (first = strchr(ret, '\n')) != NULL)
		memmove(ret, first + 1, strlen(first));
}

/* Passes the whole lines in b to fn; at_end: also an incomplete one. A non-zero result means
 * stop. */
static int
give_lines(struct hr_buf *b, bool at_end, hr_line_fn *fn, void *arg)
{
	char *p = b->p, *end = b->p + b->len, *nl;
	int r = 0;

	while (
	    r == 0 && b->len > 0 && p < end && (nl = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		r = fn(arg, p, (size_t)(nl - p));
		p = nl + 1;
	}
	if (r == 0 && at_end && b->len > 0 && p < end) {
		r = fn(arg, p, (size_t)(end - p));
		p = end;
	}
	if (b->len > 0)
		hr_buf_drop_front(b, (size_t)(p - b->p));
	return r;
}

/* Reads to the present end of the file. Returns 1 if fn asks to stop or stop_fd is readable, 0 if
 * not, or -1 with *err set. */
static int
drain(int fd, int stop_fd, const char *path, struct hr_buf *b, hr_line_fn *fn, void *arg,
    struct hr_err *err)
{
	ssize_t n;

	for (;;) {
		char *room = hr_buf_reserve(b, PIECE);

		if (room == NULL) {
			/* a line that exceeds the buffer is passed on in parts */
			if (b->fail != HR_E_TOOLARGE)
				return hr_err_nomem(err);
			b->fail = HR_OK;
			if (give_lines(b, true, fn, arg) != 0)
				return 1;
			continue;
		}
		n = hr_fd_read(fd, room, PIECE);
		if (n < 0)
			return hr_err_sys(err, errno, "read %s", path);
		if (n == 0)
			return 0;
		if (hr_fd_is_readable(stop_fd))
			return 1;
		hr_buf_grew(b, (size_t)n);
		if (give_lines(b, false, fn, arg) != 0)
			return 1;
	}
}

int
hr_logfile_read(const char *path, int watch_fd, int stop_fd, bool follow, hr_line_fn *fn, void *arg,
    struct hr_err *err)
{
	int r;
	HR_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	HR_CLOSE int notes = -1;
	struct pollfd p[3];
	char events[4096];
	HR_BUF(b, LINE_MAX_BYTES + PIECE);
	bool ended = false;

	if (fd < 0)
		return hr_err_sys(err, errno, "open %s", path);
	if (follow) {
		notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (notes < 0 || inotify_add_watch(notes, path, IN_MODIFY) < 0)
			return hr_err_sys(err, errno, "watch %s", path);
	}
	for (;;) {
		r = drain(fd, stop_fd, path, &b, fn, arg, err);
		if (r != 0 || !follow || ended)
			break;
		p[0] = (struct pollfd){.fd = notes, .events = POLLIN};
		p[1] = (struct pollfd){.fd = watch_fd, .events = POLLIN};
		p[2] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
		if (poll(p, 3, -1) < 0 && errno != EINTR) {
			r = hr_err_sys(err, errno, "wait for %s", path);
			break;
		}
		if (p[2].revents != 0) {
			r = 1;
			break;
		}
		ended = p[1].revents != 0;
		while (hr_fd_read(notes, events, sizeof(events)) > 0)
			;
	}
	if (r == 0)
		(void)give_lines(&b, true, fn, arg);
	return r < 0 ? -1 : 0;
}
