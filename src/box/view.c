/* The file systems of a box: overlays over the host's programs or over a root directory, a /proc
 * with masks, a small /dev, and the mounts of the document. */
#include "config.h"

#include "box/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "box/layer.h"
#include "box/mask.h"
#include "box/mount.h"
#include "box/overlay.h"
#include "box/skeleton.h"

/* <sys/mount.h> and <linux/mount.h> define the same names differently in glibc 2.36 */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
    const void *data);
int umount2(const char *target, int flags);
#define BOX_MS_REC 16384UL
#define BOX_MS_PRIVATE (1UL << 18)
#define BOX_MNT_DETACH 2

#define SOURCE "handrail" /* name of the overlays other than the root */
#define PLACES_MAX (BOX_MOUNTS_MAX + 64)
#define TMPFS_RUN "67108864"   /* maximum bytes of /run */
#define TMPFS_SHM "1073741824" /* maximum bytes of /dev/shm, counted as the box's memory */
#define TMPFS_FILES "65536"    /* files in each; the kernel's limit is half of the memory */

/* A mount of the list that is not attached yet, and its place. */
struct place {
	int fd;
	const char *target;
	bool is_file;
};

/* These directories of the host a box sees. Each becomes the lower layer of an overlay. */
struct seen {
	const char *path; /* below / */
	bool sift;        /* entries that not every account can read are left out: they may
			     be secrets */
};
static const struct seen host_system[] = {{"usr", false}, {"bin", false}, {"sbin", false},
    {"lib", false}, {"lib32", false}, {"lib64", false}, {"libx32", false}, {"etc", true},
    {"var/lib/dpkg", false}, {"var/lib/apt", false}, {"var/cache/apt", false},
    {"var/cache/debconf", true}, {"var/cache/fontconfig", false}};

#define SEEN (sizeof(host_system) / sizeof(*host_system))

const char *
box_view_seen(size_t i)
{
	return i < SEEN ? host_system[i].path : NULL;
}

struct view {
	const struct box_spec *s;
	bool plain;
	int storage, host; /* directories; host: the host's root */
	int layers;        /* has a byte when the guard has prepared the layers */
	struct place v[PLACES_MAX];
	size_t n, put;     /* mounts of the list, and those of them that are in place */
	int lower[SEEN];   /* directories of host_system of which the box gets a mount; -1: none */
	bool within[SEEN]; /* the directory is of the root's file system: one overlay has all */
	bool sysfs;        /* the box has one */
	char resolver[PATH_MAX];
};

static const char *const devices[] = {
    "/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"};

/* Adds a mount; takes ownership of fd (-1: the error is in errno). */
static int
add(struct view *v, int fd, const char *target, bool is_file, struct hr_err *err)
{
	if (fd < 0)
		return hr_err_sys(err, errno, "make a mount for %s", target);
	if (v->n == PLACES_MAX) {
		hr_fd_close(&fd);
		return hr_err_set(err, HR_E_TOOLARGE, "more than %d mounts", PLACES_MAX);
	}
	v->v[v->n++] = (struct place){fd, target, is_file};
	return 0;
}

/* ---- overlays ---- */

/* Prepares the upper layer of a directory. */
static int
prepare_layer(const struct view *v, int lower, int upper, int scratch, const char *target,
    bool sifted, struct hr_err *err)
{
	struct stat st;

	if (fstat(lower, &st) != 0 || fchmod(upper, st.st_mode & 07777) != 0)
		return hr_err_sys(err, errno, "prepare the layer of %s", target);
	return box_layer_prepare(v->s, v->plain, target, sifted, lower, upper, scratch, err);
}

static int
not_overlaid(const struct view *v, const char *target, struct hr_err *err)
{
	return errno == EINVAL && v->plain
		   ? hr_err_set(err, HR_E_UNSUPPORTED,
			 "/%s of this machine has file systems mounted below it, as in a "
			 "container; the kernel lets only root's box leave them out: name a "
			 "\"root\", or be root",
			 target)
		   : hr_err_sys(err, errno, "make a mount for /%s", target);
}

