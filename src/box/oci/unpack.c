/* Fills the storage of a snapshot from a hostile layer. A name is entered directory by directory
 * and never through a link, and no entry replaces another one of its layer. A layer that lies over
 * others is read twice: first the entries of the others that it replaces or removes are removed. */
#include "config.h"

#include "box/oci/oci.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "box/ids.h"
#include "box/mount.h"
#include "box/overlay.h"
#include "box/view.h"

#define ACCESS_LIST "system.posix_acl_"
#define ATTRIBUTES_MAX (64u << 10) /* the kernel's limit of a list */
#define TIMES_MAX (256u << 20)     /* maximum bytes of the names of all directories */

struct unpack {
	struct archive *a;
	struct archive_entry *e;
	int storage, host; /* host: the host's root directory */
	bool whole, plain;
	const char *opaque; /* the attribute of an opaque directory */
	bool clears;        /* entries of lower layers are removed, and none are made */
	bool inherits; /* an entry can have attributes already, as a directory gives access lists */
	struct hr_buf times; /* the time of each directory, and its path in the storage */
};

/* An entry's place. */
struct place {
	char path[PATH_MAX]; /* below the storage */
	char *leaf;          /* the last name in `path`; "" for a directory of the storage's own */
	bool overlay;        /* the place is in an upper layer, which can have whiteouts */
	bool hidden;         /* a whiteout has nothing to hide: a directory above it is opaque */
	int dir;             /* the directory that contains it */
};

static int
refuse(const char *name, const char *why, struct hr_err *err)
{
	return hr_err_set(err, HR_E_INVAL, "the layer's entry \"%.100s\" %s", name, why);
}

static int
failed(const struct unpack *u, struct hr_err *err)
{
	return hr_err_sys(err, errno, "make %.100s", archive_entry_pathname(u->e));
}

/* Cuts slashes at the end. Returns NULL for a name that must not be used. */
static char *
clean_name(char *name)
{
	size_t len = strlen(name), n;
	const char *at;

	while (len > 1 && name[len - 1] == '/')
		name[--len] = '\0';
	if (strncmp(name, "./", 2) == 0 && name[2] != '\0')
		name += 2;
	for (at = name; *at != '\0'; at += n + (at[n] != '\0')) {
		n = strcspn(at, "/");
		if (n == 0 || (n == 1 && *at == '.') || (n == 2 && memcmp(at, "..", 2) == 0))
			return NULL;
	}
	return *name != '\0' ? name : NULL;
}

/* Returns the directory of the host that contains the name, or is it; NULL: none does. */
static const char *
seen_above(const char *name)
{
	const char *seen;
	size_t i, n;

	for (i = 0; (seen = box_view_seen(i)) != NULL; i++) {
		n = strlen(seen);
		if (strncmp(name, seen, n) == 0 && (name[n] == '/' || name[n] == '\0'))
			return seen;
	}
	return NULL;
}

/* Finds the place of a clean name. A link in the place of a directory of the host, as /bin can be,
 * is an entry of the box's root. */
static int
find_place(const struct unpack *u, const char *name, bool is_directory, struct place *ret,
    struct hr_err *err)
{
	const char *seen = u->whole ? NULL : seen_above(name);
	HR_BUF(b, sizeof(ret->path) - 1);
	HR_CLOSE int part = -1;

	if (!oci_name_fits(name))
		return refuse(name, "has too long a name, or is too deep", err);
	if (seen != NULL && name[strlen(seen)] == '\0' && !is_directory)
		seen = NULL;
	ret->overlay = u->whole || seen != NULL;
	ret->hidden = false;
	part = seen != NULL && !u->plain ? box_mount_within(u->host, seen) : -1;
	if (seen != NULL)
		oci_place(seen, part >= 0, &b);
	else
		hr_buf_adds(&b, u->whole ? "layers/" BOX_OVERLAY_ROOT "/upper" : "root");
	hr_buf_addf(&b, "%s%s", seen != NULL ? "" : "/", name + (seen != NULL ? strlen(seen) : 0));
	if (hr_buf_check(&b, err) < 0)
		return -1;
	(void)snprintf(ret->path, sizeof(ret->path), "%s", hr_buf_str(&b));
	ret->leaf = strrchr(ret->path, '/') + 1;
	return 0;
}

static bool
is_mark(const char *leaf)
{
	return strncmp(leaf, OCI_WHITEOUT, strlen(OCI_WHITEOUT)) == 0;
}

/* Opens the directory of the place; those that are missing are made. While lower layers are cleared
 * nothing is made, and p->dir is -1 without an error for a place that they do not have. */
