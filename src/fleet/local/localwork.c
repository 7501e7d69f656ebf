/* Manages workspaces, and remains of killed calls beside the records. */
#include "config.h"

#include "fleet/local/localwork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text/text.h"
#include "fleet/edge.h"
#include "fleet/engine.h"

#define DIRECT_NAME (HR_FLEET_ID + sizeof(HR_FLEET_DIRECT))

char *
hr_local_workspace(const char *work, const char *id)
{
	char *path = NULL;

	return work == NULL || asprintf(&path, "%s/%s", work, id) < 0 ? NULL : path;
}

int
hr_local_remove_workspace(const char *work, const char *id, struct hr_err *err)
{
	HR_FREE char *path = hr_local_workspace(work, id);
	struct hr_err e = {0};
	int r = 0;

	if (path != NULL && access(path, F_OK) == 0 && hr_path_remove(path, &e) != 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	return r;
}

/* Returns true for a lock file, ".ID.lock", that no process holds. */
static bool
is_free_lock(int dirfd, const char *name)
{
	HR_CLOSE int fd = -1;

	if (*name != '.' || strspn(name + 1, "0123456789abcdef") != HR_FLEET_ID - 1 ||
	    strcmp(name + HR_FLEET_ID, ".lock") != 0)
		return false;
	fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool
has_record(int dirfd, const char *id)
{
	char record[HR_FLEET_ID + 8];
	struct stat st;

	(void)snprintf(record, sizeof(record), "%.*s.json", HR_FLEET_ID - 1, id);
	return fstatat(dirfd, record, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Returns true for a leftover file: "ID.json" is a record; all other files belong to a record, or
 * to none. */
static bool
is_left(int dirfd, const char *name)
{
	if (strspn(name, "0123456789abcdef") != HR_FLEET_ID - 1 || name[HR_FLEET_ID - 1] != '.' ||
	    strcmp(name + HR_FLEET_ID - 1, ".json") == 0)
		return false;
	/* this is a half-written record */
	if (strcmp(name + HR_FLEET_ID - 1, ".json" HR_PATH_UNFINISHED) == 0)
		return true;
	return !has_record(dirfd, name);
}

static int
tidy_workspaces(const char *work, int records, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = work != NULL ? opendir(work) : NULL;
	struct dirent *e;
	int r = 0;

	while (r == 0 && dir != NULL && (e = readdir(dir)) != NULL)
		if (strspn(e->d_name, "0123456789abcdef") == HR_FLEET_ID - 1 &&
		    !has_record(records, e->d_name))
			r = hr_local_remove_workspace(work, e->d_name, err);
	return r;
}

int
hr_local_link(const char *sockets, const char *id, const char *socket, char *ret_at, size_t size,
    struct hr_err *err)
{
	HR_FREE char *path = hr_local_workspace(sockets, id);
	HR_FREE char *fresh = NULL;
	struct sockaddr_un a;
	struct stat is, was;

	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_text_setf(&fresh, err, "%s.new", path) < 0)
		return -1;
	if (strlen(path) >= sizeof(a.sun_path) ||
	    (size_t)snprintf(ret_at, size, HR_FLEET_UNIX "%s", path) >= size)
		return hr_err_set(err, HR_E_INVAL, "%s: too long for the name of a socket", path);
	if (stat(socket, &is) == 0 && lstat(path, &was) == 0 && is.st_dev == was.st_dev &&
	    is.st_ino == was.st_ino && (was.st_mode & 07777) == 0666)
		return 0;
	/* nginx may connect at any moment: the name always leads to a socket that it may use */
	if ((unlink(fresh) != 0 && errno != ENOENT) ||
	    linkat(AT_FDCWD, socket, AT_FDCWD, fresh, AT_SYMLINK_FOLLOW) != 0 ||
	    chmod(fresh, 0666) != 0 || rename(fresh, path) != 0)
		return hr_err_sys(err, errno, "link the socket of the sandbox to %s", path);
	return 0;
}

static void
name_direct(char ret[DIRECT_NAME], const char *id)
{
	(void)snprintf(ret, DIRECT_NAME, "%.*s" HR_FLEET_DIRECT, HR_FLEET_ID - 1, id);
}

void
hr_local_link_direct(const char *sockets, const char *id, const char *url)
{
	HR_FREE char *path = NULL;
	HR_CLOSE int fd = -1;
	char name[DIRECT_NAME], at[32], unused[HR_FLEET_PLACE];
	struct hr_err err = {0};
	struct stat st;
	int r;

	if (url == NULL || !hr_fleet_is_unix(url))
		return;
	r = hr_text_setf(&path, &err, "%s" HR_FLEET_DIRECT, url + strlen(HR_FLEET_UNIX));
	if (r == 0)
		fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	name_direct(name, id);
	(void)snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
		r = hr_local_link(sockets, name, at, unused, sizeof(unused), &err);
	else if (r == 0)
		r = hr_local_remove_workspace(sockets, name, &err);
	if (r < 0) /* calls have another way */
		hr_log(HR_LOG_WARNING, "sandbox %s has no direct socket: %s", id, err.msg);
}

int
hr_local_unlink(const char *sockets, const char *id, struct hr_err *err)
{
	char direct[DIRECT_NAME];

	name_direct(direct, id);
	return hr_local_remove_workspace(sockets, direct, err) == 0
		   ? hr_local_remove_workspace(sockets, id, err)
		   : -1;
}

int
hr_local_tidy(const char *records, const char *work, const char *sockets, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = opendir(records);
	struct dirent *e;
	int r = 0;

	if (dir == NULL)
		return hr_err_sys(err, errno, "%s", records);
	while (r == 0 && (e = readdir(dir)) != NULL)
		/* a sandbox's home directory is in this directory, too */
		if (is_left(dirfd(dir), e->d_name) || is_free_lock(dirfd(dir), e->d_name))
			r = hr_local_remove_workspace(records, e->d_name, err);
	if (r == 0)
		r = tidy_workspaces(work, dirfd(dir), err);
	if (r == 0)
		r = tidy_workspaces(sockets, dirfd(dir), err);
	return r;
}
