/* Walks the tree and packs it. Invariant: a directory is entered by its descriptor, never through a
 * link. */
#include "config.h"

#include "files/archive/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/place/beneath.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/place/whole.h"
#include "base/text/utf8.h"
#include "proto/python/repr.h"

#define BUFFER (256u << 10) /* bytes read and passed on at once */
#define WAY_MAX (1u << 20)
#define NAMES_MAX (256u << 20)
#define LOOK_EVERY 16  /* entries between two checks of the clock */
#define DEPTH_MAX 2048 /* nested directories: names of more have no path, and fill the stack */

struct hr_pack {
	char *path;
	int top;           /* -1: there is no directory, and the archive is empty */
	struct hr_buf way; /* path from the top to the current directory, with a trailing '/' */
	unsigned depth;    /* number of directories in `way` */
	char *buffer;

	/* ---- the look through the tree ---- */
	bool looking;
	unsigned seen;
	int64_t end; /* when that look ends, in ns as hr_now_ns() counts */

	/* ---- the packing itself ---- */
	bool empty; /* empty directories become entries as well */
	struct archive *a;
	struct archive_entry *e;
	struct hr_sink *sink;
	bool gone; /* the reader has gone away */

	struct hr_buf *why;
};

enum { WALK_ON = 0, WALK_STOP = 1 }; /* -1: the walk failed */

/* ---- errors ---- */

/* Returns the full name of an entry of the current directory, or of the directory itself; owned by
 * the caller. */
static char *
full_name(const struct hr_pack *p, const char *name)
{
	HR_FREE char *dir = hr_path_join(p->path, hr_buf_str(&p->way));

	if (dir == NULL)
		return NULL;
	return hr_path_join(dir, name);
}

static int
fail(struct hr_pack *p, const char *name, int sys)
{
	HR_FREE char *full = full_name(p, name);

	return hr_oserror_put(p->why, full != NULL ? sys : ENOMEM,
	    full != NULL && hr_utf8_valid(full, strlen(full)) ? full : NULL);
}

/* Sets Python's error for a name that is not UTF-8, with the place of the bad bytes. */
static int
fail_name(struct hr_pack *p, const char *way, size_t len)
{
	size_t at = 0, bad = 0, n;
	const char *q = way, *end = way + len;
	int first = 0;
	int32_t cp;

	for (; q < end; q += n) {
		cp = hr_utf8_next(q, end, &n);
		if (cp < 0 || hr_utf8_is_surrogate(cp)) {
			if (bad++ == 0)
				first = (unsigned char)*q;
			n = 1; /* Python counts each bad byte as one character */
		} else if (bad > 0) {
			break;
		} else {
			at++;
		}
	}
	hr_buf_reset(p->why);
	hr_pyencode_error(p->why, "utf-8", 0xDC00 + first, at, bad, "surrogates not allowed");
	return -1;
}

/* Checks that a file can be packed at all. */
static int
check_file(struct hr_pack *p, const char *name, const struct stat *st)
{
	struct tm tm;

	if (S_ISSOCK(st->st_mode))
		return fail(p, name, ENXIO); /* opening a socket fails with this errno */
	if (localtime_r(&st->st_mtime, &tm) == NULL || tm.tm_year < 80)
		return hr_oserror_text(p->why, "ZIP does not support timestamps before 1980", NULL);
	return 0;
}

/* ---- one file ---- */

/* Cuts the path back to its length before a name was added. */
static void
way_cut(struct hr_pack *p, size_t len)
{
	if (p->way.fail != HR_OK)
		return;
	p->way.len = len;
	p->way.p[len] = '\0';
}

