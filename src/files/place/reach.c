/* Opens a client's files. Invariant: a returned file was checked by descriptor, not by name. */
#include "config.h"

#include "files/place/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/process/pid.h"
#include "files/place/beneath.h"

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

/* ---- checks of an open file ---- */

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

bool
hr_reach_leads_to_hidden(int fd)
{
	char path[PATH_MAX], *end;
	struct stat st, there;
	size_t i;

	for (i = 0; rules != NULL && i < HR_REACH_HIDDEN && rules->hidden[i] != NULL; i++) {
		if (realpath(rules->hidden[i], path) == NULL)
			continue;
		while ((end = strrchr(path, '/')) != NULL && end != path) {
			*end = '\0';
			if (fstat(fd, &st) == 0 && stat(path, &there) == 0 &&
			    st.st_dev == there.st_dev && st.st_ino == there.st_ino)
				return true;
		}
	}
	return false;
}

/* Returns true if it is sure that fd is not in the run directory nor, for `removal`, contains it.
 */
static bool
is_outside(const char *run_dir, int fd, bool removal)
{
	char way[PATH_MAX], run[PATH_MAX];

	return hr_pid_link(way, sizeof(way), "/proc/self/fd/%d", fd) > 0 &&
	       realpath(run_dir, run) != NULL && !hr_path_is_within(way, run) &&
	       !(removal && hr_path_is_within(run, way));
}

int
hr_reach_keep_out(const char *run_dir, int fd, bool removal)
{
	if (fd < 0 || is_outside(run_dir, fd, removal))
		return fd;
	hr_fd_close(&fd);
	errno = EACCES;
	return -1;
}

/* Returns true for a file that may be opened. Files of procfs have no blocks; those with restricted
 * modes give access to a process's memory, environment and descriptors, which the kernel would
 * allow this process for itself. */
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
	if ((st.st_mode & S_IROTH) != 0 || st.st_blocks > 0 || !hr_plain_is_proc(fd))
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

int
hr_reach_walk(int dir, const char *path, int flags, bool roots_links)
{
	return hr_reach_check(hr_plain_walk(dir, path, flags, roots_links));
}

int
hr_reach_open(int dir, const char *path, int flags)
{
	return hr_reach_check(hr_plain_open(dir, path, flags));
}

/* ---- links of the shell's account ---- */

static bool
is_distinguished(void)
{
	return rules != NULL && rules->shell != 0 && geteuid() == 0;
}

/* Tests the effective user's permission to change the file. */
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
	fd = hr_plain_openat2(dir, path, flags, RESOLVE_NO_SYMLINKS);
	if (fd >= 0)
		return hr_reach_check(fd);
	if (errno != ELOOP && errno != ENOSYS)
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
hr_reach_open_whose(const char *path, int flags, bool *ret_shells)
{
	return open_for(AT_FDCWD, path, flags, true, ret_shells);
}

static int
make(int dir, const char *name, int mode)
{
	return mkdirat(dir, name, (mode_t)mode);
}

int
hr_reach_mkdir(int dir, const char *name, mode_t mode, bool shells)
{
	if (rules != NULL && rules->run_dir != NULL && !is_outside(rules->run_dir, dir, false)) {
		errno = EACCES;
		return -1;
	}
	return shells ? open_as_shell(make, dir, name, (int)mode, false)
		      : make(dir, name, (int)mode);
}

int
hr_reach_enter(struct hr_account_own *own)
{
	struct hr_account shell;

	hr_account_find(&shell, rules->shell);
	return hr_account_enter(&shell, own);
}

int
hr_reach_symlink(const char *target, int dir, const char *name, bool shells)
{
	struct hr_account_own own;
	int r, sys;

	if (!shells)
		return symlinkat(target, dir, name);
	if (hr_reach_enter(&own) < 0)
		return -1;
	r = symlinkat(target, dir, name);
	sys = errno;
	hr_account_leave(&own);
	errno = sys;
	return r;
}

int
hr_reach_beneath(int root, const char *path, int flags)
{
	int fd;

	if (!is_distinguished())
		return beneath(root, path, flags);
	fd = hr_beneath_open(root, path, flags, false);
	if (fd >= 0)
		return hr_reach_check(fd);
	/* ELOOP means a link; EXDEV the same without openat2, or a path out of root */
	if (errno != ELOOP && errno != EXDEV)
		return -1;
	return open_as_shell(beneath, root, path, flags, true);
}