static int
open_place(const struct unpack *u, struct place *p, struct hr_err *err)
{
	const bool marks = is_mark(p->leaf);
	char path[PATH_MAX], *at, *end;
	int next;

	(void)snprintf(path, sizeof(path), "%.*s", (int)(p->leaf - p->path), p->path);
	p->dir = dup(u->storage);
	for (at = path; p->dir >= 0 && *at != '\0'; at = end + 1) {
		end = strchr(at, '/');
		*end = '\0';
		next = u->clears || mkdirat(p->dir, at, 0755) == 0 || errno == EEXIST
			   ? openat(p->dir, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			   : -1;
		hr_fd_close(&p->dir);
		p->dir = next;
		/* the kernel lists a whiteout whose directory lies on no other one */
		p->hidden =
		    p->hidden || (marks && next >= 0 && fgetxattr(next, u->opaque, NULL, 0) > 0);
	}
	if (p->dir >= 0 || (u->clears && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)))
		return 0;
	return errno == ENOTDIR || errno == ELOOP
		   ? refuse(archive_entry_pathname(u->e),
			 "is below an entry that is not a directory", err)
		   : failed(u, err);
}

static int
damaged(const struct unpack *u, struct hr_err *err)
{
	const char *why = archive_error_string(u->a);

	return hr_err_set(
	    err, HR_E_INVAL, "the layer is damaged: %s", why != NULL ? why : "it is cut");
}

/* Returns true for an attribute that programs give their files. */
static bool
is_taken(const char *name)
{
	return (strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0) ||
	       strncmp(name, ACCESS_LIST, strlen(ACCESS_LIST)) == 0;
}

/* Removes the attributes of a lower layer's directory, and those that a directory gave. */
static int
remove_attributes(int fd)
{
	char list[ATTRIBUTES_MAX];
	ssize_t n = flistxattr(fd, list, sizeof(list));
	const char *name;

	if (n < 0)
		return errno == ENOTSUP ? 0 : -1;
	for (name = list; name < list + n; name += strlen(name) + 1)
		if (is_taken(name) && fremovexattr(fd, name) != 0)
			return -1;
	return 0;
}

/* Sets the attributes that programs give their files, and leaves no other ones of that kind. */
static int
set_attributes(struct unpack *u, int fd)
{
	const void *value;
	const char *name;
	size_t size;

	if (u->inherits && remove_attributes(fd) != 0)
		return -1;
	(void)archive_entry_xattr_reset(u->e);
	while (archive_entry_xattr_next(u->e, &name, &value, &size) == ARCHIVE_OK) {
		if (is_taken(name) && fsetxattr(fd, name, value, size, 0) != 0)
			return -1;
		u->inherits = u->inherits || strcmp(name, ACCESS_LIST "default") == 0;
	}
	return 0;
}

static void
times_of(const struct unpack *u, struct timespec ret[2])
{
	ret[0] = (struct timespec){.tv_nsec = UTIME_NOW};
	ret[1] = (struct timespec){.tv_sec = archive_entry_mtime(u->e)};
}

static int
set_owner(const struct unpack *u, int dir, const char *name)
{
	return box_ids_give(
	    dir, name, (uid_t)archive_entry_uid(u->e), (gid_t)archive_entry_gid(u->e));
}

/* Returns the mode without the bits that give a program another account: in a box they have no
 * effect, and outside they would. */
static mode_t
mode_of(const struct unpack *u)
{
	return archive_entry_perm(u->e) &
	       (archive_entry_filetype(u->e) == AE_IFDIR ? 03777 : 01777);
}

/* ---- entries ---- */

static int
taken(const struct unpack *u, struct hr_err *err)
{
	return errno == EEXIST ? refuse(archive_entry_pathname(u->e), "is there twice", err)
			       : failed(u, err);
}

