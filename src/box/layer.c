/* Prepares the upper layers of a box: the files of the host that it does not see, those that it has
 * of its own, and the directories that its root can write to. */
#include "config.h"

#include "box/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/plain.h"
#include "box/mount.h"

#define FILE_MAX (64u << 20) /* maximum bytes of a file of the host that is copied */
/* names in the scratch directory */
#define SCRATCH "new"
#define WHITEOUT "whiteout"

int
box_layer_directory(int storage, const char *name, mode_t mode)
{
	if (mkdirat(storage, name, mode) != 0 && errno != EEXIST)
		return -1;
	return openat(storage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens the directory `name` of `upper`, which is made like `lower` if it is missing. *ret stays -1
 * if the box has put something else in the place. */
static int
same_directory(int lower, int upper, const char *name, int *ret, struct hr_err *err)
{
	struct stat st;

	if (fstat(lower, &st) != 0)
		return hr_err_sys(err, errno, "look at the directory %s", name);
	*ret = box_layer_directory(upper, name, st.st_mode & 07777);
	return *ret >= 0 || errno == ENOTDIR || errno == ELOOP
		   ? 0
		   : hr_err_sys(err, errno, "make %s in the storage", name);
}

/* Programs make these files for a moment while they change accounts, or as a backup; they hold
 * passwords, or could not be replaced by an ordinary user's box. */
static const char *const accounts[] = {"group-", "gshadow", "gshadow+", "gshadow-", "gshadow.edit",
    "ngshadow", "npasswd", "nshadow", "passwd-", "shadow", "shadow+", "shadow-", "shadow.edit",
    "subgid-", "subuid-", "sudoers.tmp"};

/* Makes a whiteout, as a link to one in the scratch directory: a new inode takes a file system of
 * many changes as long as 20 links. Returns -1 with errno. */
static int
white_out(int scratch, int upper, const char *name)
{
	int r = linkat(scratch, WHITEOUT, upper, name, 0);

	if (r != 0 && errno == ENOENT && mknodat(scratch, WHITEOUT, S_IFCHR, makedev(0, 0)) == 0)
		r = linkat(scratch, WHITEOUT, upper, name, 0);
	if (r != 0 && errno != EEXIST) /* a file may have no more links, or never have two */
		r = mknodat(upper, name, S_IFCHR, makedev(0, 0));
	return r;
}

static int
hide_accounts(int scratch, int upper, struct hr_err *err)
{
	size_t i;

	for (i = 0; i < sizeof(accounts) / sizeof(*accounts); i++)
		if (white_out(scratch, upper, accounts[i]) != 0 && errno != EEXIST)
			return hr_err_sys(err, errno, "hide %s", accounts[i]);
	return 0;
}

/* A directory of an upper layer, which is made at the first need: each one is a write to the disk
 * at the first start of a box, and hardly any directory has something to hide. */
struct layer {
	struct layer *up; /* the directory above; NULL: the top, which is open */
	const char *name;
	mode_t mode;
	int fd; /* -1: not made yet */
	int scratch;
};

/* Sets l->fd. Returns 1, 0 if the box has put something else in the place, or -1 with errno. */
static int
layer_open(struct layer *l)
{
	int r = l->fd < 0 ? layer_open(l->up) : 1;

	if (r > 0 && l->fd < 0) {
		l->fd = box_layer_directory(l->up->fd, l->name, l->mode);
		if (l->fd < 0)
			r = errno == ENOTDIR || errno == ELOOP ? 0 : -1;
	}
	return r;
}

/* Leaves a name out of the layer's view. What the box has made of it itself stays. */
static int
leave_out(struct layer *l, const char *name, struct hr_err *err)
{
	struct stat st;
	int r = layer_open(l);

	if (r > 0 && fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		r = white_out(l->scratch, l->fd, name);
	return r >= 0 ? 0 : hr_err_sys(err, errno, "hide %s", name);
}

static int hide_private(int lower, struct layer *upper, bool all, struct hr_err *err);

/* Leaves the entry out, or looks for private files below it. Only its mode is looked at: a box
 * waits for that. */
static int
hide_entry(int lower, const struct dirent64 *e, struct layer *upper, bool all, struct hr_err *err)
{
	struct layer inner = {upper, e->d_name, 0, -1, upper->scratch};
	struct stat st;
	int below, r;

	if (e->d_type == DT_LNK || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
	    fstatat(lower, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(st.st_mode))
		return 0;
	if ((st.st_mode & S_IROTH) == 0 || (S_ISDIR(st.st_mode) && (st.st_mode & 1) == 0))
		return leave_out(upper, e->d_name, err);
	if (!S_ISDIR(st.st_mode))
		return 0;
	inner.mode = st.st_mode & 07777;
	below = openat(lower, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0 || (all && layer_open(&inner) < 0)) {
		r = hr_err_sys(err, errno, "enter %s", e->d_name);
		hr_fd_close(&below);
	} else {
		r = hide_private(below, &inner, all, err);
	}
	hr_fd_close(&inner.fd);
	return r;
}

/* Takes ownership of `lower`. Reads it without readdir(), which takes four system calls and an
 * allocation more for each directory. */
static int
hide_private(int lower, struct layer *upper, bool all, struct hr_err *err)
{
	_Alignas(struct dirent64) char entries[2048];
	HR_CLOSE int dir = lower;
	const struct dirent64 *e;
	ssize_t n = 0, at;
	int r = 0;

	while (r == 0 && (n = getdents64(dir, entries, sizeof(entries))) > 0)
		for (at = 0; r == 0 && at < n; at += e->d_reclen) {
			e = (const void *)(entries + at);
			r = hide_entry(dir, e, upper, all, err);
		}
	return n >= 0 ? r : hr_err_sys(err, errno, "read a directory of the host");
}

/* Opens the directory of a relative path of that length; those that are missing are made. */
static int
open_below(int root, const char *path, size_t len, struct hr_err *err)
{
	const char *past = path + len, *end;
	char name[NAME_MAX + 1];
	int next, dir = dup(root);

	for (; path < past && dir >= 0; path = end < past ? end + 1 : end) {
		end = memchr(path, '/', (size_t)(past - path));
		end = end != NULL ? end : past;
		if ((size_t)(end - path) >= sizeof(name)) {
			hr_fd_close(&dir);
			return hr_err_set(err, HR_E_INVAL, "a name is too long: %.40s...", path);
		}
		memcpy(name, path, (size_t)(end - path));
		name[end - path] = '\0';
		next = box_layer_directory(dir, name, 0755);
		hr_fd_close(&dir);
		dir = next;
	}
	return dir >= 0 ? dir : hr_err_sys(err, errno, "make a directory of the box");
}

int
box_layer_below(int root, const char *path, mode_t mode, struct hr_err *err)
{
	HR_CLOSE int dir = open_below(root, path, strlen(path), err);
	struct stat st;

	if (dir < 0)
		return -1;
	/* each change of an overlay copies the directory */
	return (fstat(dir, &st) == 0 && (st.st_mode & 07777) == mode) || fchmod(dir, mode) == 0
		   ? 0
		   : hr_err_sys(err, errno, "make a directory of the box");
}

int
box_layer_link(int root, const char *path, const char *target, struct hr_err *err)
{
	const char *leaf = hr_path_leaf(path);
	HR_CLOSE int dir = open_below(root, path, (size_t)(leaf - path), err);

	if (dir < 0)
		return -1;
	return symlinkat(target, dir, leaf) == 0 || errno == EEXIST
		   ? 0
		   : hr_err_sys(err, errno, "make the link %s of the box", path);
}

/* ---- files of the box's own ---- */

/* Appends the box's version of a file of the host to *b. */
typedef void edit_fn(struct hr_buf *b, const char *text, const char *name);

/* Makes the file the box's own: root of an ordinary user's box cannot change a file of the host's
 * root. */
static void
copy(struct hr_buf *b, const char *text, const char *name)
{
	(void)name;
	hr_buf_adds(b, text);
}

/* Appends a line for the name of the box, which Java and others look up. */
static void
add_name(struct hr_buf *b, const char *text, const char *name)
{
	const size_t n = strlen(text);

	hr_buf_adds(b, n > 0 ? text : "127.0.0.1\tlocalhost\n::1\tlocalhost\n");
	hr_buf_addf(b, "%s127.0.0.1\t%s\n", n > 0 && text[n - 1] != '\n' ? "\n" : "", name);
}

/* Replaces the password "x", which means that /etc/shadow has an entry of the account: a box does
 * not see that file, and su and sudo refuse accounts without the entry. */
static void
lock_passwords(struct hr_buf *b, const char *text, const char *name)
{
	const char *end, *field;

	(void)name;
	for (; *text != '\0'; text = end) {
		end = strchrnul(text, '\n');
		end += *end != '\0';
		field = memchr(text, ':', (size_t)(end - text));
		if (field != NULL && strncmp(field, ":x:", 3) == 0) {
			hr_buf_add(b, text, (size_t)(field - text));
			hr_buf_adds(b, ":*:");
			text = field + 3;
		}
		hr_buf_add(b, text, (size_t)(end - text));
	}
}

/* Appends a line of nsswitch.conf without the source "systemd" and the action that follows it. */
static void
add_sources(struct hr_buf *b, const char *p, const char *end)
{
	static const char source[] = "systemd";
	const char *word, *past;
	bool gone = false;

	for (; p < end; p = past) {
		word = p + strspn(p, " \t");
		if (word == end) /* the text ends with blanks */
			word--;
		past = word + (*word == '[' ? strcspn(word, "]\n") : strcspn(word, " \t\n["));
		past += *past == ']' || past == word;
		if ((size_t)(past - word) == strlen(source) &&
		    strncmp(word, source, strlen(source)) == 0) {
			gone = true;
			continue;
		}
		gone = gone && *word == '[';
		if (!gone)
			hr_buf_add(b, p, (size_t)(past - p));
	}
}

/* Leaves out systemd's source of accounts. No systemd runs in a box, and each program that looks
 * for the groups of an account would load that source, which takes a millisecond. */
static void
drop_systemd(struct hr_buf *b, const char *text, const char *name)
{
	const char *end;

	(void)name;
	for (; *text != '\0'; text = end) {
		end = strchrnul(text, '\n');
		end += *end != '\0';
		if (*text == '#')
			hr_buf_add(b, text, (size_t)(end - text));
		else
			add_sources(b, text, end);
	}
}

/* Appends the only rule of the box's own sudoers; the host's is hidden. */
static void
permit_root(struct hr_buf *b, const char *text, const char *name)
{
	(void)text;
	(void)name;
	hr_buf_adds(b, "root ALL=(ALL:ALL) NOPASSWD: ALL\n");
}

static const struct own {
	const char *name;
	edit_fn *edit;
	mode_t mode;
	bool any;    /* also in a box with a system of its own */
	bool hidden; /* is not read: it is there for the box only if the host has the file */
	bool always; /* is made where the host has none */
} own_files[] = {{"group", copy, 0644, false, false, false},
    {"hosts", add_name, 0644, true, false, true},
    {"nsswitch.conf", drop_systemd, 0644, false, false, false},
    {"passwd", lock_passwords, 0644, false, false, false},
    {"subgid", copy, 0644, false, false, false}, {"subuid", copy, 0644, false, false, false},
    {"sudoers", permit_root, 0440, false, true, false}};

/* Writes a file into the upper layer, whole or not at all, since the launcher may be killed, and
 * later starts keep what they find. A file that a power failure has emptied is made again: to wait
 * for the disk takes longer than the whole start. */
static int
put_file(int scratch, int upper, const struct own *o, const struct hr_buf *text, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	(void)unlinkat(scratch, SCRATCH, 0); /* a killed launcher's */
	fd =
	    openat(scratch, SCRATCH, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, o->mode);
	if (fd < 0)
		return hr_err_sys(err, errno, "make /etc/%s of the box", o->name);
	if (hr_fd_write_full(fd, hr_buf_str(text), text->len, err) < 0)
		return -1;
	return renameat(scratch, SCRATCH, upper, o->name) == 0
		   ? 0
		   : hr_err_sys(err, errno, "make /etc/%s of the box", o->name);
}

static int
own_file(
    int lower, int upper, int scratch, const struct own *o, const char *name, struct hr_err *err)
{
	HR_BUF(text, FILE_MAX);
	HR_BUF(edited, FILE_MAX + 4096);
	HR_CLOSE int fd = -1;
	struct stat st;
	bool there;

	if (fstatat(upper, o->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (!S_ISREG(st.st_mode) || st.st_size > 0))
		return 0; /* an earlier start's, or the box's */
	there = fstatat(lower, o->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && !(o->always && errno == ENOENT))
		return 0;
	/* a link stays what it is; a file that not every account may read stays hidden */
	if (there && !o->hidden && (!S_ISREG(st.st_mode) || (st.st_mode & S_IROTH) == 0))
		return 0;
	if (there && !o->hidden) {
		fd = openat(lower, o->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return hr_err_sys(err, errno, "open /etc/%s", o->name);
		if (hr_path_read_fd(fd, o->name, &text, err) < 0)
			return -1;
	}
	o->edit(&edited, hr_buf_str(&text), name);
	return hr_buf_check(&edited, err) < 0 ? -1 : put_file(scratch, upper, o, &edited, err);
}

/* Makes all of them. Root's box needs no copies, each of which takes as long as 100 system calls,
 * unless the files that a snapshot has brought from elsewhere hide all of the host's. */
static int
own_all(int lower, int upper, int scratch, const struct box_spec *s, bool plain, struct hr_err *err)
{
	const bool copies = plain || fgetxattr(upper, "trusted.overlay.opaque", NULL, 0) > 0;
	const struct own *o;
	size_t i;

	for (i = 0; i < sizeof(own_files) / sizeof(*own_files); i++) {
		o = &own_files[i];
		if ((s->root == NULL || o->any) && (copies || o->edit != copy) &&
		    own_file(lower, upper, scratch, o, s->name, err) < 0)
			return -1;
	}
	return 0;
}

/* Returns true if a layer below the root has something at a relative path, or hides what lies
 * there in the layers under it. */
static bool
is_below(const struct box_spec *s, const char *path)
{
	size_t i;

	for (i = 0; i < s->nbelow; i++) {
		HR_CLOSE int dir = box_mount_path(s->below[i], O_PATH | O_DIRECTORY);
		HR_CLOSE int at = dir < 0
				      ? -1
				      : hr_plain_openat2(dir, path, O_PATH | O_NOFOLLOW | O_CLOEXEC,
					    RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);

		if (at >= 0 || errno != ENOENT)
			return true;
	}
	return false;
}

/* Prepares the upper layer of a root directory with a system of its own: its /etc/hosts names the
 * box, unless an earlier box, whose files became a layer, has made it. */
static int
prepare_root(int root, int upper, int scratch, const struct box_spec *s, struct hr_err *err)
{
	HR_CLOSE int below = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	HR_CLOSE int above = -1;

	if (below < 0 || is_below(s, "etc/hosts"))
		return 0; /* that system has no /etc, or has it elsewhere */
	if (same_directory(below, upper, "etc", &above, err) < 0)
		return -1;
	return above >= 0 ? own_all(below, above, scratch, s, false, err) : 0;
}

/* ---- directories that root of an ordinary user's box can write to ---- */

#define LEVELS 3 /* levels to make: local/lib/python3.N/dist-packages has three below local */

/* Returns the number of levels to make below a directory. A toolchain in /usr/local has thousands
 * of directories, which would delay the start. */
static int
depth_below(const char *name, int depth)
{
	return depth < LEVELS || strcmp(name, "lib") == 0 || strcmp(name, "share") == 0 ? depth - 1
											: 0;
}

/* Makes the directory `name` and those below it, down to that depth, in the upper layer. A
 * directory of the overlay has the owner that it has there. */
static int
claim(int lower, int upper, const char *name, int depth, struct hr_err *err)
{
	HR_CLOSE int below = openat(lower, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	HR_CLOSE int above = -1;
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;

	if (below < 0)
		return 0; /* there is no such directory, or it is private */
	if (same_directory(below, upper, name, &above, err) < 0)
		return -1;
	if (above < 0 || depth == 0)
		return 0;
	d = hr_dir_take(dup(below));
	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (hr_dir_is_directory(below, e) &&
		    claim(below, above, e->d_name, depth_below(e->d_name, depth), err) < 0)
			return -1;
	return d != NULL && errno == 0 ? 0 : hr_err_sys(err, errno, "read the directory %s", name);
}

static int
claim_all(int usr, int upper, struct hr_err *err)
{
	struct stat st;

	if (fstatat(upper, "bin", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0; /* an earlier start has done it */
	return claim(usr, upper, "local", LEVELS, err) < 0 || claim(usr, upper, "bin", 0, err) < 0
		   ? -1
		   : 0;
}

/* Makes the directories of mounts below the overlay of `path` in its upper layer. An ordinary
 * user's box could not make them in a directory of the host's root. */
static int
make_parents(const struct box_spec *s, int lower, int upper, const char *path, struct hr_err *err)
{
	const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	const size_t n = strlen(path);
	char parent[PATH_MAX], *slash;
	struct stat st;
	size_t i;

	for (i = 0; i < s->nmounts; i++) {
		const char *target = s->mounts[i].target + 1;
		HR_CLOSE int fd = -1;

		if (strncmp(target, path, n) != 0 || target[n] != '/' ||
		    fstatat(lower, target + n + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		    (size_t)snprintf(parent, sizeof(parent), "%s", target + n + 1) >=
			sizeof(parent) ||
		    (slash = strrchr(parent, '/')) == NULL)
			continue;
		*slash = '\0';
		fd = (int)syscall(SYS_openat2, lower, parent, &how, sizeof(how));
		/* a link of the host stays what it is */
		if ((fd >= 0 || errno == ENOENT) && box_layer_below(upper, parent, 0755, err) < 0)
			return -1;
	}
	return 0;
}

int
box_layer_prepare(const struct box_spec *s, bool plain, const char *target, bool sifted, int lower,
    int upper, int scratch, struct hr_err *err)
{
	struct layer top = {.fd = upper, .scratch = scratch};

	if (strcmp(target, "etc") == 0 && (hide_accounts(scratch, upper, err) < 0 ||
					      own_all(lower, upper, scratch, s, plain, err) < 0))
		return -1;
	if (s->root != NULL && prepare_root(lower, upper, scratch, s, err) < 0)
		return -1;
	if (sifted && hide_private(openat(lower, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), &top,
			  plain, err) < 0)
		return -1;
	if (!plain)
		return 0;
	if (strcmp(target, "usr") == 0 && claim_all(lower, upper, err) < 0)
		return -1;
	return make_parents(s, lower, upper, target, err);
}
