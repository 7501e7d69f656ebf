/* openat2, and the same by hand. Invariant: what is returned was looked at by its descriptor, not
 * by its name. */
#include "config.h"

#include "files/place/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/place/beneath.h"

#define LINKS_MAX 40 /* the kernel's */
#define PROC_ROOT 1  /* number of the first directory of a procfs */

static const struct hr_reach *rules;

void
hr_reach_rules(const struct hr_reach *r)
{
	rules = r;
}

const struct hr_reach *
hr_reach_get_rules(void)
{
	return rules;
}

/* ---- what was opened ---- */

static bool
is_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static bool
is_hidden(const struct stat *st)
{
	struct stat there;
	size_t i;

	for (i = 0; rules != NULL && i < HR_REACH_HIDDEN && rules->hidden[i] != NULL; i++)
		if (stat(rules->hidden[i], &there) == 0 && there.st_dev == st->st_dev &&
		    there.st_ino == st->st_ino)
			return true;
	return false;
}

/* The files of procfs have no blocks. Those that only some may read are those of a process' memory,
 * environment and descriptors, also of our own process, for which the kernel asks nobody. */
static bool
is_allowed(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISBLK(st.st_mode) || is_hidden(&st)) {
		errno = EACCES;
		return false;
	}
	if ((st.st_mode & S_IROTH) != 0 || st.st_blocks > 0 || !is_proc(fd))
		return true;
	errno = EACCES;
	return false;
}

int
hr_reach_check(int fd)
{
	if (fd < 0 || is_allowed(fd))
		return fd;
	hr_fd_close(&fd);
	return -1;
}

/* ---- by hand ---- */

struct walk {
	int at;     /* the directory in hand; -1: failed */
	char *rest; /* of the way, behind links that were followed */
	unsigned links;
	bool roots_links;
};

static bool
may_follow(const struct walk *w, int link, const struct stat *st)
{
	struct stat dir;

	if (w->roots_links && st->st_uid != 0)
		return false;
	/* "self", "mounts" and the like in the first directory are ordinary links */
	return !is_proc(link) || (fstat(w->at, &dir) == 0 && dir.st_ino == PROC_ROOT);
}