/* Returns an overlay of `lower` for `target`, whose changes are kept below the storage's `name`. */
static int
named_overlay(const struct view *v, int lower, const char *target, const char *name, bool sifted,
    struct hr_err *err)
{
	HR_CLEAN(box_overlay_done) struct box_overlay l = {-1, -1, -1};
	int fd;

	if (box_overlay_open(v->storage, name, &l, err) < 0 ||
	    prepare_layer(v, lower, l.upper, l.scratch, target, sifted, err) < 0)
		return -1;
	fd = box_overlay_new(v->plain, &lower, 1, &l, SOURCE);
	return fd >= 0 ? fd : not_overlaid(v, target, err);
}

/* ---- the root ---- */

/* Prepares the only upper layer of root's box with the host's programs. */
static int
prepare_whole(const struct view *v, struct hr_err *err)
{
	HR_CLEAN(box_overlay_done) struct box_overlay l = {-1, -1, -1};
	size_t i;

	if (box_overlay_open(v->storage, BOX_OVERLAY_WHOLE, &l, err) < 0)
		return -1;
	for (i = 0; i < SEEN; i++) {
		const char *path = host_system[i].path;
		HR_CLOSE int lower = host_system[i].sift ? box_mount_within(v->host, path) : -1;
		HR_CLOSE int upper = -1;

		if (lower < 0)
			continue;
		if (box_layer_below(l.upper, path, 0755, err) < 0)
			return -1;
		upper = box_mount_within(l.upper, path);
		if (upper < 0)
			return hr_err_sys(err, errno, "open the layer of %s", path);
		if (prepare_layer(v, lower, upper, l.scratch, path, true, err) < 0)
			return -1;
	}
	return 0;
}

/* Makes one overlay of the host's root for all directories that a box sees of that file system: an
 * overlay takes the kernel longer than all else of a box. The box gets mounts of those directories
 * alone. *ret stays -1 if each directory needs an overlay of its own. */
