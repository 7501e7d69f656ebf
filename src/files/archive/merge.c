/* Merges one directory tree into another. A directory that does not exist yet is moved whole. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/place/spool.h"
#include "files/place/target.h"
#include "files/archive/unpack_int.h"

/* One directory of the walk: the staged one, and the directory that its entries move to. */
struct level {
	const struct hr_merge *m;
	int stage;
	int dir;         /* O_PATH */
	const char *way; /* path of `dir` relative to root, "" for root itself */
	bool moving;
};

static int merge_level(struct level *l);

static int
fail(const struct level *l, const char *name, int sys)
{
	HR_FREE char *way = hr_path_join(l->way, name);
	HR_FREE char *path = way != NULL ? hr_path_join(l->m->directory, way) : NULL;

	if (sys == EXDEV || sys == ELOOP)
		(void)hr_oserror_text(l->m->why, "400: A link leads out of the destination", path);
	else
		(void)hr_oserror_put(l->m->why, path != NULL ? sys : ENOMEM, path);
	return -1;
}

/* Merges an entry into a directory that exists already. */
static int
descend(struct level *l, const char *name)
{
	struct level next = *l;
	HR_FREE char *way = hr_path_join(l->way, name);
	int r = -1;

	if (way == NULL)
		return fail(l, name, ENOMEM);
	next.way = way;
	next.stage = openat(l->stage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	next.dir = hr_reach_beneath(l->m->root, way, O_PATH | O_DIRECTORY);
	if (next.stage < 0 || next.dir < 0)
		(void)fail(l, name, errno == ENOTDIR ? EEXIST : errno);
	else
		r = merge_level(&next);
	hr_fd_close(&next.stage);
	hr_fd_close(&next.dir);
	return r;
}

/* Replaces an existing file by the staged one. */
static int
put_over(struct level *l, const char *name, const struct stat *there)
{
	HR_CLEAN(hr_target_close) struct hr_target t = {.dir = -1};
	HR_FREE char *way = NULL;
	int sys, r = -1;

	if (S_ISLNK(there->st_mode)) {
		/* a link is followed if its target is beneath the directory as well */
		way = hr_path_join(l->way, name);
		if (way == NULL)
			return fail(l, name, ENOMEM);
		r = hr_target_open(&t, l->m->directory, way, l->m->directory, l->m->why);
		if (r == 0 && l->moving && hr_spool_move(l->stage, name, t.dir, t.leaf) < 0)
			r = fail(l, name, errno);
		return r;
	}
	sys = hr_target_refuses(there);
	if (sys == 0 && faccessat(l->dir, name, W_OK, AT_EACCESS) < 0)
		sys = errno;
	if (sys == 0 && l->moving && hr_spool_move(l->stage, name, l->dir, name) < 0)
		sys = errno;
	return sys == 0 ? 0 : fail(l, name, sys);
}

static int
merge_entry(struct level *l, const char *name)
{
	struct stat st, there;
	bool is_dir;

	if (fstatat(l->stage, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(l, name, errno);
	is_dir = S_ISDIR(st.st_mode);
	if (fstatat(l->dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return fail(l, name, errno);
		if (!l->moving || hr_spool_move(l->stage, name, l->dir, name) == 0)
			return 0;
		/* a directory on another file system is created there and then filled */
		if (!is_dir || errno != EXDEV || mkdirat(l->dir, name, st.st_mode & 07777) < 0)
			return fail(l, name, errno);
		return descend(l, name);
	}
	if (is_dir)
		return descend(l, name);
	return put_over(l, name, &there);
}

static int
merge_level(struct level *l)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(l->stage, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	int r = 0;

	if (d == NULL)
		return fail(l, "", errno);
	if (faccessat(l->dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = fail(l, "", errno);
	while (r == 0 && (e = hr_dir_next(d)) != NULL)
		r = merge_entry(l, e->d_name);
	if (r == 0 && errno != 0)
		r = fail(l, "", errno);
	return r;
}

static int
merge(const struct hr_merge *m, int stage, bool moving)
{
	struct level top = {.m = m, .stage = stage, .way = "", .moving = moving};
	int r;

	top.dir = openat(m->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top.dir < 0)
		return fail(&top, "", errno);
	r = merge_level(&top);
	hr_fd_close(&top.dir);
	return r;
}

int
hr_merge_check(const struct hr_merge *m, int stage)
{
	return merge(m, stage, false);
}

int
hr_merge_move(const struct hr_merge *m, int stage)
{
	return merge(m, stage, true);
}
