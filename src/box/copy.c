/* Copies the files of a box: with root's rights, or in a user namespace with the accounts that the
 * caller's boxes have. */
#include "config.h"

#include "box/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/account.h"
#include "base/clean.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/volume.h"
#include "box/ids.h"
#include "box/overlay.h"

#define PIECE (128u << 10)
#define ATTRIBUTES_MAX (64u << 10) /* the kernel's limit of a list, and of one value */
#define LINKS "links" /* directory of the copy with its files that have several names */

struct copying {
	int links, own;     /* directories: LINKS, and that of this process's descriptors */
	bool no_clones;     /* the file system cannot share blocks */
	bool top;           /* leaves out the attributes that an overlay makes */
	const char *opaque; /* the attribute of an opaque directory where layers are joined */
	uint64_t left;      /* bytes that the copy may still take */
	bool full;          /* the copy would take more */
	char piece[PIECE], list[ATTRIBUTES_MAX], value[ATTRIBUTES_MAX];
};

struct entry {
	int at; /* opened with O_PATH, as the open of a device could have an effect */
	int to; /* directory of the copy */
	const char *name;
	struct stat st;
};

/* The kinds of directories in a storage. */
enum place { TOP, LAYERS, LAYER, BELOW };

static int
failed(const char *name, struct hr_err *err)
{
	return hr_err_sys(err, errno, "copy %s", name);
}

/* Returns true if an entry was removed or replaced since its directory was read. */
static bool
has_gone(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
}

/* Returns false if the copy must not take so many bytes more. */
static bool
take(struct copying *c, uint64_t bytes)
{
	c->full = c->full || bytes > c->left;
	c->left -= c->full ? 0 : bytes;
	return !c->full;
}

/* Copies the extended attributes, which mark directories of overlays as opaque. */
static int
copy_attributes(struct copying *c, int from, int to)
{
	ssize_t n = flistxattr(from, c->list, sizeof(c->list)), size;
	const char *name;

	if (n < 0)
		return errno == ENOTSUP ? 0 : -1;
	for (name = c->list; name < c->list + n; name += strlen(name) + 1) {
		if (c->top && strstr(name, ".overlay.") != NULL)
			continue;
		size = fgetxattr(from, name, c->value, sizeof(c->value));
		if (size < 0 && errno == ENODATA)
			continue;
		/* labels of the machine's security modules are made by the kernel */
		if ((size < 0 || fsetxattr(to, name, c->value, (size_t)size, 0) != 0) &&
		    (strncmp(name, "security.", 9) != 0 || (errno != EPERM && errno != ENOTSUP)))
			return -1;
	}
	return 0;
}

/* Leaves what is right already, since each change is a transaction of the file system. */
static int
copy_properties(struct copying *c, int from, int to, const struct stat *st)
{
	const struct timespec times[] = {st->st_atim, st->st_mtim};
	struct stat now;
	bool given;

	if (fstat(to, &now) != 0)
		return -1;
	given = now.st_uid != st->st_uid || now.st_gid != st->st_gid;
	/* a change of the owner takes away bits of the mode, and attributes */
	return (!given || box_ids_give(to, "", st->st_uid, st->st_gid) == 0) &&
		       copy_attributes(c, from, to) == 0 &&
		       ((!given && now.st_mode == st->st_mode) ||
			   fchmod(to, st->st_mode & 07777) == 0) &&
		       futimens(to, times) == 0
		   ? 0
		   : -1;
}

int
box_copy_properties(int from, int to, struct hr_err *err)
{
	HR_FREE struct copying *c = calloc(1, sizeof(*c));
	struct stat st;

	if (c == NULL)
		return hr_err_nomem(err);
	c->top = true;
	return fstat(from, &st) == 0 && copy_properties(c, from, to, &st) == 0
		   ? 0
		   : hr_err_sys(err, errno, "copy the properties of a directory");
}

/* Copies one extent of a file that ends before `end`, or where the file was cut meanwhile. */
static int
copy_extent(struct copying *c, int from, int to, off_t at, off_t end)
{
	ssize_t n, done;

	for (; at < end; at += n) {
		n = pread(from, c->piece, sizeof(c->piece), at);
		if (n <= 0)
			return n < 0 ? -1 : 0;
		if (!take(c, (uint64_t)n))
			return -1;
		for (done = 0; done < n;) {
			const ssize_t put =
			    pwrite(to, c->piece + done, (size_t)(n - done), at + done);

			if (put < 0)
				return -1;
			done += put;
		}
	}
	return 0;
}

