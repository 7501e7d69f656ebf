/* Computes the hash of a directory from its entries' descriptors, sorted by kind, hash and name, so
 * that the order of the directory does not matter. */
#include "config.h"

#include "image/dirhash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/grow.h"
#include "base/strv.h"
#include "base/text/utf8.h"

#define PATH_TEXT_MAX 65536 /* maximum bytes of one relative path */

const char *const hr_dirhash_ignore_c[] = {".*/", "__pycache__/", "*.pyc", "autom4te.cache/", "*.o",
    "*.lo", "*.la", "*.a", "*.so", "*.gcda", "*.gcno", "*~", "config.status", "config.log",
    "Makefile", "Makefile.in", "configure", "aclocal.m4", NULL};

/* A directory on the path from the root; ignored: it is left out. */
struct level {
	const struct level *up;
	dev_t dev;
	ino_t ino;
	int depth;
	bool ignored;
};

struct walk {
	const char *const *ignore;
	struct hr_buf *included;
	struct hr_buf path; /* path of the current entry, relative to the root */
	struct hr_err *err;
};

struct descriptors {
	char **v;
	size_t n, room;
};

bool
hr_dirhash_ignored(const char *const *ignore, const char *name, bool is_dir)
{
	char pattern[64];
	size_t n;

	for (; *ignore != NULL; ignore++) {
		n = strlen(*ignore);
		if (n == 0 || n >= sizeof(pattern))
			continue;
		if ((*ignore)[n - 1] == '/' && !is_dir)
			continue;
		memcpy(pattern, *ignore, n + 1);
		if (pattern[n - 1] == '/')
			pattern[n - 1] = '\0';
		if (fnmatch(pattern, name, 0) == 0)
			return true;
	}
	return false;
}

static int
name_is_utf8(const char *name)
{
	size_t len = strlen(name), n;

	for (; len > 0; name += n, len -= n) {
		n = hr_utf8_len(name, len);
		if (n == 0)
			return 0;
	}
	return 1;
}

static void
descriptors_done(struct descriptors *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		free(d->v[i]);
	free(d->v);
}

/* Adds "kind:HASH", NUL, "name:NAME". */
static int
descriptors_add(
    struct descriptors *d, const char *kind, const char *hash, const char *name, struct hr_err *err)
{
	struct hr_buf b;
	size_t len;

	if (hr_grow(&d->v, d->n, &d->room, sizeof(*d->v)) < 0)
		return hr_err_nomem(err);
	/* sorts as C strings: by kind and hash up to the NUL, then by name; a byte that sorts first
	 * stands in for the NUL */
	len = strlen(kind) + strlen(hash) + strlen(name) + 8;
	hr_buf_init(&b, len);
	hr_buf_addf(&b, "%s:%s\001name:%s", kind, hash, name);
	d->v[d->n] = hr_buf_take(&b);
	hr_buf_done(&b);
	if (d->v[d->n] == NULL)
		return hr_err_nomem(err);
	d->n++;
	return 0;
}

static int
descriptors_hash(struct descriptors *d, char ret[HR_DIGEST_HEX], struct hr_err *err)
{
	struct hr_digest *md5 = hr_digest_new(HR_DIGEST_MD5, err);
	char *mark;
	size_t i;

	if (md5 == NULL)
		return -1;
	qsort(d->v, d->n, sizeof(*d->v), hr_strv_compare);
	for (i = 0; i < d->n; i++) {
		if (i > 0)
			hr_digest_add(md5, "\0", 2);
		mark = strchr(d->v[i], '\001');
		hr_assert(mark != NULL);
		hr_digest_add(md5, d->v[i], (size_t)(mark - d->v[i]));
		hr_digest_add(md5, "", 1);
		hr_digest_add(md5, mark + 1, strlen(mark + 1));
	}
	hr_digest_hex(md5, ret);
	hr_digest_free(md5);
	return 0;
}

static int
file_hash(int dirfd, const char *name, char ret[HR_DIGEST_HEX], struct hr_err *err)
{
	struct hr_digest *md5 = hr_digest_new(HR_DIGEST_MD5, err);
	int r;

	if (md5 == NULL)
		return -1;
	r = hr_digest_add_file(md5, dirfd, name, err);
	if (r == 0)
		hr_digest_hex(md5, ret);
	hr_digest_free(md5);
	return r;
}

static int directory_hash(
    struct walk *w, int fd, const struct level *at, bool *ret_any, char ret[HR_DIGEST_HEX]);