static int
put_entry(struct hr_pack *p, const char *name, const struct stat *st)
{
	size_t way = p->way.len;
	int r;

	hr_buf_adds(&p->way, name);
	if (p->way.fail != HR_OK)
		return hr_oserror_put(p->why, ENAMETOOLONG, NULL);
	if (!hr_utf8_strict(p->way.p, p->way.len))
		return fail_name(p, p->way.p, p->way.len);
	archive_entry_clear(p->e);
	archive_entry_set_pathname(p->e, p->way.p);
	archive_entry_set_mode(
	    p->e, (S_ISDIR(st->st_mode) ? S_IFDIR : S_IFREG) | (st->st_mode & 07777));
	archive_entry_set_size(p->e, S_ISREG(st->st_mode) ? st->st_size : 0);
	archive_entry_set_mtime(p->e, st->st_mtime, 0);
	way_cut(p, way);
	r = archive_write_header(p->a, p->e);
	if (r == ARCHIVE_OK || r == ARCHIVE_WARN)
		return p->gone ? -1 : 0;
	return hr_oserror_text(p->why, archive_error_string(p->a), NULL);
}

/* Packs as many bytes as the file had at first, or fewer if it shrinks. */
static int
put_data(struct hr_pack *p, const char *name, int fd, off_t size)
{
	ssize_t n;

	while (size > 0 && !p->gone) {
		n = hr_fd_read(fd, p->buffer, size < (off_t)BUFFER ? (size_t)size : BUFFER);
		if (n < 0)
			return fail(p, name, errno);
		if (n == 0)
			break;
		if (archive_write_data(p->a, p->buffer, (size_t)n) < 0)
			return hr_oserror_text(p->why, archive_error_string(p->a), NULL);
		size -= n;
	}
	return p->gone ? -1 : 0;
}

/* Opens a file, or the target of a link: in the requested tree with this process's rights,
 * elsewhere with those of the shell's account if that account could have made the link. */
static int
open_entry(struct hr_pack *p, int dir, const char *name)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	int fd = hr_reach_open(dir, name, flags | O_NOFOLLOW);
	size_t way = p->way.len;

	if (fd >= 0 || errno != ELOOP)
		return fd;
	hr_buf_adds(&p->way, name);
	if (p->way.fail == HR_OK)
		fd = hr_reach_check(hr_beneath_open(p->top, hr_buf_str(&p->way), flags, true));
	way_cut(p, way);
	return fd >= 0 ? fd : hr_reach_open_as(dir, name, flags, false);
}

static int
pack_file(struct hr_pack *p, int dir, const char *name)
{
	struct stat st;
	int r;
	HR_CLOSE int fd = open_entry(p, dir, name);

	if (fd < 0)
		return fail(p, name, errno);
	r = fstat(fd, &st) < 0 || hr_whole_take(&fd, &st) < 0 ? fail(p, name, errno)
							      : check_file(p, name, &st);
	if (r == 0)
		r = put_entry(p, name, &st);
	if (r == 0 && S_ISREG(st.st_mode))
		r = put_data(p, name, fd, st.st_size);
	return r;
}

static int
pack_special(struct hr_pack *p, const char *name, const struct stat *st)
{
	int r = check_file(p, name, st);

	return r == 0 ? put_entry(p, name, st) : r;
}

static int
look_at(struct hr_pack *p, int dir, const char *name, const struct stat *known)
{
	struct stat st;
	size_t len = strlen(name);

	if (known == NULL && fstatat(dir, name, &st, 0) < 0)
		return fail(p, name, errno);
	if (check_file(p, name, known != NULL ? known : &st) < 0)
		return -1;
	if (!hr_utf8_strict(name, len)) {
		size_t way = p->way.len;

		hr_buf_adds(&p->way, name);
		(void)fail_name(p, hr_buf_str(&p->way), p->way.len);
		way_cut(p, way);
		return -1;
	}
	if (known != NULL && S_ISREG(known->st_mode)) { /* the entry was reached through a link */
		HR_CLOSE int fd = open_entry(p, dir, name);

		if (fd < 0)
			return fail(p, name, errno);
	} else if (geteuid() != 0) {
		if (faccessat(dir, name, R_OK, AT_EACCESS) < 0)
			return fail(p, name, errno);
	} else {
		/* root can read everything except what files/place/reach refuses */
		HR_CLOSE int fd = hr_reach_open(dir, name, O_PATH | O_NOFOLLOW);

		if (fd < 0)
			return fail(p, name, errno);
	}
	if (++p->seen % LOOK_EVERY != 0)
		return WALK_ON;
	return hr_now_ns() >= p->end ? WALK_STOP : WALK_ON;
}

