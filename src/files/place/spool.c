/* Files without a name (O_TMPFILE) and how they get one. */
#include "config.h"

#include "files/place/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/scrap.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/place/replace.h"

void
hr_spool_init(struct hr_spool *s)
{
	s->fd = s->dir = -1;
	s->name = NULL;
}

static void
proc_name(char *out, size_t cap, int fd)
{
	(void)snprintf(out, cap, "/proc/self/fd/%d", fd);
}

static int
open_in(struct hr_spool *s, int dir)
{
	char name[HR_REPLACE_NAME_MAX], proc[64];

	s->fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (s->fd >= 0) {
		proc_name(proc, sizeof(proc), s->fd);
		if (access(proc, F_OK) == 0)
			return 0;
		hr_fd_close(&s->fd); /* without /proc it could get no name */
	} else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
		return -1;
	}
	if (hr_replace_name(name, "upload") < 0)
		return -1;
	hr_scrap_note(dir, name);
	s->fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (s->fd < 0)
		return -1;
	s->name = strdup(name);
	s->dir = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->name != NULL && s->dir >= 0)
		return 0;
	(void)unlinkat(dir, name, 0);
	hr_fd_close(&s->dir);
	free(s->name);
	s->name = NULL;
	hr_fd_close(&s->fd);
	errno = ENOMEM;
	return -1;
}

int
hr_spool_open_at(struct hr_spool *s, int dir)
{
	const char *elsewhere;
	int r = open_in(s, dir), tmp;

	if (r == 0 || (errno != EACCES && errno != EPERM))
		return r;
	/* a file may be open to us in a directory that is not */
	elsewhere = getenv("TMPDIR");
	tmp = open(elsewhere != NULL && elsewhere[0] == '/' ? elsewhere : "/tmp",
	    O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (tmp >= 0) {
		r = open_in(s, tmp);
		hr_fd_close(&tmp);
	}
	return r;
}

int
hr_spool_open(struct hr_spool *s, const char *directory)
{
	char *path = strdup(directory);
	size_t n;
	int dir = -1, r;

	if (path == NULL)
		return -1;
	for (n = strlen(path);;) {
		dir = hr_reach_open_as(AT_FDCWD, n > 0 ? path : "/", O_PATH | O_DIRECTORY, true);
		if (dir >= 0 || n == 0 || (errno != ENOENT && errno != ENOTDIR))
			break;
		while (n > 0 && path[n - 1] == '/')
			n--;
		while (n > 0 && path[n - 1] != '/')
			n--;
		path[n] = '\0';
	}
	free(path);
	if (dir < 0)
		return -1;
	r = hr_spool_open_at(s, dir);
	hr_fd_close(&dir);
	return r;
}

int
hr_spool_write(struct hr_spool *s, const char *p, size_t len)
{
	ssize_t n;

	for (; len > 0; p += n, len -= (size_t)n) {
		n = write(s->fd, p, len);
		if (n < 0 && errno != EINTR)
			return -1;
		if (n < 0)
			n = 0;
	}
	return 0;
}

/* Gives it the name in dir. The first time it is linked; it cannot have two. */
static int
link_as(struct hr_spool *s, int dir, const char *name)
{
	char proc[64];

	if (s->name != NULL)
		return hr_replace_none(s->dir, s->name, dir, name);
	proc_name(proc, sizeof(proc), s->fd);
	return linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW);
}

/* The target is on another file system than the spool: it was mounted meanwhile, or below. */
static int
copy_as(struct hr_spool *s, int dir, const char *name)
{
	int to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	int r, sys;

	if (to < 0)
		return -1;
	r = hr_replace_copy(s->fd, to);
	sys = errno;
	hr_fd_close(&to);
	if (r < 0)
		(void)unlinkat(dir, name, 0);
	errno = sys;
	return r;
}

static int
place(struct hr_spool *s, const struct hr_target *t)
{
	char name[HR_REPLACE_NAME_MAX];
	int r, sys;

	if (!t->exists && link_as(s, t->dir, t->leaf) == 0)
		return 0;
	if (!t->exists && errno != EXDEV)
		return -1;
	/* first a name beside it, then in its place */
	if (hr_replace_name(name, "upload") < 0)
		return -1;
	hr_scrap_note(t->dir, name);
	r = link_as(s, t->dir, name);
	if (r < 0 && errno == EXDEV)
		r = copy_as(s, t->dir, name);
	if (r < 0 && t->exists && (errno == EACCES || errno == EPERM))
		return hr_replace_content(s->fd, t->dir, t->leaf);
	if (r < 0)
		return -1;
	r = t->exists ? hr_replace(t->dir, name, t->dir, t->leaf, &t->st)
		      : hr_replace_none(t->dir, name, t->dir, t->leaf);
	sys = errno;
	if (r < 0)
		(void)unlinkat(t->dir, name, 0);
	errno = sys;
	return r;
}

int
hr_spool_place(struct hr_spool *s, const struct hr_target *t, struct hr_buf *why)
{
	if (place(s, t) < 0)
		return hr_oserror_put(why, errno, t->text);
	free(s->name); /* it is the target's now, or gone */
	s->name = NULL;
	hr_scrap_forget();
	return 0;
}

void
hr_spool_close(struct hr_spool *s)
{
	if (s->name != NULL)
		(void)unlinkat(s->dir, s->name, 0);
	free(s->name);
	s->name = NULL;
	hr_scrap_forget();
	hr_fd_close(&s->dir);
	hr_fd_close(&s->fd);
}
