/* Walks the tree and packs it. Invariant: below the top a directory is entered by its descriptor,
 * and no link is followed. */
#include "config.h"

#include "files/archive/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/strv.h"
#include "base/text/quote.h"
#include "files/place/reach.h"

#define BUFFER (256u << 10)
/* maximum bytes of a file that does not report its length, as in /proc */
#define UNSIZED_MAX (64u << 20)
#define WAY_MAX (1u << 20)
#define REPORT_MAX (1u << 20)
#define LARGEST ((off_t)16 << 40) /* maximum bytes of a file: holes are counted by buffers */
#define HOLES_MAX 65536u          /* maximum of holes per file */
/* maximum bytes of the names of all directories on the way down */
#define NAMES_MAX (64u << 20)

struct hr_tree {
	struct hr_tree_options o;
	int top;           /* descriptor of a file or directory; -1: the top is a link */
	char *link;        /* target of that link */
	struct stat st;    /* as stat() returned it for the top */
	struct hr_buf way; /* path to the current entry */
	size_t names;      /* bytes of all names that are kept */
	char *buffer;
	struct archive *a;
	struct archive_entry *e;
	struct hr_tree_report *r;
	hr_tree_write_fn *fn;
	void *arg;
	bool gone;             /* the receiver has gone away */
	uint64_t files, bytes; /* files in the stream, and their sizes */
};

/* ---- the report ---- */

void
hr_tree_report_add(struct hr_tree_report *r, const char *path, const char *reason)
{
	r->failed++;
	if (r->list.len > REPORT_MAX / 2)
		return;
	hr_buf_adds(&r->list, r->list.len > 0 ? ",{\"path\":" : "{\"path\":");
	hr_quote_json(&r->list, path, strlen(path));
	hr_buf_adds(&r->list, ",\"reason\":");
	hr_quote_json(&r->list, reason, strlen(reason));
	hr_buf_addc(&r->list, '}');
}

static const char *
top_of(const struct hr_tree *t)
{
	return t->o.choice != NULL ? t->o.choice->top : HR_TREE_TOP;
}

/* Returns the path to the current entry below the top, with a slash before it. */
static const char *
name_of(const struct hr_tree *t)
{
	return hr_buf_str(&t->way) + strlen(top_of(t));
}

/* Leaves out the current entry. Never fails. */
static int
leave_out(struct hr_tree *t, const char *reason)
{
	const char *way = name_of(t);

	hr_tree_report_add(t->r, way + (*way == '/'), reason);
	return 0;
}

static int
fail(struct hr_tree *t, struct hr_err *err)
{
	if (t->gone)
		return hr_err_set(err, HR_E_GONE, "the reader of the archive has ended");
	return hr_err_set(err, HR_E_RUNTIME, "tar: %s", archive_error_string(t->a));
}

/* ---- entries ---- */

