/* Uses openat2, or walks by hand. Invariant: a returned descriptor lay beneath root when it was
 * opened. */
#include "config.h"

#include "files/place/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define RACES 64 /* retries after EAGAIN: a directory on the path was moved during the lookup */

static bool
is_link(int dir, const char *name)
{
	struct stat st;
	int sys = errno;
	bool link = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);

	errno = sys;
	return link;
}

int
hr_beneath_walk(int root, const char *path, int flags)
{
	char part[NAME_MAX + 1] = "";
	int at, next;
	size_t n;

	if (path[0] == '/') {
		errno = EXDEV;
		return -1;
	}
	at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (path += strspn(path, "/"); at >= 0; path += n + strspn(path + n, "/")) {
		n = strcspn(path, "/");
		if (n == 0) {
			next = openat(at, ".", (flags & ~O_CREAT) | O_CLOEXEC);
		} else if (n > NAME_MAX) {
			next = -1;
			errno = ENAMETOOLONG;
		} else if (n == 2 && memcmp(path, "..", 2) == 0) {
			next = -1;
			errno = EXDEV;
		} else {
			memcpy(part, path, n);
			part[n] = '\0';
			if (path[n + strspn(path + n, "/")] != '\0')
				next =
				    openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			else
				next = openat(at, part,
				    flags | O_NOFOLLOW | O_CLOEXEC |
					(path[n] == '/' ? O_DIRECTORY : 0),
				    0666);
		}
		if (next < 0 && (errno == ELOOP || errno == ENOTDIR) && n > 0 && is_link(at, part))
			errno = EXDEV; /* the target of the link is not checked */
		hr_fd_close(&at);
		if (next < 0 || path[n + strspn(path + n, "/")] == '\0')
			return next;
		at = next;
	}
	return -1;
}

int
hr_beneath_open(int root, const char *path, int flags, bool links)
{
	struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
	    .mode = flags & O_CREAT ? 0666 : 0,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS)};
	long r = -1;
	int i;

	if (path[0] == '\0')
		path = ".";
	for (i = 0; i < RACES; i++) {
		r = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (r >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	/* an older kernel, or a seccomp filter that does not know openat2, refuses the call */
	if (r < 0 && (errno == ENOSYS || errno == EPERM))
		return hr_beneath_walk(root, path, flags);
	return (int)r;
}

int
hr_beneath_mkdirs(int root, const char *path)
{
	char part[NAME_MAX + 1];
	int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	size_t n;

	for (path += strspn(path, "/"); at >= 0 && *path != '\0';
	     path += n + strspn(path + n, "/")) {
		n = strcspn(path, "/");
		next = -1;
		if (n > NAME_MAX) {
			errno = ENAMETOOLONG;
		} else if (n == 2 && memcmp(path, "..", 2) == 0) {
			errno = EXDEV;
		} else {
			memcpy(part, path, n);
			part[n] = '\0';
			if (mkdirat(at, part, 0777) == 0 || errno == EEXIST)
				next =
				    openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		hr_fd_close(&at);
		at = next;
	}
	return at;
}