static int
whole_overlay(const struct view *v, int *ret, struct hr_err *err)
{
	HR_CLEAN(box_overlay_done) struct box_overlay l = {-1, -1, -1};
	char ready;

	/* the kernel refuses such an overlay to an ordinary user */
	if (v->plain)
		return 0;
	if (hr_fd_read(v->layers, &ready, 1) != 1)
		return hr_err_set(err, HR_E_GONE, "the launcher has ended");
	if (box_overlay_open(v->storage, BOX_OVERLAY_WHOLE, &l, err) < 0)
		return -1;
	*ret = box_overlay_new(false, &v->host, 1, &l, SOURCE);
	/* kernels before 6.15 copy only what is attached; this place goes with the host's root */
	if (*ret >= 0 && syscall(SYS_move_mount, *ret, "", l.scratch, "",
			     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return hr_err_sys(err, errno, "mount the overlay of the box");
	return 0;
}

/* Makes the place of a directory of the host in the root, or the link that it is on the host.
 * Returns 1 if the place needs a mount, 0 if not, or -1 with *err. */
static int
make_seen(int root, int host, const struct seen *seen, struct hr_err *err)
{
	char link[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(host, seen->path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0; /* not every system has this directory */
	n = readlinkat(host, seen->path, link, sizeof(link) - 1);
	if (n > 0) {
		link[n] = '\0';
		return box_layer_link(root, seen->path, link, err);
	}
	return box_layer_below(root, seen->path, 0755, err) == 0 ? 1 : -1;
}

/* Opens a directory of the host. Its path may lead by links, which count while the host's root is
 * the root. */
static int
open_seen(struct view *v, size_t i, struct hr_err *err)
{
	const char *path = host_system[i].path;

	v->lower[i] = v->plain ? -1 : box_mount_within(v->host, path);
	v->within[i] = v->lower[i] >= 0;
	if (v->lower[i] < 0)
		v->lower[i] =
		    openat(v->host, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return v->lower[i] >= 0 ? 0 : hr_err_sys(err, errno, "open /%s", path);
}

/* Returns the mount of a directory of the host: a part of `whole`, or an overlay of its own. */
static int
mount_seen(const struct view *v, int whole, size_t i, struct hr_err *err)
{
	const struct seen *seen = &host_system[i];
	HR_CLOSE int part = -1;
	char name[64], *slash;
	int fd;

	if (whole >= 0 && v->within[i]) {
		part = box_mount_within(whole, seen->path);
		fd = box_mount_copy(part, "", 0);
		return fd >= 0 ? fd : hr_err_sys(err, errno, "make a mount for %s", seen->path);
	}
	(void)snprintf(name, sizeof(name), "%s", seen->path);
	while ((slash = strchr(name, '/')) != NULL)
		*slash = '-';
	return named_overlay(v, v->lower[i], seen->path, name, seen->sift, err);
}

/* Fills the root of a box with the host's programs: with its own directories, and the places of
 * those of the host. */
static int
fill_root(struct view *v, int root, struct hr_err *err)
{
	int r = box_skeleton_root(root, err);
	size_t i;

	for (i = 0; i < SEEN && r >= 0; i++) {
		v->lower[i] = -1;
		r = make_seen(root, v->host, &host_system[i], err);
		if (r > 0)
			r = open_seen(v, i, err);
	}
	return r < 0 ? -1 : 0;
}

/* ---- mounts of every box ---- */

static int
add_system(struct view *v, struct hr_err *err)
{
	static const char *const run[] = {
	    "mode", "0755", "size", TMPFS_RUN, "nr_inodes", TMPFS_FILES, NULL};
	static const char *const shm[] = {
	    "mode", "1777", "size", TMPFS_SHM, "nr_inodes", TMPFS_FILES, NULL};
	static const char *const dev[] = {
	    "mode", "0755", "size", "65536", "nr_inodes", "1024", NULL};
	static const char *const pts[] = {
	    "newinstance", NULL, "ptmxmode", "0666", "mode", "0620", NULL};
	static const char *const none[] = {NULL};
	const unsigned safe = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	int fd = box_mount_new("proc", none, safe | MOUNT_ATTR_NOEXEC);
	size_t i;

	if (fd < 0)
		return hr_err_sys(err, errno,
		    "the kernel refuses a /proc of the box's own (as inside a container that hides "
		    "parts of its /proc)");
	if (add(v, fd, "proc", false, err) < 0)
		return -1;
	/* An ordinary user's box with the host's network has none: the kernel shows
	 * only the network namespaces of the box's own user namespace. */
	fd = box_mount_new("sysfs", none, safe | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
	v->sysfs = fd >= 0;
	if (v->sysfs && add(v, fd, "sys", false, err) < 0)
		return -1;
	if (add(v, box_mount_new("tmpfs", run, safe), "run", false, err) < 0 ||
	    add(v, box_mount_new("tmpfs", dev, safe), "dev", false, err) < 0 ||
	    add(v, box_mount_new("tmpfs", shm, safe | MOUNT_ATTR_NOEXEC), "dev/shm", false, err) <
		0 ||
	    add(v, box_mount_new("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC), "dev/pts",
		false, err) < 0)
		return -1;
	for (i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		fd = box_mount_copy(AT_FDCWD, devices[i], 0);
		/* a device can be used on a read-only mount, but the host's file keeps its
		 * mode and owner */
		if (fd >= 0 && box_mount_flags(fd, 0,
				   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY) < 0)
			hr_fd_close(&fd);
		if (add(v, fd, devices[i] + 1, true, err) < 0)
			return -1;
	}
	return 0;
}

/* Returns true for a mount, as container engines have it of some files of /etc. The overlay of /etc
 * has only the file below it. */
static bool
is_mount(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Keeps the host's resolver where /etc/resolv.conf is a link into /run, or a mount. */
static int
add_resolver(struct view *v, struct hr_err *err)
{
	static const char file[] = "/etc/resolv.conf";

	if (v->s->root != NULL || !v->s->host_network || realpath(file, v->resolver) == NULL ||
	    (strncmp(v->resolver, "/etc/", 5) == 0 && !is_mount(v->resolver)))
		return 0;
	return add(v, box_mount_bound(v->resolver, false), v->resolver + 1, true, err);
}

static int
add_mounts(struct view *v, struct hr_err *err)
{
	const struct box_mount *m;
	struct stat st;
	size_t i;

	if (add_resolver(v, err) < 0)
		return -1;
	for (i = 0; i < v->s->nmounts; i++) {
		m = &v->s->mounts[i];
		if (stat(m->source, &st) != 0)
			return hr_err_sys(err, errno, "the source of a mount, %s", m->source);
		if (add(v, box_mount_bound(m->source, !m->read_only), m->target + 1,
			!S_ISDIR(st.st_mode), err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the box itself ---- */

/* Puts the mounts of the list in place up to the n-th. */
static int
put_list(struct view *v, size_t n, struct hr_err *err)
{
	for (; v->put < n; v->put++) {
		struct place *p = &v->v[v->put];

		if (box_mount_put(p->fd, p->target, p->is_file, err) < 0)
			return -1;
		hr_fd_close(&p->fd);
	}
	return 0;
}

/* Puts the directories of the host in place. */
static int
put_host(struct view *v, struct hr_err *err)
{
	HR_CLOSE int whole = -1;
	size_t i;

	if (whole_overlay(v, &whole, err) < 0)
		return -1;
	for (i = 0; i < SEEN; i++) {
		const char *path = host_system[i].path;
		HR_CLOSE int fd = v->lower[i] >= 0 ? mount_seen(v, whole, i, err) : -1;

		if (v->lower[i] >= 0 && fd < 0)
			return -1;
		if (fd >= 0 && box_mount_move(fd, path) < 0)
			return hr_err_sys(err, errno, "mount /%s in the box", path);
		hr_fd_close(&v->lower[i]);
	}
	return 0;
}

/* Opens the root directory of a box with a system of its own. */
static int
open_own(const struct view *v, struct hr_err *err)
{
	int lower = box_mount_path(v->s->root, O_RDONLY | O_DIRECTORY);
	struct stat st, host;

	if (lower < 0)
		return hr_err_sys(err, errno, "open the root directory %s", v->s->root);
	if (fstat(lower, &st) == 0 && stat("/", &host) == 0 && st.st_dev == host.st_dev &&
	    st.st_ino == host.st_ino) {
		hr_fd_close(&lower);
		return hr_err_set(
		    err, HR_E_INVAL, "the root %s is the host's: leave it out", v->s->root);
	}
	return lower;
}

/* Makes the root of a box that has a root directory of its own, or layers. */
static int
layered_root(struct view *v, struct hr_err *err)
{
	HR_CLEAN(box_overlay_done) struct box_overlay o = {-1, -1, -1};
	HR_CLEAN(box_lower_done) struct box_lower lower = {.n = 0};
	const bool own = v->s->root != NULL;
	char source[BOX_TABLE_SOURCE];
	int tree;

	if (box_lower_open(&lower, v->s->below, v->s->nbelow, err) < 0 ||
	    (own && (lower.v[lower.n++] = open_own(v, err)) < 0) ||
	    box_overlay_open_root(v->storage, own, lower.v[0], "work", &o, err) < 0 ||
	    (own && box_layer_prepare(v->s, v->plain, ".", false, lower.v[lower.n - 1], o.upper,
			o.scratch, err) < 0))
		return -1;
	tree = box_overlay_name(&o, source) == 0
		   ? box_overlay_new(v->plain, lower.v, lower.n, &o, source)
		   : -1;
	if (tree < 0)
		return not_overlaid(v, own ? v->s->root + 1 : "", err);
	if (!own && fill_root(v, tree, err) < 0)
		hr_fd_close(&tree);
	return tree;
}

/* Makes the root of a box with the host's programs, which is a directory of the storage. */
static int
storage_root(struct view *v, struct hr_err *err)
{
	HR_CLOSE int root = box_layer_directory(v->storage, BOX_OVERLAY_TOP, 0755);
	int tree;

	if (root < 0)
		return hr_err_sys(err, errno, "make \"root\" in the storage");
	if (fill_root(v, root, err) < 0)
		return -1;
	tree = box_mount_copy(root, "", 0);
	if (tree >= 0 && box_mount_flags(tree, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0)
		hr_fd_close(&tree);
	return tree >= 0 ? tree : hr_err_sys(err, errno, "make the root of the box");
}

/* Detaches the host's root, which lies above the box's. */
static int
detach(struct hr_err *err)
{
	return umount2(".", BOX_MNT_DETACH) == 0 && chdir("/") == 0
		   ? 0
		   : hr_err_sys(err, errno, "detach the host's root");
}

/* Makes the box's root the only one. Until the host's root is detached, "/.." leads there, and so
 * could a link that the box, or its root directory, has: the document's mounts wait for that. In a
 * box with the host's programs the places of the system's mounts were just made; they come first,
 * while the guard prepares the layers. Its overlay needs the host's root. Without a sysfs, /sys is
 * a directory of the box, whose links must not be followed yet. */
static int
enter_root(struct view *v, struct hr_err *err)
{
	const bool own = v->s->root != NULL;
	HR_CLOSE int tree = -1;
	size_t system;

	if (add_system(v, err) < 0)
		return -1;
	system = v->n;
	tree = own || v->s->nbelow > 0 ? layered_root(v, err) : storage_root(v, err);
	if (tree < 0 || add_mounts(v, err) < 0)
		return -1;
	/* the storage is covered from here on; it is only the place for an instant */
	if (syscall(SYS_move_mount, tree, "", v->storage, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ||
	    fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return hr_err_sys(err, errno, "change the root to the box's");
	if ((own && detach(err) < 0) || put_list(v, system, err) < 0 ||
	    box_skeleton_system(err) < 0 || (v->sysfs && box_mask(err) < 0) ||
	    (!own && (put_host(v, err) < 0 || detach(err) < 0)) || (!v->sysfs && box_mask(err) < 0))
		return -1;
	return put_list(v, v->n, err);
}

/* Opens the storage and the host's root. */
static int
open_both(struct view *v, struct hr_err *err)
{
	const char *storage = v->s->storage;
	struct stat st;

	v->host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (v->host < 0)
		return hr_err_sys(err, errno, "open /");
	v->storage = box_mount_path(storage, O_RDONLY | O_DIRECTORY);
	if (v->storage < 0 || fstat(v->storage, &st) != 0)
		return hr_err_sys(err, errno, "open the storage %s", storage);
	/* root of the box can make set-uid files there, which no other account may reach */
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "the storage %s must belong to you, and no other account may enter it: chmod "
		    "700",
		    storage);
	return 0;
}

int
box_view_prepare(const struct box_spec *s, bool plain, struct hr_err *err)
{
	struct view v = {.s = s, .plain = plain, .storage = -1, .host = -1};
	mode_t mask;
	int r;

	if (plain || s->root != NULL)
		return 0;
	mask = umask(0);
	r = open_both(&v, err) < 0 ? -1 : prepare_whole(&v, err);
	(void)umask(mask);
	hr_fd_close(&v.storage);
	hr_fd_close(&v.host);
	return r;
}

int
box_view_enter(const struct box_spec *s, bool plain, int layers, struct hr_err *err)
{
	struct view v = {.s = s, .plain = plain, .layers = layers};

	(void)umask(0);
	if (mount(NULL, "/", NULL, BOX_MS_REC | BOX_MS_PRIVATE, NULL) < 0)
		return hr_err_sys(err, errno, "separate the mounts from the host's");
	if (open_both(&v, err) < 0 || enter_root(&v, err) < 0)
		return -1;
	hr_fd_close(&v.storage);
	hr_fd_close(&v.host);
	(void)umask(022);
	return 0;
}
