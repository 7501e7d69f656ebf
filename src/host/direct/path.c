/* Resolves paths of the back-end "cli". Comparisons use whole components and the workspace's real
 * path. This is no security boundary: a command has all rights of its user. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/direct/direct_int.h"
#include "base/err.h"

#define MOUNT "/workspace"
#define LINKS_MAX 40

/* Returns true if path is the directory or below it; *ret_rest is the rest without a leading
 * slash. */
static bool
below(const char *path, const char *dir, const char **ret_rest)
{
	size_t n = strlen(dir);

	if (strncmp(path, dir, n) != 0 || (path[n] != '\0' && path[n] != '/' && n > 1))
		return false;
	path += n;
	*ret_rest = path + strspn(path, "/");
	return true;
}

static void
drop_last(struct hr_buf *b)
{
	while (b->len > 0 && b->p[b->len - 1] != '/')
		b->len--;
	if (b->len > 0)
		b->len--;
	if (b->p != NULL)
		b->p[b->len] = '\0';
}

/* Resolves path from b, an absolute path without links ("" is the root), like realpath(3), but
 * continues where nothing exists. Returns 0, or -1 with errno set. */
static int
walk(struct hr_buf *b, const char *path, unsigned *links)
{
	char target[PATH_MAX];
	struct stat st;
	size_t n, before;
	ssize_t len;

	for (;; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0)
			return 0;
		if (n == 1 && path[0] == '.')
			continue;
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			drop_last(b);
			continue;
		}
		before = b->len;
		hr_buf_addc(b, '/');
		hr_buf_add(b, path, n);
		if (hr_buf_check(b, NULL) != 0) {
			errno = ENAMETOOLONG;
			return -1;
		}
		if (lstat(b->p, &st) != 0 || !S_ISLNK(st.st_mode))
			continue;
		len = readlink(b->p, target, sizeof(target) - 1);
		if (len < 0 || ++*links > LINKS_MAX) {
			errno = len < 0 ? errno : ELOOP;
			return -1;
		}
		target[len] = '\0';
		b->len = target[0] == '/' ? 0 : before;
		b->p[b->len] = '\0';
		if (walk(b, target, links) != 0)
			return -1;
	}
}

char *
hr_direct_path(const struct hr_direct *c, const char *path, struct hr_err *err)
{
	const char *rest = path;
	unsigned links = 0;
	HR_BUF(b, PATH_MAX);
	char *found = NULL;

	if (path[0] == '/' && !below(path, c->workspace, &rest) && !below(path, c->named, &rest) &&
	    !below(path, MOUNT, &rest)) {
		(void)hr_err_set(err, HR_E_PERMISSION,
		    "Invalid path: %s. You can only work with files in %s.", path, c->workspace);
		return NULL;
	}
	hr_buf_adds(&b, strcmp(c->workspace, "/") == 0 ? "" : c->workspace);
	if (walk(&b, rest, &links) != 0)
		(void)hr_err_sys(err, errno, "%s", path);
	else if (!below(b.len > 0 ? b.p : "/", c->workspace, &rest))
		(void)hr_err_set(err, HR_E_PERMISSION,
		    "Invalid path traversal: %s. Path resolves outside the workspace. Resolved: "
		    "%s, "
		    "Workspace: %s",
		    path, b.len > 0 ? b.p : "/", c->workspace);
	else if (b.len == 0 ? (found = strdup("/")) == NULL : (found = hr_buf_take(&b)) == NULL)
		(void)hr_err_nomem(err);
	return found;
}
