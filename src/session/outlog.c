/* A ring of pieces, in a file or in memory, and the piece that is being filled: a short command's
 * output costs no system call. */
#include "config.h"

#include "session/outlog.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "session/statedir.h"

#define PIECE ((size_t)32 << 10)

int
hr_outlog_init(struct hr_outlog *o, size_t cap, struct hr_statedir *dir, struct hr_err *err)
{
	memset(o, 0, sizeof(*o));
	o->fd = -1;
	if (cap == 0)
		return 0;
	o->recent = malloc(PIECE);
	if (o->recent == NULL)
		return hr_err_nomem(err);
	o->cap = cap;
	o->size = (cap + PIECE - 1) / PIECE * PIECE;
	o->dir = dir;
	return 0;
}

void
hr_outlog_done(struct hr_outlog *o)
{
	if (o->recent == NULL)
		return;
	hr_fd_close(&o->fd);
	if (o->memory != NULL)
		(void)munmap(o->memory, o->size);
	free(o->recent);
	memset(o, 0, sizeof(*o));
	o->fd = -1;
}

uint64_t
hr_outlog_start(const struct hr_outlog *o)
{
	uint64_t start = o->end > o->cap ? o->end - o->cap : 0;

	return start > o->first ? start : o->first;
}

/* ---- the store ---- */

static bool
in_memory(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 &&
	       ((unsigned long)st.f_type == TMPFS_MAGIC || (unsigned long)st.f_type == RAMFS_MAGIC);
}

static bool
write_piece(struct hr_outlog *o)
{
	off_t at = (off_t)(o->stored % o->size);
	size_t done = 0;
	ssize_t n;

	while (done < PIECE) {
		n = pwrite(o->fd, o->recent + done, PIECE - done, at + (off_t)done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

static bool
read_back(const struct hr_outlog *o, uint64_t from, char *to, size_t len)
{
	off_t at = (off_t)(from % o->size);
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pread(o->fd, to + done, len - done, at + (off_t)done);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n == 0)
			errno = EIO; /* we wrote more than that */
		if (errno != EINTR)
			return false;
	}
	return true;
}

/* From the file to memory, with as much as can be read. */
static void
store_in_memory(struct hr_outlog *o)
{
	size_t len = o->stored < o->size ? (size_t)o->stored : o->size;
	void *p = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		hr_log(HR_LOG_WARNING, "no memory for the log of the output: it is short");
		o->refused = true;
	} else {
		o->memory = p;
	}
	/* the store lies in the same order in both, from its beginning on */
	if (o->memory == NULL || (o->fd >= 0 && !read_back(o, 0, o->memory, len)))
		o->first = o->stored;
	hr_fd_close(&o->fd);
}

static void
store_open(struct hr_outlog *o)
{
	struct hr_err err = {0};

	if (o->dir != NULL) {
		o->fd = hr_statedir_unnamed(o->dir, HR_OUTLOG_NAME, &err);
		if (o->fd < 0)
			hr_log(HR_LOG_WARNING, "the log of the output is in memory: %s", err.msg);
		else if (in_memory(o->fd))
			hr_fd_close(&o->fd); /* ours costs no system calls */
	}
	if (o->fd < 0)
		store_in_memory(o);
}

/* The recent piece is full. */
static void
store(struct hr_outlog *o)
{
	if (o->fd < 0 && o->memory == NULL && !o->refused)
		store_open(o);
	if (o->fd >= 0 && !write_piece(o)) {
		hr_log(
		    HR_LOG_WARNING, "the log of the output goes on in memory: %s", strerror(errno));
		store_in_memory(o);
	}
	if (o->memory != NULL)
		memcpy(o->memory + o->stored % o->size, o->recent, PIECE);
	o->stored += PIECE;
	if (o->refused)
		o->first = o->stored;
}

/* ---- what is kept ---- */

void
hr_outlog_add(struct hr_outlog *o, const char *p, size_t len)
{
	size_t at, n;

	if (o->recent == NULL) {
		o->end += len;
		return;
	}
	while (len > 0) {
		at = (size_t)(o->end - o->stored);
		n = len < PIECE - at ? len : PIECE - at;
		memcpy(o->recent + at, p, n);
		o->end += n;
		p += n;
		len -= n;
		if (at + n == PIECE)
			store(o);
	}
}

const char *
hr_outlog_read(struct hr_outlog *o, uint64_t *io_from, size_t *ret_len)
{
	static char back[PIECE]; /* one loop, one thread */
	uint64_t start = hr_outlog_start(o);
	size_t at, len;

	hr_assert(*io_from <= o->end);
	*ret_len = 0;
	if (*io_from < start)
		*io_from = start;
	if (*io_from == o->end)
		return "";
	if (*io_from < o->stored && o->fd >= 0) {
		at = (size_t)(*io_from % PIECE);
		len = PIECE - at;
		*ret_len = len;
		if (read_back(o, *io_from, back, len))
			return back;
		hr_log(HR_LOG_WARNING, "output that was kept cannot be read: %s", strerror(errno));
		o->first = *io_from = o->stored;
	}
	if (*io_from < o->stored) {
		at = (size_t)(*io_from % o->size);
		len = o->size - at;
		*ret_len = o->stored - *io_from < len ? (size_t)(o->stored - *io_from) : len;
		return o->memory + at;
	}
	*ret_len = (size_t)(o->end - *io_from);
	return o->recent + (*io_from - o->stored);
}
