/* Checks owners and modes before a file is trusted. Invariant: no decision uses a name that another
 * account could give to another file. */
#include "config.h"

#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

#define LINKS_MAX 16
/* longest entry of the user and group databases; a group with a longer one is not private */
#define ENTRY_MAX 8192

uid_t
hr_trust_program_owner(void)
{
	struct stat st;

	return stat("/proc/self/exe", &st) == 0 ? st.st_uid : HR_TRUST_NOBODY;
}

static bool
is_private_group(gid_t gid, uid_t owner)
{
	char users[ENTRY_MAX], groups[ENTRY_MAX];
	struct passwd pw, *user;
	struct group gr, *group;
	char **member;

	if (getpwuid_r(owner, &pw, users, sizeof(users), &user) != 0 || user == NULL ||
	    user->pw_gid != gid || getgrgid_r(gid, &gr, groups, sizeof(groups), &group) != 0 ||
	    group == NULL || strcmp(group->gr_name, user->pw_name) != 0)
		return false;
	for (member = group->gr_mem; *member != NULL; member++)
		if (strcmp(*member, user->pw_name) != 0)
			return false;
	return true;
}

/* Uses the magic link, since an O_PATH descriptor gives no attributes. */
static bool
has_access_list(int fd)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0 ||
	       (errno != ENODATA && errno != EOPNOTSUPP);
}

static bool
is_owner(uid_t uid, uid_t also)
{
	return uid == geteuid() || uid == 0 || (uid == also && also != HR_TRUST_NOBODY);
}

/* Checks an open file; `what` is the subject of the message, "it" or a part of the file. */
static int
check(int fd, const char *path, const char *what, uid_t also, struct hr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return hr_err_sys(err, errno, "%s", path);
	if (!is_owner(st.st_uid, also))
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "%.120s is not trusted: %s belongs to user %lu, who is neither you nor root; "
		    "take a copy in a directory of your own",
		    path, what, (unsigned long)st.st_uid);
	/* The group bits of the mode are the access list's mask if there is a list. */
	if ((st.st_mode & S_IWOTH) != 0 ||
	    ((st.st_mode & S_IWGRP) != 0 &&
		(!is_private_group(st.st_gid, st.st_uid) || has_access_list(fd))))
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "%.120s is not trusted: others may write %s (mode %04o); \"chmod go-w\", or "
		    "keep it elsewhere",
		    path, what, (unsigned)st.st_mode & 07777);
	return 0;
}

static int
check_file(const struct hr_trusted *t, const char *path, uid_t also, struct hr_err *err)
{
	struct stat st;

	if (fstat(t->fd, &st) != 0)
		return hr_err_sys(err, errno, "%s", path);
	if (S_ISDIR(st.st_mode))
		return hr_err_sys(err, EISDIR, "%s", path);
	if (!S_ISREG(st.st_mode))
		return hr_err_set(
		    err, HR_E_UNTRUSTED, "%.120s is not trusted: it must be a regular file", path);
	return check(t->fd, path, "it", also, err) == 0
		   ? check(t->dir, path, "its directory", also, err)
		   : -1;
}

/* Opens the directory of a path, relative to the previous directory. */
static int
enter(struct hr_trusted *t, const char *path)
{
	const char *leaf = hr_path_leaf(path), *name = *leaf != '\0' ? leaf : ".";
	size_t n = (size_t)(leaf - path);
	char dir[PATH_MAX];
	int fd;

	if (n >= sizeof(dir) || strlen(name) >= sizeof(t->name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)n, path);
	memcpy(t->name, name, strlen(name) + 1);
	fd = openat(
	    t->dir >= 0 ? t->dir : AT_FDCWD, n > 0 ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	hr_fd_close(&t->dir);
	t->dir = fd;
	return fd >= 0 ? 0 : -1;
}

/* Reads the target of a link if the link may be followed. */
static int
follow(
    const struct hr_trusted *t, const char *path, uid_t also, char to[PATH_MAX], struct hr_err *err)
{
	struct stat st;
	ssize_t n;

	if (fstatat(t->dir, t->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return hr_err_sys(err, errno, "%s", path);
	if (!is_owner(st.st_uid, also))
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "%.120s is not trusted: it is a link of user %lu, who is neither you nor root; "
		    "remove it",
		    path, (unsigned long)st.st_uid);
	if (check(t->dir, path, "its directory", also, err) < 0)
		return -1;
	n = readlinkat(t->dir, t->name, to, PATH_MAX);
	if (n < 0 || n >= PATH_MAX)
		return hr_err_sys(err, n < 0 ? errno : ENAMETOOLONG, "%s", path);
	to[n] = '\0';
	return 0;
}

static int
open_trusted(struct hr_trusted *t, const char *path, uid_t also, struct hr_err *err)
{
	char to[PATH_MAX];
	const char *now = path;
	int links;

	for (links = 0; links < LINKS_MAX; links++) {
		if (enter(t, now) != 0)
			return hr_err_sys(err, errno, "%s", path);
		/* O_NONBLOCK and O_NOCTTY: opening must not wait for a FIFO's writer nor acquire a
		 * terminal. */
		t->fd = openat(
		    t->dir, t->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (t->fd >= 0)
			return check_file(t, path, also, err);
		if (errno != ELOOP)
			return hr_err_sys(err, errno, "%s", path);
		if (follow(t, path, also, to, err) != 0)
			return -1;
		now = to;
	}
	return hr_err_sys(err, ELOOP, "%s", path);
}

int
hr_trust_open(struct hr_trusted *t, const char *path, uid_t also, struct hr_err *err)
{
	int r;

	*t = (struct hr_trusted){.fd = -1, .dir = -1};
	r = open_trusted(t, path, also, err);
	if (r != 0)
		hr_trusted_done(t);
	return r;
}

void
hr_trusted_done(struct hr_trusted *t)
{
	hr_fd_close(&t->fd);
	hr_fd_close(&t->dir);
}

int
hr_trust_read(const char *path, uid_t also, struct hr_buf *b, struct hr_err *err)
{
	HR_CLEAN(hr_trusted_done) struct hr_trusted t = {.fd = -1, .dir = -1};

	return hr_trust_open(&t, path, also, err) == 0 ? hr_path_read_fd(t.fd, path, b, err) : -1;
}

int
hr_trust_directory(const char *path, struct hr_err *err)
{
	struct stat st;
	HR_CLOSE int fd = -1;

	/* Another account's link could lead to any directory of the user's. */
	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && !is_owner(st.st_uid, HR_TRUST_NOBODY))
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "%.120s is not trusted: it is a link of user %lu, who is neither you nor root; "
		    "name another directory",
		    path, (unsigned long)st.st_uid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	return check(fd, path, "it", HR_TRUST_NOBODY, err);
}