static void
put_header(struct hr_tree *t, const struct stat *st, off_t size, const char *link)
{
	archive_entry_clear(t->e);
	archive_entry_set_pathname(t->e, hr_buf_str(&t->way));
	archive_entry_set_filetype(t->e, st->st_mode & S_IFMT);
	archive_entry_set_perm(t->e, st->st_mode & 01777);
	archive_entry_set_mtime(t->e, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_uid(t->e, st->st_uid);
	archive_entry_set_gid(t->e, st->st_gid);
	archive_entry_set_size(t->e, size);
	if (link != NULL)
		archive_entry_set_symlink(t->e, link);
}

static int
write_header(struct hr_tree *t, struct hr_err *err)
{
	return archive_write_header(t->a, t->e) < ARCHIVE_WARN || t->gone ? fail(t, err) : 0;
}

static int
write_data(struct hr_tree *t, const char *p, size_t len, struct hr_err *err)
{
	la_ssize_t n = 0;

	for (; len > 0; p += n, len -= (size_t)n) {
		n = archive_write_data(t->a, p, len);
		if (n <= 0 || t->gone)
			return fail(t, err);
	}
	return 0;
}

/* Describes the data ranges of a sparse file; one with too many ranges, or whose file system cannot
 * report them, is sent as if it had no holes. */
static void
put_holes(struct hr_tree *t, int fd, const struct stat *st)
{
	off_t data = 0, hole = 0;
	size_t n = 0;

	if ((off_t)st->st_blocks * 512 >= st->st_size)
		return;
	for (; n < HOLES_MAX && hr_fd_next_data(fd, st->st_size, &data, &hole); n++)
		archive_entry_sparse_add_entry(t->e, data, hole - data);
	if (n == HOLES_MAX || errno != ENXIO)
		archive_entry_sparse_clear(t->e);
	else if (n == 0) /* the file is one hole */
		archive_entry_sparse_add_entry(t->e, st->st_size, 0);
}

/* Packs a file that was read to its end first: it may be longer or shorter than its stat says. */
static int
put_short(struct hr_tree *t, const struct stat *st, const char *p, size_t len, struct hr_err *err)
{
	put_header(t, st, (off_t)len, NULL);
	return write_header(t, err) < 0 ? -1 : write_data(t, p, len, err);
}

static int
put_unsized(struct hr_tree *t, int fd, const struct stat *st, size_t begun, struct hr_err *err)
{
	HR_BUF(all, UNSIZED_MAX);
	char *piece;
	ssize_t n;

	hr_buf_add(&all, t->buffer, begun);
	do {
		piece = hr_buf_reserve(&all, BUFFER);
		n = piece != NULL ? hr_fd_read(fd, piece, BUFFER) : 0;
		if (n > 0)
			all.len += (size_t)n;
	} while (n > 0);
	if (piece == NULL)
		return leave_out(t, "it does not say how long it is, and is too long to be kept");
	if (n < 0)
		return leave_out(t, strerror(errno));
	return put_short(t, st, hr_buf_str(&all), all.len, err);
}

/* Passes over a hole: libarchive counts its bytes, and reads none of them. */
static int
put_hole(struct hr_tree *t, off_t len, struct hr_err *err)
{
	off_t n;

	for (; len > 0; len -= n) {
		n = len < (off_t)BUFFER ? len : (off_t)BUFFER;
		if (write_data(t, t->buffer, (size_t)n, err) < 0)
			return -1;
	}
	return 0;
}

/* Packs the bytes from `at` to `end`. Returns 0; 1 with the reason in *ret_why if the file has
 * fewer of them; or -1 with *err set. */
static int
put_range(struct hr_tree *t, int fd, off_t at, off_t end, const char **ret_why, struct hr_err *err)
{
	ssize_t n;

	for (; at < end; at += n) {
		n = pread(
		    fd, t->buffer, end - at < (off_t)BUFFER ? (size_t)(end - at) : BUFFER, at);
		if (n <= 0) {
			*ret_why = n < 0 ? strerror(errno) : "it became shorter meanwhile";
			return 1;
		}
		if (write_data(t, t->buffer, (size_t)n, err) < 0)
			return -1;
	}
	return 0;
}

/* Packs the ranges of the entry's list and the holes around them. Returns as put_range() does. */
static int
put_ranges(
    struct hr_tree *t, int fd, const struct stat *st, const char **ret_why, struct hr_err *err)
{
	la_int64_t data, len;
	off_t at = 0;
	int r;

	for (; archive_entry_sparse_next(t->e, &data, &len) == ARCHIVE_OK; at = data + len) {
		if (put_hole(t, data - at, err) < 0)
			return -1;
		r = put_range(t, fd, data, data + len, ret_why, err);
		if (r != 0)
			return r;
	}
	return put_hole(t, st->st_size - at, err);
}

/* Packs as many bytes as the file had at first. Holes are not read: that would take long, and fill
 * the machine's memory with zeros. */
static int
put_long(struct hr_tree *t, int fd, const struct stat *st, struct hr_err *err)
{
	const char *why = NULL;
	int r;

	if (st->st_size > LARGEST)
		return leave_out(t, "it is larger than 16 TiB");
	put_header(t, st, st->st_size, NULL);
	put_holes(t, fd, st);
	if (write_header(t, err) < 0)
		return -1;
	if (archive_entry_sparse_reset(t->e) == 0)
		r = put_range(t, fd, 0, st->st_size, &why, err);
	else
		r = put_ranges(t, fd, st, &why, err);
	/* libarchive fills the rest of the entry with zeros */
	return r > 0 ? leave_out(t, why) : r;
}

static int
put_file(struct hr_tree *t, int fd, const struct stat *st, struct hr_err *err)
{
	ssize_t n = 0, more;

	/* files of /proc and /sys are read in pieces */
	do {
		more = hr_fd_read(fd, t->buffer + n, BUFFER - (size_t)n);
		n += more > 0 ? more : 0;
	} while (more > 0 && (size_t)n < BUFFER);
	/* EAGAIN: a file of /proc or /sys has no more data at present */
	if (more < 0 && (n == 0 || errno != EAGAIN))
		return leave_out(t, strerror(errno));
	if ((size_t)n < BUFFER)
		return put_short(t, st, t->buffer, (size_t)n, err);
	return st->st_size > n ? put_long(t, fd, st, err) : put_unsized(t, fd, st, (size_t)n, err);
}

static int
put_link(struct hr_tree *t, const struct stat *st, const char *target, struct hr_err *err)
{
	put_header(t, st, 0, target);
	return write_header(t, err);
}

/* ---- the tree ---- */

static int put_below(struct hr_tree *t, int dir, unsigned depth, struct hr_err *err);

static const char *
kind_of(mode_t mode)
{
	return S_ISSOCK(mode)   ? "a socket is not copied"
	       : S_ISFIFO(mode) ? "a FIFO is not copied"
				: "a device is not copied";
}

static int
put_directory(struct hr_tree *t, int fd, const struct stat *st, unsigned depth, struct hr_err *err)
{
	put_header(t, st, 0, NULL);
	return write_header(t, err) < 0 ? -1 : put_below(t, fd, depth, err);
}

static int
put_entry(struct hr_tree *t, int dir, const char *name, unsigned depth, struct hr_err *err)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;
	HR_CLOSE int fd = -1;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : leave_out(t, strerror(errno));
	if (t->o.choice != NULL &&
	    (S_ISLNK(st.st_mode) ||
		t->o.choice->leaves_out(t->o.choice->arg, name_of(t) + 1, S_ISDIR(st.st_mode))))
		return 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(dir, name, target, sizeof(target) - 1);
		if (n < 0)
			return leave_out(t, strerror(errno));
		target[n] = '\0';
		return put_link(t, &st, target, err);
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return leave_out(t, kind_of(st.st_mode));
	/* another file may have replaced the entry, and opening that may have an effect */
	fd = hr_reach_open(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) != 0)
		return leave_out(t, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return put_directory(t, fd, &st, depth + 1, err);
	if (!S_ISREG(st.st_mode))
		return leave_out(t, kind_of(st.st_mode));
	t->files++;
	t->bytes += (uint64_t)st.st_size;
	return put_file(t, fd, &st, err);
}