/* ---- the tree ---- */

static int walk_directory(struct hr_pack *p, int dir);

/* Handles an entry that is no directory itself; a link may still lead to one. */
static int
walk_file(struct hr_pack *p, int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type == DT_REG)
		return p->looking ? look_at(p, dir, d->d_name, NULL) : pack_file(p, dir, d->d_name);
	if (fstatat(dir, d->d_name, &st, 0) < 0)
		return fail(p, d->d_name, errno);
	if (S_ISDIR(st.st_mode))
		return WALK_ON;
	if (p->looking)
		return look_at(p, dir, d->d_name, &st);
	return S_ISREG(st.st_mode) ? pack_file(p, dir, d->d_name) : pack_special(p, d->d_name, &st);
}

/* Returns true if an unreadable directory may be left out. Lack of descriptors or memory and a
 * broken disk are failures. */
static bool
is_skipped(int sys)
{
	return sys != EMFILE && sys != ENFILE && sys != ENOMEM && sys != EIO;
}

static int
walk_below(struct hr_pack *p, int dir, const char *name)
{
	int r;
	HR_CLOSE int fd = hr_reach_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	size_t way = p->way.len;

	if (fd < 0)
		return is_skipped(errno) ? WALK_ON : fail(p, name, errno);
	if (p->depth == DEPTH_MAX)
		return fail(p, name, ENAMETOOLONG);
	p->depth++;
	hr_buf_adds(&p->way, name);
	hr_buf_addc(&p->way, '/');
	r = p->way.fail == HR_OK ? walk_directory(p, fd)
				 : hr_oserror_put(p->why, ENAMETOOLONG, NULL);
	p->depth--;
	way_cut(p, way);
	return r;
}

/* Packs the current directory, which is empty; the top needs no entry. */
static int
pack_empty(struct hr_pack *p, int dir)
{
	struct stat st;

	if (!p->empty || p->way.len == 0)
		return WALK_ON;
	if (!hr_utf8_strict(p->way.p, p->way.len))
		return fail_name(p, p->way.p, p->way.len);
	if (p->looking)
		return WALK_ON;
	return fstat(dir, &st) < 0 ? fail(p, "", errno) : put_entry(p, "", &st);
}

/* Packs the directory's files, then its subdirectories, whose names are kept until then. `dir`
 * stays open. */
static int
walk_directory(struct hr_pack *p, int dir)
{
	DIR *d = hr_dir_take(fcntl(dir, F_DUPFD_CLOEXEC, 0));
	HR_BUF(below, NAMES_MAX);
	struct dirent *e;
	const char *name;
	bool any = false;
	int r = WALK_ON;

	if (d == NULL)
		return fail(p, "", errno);
	while (r == WALK_ON && (e = hr_dir_next(d)) != NULL) {
		any = true;
		if (hr_dir_is_directory(dir, e))
			hr_buf_add(&below, e->d_name, strlen(e->d_name) + 1);
		else
			r = walk_file(p, dir, e);
	}
	if (r == WALK_ON && (errno == ENOMEM || below.fail != HR_OK))
		r = hr_oserror_put(p->why, ENOMEM, NULL);
	else if (!any)
		r = pack_empty(p, dir);
	(void)closedir(d); /* a directory stream that was only read cannot fail */
	for (name = below.p; r == WALK_ON && name != NULL && name < below.p + below.len;
	     name += strlen(name) + 1)
		r = walk_below(p, dir, name);
	return r;
}

