/* Keeps the layers of files that boxes and snapshots share. */
#include "config.h"

#include "host/box/layers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/random.h"
#include "base/text/text.h"
#include "box/table.h"
#include "host/box/store.h"

#define LAYERS "layers"
#define REF "ref"
#define BELOW "below"
#define DIGITS 16
#define NUMBER "%02zu"
#define JOINED (BOX_BELOW_MAX / 2) /* layers that become one: the lowest ones are often large */
#define SAID_MAX 4096

/* ---- the layers of a storage ---- */

/* Reads the id of a layer that number n of a storage refers to. */
static int
read_id(const char *storage, size_t n, char id[DIGITS + 2], struct hr_err *err)
{
	HR_FREE char *path = NULL;
	ssize_t len;

	if (hr_text_setf(&path, err, "%s/" BELOW "/" NUMBER, storage, n) < 0)
		return -1;
	len = readlink(path, id, DIGITS + 1);
	if (len < 0)
		return hr_err_sys(err, errno, "read %s", path);
	id[len] = '\0';
	return len == DIGITS && strspn(id, "0123456789abcdef") == DIGITS
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "%s is damaged", path);
}

/* Sets *ret to the number of layers of a storage. */
static int
count(const char *storage, size_t *ret, struct hr_err *err)
{
	HR_FREE char *path = NULL;
	struct stat st;

	for (*ret = 0; *ret < BOX_BELOW_MAX; ++*ret) {
		if (hr_text_setf(&path, err, "%s/" BELOW "/" NUMBER, storage, *ret) < 0)
			return -1;
		if (lstat(path, &st) != 0)
			return errno == ENOENT || errno == ENOTDIR
				   ? 0
				   : hr_err_sys(err, errno, "%s", path);
	}
	return 0;
}

/* Sets *ret to the path of `name` in the layer of that number. */
static int
in_layer(const char *state_dir, const char *storage, size_t n, const char *name, char **ret,
    struct hr_err *err)
{
	char id[DIGITS + 2];

	return read_id(storage, n, id, err) < 0
		   ? -1
		   : hr_text_setf(ret, err, "%s/" LAYERS "/%s/%s", state_dir, id, name);
}

/* Returns true for the newest layer of a storage if a command was killed before it had files. */
static bool
is_unfinished(const char *state_dir, const char *storage, size_t n)
{
	HR_FREE char *path = NULL;

	return in_layer(state_dir, storage, n, ".", &path, NULL) == 0 && access(path, F_OK) == 0;
}

int
hr_box_below(const char *state_dir, const char *storage, struct hr_strv *ret, struct hr_err *err)
{
	HR_FREE char *path = NULL;
	char place[PATH_MAX];
	size_t n, i;

	if (count(storage, &n, err) < 0)
		return -1;
	if (n > 0 && state_dir == NULL)
		return hr_err_set(err, HR_E_INVAL, "a box with layers needs a state directory");
	for (i = n; i-- > 0;) {
		if (in_layer(state_dir, storage, i, BOX_COPY_FILES, &path, err) < 0)
			return -1;
		if (realpath(path, place) != NULL)
			hr_strv_add(ret, place);
		else if (errno != ENOENT || i + 1 < n || !is_unfinished(state_dir, storage, i))
			return hr_err_sys(err, errno, "the layer %s of %s", path, storage);
	}
	return ret->failed ? hr_err_nomem(err) : 0;
}

/* Lets the directory `dir` refer to layer n of `from`. A link of its own has the place of one more
 * than the file system permits: is_named() finds that, too. */
static int
share_one(const char *from, const char *dir, size_t n, struct hr_err *err)
{
	HR_FREE char *old = NULL;
	HR_FREE char *new = NULL;
	char id[DIGITS + 2];

	if (hr_text_setf(&old, err, "%s/" BELOW "/" NUMBER, from, n) < 0 ||
	    hr_text_setf(&new, err, "%s/" NUMBER, dir, n) < 0)
		return -1;
	if (link(old, new) == 0)
		return 0;
	if (errno != EMLINK)
		return hr_err_sys(err, errno, "link %s", new);
	if (read_id(from, n, id, err) < 0)
		return -1;
	return symlink(id, new) == 0 ? 0 : hr_err_sys(err, errno, "create %s", new);
}