struct names {
	struct hr_buf text;
	const char **v;
	size_t n;
};

/* Reads the names, and pointers to them, into one allocation. Returns 0, or -1 with errno. */
static int
names_read(struct hr_tree *t, struct names *ret, int dir)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const size_t room = NAMES_MAX - t->names;
	const struct dirent *e;
	const char *p;
	size_t i;

	if (d == NULL)
		return -1;
	while ((e = hr_dir_next(d)) != NULL) {
		hr_buf_add(&ret->text, e->d_name, strlen(e->d_name) + 1);
		ret->n++;
		if (ret->text.fail != HR_OK || ret->text.len + ret->n * sizeof(*ret->v) > room) {
			errno = ret->text.fail == HR_E_NOMEM ? ENOMEM : E2BIG;
			return -1;
		}
	}
	if (errno != 0)
		return -1;
	ret->v = ret->n > 0 ? calloc(ret->n, sizeof(*ret->v)) : NULL;
	if (ret->n > 0 && ret->v == NULL)
		return -1;
	for (i = 0, p = hr_buf_str(&ret->text); i < ret->n; i++, p += strlen(p) + 1)
		ret->v[i] = p;
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), hr_strv_compare);
	return 0;
}

static int
put_name(struct hr_tree *t, int dir, const char *name, unsigned depth, struct hr_err *err)
{
	const size_t len = t->way.len;
	int r;

	hr_buf_addc(&t->way, '/');
	hr_buf_adds(&t->way, name);
	r = hr_buf_check(&t->way, err);
	if (r == 0)
		r = put_entry(t, dir, name, depth, err);
	if (t->way.fail == HR_OK) {
		t->way.len = len;
		t->way.p[len] = '\0';
	}
	return r;
}

static int
put_below(struct hr_tree *t, int dir, unsigned depth, struct hr_err *err)
{
	struct names names = {.n = 0};
	size_t held, i;
	int r = 0;

	if (depth > HR_TREE_DEPTH)
		return leave_out(t, "it is nested too deep");
	hr_buf_init(&names.text, NAMES_MAX);
	if (names_read(t, &names, dir) < 0) {
		(void)leave_out(t, errno == E2BIG ? "it has too many names" : strerror(errno));
	} else {
		held = names.text.len + names.n * sizeof(*names.v);
		t->names += held;
		for (i = 0; r == 0 && i < names.n; i++)
			r = put_name(t, dir, names.v[i], depth, err);
		t->names -= held;
	}
	free(names.v);
	hr_buf_done(&names.text);
	return r;
}

/* ---- the interface ---- */

static int
refuse(struct hr_err *err, int sys, const char *path)
{
	const enum hr_errc code = sys == ENOENT || sys == ENOTDIR || sys == ELOOP ? HR_E_NOTFOUND
				  : sys == EACCES || sys == EPERM                 ? HR_E_PERMISSION
										  : HR_E_SYS;

	return hr_err_set(err, code, "%s: %s", path, strerror(sys));
}