/* Hashes a subdirectory, reached by name or through a link. Takes fd. */
static int
enter(struct walk *w, int fd, const char *name, const struct stat *st, const struct level *up,
    struct descriptors *d)
{
	struct level at = {up, st->st_dev, st->st_ino, up->depth + 1,
	    up->ignored || hr_dirhash_ignored(w->ignore, name, true)};
	char hash[HR_DIGEST_HEX];
	bool any = false;
	int r = 0;
	const struct level *l;

	for (l = up; l != NULL && r == 0; l = l->up)
		if (l->dev == st->st_dev && l->ino == st->st_ino)
			r = hr_err_set(w->err, HR_E_INVAL,
			    "symbolic link recursion: %s is a directory that it is in",
			    hr_buf_str(&w->path));
	if (r == 0 && at.depth > HR_DIRHASH_DEPTH)
		r = hr_err_set(w->err, HR_E_TOOLARGE, "%s: nested deeper than %d directories",
		    hr_buf_str(&w->path), HR_DIRHASH_DEPTH);
	if (r != 0) {
		hr_fd_close(&fd);
		return r;
	}
	r = directory_hash(w, fd, &at, &any, hash);
	if (r == 0 && any)
		r = descriptors_add(d, "dirhash", hash, name, w->err);
	return r;
}

static int
entry(struct walk *w, int dirfd, const char *name, const struct level *at, struct descriptors *d)
{
	char hash[HR_DIGEST_HEX];
	struct stat st;
	int fd;

	/* broken links, sockets and devices are left out, other failures are errors */
	if (fstatat(dirfd, name, &st, 0) != 0)
		return errno == ENOENT ? 0
				       : hr_err_set(w->err, HR_E_INVAL, "%s: %s",
					     hr_buf_str(&w->path), strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	if (!name_is_utf8(name))
		return hr_err_set(
		    w->err, HR_E_INVAL, "a file's name is not UTF-8, in %s", hr_buf_str(&w->path));
	if (S_ISDIR(st.st_mode)) {
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return hr_err_sys(w->err, errno, "open %s", hr_buf_str(&w->path));
		return enter(w, fd, name, &st, at, d);
	}
	if (at->ignored || hr_dirhash_ignored(w->ignore, name, false))
		return 0;
	if (w->included != NULL)
		hr_buf_add(w->included, w->path.p, w->path.len + 1);
	if (file_hash(dirfd, name, hash, w->err) != 0)
		return -1;
	return descriptors_add(d, "data", hash, name, w->err);
}

/* Hashes an open directory. Takes ownership of fd. */
static int
directory_hash(
    struct walk *w, int fd, const struct level *at, bool *ret_any, char ret[HR_DIGEST_HEX])
{
	HR_CLEAN(descriptors_done) struct descriptors d = {0};
	size_t before = w->path.len;
	DIR *dir = hr_dir_take(fd);
	struct dirent *e;
	int r = 0;

	if (dir == NULL)
		return hr_err_sys(w->err, errno, "read %s", hr_buf_str(&w->path));
	while (r == 0 && (e = hr_dir_next(dir)) != NULL) {
		if (before > 0)
			hr_buf_addc(&w->path, '/');
		hr_buf_adds(&w->path, e->d_name);
		r = hr_buf_check(&w->path, w->err);
		if (r == 0)
			r = entry(w, dirfd(dir), e->d_name, at, &d);
		if (r == 0) {
			w->path.len = before;
			if (w->path.p != NULL)
				w->path.p[before] = '\0';
		}
	}
	if (r == 0 && errno != 0)
		r = hr_err_sys(w->err, errno, "read %s", hr_buf_str(&w->path));
	(void)closedir(dir);
	*ret_any = d.n > 0;
	if (r == 0 && d.n > 0)
		r = descriptors_hash(&d, ret, w->err);
	return r;
}

int
hr_dirhash(const char *dir, const char *const *ignore, struct hr_buf *included,
    char ret[HR_DIGEST_HEX], struct hr_err *err)
{
	struct walk w = {.ignore = ignore, .included = included, .err = err};
	struct level root = {0};
	struct stat st;
	bool any = false;
	int fd, r;

	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "open %s", dir);
	if (fstat(fd, &st) != 0) {
		r = hr_err_sys(err, errno, "stat %s", dir);
		hr_fd_close(&fd);
		return r;
	}
	root.dev = st.st_dev;
	root.ino = st.st_ino;
	hr_buf_init(&w.path, PATH_TEXT_MAX);
	r = directory_hash(&w, fd, &root, &any, ret);
	hr_buf_done(&w.path);
	if (r == 0 && included != NULL)
		r = hr_buf_check(included, err);
	if (r == 0 && !any)
		r = hr_err_set(err, HR_E_INVAL, "%s: nothing to hash", dir);
	return r;
}
