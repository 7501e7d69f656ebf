/* Implements a ring of pieces, in a file or in memory, and the piece being filled: a short
 * command's output costs no system call. */
#include "config.h"

#include "session/outlog.h"

#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "session/statedir.h"

#define PIECE HR_OUTLOG_PIECE

static size_t
store_size(size_t cap)
{
	return (cap + PIECE - 1) / PIECE * PIECE;
}

/* Leaves the recent piece uninitialised, whose memory is touched only when written. */
void
hr_outlog_init(struct hr_outlog *o, size_t cap, struct hr_statedir *dir)
{
	memset(o, 0, offsetof(struct hr_outlog, recent));
	o->fd = o->shared = -1;
	o->cap = cap;
	o->size = store_size(cap);
	o->dir = dir;
}

void
hr_outlog_done(struct hr_outlog *o)
{
	if (o->cap == 0)
		return;
	hr_fd_close(&o->fd);
	hr_fd_close(&o->shared);
	if (o->memory != NULL)
		(void)munmap(o->memory, o->size);
	hr_outlog_init(o, 0, NULL);
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
	return hr_fd_pwrite_full(o->fd, o->recent, PIECE, (off_t)(o->stored % o->size)) == 0;
}

static bool
read_back(const struct hr_outlog *o, uint64_t from, char *to, size_t len)
{
	return hr_fd_pread_full(o->fd, to, len, (off_t)(from % o->size)) == 0;
}

/* Moves the store from the file to memory, as far as it can be read. */
static void
store_in_memory(struct hr_outlog *o)
{
	size_t len = o->stored < o->size ? (size_t)o->stored : o->size;
	void *p = MAP_FAILED;

	o->shared = memfd_create("handrail-output", MFD_CLOEXEC);
	if (o->shared >= 0 && ftruncate(o->shared, (off_t)o->size) == 0)
		p = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, o->shared, 0);
	if (p == MAP_FAILED) {
		hr_fd_close(&o->shared);
		p = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (p == MAP_FAILED) {
		hr_log(HR_LOG_WARNING, "out of memory: the output log is shortened");
		o->refused = true;
	} else {
		o->memory = p;
	}
	/* The store has the same layout in both, from its start. */
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
			hr_log(HR_LOG_WARNING, "the output log is only in memory: %s", err.msg);
		else if (in_memory(o->fd))
			hr_fd_close(&o->fd); /* private memory costs no system calls */
	}
	if (o->fd < 0)
		store_in_memory(o);
}

static bool
has_no_store(const struct hr_outlog *o)
{
	return o->fd < 0 && o->memory == NULL && !o->refused;
}

/* Stores the full recent piece. */
static void
store(struct hr_outlog *o)
{
	if (has_no_store(o))
		store_open(o);
	if (o->fd >= 0 && !write_piece(o)) {
		hr_log(HR_LOG_WARNING, "the output log continues in memory, not in a file: %s",
		    strerror(errno));
		store_in_memory(o);
	}
	if (o->memory != NULL)
		memcpy(o->memory + o->stored % o->size, o->recent, PIECE);
	o->stored += PIECE;
	if (o->refused)
		o->first = o->stored;
}

void
hr_outlog_resume(struct hr_outlog *o, size_t cap, struct hr_statedir *dir, int fd, int shared)
{
	void *p = MAP_FAILED;
	uint64_t end;

	o->fd = fd;
	o->shared = shared;
	o->memory = NULL;
	o->dir = dir;
	o->refused = false;
	if (o->cap != cap || o->size != store_size(cap) || o->stored % PIECE != 0 ||
	    o->end < o->stored || o->end - o->stored > PIECE || o->first > o->end) {
		hr_fd_close(&o->fd);
		hr_fd_close(&o->shared);
		end = o->end > o->stored ? o->end : o->stored;
		hr_outlog_init(o, cap, dir);
		o->end = o->first = end; /* clients have offsets, so keep counting */
		o->stored = cap > 0 ? end - end % PIECE : 0;
		return;
	}
	if (shared >= 0)
		p = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
	if (p != MAP_FAILED) {
		o->memory = p;
		hr_fd_close(&o->fd);
	} else {
		hr_fd_close(&o->shared);
	}
	if (o->fd < 0 && o->memory == NULL)
		o->first = o->stored;
	if (o->cap > 0 && o->end - o->stored == PIECE)
		store(o);
}

/* ---- retained bytes ---- */

void
hr_outlog_add(struct hr_outlog *o, const char *p, size_t len)
{
	size_t at, n;

	if (o->cap == 0) {
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
	/* A successor gets the store before it has the only copy of anything. */
	if (o->end - o->stored > PIECE / 2 && has_no_store(o))
		store_open(o);
}

const char *
hr_outlog_read(struct hr_outlog *o, uint64_t *io_from, size_t *ret_len)
{
	static char back[PIECE]; /* static is safe: one loop, one thread */
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
		hr_log(HR_LOG_WARNING, "cannot read the output log: %s", strerror(errno));
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