/* Walks from the start: an earlier walk has moved the descriptor's offset. */
static int
walk(struct hr_pack *p)
{
	hr_buf_reset(&p->way);
	hr_buf_adds(&p->way, "");
	if (lseek(p->top, 0, SEEK_SET) < 0)
		return fail(p, "", errno);
	return walk_directory(p, p->top);
}

/* ---- the interface ---- */

static int
look_through(struct hr_pack *p)
{
	p->end = hr_now_ns() + HR_PACK_LOOK_MS * (int64_t)1000000;
	p->looking = true;
	return walk(p);
}

struct hr_pack *
hr_pack_open(const char *path, bool empty, struct hr_buf *why)
{
	struct hr_pack *p;
	struct stat st;

	if (stat(path, &st) < 0) {
		(void)hr_oserror_text(why, "404: File not found", NULL);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (p != NULL) {
		p->top = -1;
		p->why = why;
		p->empty = empty;
		hr_buf_init(&p->way, WAY_MAX);
		p->path = strdup(path);
		p->buffer = malloc(BUFFER);
	}
	if (p == NULL || p->path == NULL || p->buffer == NULL) {
		(void)hr_oserror_put(why, ENOMEM, NULL);
		hr_pack_free(p);
		return NULL;
	}
	if (!S_ISDIR(st.st_mode))
		return p;
	p->top = hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, false);
	if (p->top < 0 && is_skipped(errno))
		return p;
	if (p->top < 0 || look_through(p) < 0) {
		if (p->top < 0)
			(void)hr_oserror_put(why, errno, path);
		hr_pack_free(p);
		return NULL;
	}
	return p;
}

static la_ssize_t
block_write(struct archive *a, void *arg, const void *data, size_t len)
{
	struct hr_pack *p = arg;

	(void)a;
	/* the callback never returns a failure: libarchive 3.6 then loses its buffer of such an
	 * archive */
	if (!p->gone && p->sink->write(p->sink, data, len) != 0)
		p->gone = true;
	return (la_ssize_t)len;
}

static int
pack(struct hr_pack *p)
{
	p->a = archive_write_new();
	p->e = archive_entry_new();
	if (p->a == NULL || p->e == NULL)
		return hr_oserror_put(p->why, ENOMEM, NULL);
	if (archive_write_set_format_zip(p->a) != ARCHIVE_OK ||
	    archive_write_zip_set_compression_store(p->a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(p->a, BUFFER) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(p->a, 1) != ARCHIVE_OK ||
	    archive_write_open(p->a, p, NULL, block_write, NULL) != ARCHIVE_OK)
		return hr_oserror_text(p->why, archive_error_string(p->a), NULL);
	if (p->top >= 0 && walk(p) < 0)
		return -1;
	if (archive_write_close(p->a) != ARCHIVE_OK)
		return hr_oserror_text(p->why, archive_error_string(p->a), NULL);
	return p->gone ? -1 : 0;
}

int
hr_pack_send(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct hr_pack *p = arg;
	HR_BUF(why, WAY_MAX);
	int r;

	p->why = &why;
	p->sink = sink;
	p->looking = false;
	r = pack(p);
	if (r < 0 && !p->gone)
		(void)hr_err_set(err, HR_E_SYS, "%.200s", hr_buf_str(&why));
	return r;
}

void
hr_pack_free(void *arg)
{
	struct hr_pack *p = arg;

	if (p == NULL)
		return;
	if (p->a != NULL) {
		p->gone = true; /* an unfinished archive must not be written any further */
		(void)archive_write_free(p->a);
	}
	archive_entry_free(p->e);
	hr_fd_close(&p->top);
	hr_buf_done(&p->way);
	free(p->buffer);
	free(p->path);
	free(p);
}