static int
open_top(struct hr_tree *t, const char *path, struct hr_err *err)
{
	char target[PATH_MAX];
	ssize_t n;
	int sys;

	if (stat(path, &t->st) == 0) {
		if (!S_ISREG(t->st.st_mode) && !S_ISDIR(t->st.st_mode))
			return hr_err_set(err, HR_E_INVAL, "%s: %s", path, kind_of(t->st.st_mode));
		t->top = hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
		return t->top >= 0 && fstat(t->top, &t->st) == 0 ? 0 : refuse(err, errno, path);
	}
	sys = errno;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0 || lstat(path, &t->st) != 0 || !S_ISLNK(t->st.st_mode))
		return refuse(err, sys, path);
	target[n] = '\0';
	t->link = strdup(target);
	return t->link != NULL ? 0 : hr_err_nomem(err);
}

struct hr_tree *
hr_tree_open(const char *path, const struct hr_tree_options *o, struct hr_err *err)
{
	struct hr_tree *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		(void)hr_err_nomem(err);
		return NULL;
	}
	t->o = *o;
	t->top = -1;
	hr_buf_init(&t->way, WAY_MAX);
	t->buffer = malloc(BUFFER);
	if (t->buffer == NULL)
		(void)hr_err_nomem(err);
	if (t->buffer != NULL && open_top(t, path, err) == 0)
		return t;
	hr_tree_free(t);
	return NULL;
}

void
hr_tree_free(struct hr_tree *t)
{
	if (t == NULL)
		return;
	if (t->a != NULL) {
		t->gone = true; /* an unfinished archive must not be written any further */
		(void)archive_write_free(t->a);
	}
	archive_entry_free(t->e);
	hr_fd_close(&t->top);
	hr_buf_done(&t->way);
	free(t->buffer);
	free(t->link);
	free(t);
}

static la_ssize_t
on_block(struct archive *a, void *arg, const void *p, size_t len)
{
	struct hr_tree *t = arg;

	(void)a;
	/* the callback never returns a failure: libarchive 3.6 then loses its buffer of such an
	 * archive */
	if (!t->gone && t->fn(t->arg, p, len) != 0)
		t->gone = true;
	return (la_ssize_t)len;
}

static int
begin(struct hr_tree *t, struct hr_err *err)
{
	t->a = archive_write_new();
	t->e = archive_entry_new();
	if (t->a == NULL || t->e == NULL)
		return hr_err_nomem(err);
	if (archive_write_set_format_pax(t->a) != ARCHIVE_OK ||
	    (t->o.choice != NULL && archive_write_add_filter_gzip(t->a) != ARCHIVE_OK) ||
	    archive_write_set_bytes_per_block(t->a, BUFFER) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(t->a, 1) != ARCHIVE_OK ||
	    archive_write_open(t->a, t, NULL, on_block, NULL) != ARCHIVE_OK)
		return fail(t, err);
	return 0;
}

static int
put_report(struct hr_tree *t, struct hr_err *err)
{
	const struct stat st = {.st_mode = S_IFREG | 0600};
	const struct hr_buf *list = &t->r->list;

	hr_buf_reset(&t->way);
	hr_buf_adds(&t->way, HR_TREE_REPORT);
	if (hr_buf_check(&t->way, err) < 0 || hr_buf_check(list, err) < 0)
		return -1;
	return put_short(t, &st, hr_buf_str(list), list->len, err);
}

static int
put_last(struct hr_tree *t, struct hr_err *err)
{
	const struct stat st = {.st_mode = S_IFREG | 0644};
	const struct hr_tree_choice *c = t->o.choice;
	HR_BUF(text, REPORT_MAX);

	c->put_last(c->arg, t->files, t->bytes, &text);
	hr_buf_addf(&t->way, "/%s", c->last);
	if (hr_buf_check(&t->way, err) < 0 || hr_buf_check(&text, err) < 0)
		return -1;
	return text.len > 0 ? put_short(t, &st, text.p, text.len, err) : 0;
}

int
hr_tree_send(struct hr_tree *t, hr_tree_write_fn *fn, void *arg, struct hr_tree_report *r,
    struct hr_err *err)
{
	struct hr_tree_locale l = hr_tree_locale();
	int done = -1;

	t->fn = fn;
	t->arg = arg;
	t->r = r;
	hr_buf_adds(&t->way, top_of(t));
	if (begin(t, err) == 0 && hr_buf_check(&t->way, err) == 0)
		done = t->link != NULL          ? put_link(t, &t->st, t->link, err)
		       : S_ISDIR(t->st.st_mode) ? put_directory(t, t->top, &t->st, 0, err)
						: put_file(t, t->top, &t->st, err);
	if (done == 0)
		done = t->o.choice != NULL ? put_last(t, err) : put_report(t, err);
	if (done == 0 && (archive_write_close(t->a) != ARCHIVE_OK || t->gone))
		done = fail(t, err);
	hr_tree_locale_end(&l);
	return done;
}
