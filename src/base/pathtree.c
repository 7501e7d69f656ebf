/* Walks and removes trees. Invariant: below the top of a walk no symbolic link is followed. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/path.h"
#include "base/volume.h"

#define MOVED_MAX 10000 /* directories that a removal moves to its top */

struct walk {
	hr_path_visit_fn *fn;
	void *arg;
	/* called for a directory that is too deep; returns false if that must be skipped. NULL: all
	 * are skipped */
	bool (*deep)(struct walk *w, int dirfd, const char *name);
	/* called for an entry before the walk enters it; returns true if nothing is left to do.
	 * NULL: all are entered */
	bool (*whole)(int dirfd, const char *name, const struct stat *st);
	int top; /* the uppermost directory of this file system; -1: it is not open yet */
	dev_t device;
	unsigned skipped;
	int sys; /* errno of the last skipped entry; 0: none */
};

static int walk_entry(struct walk *w, int dirfd, const char *name, unsigned depth);

static int
walk_skip(struct walk *w, int sys)
{
	w->skipped++;
	w->sys = sys;
	return 0;
}

static int
walk_directory(struct walk *w, int dirfd, const char *name, unsigned depth)
{
	int fd, r = 0;
	struct dirent *e;
	DIR *d;

	if (depth >= HR_PATH_DEPTH)
		return w->deep != NULL && w->deep(w, dirfd, name) ? 0 : walk_skip(w, ENOTEMPTY);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = hr_dir_take(fd);
	if (d == NULL)
		return walk_skip(w, errno);
	if (w->top < 0)
		w->top = fd;
	while (r >= 0 && (e = hr_dir_next(d)) != NULL)
		r = walk_entry(w, fd, e->d_name, depth + 1);
	if (r >= 0 && errno != 0)
		(void)walk_skip(w, errno);
	(void)closedir(d);
	return r < 0 ? r : 0;
}

static int
walk_entry(struct walk *w, int dirfd, const char *name, unsigned depth)
{
	const int top = w->top;
	const dev_t device = w->device;
	struct stat st;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		/* an entry that was removed meanwhile does not count as skipped */
		return errno != ENOENT && errno != ENOTDIR ? walk_skip(w, errno) : 0;
	if (w->whole != NULL && w->whole(dirfd, name, &st))
		return 0;
	if (S_ISDIR(st.st_mode)) {
		if (depth == 0 || st.st_dev != device)
			w->top = -1;
		w->device = st.st_dev;
		r = walk_directory(w, dirfd, name, depth);
		w->top = top;
		w->device = device;
		if (r < 0)
			return r;
	}
	return w->fn(dirfd, name, &st, w->arg);
}

int
hr_path_walk(const char *path, hr_path_visit_fn *fn, void *arg, unsigned *ret_skipped)
{
	struct walk w = {.fn = fn, .arg = arg};
	int r = walk_entry(&w, AT_FDCWD, path, 0);

	if (ret_skipped != NULL)
		*ret_skipped = w.skipped;
	return r < 0 ? r : 0;
}

struct removal {
	struct walk w;
	unsigned moved; /* names that were tried for directories at the top */
	bool again;     /* the next walk finds a directory at the top */
	int first;      /* errno of the first entry that could not be removed; 0: none */
};

/* Moves a deep directory to the top, where the next walk finds it. */
static bool
move_up(struct walk *w, int dirfd, const char *name)
{
	struct removal *r = w->arg;
	char to[32];

	while (r->moved < MOVED_MAX) {
		(void)snprintf(to, sizeof(to), ".removed-%u", ++r->moved);
		if (hr_path_rename_free(dirfd, name, w->top, to) == 0)
			return r->again = true;
		if (errno != EEXIST)
			break;
	}
	return false;
}

static int
remove_one(int dirfd, const char *name, const struct stat *st, void *arg)
{
	struct removal *r = arg;
	int sys;

	if (unlinkat(dirfd, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0) == 0 ||
	    errno == ENOENT) {
		/* an unreadable directory that is empty can be removed: forget the walk's error */
		r->w.sys = 0;
		return 0;
	}
	/* the directory still has the entry that the walk skipped: report why it was skipped */
	sys = errno == ENOTEMPTY && r->w.sys != 0 ? r->w.sys : errno;
	if (r->first == 0)
		r->first = sys;
	return 0;
}

int
hr_path_remove(const char *path, struct hr_err *err)
{
	struct removal r = {
	    .w = {.fn = remove_one, .arg = &r, .deep = move_up, .whole = hr_volume_remove}};

	do {
		r.again = false;
		r.first = r.w.sys = 0;
		(void)walk_entry(&r.w, AT_FDCWD, path, 0); /* remove_one never stops the walk */
		if (r.first == 0)
			r.first = r.w.sys; /* the path itself was skipped */
	} while (r.first != 0 && r.again);
	return r.first == 0 ? 0 : hr_err_sys(err, r.first, "%s: remove", path);
}
