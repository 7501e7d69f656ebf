/* Calls openat2, and walks in user space for kernels and system-call filters without it. */
#include "config.h"

#include "base/plain.h"

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

#include "base/fd.h"

#define LINKS_MAX 40 /* the kernel has the same limit */
#define ALL_LINKS ((uid_t)-1)
#define PROC_ROOT 1 /* inode number of the root directory of a procfs */

bool
hr_plain_is_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

struct walk {
	int at;     /* current directory; -1: failed */
	char *rest; /* remaining path, after the links followed so far */
	unsigned links;
	uid_t owner; /* owner whose links are followed, besides root */
};

static bool
may_follow(const struct walk *w, int link, const struct stat *st)
{
	struct stat dir;

	if (w->owner != ALL_LINKS && st->st_uid != 0 && st->st_uid != w->owner)
		return false;
	/* "self", "mounts" and the like in the first directory are ordinary links */
	return !hr_plain_is_proc(link) || (fstat(w->at, &dir) == 0 && dir.st_ino == PROC_ROOT);
}

/* Replaces the link by its target in the rest of the path. Returns 0, or -1 with errno. */
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

/* Walks one component. Returns 1 with the result in *ret, 0 to continue, -1 with errno. */
static int
step(struct walk *w, int flags, int *ret)
{
	char name[NAME_MAX + 1];
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/"), behind;
	struct stat st;
	bool last;
	HR_CLOSE int fd = -1;

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
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode) && !(last && (flags & O_NOFOLLOW) != 0))
		return follow(w, fd, &st, w->rest + skip + n);
	if (last) {
		*ret = openat(w->at, name, flags | O_NOFOLLOW | O_CLOEXEC);
		return *ret >= 0 ? 1 : -1;
	}
	hr_fd_close(&w->at);
	w->at = fd;
	fd = -1;
	memmove(w->rest, w->rest + behind, strlen(w->rest + behind) + 1);
	return 0;
}

int
hr_plain_walk(int dir, const char *path, int flags, bool roots_links)
{
	return hr_plain_walk_as(dir, path, flags, roots_links ? 0 : ALL_LINKS);
}

int
hr_plain_walk_as(int dir, const char *path, int flags, uid_t owner)
{
	struct walk w = {.owner = owner, .rest = strdup(path)};
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
	return fd;
}

int
hr_plain_openat2(int dir, const char *path, int flags, unsigned resolve)
{
	const struct open_how how = {
	    .flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve | RESOLVE_NO_MAGICLINKS};
	long fd;

	do {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	} while (fd < 0 && errno == EINTR);
	/* Older kernels lack openat2 (ENOSYS), and filters refuse system calls that they do not
	 * know. */
	if (fd < 0 && errno == EPERM)
		errno = ENOSYS;
	return (int)fd;
}

int
hr_plain_open(int dir, const char *path, int flags)
{
	int fd = hr_plain_openat2(dir, path, flags, 0);
	struct stat st;

	if (fd < 0 && errno == ENOSYS)
		return hr_plain_walk(dir, path, flags, false);
	/* ELOOP has two causes: a magic link has a target, a loop has none. */
	if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) == 0)
		errno = fstatat(dir, path, &st, 0) == 0 ? EACCES : ELOOP;
	return fd;
}
