/* Directories and entries by path, within the rules of files/place/reach.h. */
#include "config.h"

#include "worker/e2b/e2b.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "e2b/entry.h"
#include "files/place/reach.h"

int
hr_e2b_sys(struct hr_buf *why, const char *call, const char *path, int sys)
{
	hr_buf_addf(why, "%s %s: ", call, path);
	hr_e2b_entry_errno(why, sys);
	return -1;
}

char *
hr_e2b_parent(const char *path)
{
	const char *leaf = hr_path_leaf(path);

	return strndup(path, leaf - path > 1 ? (size_t)(leaf - path - 1) : 1);
}

/* Makes one directory. Returns its descriptor or -1 with the reason. */
static int
make(struct hr_e2b_call *c, int parent, const char *name, const char *path, bool shells,
    struct hr_buf *why)
{
	HR_CLOSE int fd = -1;
	int made;

	if (hr_reach_mkdir(parent, name, 0755, shells) < 0 && errno != EEXIST) {
		hr_buf_adds(why, "failed to create directory: ");
		return hr_e2b_sys(why, "mkdir", path, errno);
	}
	fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		hr_buf_adds(why, "failed to create directory: ");
		return hr_e2b_sys(
		    why, "mkdir", path, errno == ENOTDIR || errno == ELOOP ? EEXIST : errno);
	}
	if (fchownat(fd, "", c->who.uid, c->who.gid, AT_EMPTY_PATH) < 0) {
		hr_buf_adds(why, "failed to chown directory: ");
		return hr_e2b_sys(why, "chown", path, errno);
	}
	made = fd;
	fd = -1;
	return made;
}

int
hr_e2b_mkdirs(struct hr_e2b_call *c, const char *path, bool *ret_shells, struct hr_buf *why)
{
	HR_FREE char *at = strdup(path);
	HR_CLOSE int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *end = at, *name;
	struct stat st;
	char was;
	int fd;

	*ret_shells = false;
	while (dir >= 0 && end != NULL && *(name = end + strspn(end, "/")) != '\0') {
		end = name + strcspn(name, "/");
		was = *end;
		*end = '\0';
		fd = hr_reach_open_whose(at, O_PATH, ret_shells);
		if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))) {
			hr_buf_addf(why, "path is a file: %s", at);
			hr_fd_close(&fd);
			return -1;
		}
		if (fd < 0 && errno == ENOENT) {
			fd = make(c, dir, name, at, *ret_shells, why);
			if (fd < 0)
				return -1;
		} else if (fd < 0) {
			hr_buf_adds(why, "failed to stat directory: ");
			return hr_e2b_sys(why, "stat", at, errno);
		}
		*end = was;
		close(dir);
		dir = fd;
	}
	dir = hr_reach_keep_out(c->w->run_dir, dir, false);
	if (dir < 0 || at == NULL)
		return hr_e2b_sys(why, "open", path, dir < 0 ? errno : ENOMEM);
	fd = dir;
	dir = -1;
	return fd;
}

bool
hr_e2b_is_shortage(int sys)
{
	return sys == EMFILE || sys == ENFILE || sys == ENOMEM;
}

int
hr_e2b_put_entry(struct hr_buf *b, const char *path)
{
	HR_CLOSE int fd = hr_reach_open_as(AT_FDCWD, path, O_PATH | O_NOFOLLOW, false);
	HR_CLOSE int target = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		target = hr_reach_open_as(AT_FDCWD, path, O_PATH, false);
		if (target < 0 && hr_e2b_is_shortage(errno))
			return -1;
	}
	return hr_e2b_entry_put(b, path, fd, target);
}