/* Lets the new directory `dir` refer to the n lowest layers of `from`. */
static int
share(const char *from, const char *dir, size_t n, struct hr_err *err)
{
	size_t i;

	if (mkdir(dir, 0700) != 0)
		return hr_err_sys(err, errno, "create %s", dir);
	for (i = 0; i < n; i++)
		if (share_one(from, dir, i, err) < 0)
			return -1;
	return 0;
}

int
hr_box_below_share(const char *from, const char *to, struct hr_err *err)
{
	HR_FREE char *dir = hr_path_join(to, BELOW);
	size_t n;

	if (dir == NULL)
		return hr_err_nomem(err);
	return count(from, &n, err) < 0 ? -1 : n > 0 ? share(from, dir, n, err) : 0;
}

/* ---- new layers ---- */

/* Makes the directory of a layer with its reference, to which *ret leads, and holds it. */
static int
make_layer(struct hr_box_layer *l, const char *state_dir, char **ret, struct hr_err *err)
{
	HR_FREE char *dir = hr_path_join(state_dir, LAYERS);
	char id[DIGITS + 1];
	struct stat held, named;

	if (dir == NULL)
		return hr_err_nomem(err);
	/* another command may take the layer, or an empty directory, for a leftover before the
	 * layer is held */
	do {
		hr_fd_close(&l->lock);
		if (hr_random_hex(id, DIGITS, err) < 0 ||
		    hr_text_setf(&l->path, err, "%s/%s", dir, id) < 0)
			return -1;
		if ((mkdir(dir, 0700) != 0 && errno != EEXIST) ||
		    (mkdir(l->path, 0700) != 0 && errno != ENOENT))
			return hr_err_sys(err, errno, "create %s", l->path);
		l->lock = open(l->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (l->lock < 0 ? errno != ENOENT : flock(l->lock, LOCK_EX) != 0)
			return hr_err_sys(err, errno, "hold %s", l->path);
	} while (l->lock < 0 || fstat(l->lock, &held) != 0 || stat(l->path, &named) != 0 ||
		 held.st_ino != named.st_ino);
	if (symlinkat(id, l->lock, REF) != 0)
		return hr_err_sys(err, errno, "create " REF " in %s", l->path);
	return hr_text_setf(ret, err, "%s/" REF, l->path);
}

int
hr_box_layer_begin(
    struct hr_box_layer *l, const char *state_dir, const char *storage, struct hr_err *err)
{
	HR_FREE char *below = hr_path_join(storage, BELOW);
	HR_FREE char *ref = NULL;
	size_t n;

	if (below == NULL)
		return hr_err_nomem(err);
	if (count(storage, &n, err) < 0)
		return -1;
	if (n == BOX_BELOW_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "the box has %zu layers already", n);
	if (make_layer(l, state_dir, &ref, err) < 0)
		return -1;
	if (mkdir(below, 0700) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "create %s", below);
	if (hr_text_setf(&l->link, err, "%s/" NUMBER, below, n) < 0)
		return -1;
	return link(ref, l->link) == 0 ? 0 : hr_err_sys(err, errno, "create %s", l->link);
}

void
hr_box_layer_end(struct hr_box_layer *l)
{
	/* a layer that got no files has no user */
	if (l->lock >= 0 && faccessat(l->lock, BOX_COPY_FILES, F_OK, 0) != 0 && errno == ENOENT) {
		if (l->link != NULL) {
			(void)unlink(l->link);
			l->link[hr_path_leaf(l->link) - l->link - 1] = '\0';
			(void)rmdir(l->link); /* fails if there are other layers */
		}
		(void)unlinkat(l->lock, REF, 0);
		(void)rmdir(l->path);
	}
	hr_fd_close(&l->lock);
	free(l->path);
	free(l->link);
	l->path = l->link = NULL;
}

int
hr_box_layer_freeze(const char *state_dir, const char *storage, const char *top, struct hr_err *err)
{
	HR_CLEAN(hr_box_layer_end) struct hr_box_layer l = HR_BOX_LAYER_NONE;
	HR_FREE char *from = hr_path_join(storage, top);

	if (from == NULL)
		return hr_err_nomem(err);
	if (access(from, F_OK) != 0)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", from);
	/* a storage without another layer keeps its files, as a subvolume does */
	if (hr_box_layer_begin(&l, state_dir, storage, NULL) < 0)
		return 0;
	return renameat(AT_FDCWD, from, l.lock, BOX_COPY_FILES) == 0 || errno == EXDEV
		   ? 0
		   : hr_err_sys(err, errno, "move %s", from);
}

/* ---- too many layers ---- */

/* Makes one layer of the topmost ones of a box that may run on them: their references move to
 * HR_BOX_BELOW_OLD, and stay there until the box has another root. */
static int
join(const struct hr_box *b, const char *storage, struct hr_err *err)
{
	HR_CLEAN(hr_box_layer_end) struct hr_box_layer l = HR_BOX_LAYER_NONE;
	HR_CLEAN(hr_strv_done) struct hr_strv below = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_FREE char *present = hr_path_join(storage, BELOW);
	HR_FREE char *next = hr_path_join(storage, HR_BOX_BELOW_OLD);
	HR_FREE char *ref = NULL;
	HR_FREE char *name = NULL;
	HR_BUF(said, SAID_MAX);
	size_t i;

	if (present == NULL || next == NULL)
		return hr_err_nomem(err);
	if (hr_box_below(b->h->state_dir, storage, &below, err) < 0 ||
	    hr_path_remove(next, err) < 0 || make_layer(&l, b->h->state_dir, &ref, err) < 0)
		return -1;
	hr_strv_add_all(&argv, (const char *const[]){HR_BOX_LAUNCHER, "--join", l.path, NULL});
	for (i = 0; i < JOINED; i++)
		hr_strv_add(&argv, below.v[i]);
	if (argv.failed)
		return hr_err_nomem(err);
	if (hr_box_run_program((const int[HR_BOX_LOCKS]){l.lock, -1}, hr_strv_list(&argv), false,
		NULL, &said, err) < 0 ||
	    share(storage, next, below.n - JOINED, err) < 0 ||
	    hr_text_setf(&name, err, "%s/" NUMBER, next, below.n - JOINED) < 0)
		return -1;
	return link(ref, name) == 0 &&
		       renameat2(AT_FDCWD, next, AT_FDCWD, present, RENAME_EXCHANGE) == 0
		   ? 0
		   : hr_err_sys(err, errno, "replace %s", present);
}

int
hr_box_below_forget(const char *storage, struct hr_err *err)
{
	HR_FREE char *old = hr_path_join(storage, HR_BOX_BELOW_OLD);

	return old != NULL ? hr_path_remove(old, err) : hr_err_nomem(err);
}

/* Joins the layers, or reports why the box keeps its layers: then it is copied. */
static void
join_or_log(const struct hr_box *b, const char *storage)
{
	HR_FREE char *text = NULL;
	struct hr_err e = {0};

	if (join(b, storage, &e) == 0)
		return;
	if (hr_text_setf(&text, NULL, "The box keeps its layers: %s", e.msg) == 0)
		b->h->log(b->h->arg, text);
	hr_box_layers_clean(b->h);
}

/* ---- leftovers ---- */

/* Returns 1 if the root of a running box has its changes in the directory `top`, 0 if in `files`,
 * or -1 with *err set. Only the kernel's list of mounts counts: the box's processes change files.
 */
static int
is_top(const struct hr_box *b, const char *top, const char *files, struct hr_err *err)
{
	struct box_table *t = calloc(1, sizeof(*t));
	const struct box_table_mount *m;
	uint64_t upper = 0, work = 0;
	struct stat one, other, now;
	HR_CLOSE int root = -1;
	int r = -1;

	if (t == NULL)
		return hr_err_nomem(err);
	m = box_table_of(t, b->pid, &root, err);
	if (m != NULL)
		r = box_table_upper(m, root, &upper, &work, err);
	box_table_done(t);
	free(t);
	if (r < 0)
		return -1;
	if (lstat(top, &one) != 0 || lstat(files, &other) != 0 || fstat(root, &now) != 0)
		return hr_err_sys(err, errno, "examine the layers of the box");
	/* another process may have had the number in between, or this one another root */
	if ((upper != one.st_ino && upper != other.st_ino) ||
	    (work == 0 && now.st_dev != one.st_dev) || b->side.watch < 0 ||
	    hr_pid_wait(b->side.watch, 0))
		return hr_err_set(err, HR_E_RUNTIME, "the box has an unknown root");
	return upper == one.st_ino;
}

int
hr_box_layers_repair(const struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *storage = hr_sidecar_path(&b->side, "storage");
	HR_FREE char *top = storage != NULL ? hr_path_join(storage, hr_box_top(b->root)) : NULL;
	HR_FREE char *files = NULL;
	HR_FREE char *newest = NULL;
	bool filled;
	size_t n;
	int r;

	if (top == NULL)
		return hr_err_nomem(err);
	if (count(storage, &n, err) < 0)
		return -1;
	if (n == 0 || b->pid == 0)
		return 0;
	if (in_layer(b->h->state_dir, storage, n - 1, BOX_COPY_FILES, &files, err) < 0 ||
	    hr_text_setf(&newest, err, "%s/" BELOW "/" NUMBER, storage, n - 1) < 0)
		return -1;
	filled = access(files, F_OK) == 0;
	if (!filled && errno != ENOENT)
		return hr_err_sys(err, errno, "%s", files);
	r = filled ? is_top(b, top, files, err) : 0;
	if (r < 0)
		return -1;
	if (r > 0) {
		if (n == BOX_BELOW_MAX)
			join_or_log(b, storage);
		return 0;
	}
	if (filled && renameat2(AT_FDCWD, top, AT_FDCWD, files, RENAME_EXCHANGE) != 0)
		return hr_err_sys(err, errno, "give the box its files again");
	if (unlink(newest) != 0)
		return hr_err_sys(err, errno, "remove %s", newest);
	hr_box_layers_clean(b->h);
	return 0;
}

/* Returns true if a reference in the directory `name` of a storage is that of the layer. */
static bool
refers_to(const char *dir, const char *entry, const char *name, const char *id)
{
	HR_FREE char *path = NULL;
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;
	char found[DIGITS + 2];
	bool same = false;

	if (hr_text_setf(&path, NULL, "%s/%s/storage/%s", dir, entry, name) < 0)
		return true;
	d = opendir(path);
	while (!same && d != NULL && (e = hr_dir_next(d)) != NULL)
		same = readlinkat(dirfd(d), e->d_name, found, sizeof(found)) == DIGITS &&
		       strncmp(found, id, DIGITS) == 0;
	return same || (errno != 0 && errno != ENOENT && errno != ENOTDIR);
}

/* Returns true if a storage in a directory of `dir` refers to the layer. */
static bool
is_named_in(const char *dir, const char *id)
{
	HR_CLOSEDIR DIR *d = opendir(dir);
	const struct dirent *e;
	bool named = false;

	while (!named && d != NULL && (e = hr_dir_next(d)) != NULL)
		named = refers_to(dir, e->d_name, BELOW, id) ||
			refers_to(dir, e->d_name, HR_BOX_BELOW_OLD, id);
	return named;
}

/* Returns true unless no storage refers to the layer. A directory that was restored from a copy
 * without hard links has the names of layers, but not their number. */
static bool
is_named(const char *state_dir, const char *id)
{
	HR_FREE char *store = hr_path_join(state_dir, HR_BOX_STORE);

	return store == NULL || is_named_in(state_dir, id) || is_named_in(store, id);
}

/* Returns true if a storage has a link of the layer's reference. */
static bool
is_linked(int layer)
{
	struct stat st;

	return fstatat(layer, REF, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink > 1;
}

/* Removes a layer unless a storage or a command uses it. */
static void
clean_one(const struct hr_backend_host *h, const char *path)
{
	int locks[HR_BOX_LOCKS] = {-1, -1};
	HR_FREE char *text = NULL;
	struct hr_err why = {0};

	locks[0] = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* a layer in use is not locked, since that would keep another command from removing it */
	if (locks[0] >= 0 && !is_linked(locks[0]) && flock(locks[0], LOCK_EX | LOCK_NB) == 0 &&
	    !is_linked(locks[0]) && !is_named(h->state_dir, hr_path_leaf(path)) &&
	    hr_box_remove_tree(locks, path, &why) < 0 && h->log != NULL &&
	    hr_text_setf(&text, NULL, "The unused layer %s stays: %s", path, why.msg) == 0)
		h->log(h->arg, text);
	hr_fd_close(&locks[0]);
}

void
hr_box_layers_clean(const struct hr_backend_host *h)
{
	HR_FREE char *dir = h->state_dir != NULL ? hr_path_join(h->state_dir, LAYERS) : NULL;
	HR_CLOSEDIR DIR *d = dir != NULL ? opendir(dir) : NULL;
	const struct dirent *e;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		HR_FREE char *path = hr_path_join(dir, e->d_name);

		if (path != NULL && e->d_name[0] != '.')
			clean_one(h, path);
	}
	if (dir != NULL)
		(void)rmdir(dir); /* fails while there are layers */
}