/* Sets all of a directory but its time, which the entries below it change. */
static int
make_directory(struct unpack *u, const struct place *p, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	if (mkdirat(p->dir, p->leaf, 0700) != 0 && errno != EEXIST)
		return failed(u, err);
	fd = openat(p->dir, p->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP
			   ? refuse(archive_entry_pathname(u->e), "is there twice", err)
			   : failed(u, err);
	if (set_owner(u, fd, "") != 0 || set_attributes(u, fd) != 0 || fchmod(fd, mode_of(u)) != 0)
		return failed(u, err);
	hr_buf_addf(&u->times, "%lld %s", (long long)archive_entry_mtime(u->e), p->path);
	hr_buf_addc(&u->times, '\0');
	return hr_buf_check(&u->times, err);
}

static int
read_data(struct unpack *u, int fd, struct hr_err *err)
{
	la_int64_t at;
	const void *data;
	size_t n;
	int r;

	while ((r = archive_read_data_block(u->a, &data, &n, &at)) == ARCHIVE_OK)
		if (hr_fd_pwrite_full(fd, data, n, at) < 0)
			return failed(u, err);
	if (r != ARCHIVE_EOF)
		return damaged(u, err);
	return ftruncate(fd, archive_entry_size(u->e)) == 0 ? 0 : failed(u, err);
}

static int
make_file(struct unpack *u, const struct place *p, struct hr_err *err)
{
	HR_CLOSE int fd =
	    openat(p->dir, p->leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct timespec times[2];

	if (fd < 0)
		return taken(u, err);
	if (read_data(u, fd, err) < 0)
		return -1;
	times_of(u, times);
	if (set_owner(u, fd, "") != 0 || set_attributes(u, fd) != 0 ||
	    fchmod(fd, mode_of(u)) != 0 || futimens(fd, times) != 0)
		return failed(u, err);
	return 0;
}

/* Makes another name of an earlier file. */
static int
make_hardlink(struct unpack *u, const struct place *p, struct hr_err *err)
{
	HR_FREE char *text = strdup(archive_entry_hardlink(u->e));
	char *name = text != NULL ? clean_name(text) : NULL;
	struct place other;
	struct stat st;
	int r;

	if (text == NULL)
		return hr_err_nomem(err);
	if (name == NULL)
		return refuse(archive_entry_pathname(u->e), "is a link that leads out", err);
	if (find_place(u, name, false, &other, err) < 0 || open_place(u, &other, err) < 0)
		return -1;
	if (fstatat(other.dir, other.leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(st.st_mode) ||
	    S_ISCHR(st.st_mode))
		r = refuse(archive_entry_pathname(u->e), "is a link to no earlier file", err);
	else
		r = linkat(other.dir, other.leaf, p->dir, p->leaf, 0) == 0 ? 0 : taken(u, err);
	hr_fd_close(&other.dir);
	return r;
}

/* Makes a link or a FIFO. */
static int
make_other(struct unpack *u, const struct place *p, struct hr_err *err)
{
	const char *target = archive_entry_symlink(u->e);
	const bool is_link = archive_entry_filetype(u->e) == AE_IFLNK;
	struct timespec times[2];

	if (is_link && (target == NULL || *target == '\0' || strlen(target) >= PATH_MAX))
		return refuse(archive_entry_pathname(u->e), "is a link to no name", err);
	if ((is_link ? symlinkat(target, p->dir, p->leaf)
		     : mknodat(p->dir, p->leaf, S_IFIFO | 0600, 0)) != 0)
		return taken(u, err);
	times_of(u, times);
	if (set_owner(u, p->dir, p->leaf) != 0 ||
	    (!is_link && fchmodat(p->dir, p->leaf, mode_of(u), 0) != 0) ||
	    utimensat(p->dir, p->leaf, times, AT_SYMLINK_NOFOLLOW) != 0)
		return failed(u, err);
	return 0;
}

/* Returns the name that a whiteout removes, or NULL if that is none. */
static const char *
removed_by(const char *leaf)
{
	const char *name = leaf + strlen(OCI_WHITEOUT);

	return *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_mark(name)
		   ? NULL
		   : name;
}

/* Makes the overlay's form of a whiteout. A place without a layer below has nothing to hide. */
static int
make_mark(struct unpack *u, const struct place *p, struct hr_err *err)
{
	const char *name = removed_by(p->leaf);

	if (archive_entry_filetype(u->e) != AE_IFREG || archive_entry_size(u->e) != 0)
		return refuse(archive_entry_pathname(u->e), "is no mark of a removed file", err);
	if (strcmp(p->leaf, OCI_OPAQUE) == 0)
		return !p->overlay || fsetxattr(p->dir, u->opaque, "y", 1, 0) == 0 ? 0
										   : failed(u, err);
	if (name == NULL)
		return refuse(archive_entry_pathname(u->e), "marks no name", err);
	return !p->overlay || p->hidden || mknodat(p->dir, name, S_IFCHR, makedev(0, 0)) == 0
		   ? 0
		   : taken(u, err);
}

static int
make_entry(struct unpack *u, const struct place *p, struct hr_err *err)
{
	if (is_mark(p->leaf))
		return make_mark(u, p, err);
	if (archive_entry_hardlink(u->e) != NULL)
		return make_hardlink(u, p, err);
	switch (archive_entry_filetype(u->e)) {
	case AE_IFDIR: return make_directory(u, p, err);
	case AE_IFREG: return make_file(u, p, err);
	case AE_IFLNK:
	case AE_IFIFO: return make_other(u, p, err);
	default:
		return refuse(archive_entry_pathname(u->e),
		    "is a device or something else that a box cannot have", err);
	}
}

/* ---- lower layers ---- */

static int
remove_entry(int dir, const char *name, struct hr_err *err)
{
	char path[PATH_MAX + 32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	return hr_path_remove(path, err);
}

static int
remove_all(const struct unpack *u, int dir, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *e;

	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (remove_entry(dir, e->d_name, err) < 0)
			return -1;
	return d != NULL && errno == 0 ? 0 : failed(u, err);
}

/* Makes a directory that hides what lies below the storage, as the entry in its place did. */
static int
make_opaque(const struct unpack *u, int dir, const char *name, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	if (mkdirat(dir, name, 0700) == 0)
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fsetxattr(fd, u->opaque, "y", 1, 0) == 0 ? 0 : failed(u, err);
}

/* Removes from the lower layers the entry that this one removes or replaces. A directory stays for
 * another one. */
static int
clear_place(const struct unpack *u, const struct place *p, struct hr_err *err)
{
	const bool marks = is_mark(p->leaf);
	const bool folder = !marks && archive_entry_filetype(u->e) == AE_IFDIR;
	const char *name = marks ? removed_by(p->leaf) : p->leaf;
	struct stat st;

	if (marks && strcmp(p->leaf, OCI_OPAQUE) == 0)
		return remove_all(u, p->dir, err);
	if (name == NULL)
		return 0; /* the layer is refused when its entries are made */
	if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : failed(u, err);
	if (folder && S_ISDIR(st.st_mode))
		return 0;
	if (remove_entry(p->dir, name, err) < 0)
		return -1;
	return folder && p->overlay ? make_opaque(u, p->dir, name, err) : 0;
}

static int
take_entry(struct unpack *u, struct hr_err *err)
{
	const char *path = archive_entry_pathname(u->e);
	HR_FREE char *text = path != NULL ? strdup(path) : NULL;
	char *name = text != NULL ? clean_name(text) : NULL;
	const bool is_directory = archive_entry_filetype(u->e) == AE_IFDIR;
	struct place p = {.dir = -1};
	int r;

	if (path == NULL)
		return hr_err_set(err, HR_E_INVAL, "the layer has a name that is not UTF-8");
	if (is_directory && (strcmp(path, "./") == 0 || strcmp(path, "/") == 0))
		return 0;
	if (name == NULL)
		return refuse(path, "has a name that leads out of the layer", err);
	if (find_place(u, name, is_directory, &p, err) < 0)
		return -1;
	r = open_place(u, &p, err);
	if (r == 0 && p.dir >= 0)
		r = u->clears ? clear_place(u, &p, err) : make_entry(u, &p, err);
	hr_fd_close(&p.dir);
	return r;
}

/* Sets the times of the directories. */
static int
set_times(const struct unpack *u, struct hr_err *err)
{
	const char *at = hr_buf_str(&u->times), *past = at + u->times.len;
	char *path;

	for (; at < past; at += strlen(at) + 1) {
		const struct timespec times[] = {
		    {.tv_nsec = UTIME_NOW}, {.tv_sec = strtoll(at, &path, 10)}};

		/* only this process changes the storage, and it has entered each of these */
		if (utimensat(u->storage, path + 1, times, AT_SYMLINK_NOFOLLOW) != 0)
			return hr_err_sys(err, errno, "set the time of %s", path + 1);
	}
	return 0;
}

static int
read_entries(struct unpack *u, int layer, struct hr_err *err)
{
	int r;

	if (lseek(layer, 0, SEEK_SET) != 0 || archive_read_support_format_tar(u->a) != ARCHIVE_OK ||
	    archive_read_open_fd(u->a, layer, OCI_PIECE) != ARCHIVE_OK)
		return damaged(u, err);
	while ((r = archive_read_next_header(u->a, &u->e)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		if (take_entry(u, err) < 0)
			return -1;
	return r == ARCHIVE_EOF ? set_times(u, err) : damaged(u, err);
}

static int
take_all(struct unpack *u, int layer, struct hr_err *err)
{
	int r;

	u->a = archive_read_new();
	r = u->a != NULL ? read_entries(u, layer, err) : hr_err_nomem(err);
	if (u->a != NULL)
		(void)archive_read_free(u->a);
	return r;
}

int
oci_unpack(int storage, bool over, bool whole, bool plain, int layer, struct hr_err *err)
{
	HR_CLOSE int host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct unpack u = {.storage = storage,
	    .host = host,
	    .whole = whole,
	    .plain = plain,
	    .opaque = box_overlay_opaque(plain),
	    .clears = over,
	    .inherits = over};
	int r;

	hr_buf_init(&u.times, TIMES_MAX);
	(void)umask(0);
	r = over ? take_all(&u, layer, err) : 0;
	u.clears = false;
	if (r == 0)
		r = take_all(&u, layer, err);
	hr_buf_done(&u.times);
	return r;
}