static int
copy_data(struct copying *c, int from, int to, const struct stat *st)
{
	const off_t size = st->st_size;
	off_t at = 0, end = 0;

	if (size == 0)
		return 0;
	if (!c->no_clones && ioctl(to, FICLONE, from) == 0)
		return 0;
	c->no_clones = true;
	/* one block has no hole */
	if (size <= st->st_blksize && st->st_blocks > 0)
		return copy_extent(c, from, to, 0, size);
	while (at < size && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		end = end < 0 || end > size ? size : end;
		if (copy_extent(c, from, to, at, end) != 0)
			return -1;
		at = end;
	}
	return at >= 0 || errno == ENXIO ? ftruncate(to, size) : -1;
}

static int
copy_file(struct copying *c, const struct entry *e, struct hr_err *err)
{
	HR_CLOSE int from = -1;
	HR_CLOSE int to = -1;
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", e->at);
	/* a program of the box may hold a lease on the file, for which an open would wait */
	from = openat(c->own, number, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	to = openat(e->to, e->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    e->st.st_mode & 0777);
	if (from < 0 || to < 0 || copy_data(c, from, to, &e->st) != 0 ||
	    copy_properties(c, from, to, &e->st) != 0)
		return failed(e->name, err);
	return 0;
}

static int
copy_link(const struct entry *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(e->at, "", target, sizeof(target) - 1);

	if (n < 0)
		return -1;
	target[n] = '\0';
	return symlinkat(target, e->to, e->name);
}

/* Copies an entry that is no directory. */
static int
copy_other(struct copying *c, const struct entry *e, struct hr_err *err)
{
	const struct timespec times[] = {e->st.st_atim, e->st.st_mtim};
	const bool link = S_ISLNK(e->st.st_mode);

	if (S_ISREG(e->st.st_mode))
		return copy_file(c, e, err);
	return (link ? copy_link(e) : mknodat(e->to, e->name, e->st.st_mode, e->st.st_rdev)) == 0 &&
		       box_ids_give(e->to, e->name, e->st.st_uid, e->st.st_gid) == 0 &&
		       (link || fchmodat(e->to, e->name, e->st.st_mode & 07777, 0) == 0) &&
		       utimensat(e->to, e->name, times, AT_SYMLINK_NOFOLLOW) == 0
		   ? 0
		   : failed(e->name, err);
}

/* Copies the first name of a file, and links the others to that. */
static int
copy_linked(struct copying *c, const struct entry *e, struct hr_err *err)
{
	char number[48];

	if (e->st.st_nlink < 2)
		return copy_other(c, e, err);
	/* each subvolume has a device, and numbers of its own */
	(void)snprintf(
	    number, sizeof(number), "%ju.%ju", (uintmax_t)e->st.st_dev, (uintmax_t)e->st.st_ino);
	if (linkat(c->links, number, e->to, e->name, 0) == 0)
		return 0;
	if (copy_other(c, e, err) < 0)
		return -1;
	/* a file may have no more links, or never have two */
	(void)unlinkat(c->links, number, 0);
	return linkat(e->to, e->name, c->links, number, 0) == 0 || errno == EMLINK || errno == EPERM
		   ? 0
		   : failed(e->name, err);
}

/* Sets the rests of the paths below `name`. Returns false if `name` itself is left out. */
static bool
enter(const char *const *without, const char *name, const char **ret)
{
	const size_t n = strlen(name);
	size_t i;

	for (i = 0; i < BOX_COPY_WITHOUT; i++) {
		ret[i] = NULL;
		if (without[i] == NULL || strncmp(without[i], name, n) != 0)
			continue;
		if (without[i][n] == '\0')
			return false;
		ret[i] = without[i][n] == '/' ? without[i] + n + 1 : NULL;
	}
	return true;
}

/* Adds the directories of that name in the n layers of `dirs` to *s, which has the topmost one.
 * Returns 0, 1 if they hide what lies below all, or -1. */
static int
add_lower(const struct copying *c, const int *dirs, size_t n, const char *name, struct box_lower *s)
{
	size_t i = 0;
	char value;

	while (fgetxattr(s->v[s->n - 1], c->opaque, &value, 1) < 1 || value != 'y') {
		int fd = -1;

		for (; fd < 0 && i < n; i++) {
			fd = openat(dirs[i], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0 && errno != ENOENT)
				return errno == ENOTDIR || errno == ELOOP ? 1 : -1;
		}
		if (fd < 0)
			return 0;
		s->v[s->n++] = fd;
	}
	return 1;
}

static int copy_directory(struct copying *c, const int *from, size_t n, int to,
    const char *const *without, enum place place, unsigned depth, struct hr_err *err);

/* Copies an entry of the topmost of n directories. */
static int
copy_entry(struct copying *c, const int *dirs, size_t n, int to, const char *name,
    const char *const *without, enum place place, unsigned depth, struct hr_err *err)
{
	const enum place next = place == TOP && strcmp(name, "layers") == 0 ? LAYERS
				: place == LAYERS                           ? LAYER
									    : BELOW;
	HR_CLEAN(box_lower_done) struct box_lower below = {.n = 0};
	const char *rest[BOX_COPY_WITHOUT];
	struct entry e = {.to = to, .name = name};
	HR_CLOSE int at = -1;
	HR_CLOSE int copy = -1;
	int hides = 0;

	/* a layer's working files belong to its overlay */
	if (!enter(without, name, rest) || (place == LAYER && box_overlay_is_own(name)))
		return 0;
	e.at = at = openat(dirs[0], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return has_gone() ? 0 : failed(name, err);
	if (fstat(at, &e.st) != 0)
		return failed(name, err);
	/* a socket in a layer hides other files */
	if (S_ISSOCK(e.st.st_mode) && c->opaque == NULL)
		return 0;
	if (!take(c, BOX_COPY_ENTRY))
		return -1;
	if (!S_ISDIR(e.st.st_mode))
		return copy_linked(c, &e, err);
	below.v[0] = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	hr_fd_close(&at);
	if (below.v[0] < 0)
		return has_gone() ? 0 : failed(name, err);
	below.n = 1;
	if (c->opaque != NULL)
		hides = add_lower(c, dirs + 1, n - 1, name, &below);
	if (hides < 0 || mkdirat(to, name, 0700) != 0 ||
	    (copy = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return failed(name, err);
	if (copy_directory(c, below.v, below.n, copy, rest, next, depth + 1, err) < 0)
		return -1;
	return copy_properties(c, below.v[0], copy, &e.st) == 0 &&
		       (hides == 0 || fsetxattr(copy, c->opaque, "y", 1, 0) == 0)
		   ? 0
		   : failed(name, err);
}

/* Copies all that n directories show, topmost first. */
static int
copy_directory(struct copying *c, const int *from, size_t n, int to, const char *const *without,
    enum place place, unsigned depth, struct hr_err *err)
{
	size_t i;

	if (depth > BOX_COPY_DEPTH)
		return hr_err_set(err, HR_E_TOOLARGE,
		    "the box has directories deeper than %d levels", BOX_COPY_DEPTH);
	for (i = 0; i < n; i++) {
		HR_CLOSEDIR DIR *d =
		    hr_dir_take(openat(from[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		const struct dirent *e;

		while (d != NULL && (e = hr_dir_next(d)) != NULL)
			/* a layer above may have the name already */
			if ((i == 0 || faccessat(to, e->d_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) &&
			    copy_entry(
				c, from + i, n - i, to, e->d_name, without, place, depth, err) < 0)
				return -1;
		if (d == NULL || errno != 0)
			return hr_err_sys(err, errno, "read a directory of the box");
	}
	return 0;
}

/* The directories that one copy has. */
struct order {
	const char *from, *to; /* `to` NULL: remove `from` */
	const char *const *without;
	uint64_t most;
	const char *const *layers; /* those to be joined in `to`; NULL: none */
	size_t nlayers;
	const char *opaque;
};

/* Copies into an empty directory; LINKS is made in `above`, and stays. Returns as box_copy(). */
static int
copy_stack(const struct box_lower *from, int to, int above, enum place place, const struct order *o,
    struct hr_err *err)
{
	HR_FREE struct copying *c = calloc(1, sizeof(*c));
	int r;

	if (c == NULL)
		return hr_err_nomem(err);
	c->left = o->most > 0 ? o->most : UINT64_MAX;
	c->opaque = o->opaque;
	(void)umask(0);
	if (mkdirat(above, LINKS, 0700) != 0)
		return hr_err_sys(err, errno, "make a directory in the copy");
	c->links = openat(above, LINKS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	c->own = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = c->links >= 0 && c->own >= 0
		? copy_directory(c, from->v, from->n, to, o->without, place, 0, err)
		: failed(LINKS, err);
	hr_fd_close(&c->links);
	hr_fd_close(&c->own);
	return c->full ? 1 : r;
}

/* Removes an entry of the copy. What has become a link, or is missing, was not copied as such. */
static int
leave_out(int copy, const char *dir, const char *name, struct hr_err *err)
{
	char path[64 + NAME_MAX];
	HR_CLOSE int fd =
	    hr_plain_openat2(copy, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_SYMLINKS);

	if (fd < 0)
		return has_gone() ? 0 : failed(dir, err);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, name);
	return hr_path_remove(path, err);
}

/* Removes from a snapshot what a copy would lack. */
static int
tidy_snapshot(int copy, const char *const *without, struct hr_err *err)
{
	HR_CLOSE int layers = -1;
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;
	const char *own;
	size_t i;

	for (i = 0; i < BOX_COPY_WITHOUT && without[i] != NULL; i++) {
		HR_FREE char *dir = strdup(without[i]);
		char *name = dir != NULL ? strrchr(dir, '/') : NULL;

		if (dir == NULL)
			return hr_err_nomem(err);
		if (name != NULL)
			*name++ = '\0';
		if (leave_out(copy, name != NULL ? dir : ".", name != NULL ? name : dir, err) < 0)
			return -1;
	}
	layers = openat(copy, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (layers < 0)
		return has_gone() ? 0 : failed("layers", err);
	d = hr_dir_take(openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		for (i = 0; (own = box_overlay_own(i)) != NULL; i++)
			if (leave_out(layers, e->d_name, own, err) < 0)
				return -1;
	return d != NULL && errno == 0 ? 0 : failed("layers", err);
}

/* Makes the copy, as a snapshot where that is possible. */
static int
copy_to(int from, const struct order *o, struct hr_err *err)
{
	const char *name = hr_path_leaf(o->to);
	HR_FREE char *dir = strndup(o->to, (size_t)(name - o->to));
	HR_FREE char *links = hr_path_join(o->to, LINKS);
	HR_CLOSE int above = -1;
	HR_CLOSE int to = -1;
	bool snapshot;
	int r;

	if (links == NULL || dir == NULL)
		return hr_err_nomem(err);
	above = open(*dir != '\0' ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0)
		return hr_err_sys(err, errno, "open the directory of %s", o->to);
	snapshot = hr_volume_snapshot(from, above, name);
	if (!snapshot && hr_volume_make(above, name) != 0)
		return hr_err_sys(err, errno, "create %s", o->to);
	to = open(o->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return hr_err_sys(err, errno, "open %s", o->to);
	if (snapshot)
		return tidy_snapshot(to, o->without, err);
	r = copy_stack(&(const struct box_lower){{from}, 1}, to, to, TOP, o, err);
	return r != 0 ? r : hr_path_remove(links, err);
}

/* Makes one layer of several. */
static int
join_to(const struct order *o, struct hr_err *err)
{
	static const char *const all[BOX_COPY_WITHOUT] = {NULL};
	const struct order whole = {.without = all, .opaque = o->opaque};
	HR_CLEAN(box_lower_done) struct box_lower from = {.n = 0};
	HR_FREE char *links = hr_path_join(o->to, LINKS);
	HR_CLOSE int above = open(o->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	HR_CLOSE int to = -1;

	if (links == NULL)
		return hr_err_nomem(err);
	if (box_lower_open(&from, o->layers, o->nlayers, err) < 0)
		return -1;
	if (above >= 0 && mkdirat(above, BOX_COPY_FILES, 0700) == 0)
		to = openat(above, BOX_COPY_FILES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return hr_err_sys(err, errno, "make %s/" BOX_COPY_FILES, o->to);
	if (copy_stack(&from, to, above, BELOW, &whole, err) < 0 ||
	    box_copy_properties(from.v[0], to, err) < 0 || hr_path_remove(links, err) < 0)
		return -1;
	/* The new layer takes the place of layers that may have been on the disk for long. */
	return syncfs(to) == 0 ? 0 : hr_err_sys(err, errno, "write %s to the disk", o->to);
}

static int
carry_out(const void *arg, struct hr_err *err)
{
	const struct order *o = arg;
	HR_CLOSE int from = -1;

	if (o->to == NULL)
		return hr_path_remove(o->from, err);
	if (o->layers != NULL)
		return join_to(o, err);
	from = open(o->from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return from >= 0 ? copy_to(from, o, err) : hr_err_sys(err, errno, "open %s", o->from);
}

int
box_copy_remove(const char *path, struct hr_err *err)
{
	return box_ids_run(carry_out, &(struct order){.from = path}, err);
}

int
box_copy(const struct box_copy *c, struct hr_err *err)
{
	return box_ids_run(carry_out,
	    &(struct order){.from = c->from, .to = c->to, .without = c->without, .most = c->most},
	    err);
}

int
box_copy_join(const char *layer, const char *const *dirs, size_t n, struct hr_err *err)
{
	return box_ids_run(carry_out,
	    &(struct order){.to = layer,
		.layers = dirs,
		.nlayers = n,
		.opaque = box_overlay_opaque(!hr_account_is_root())},
	    err);
}