/* The way goes on with what a link says. 0, or -1 with errno. */
static int
follow(struct walk *w, int link, const struct stat *st, const char *behind)
{
	char target[PATH_MAX], *next;
	ssize_t n;

	if (!may_follow(w, link, st)) {
		errno = EACCES;
		return -1;
	}
	if (++w->links > LINKS_MAX) {
		errno = ELOOP;
		return -1;
	}
	n = readlinkat(link, "", target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = '\0';
	if (asprintf(&next, "%s%s", target, behind) < 0) {
		errno = ENOMEM;
		return -1;
	}
	if (target[0] == '/') {
		hr_fd_close(&w->at);
		w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	free(w->rest);
	w->rest = next;
	return w->at < 0 ? -1 : 0;
}

/* One name further. 1: *ret is what was asked for; 0: on; -1 with errno. */
static int
step(struct walk *w, int flags, int *ret)
{
	char name[NAME_MAX + 1];
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/"), behind;
	struct stat st;
	bool last;
	int fd, r = 0;

	if (n > NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, w->rest + skip, n);
	name[n] = '\0';
	behind = skip + n + strspn(w->rest + skip + n, "/");
	last = w->rest[behind] == '\0';
	if (n == 0) {
		*ret = openat(w->at, ".", flags | O_CLOEXEC);
		return *ret >= 0 ? 1 : -1;
	}
	if (last && w->rest[skip + n] == '/')
		flags |= O_DIRECTORY;
	fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -1;
	} else if (S_ISLNK(st.st_mode) && !(last && (flags & O_NOFOLLOW) != 0)) {
		r = follow(w, fd, &st, w->rest + skip + n);
	} else if (last) {
		*ret = openat(w->at, name, flags | O_NOFOLLOW | O_CLOEXEC);
		r = *ret >= 0 ? 1 : -1;
	} else {
		hr_fd_close(&w->at);
		w->at = fd;
		fd = -1;
		memmove(w->rest, w->rest + behind, strlen(w->rest + behind) + 1);
	}
	hr_fd_close(&fd);
	return r;
}

int
hr_reach_walk(int dir, const char *path, int flags, bool roots_links)
{
	struct walk w = {.roots_links = roots_links, .rest = strdup(path)};
	int fd = -1, r = 0;

	if (path[0] == '\0' || w.rest == NULL) {
		free(w.rest);
		errno = path[0] == '\0' ? ENOENT : ENOMEM;
		return -1;
	}
	w.at = openat(dir, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (w.at >= 0 && r == 0)
		r = step(&w, flags, &fd);
	hr_fd_close(&w.at);
	free(w.rest);
	return hr_reach_check(fd);
}

/* ---- openat2 ---- */

static int
reach(int dir, const char *path, int flags, unsigned resolve)
{
	const struct open_how how = {
	    .flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve | RESOLVE_NO_MAGICLINKS};
	long fd;

	do {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	} while (fd < 0 && errno == EINTR);
	return (int)fd;
}

/* Older kernels do not know openat2, and filters of system calls refuse what they do not know. */
static bool
is_unknown(int sys)
{
	return sys == ENOSYS || sys == EPERM;
}

int
hr_reach_open(int dir, const char *path, int flags)
{
	int fd = reach(dir, path, flags, 0);
	struct stat st;

	if (fd >= 0)
		return hr_reach_check(fd);
	if (is_unknown(errno))
		return hr_reach_walk(dir, path, flags, false);
	/* a magic link leads somewhere, a loop does not */
	if (errno == ELOOP && (flags & O_NOFOLLOW) == 0)
		errno = fstatat(dir, path, &st, 0) == 0 ? EACCES : errno;
	return -1;
}

/* ---- links of the shell's account ---- */

static bool
is_distinguished(void)
{
	return rules != NULL && rules->shell != 0 && geteuid() == 0;
}

/* By the one whose effective rights are asked for. */
static bool
may_change(int fd)
{
	char name[64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISDIR(st.st_mode))
		return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) == 0;
}

typedef int open_fn(int dir, const char *path, int flags);

static int
beneath(int root, const char *path, int flags)
{
	return hr_reach_check(hr_beneath_open(root, path, flags, true));
}

static int
open_as_shell(open_fn *fn, int dir, const char *path, int flags, bool change)
{
	struct hr_account_own own;
	struct hr_account shell;
	int fd, sys;

	hr_account_find(&shell, rules->shell);
	if (hr_account_enter(&shell, &own) < 0)
		return -1;
	fd = fn(dir, path, flags);
	sys = errno;
	if (fd >= 0 && change && !may_change(fd)) {
		sys = errno;
		hr_fd_close(&fd);
	}
	hr_account_leave(&own);
	errno = sys;
	return fd;
}

static int
open_for(int dir, const char *path, int flags, bool change, bool *ret_shells)
{
	int fd;

	*ret_shells = false;
	if (!is_distinguished())
		return hr_reach_open(dir, path, flags);
	fd = reach(dir, path, flags, RESOLVE_NO_SYMLINKS);
	if (fd >= 0)
		return hr_reach_check(fd);
	if (errno != ELOOP && !is_unknown(errno))
		return -1;
	fd = open_as_shell(hr_reach_open, dir, path, flags, change);
	*ret_shells = fd >= 0;
	if (fd >= 0 || errno != EACCES)
		return fd;
	return hr_reach_walk(dir, path, flags, true);
}

int
hr_reach_open_as(int dir, const char *path, int flags, bool change)
{
	bool shells;

	return open_for(dir, path, flags, change, &shells);
}

int
hr_reach_open_whose(int dir, const char *path, int flags, bool *ret_shells)
{
	return open_for(dir, path, flags, true, ret_shells);
}

static int
make(int dir, const char *name, int mode)
{
	return mkdirat(dir, name, (mode_t)mode);
}

int
hr_reach_mkdir(int dir, const char *name, bool shells)
{
	return shells ? open_as_shell(make, dir, name, 0777, false) : make(dir, name, 0777);
}

int
hr_reach_beneath(int root, const char *path, int flags, bool change)
{
	int fd;

	if (!is_distinguished())
		return beneath(root, path, flags);
	fd = hr_beneath_open(root, path, flags, false);
	if (fd >= 0)
		return hr_reach_check(fd);
	/* ELOOP: a link; EXDEV: the same, without openat2, or a way out */
	if (errno != ELOOP && errno != EXDEV)
		return -1;
	return open_as_shell(beneath, root, path, flags, change);
}
