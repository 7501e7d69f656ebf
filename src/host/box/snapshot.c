/* Keeps snapshots of boxes, and starts boxes from them. */
#include "config.h"

#include "host/box/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/strv.h"
#include "base/text/text.h"
#include "host/box/copy.h"
#include "host/box/layers.h"
#include "host/box/store.h"
#include "host/common/statedir.h"
#include "host/handle.h"
#include "host/records/record.h"
#include "proto/json.h"

#define STORAGE "storage"
#define LAYER "handrail-layer"
#define PIECE (128u << 10)
#define LIST_MAX (16u << 20)
#define SAID_MAX 4096

/* ---- making ---- */

/* Adds the size of a snapshot to its record. */
static int
add_size(struct json_object *record, const struct hr_box_size *size, struct hr_err *err)
{
	return hr_json_set(record, "files", json_object_new_int64(size->files), err) < 0
		   ? -1
		   : hr_json_set(record, "bytes", json_object_new_int64(size->bytes), err);
}

/* Composes the record of a snapshot. */
static int
compose(const struct hr_box *b, const char *tag, bool still, const struct hr_box_size *size,
    char **ret, struct hr_err *err)
{
	HR_PUT struct json_object *o =
	    hr_json_texts(err, "tag", tag, "sandbox", b->h->sid, "root", b->root, NULL);

	if (o == NULL || hr_json_set(o, "created", json_object_new_int64(time(NULL)), err) < 0 ||
	    hr_json_set(o, "still", json_object_new_boolean(still), err) < 0 ||
	    (b->counted && add_size(o, size, err) < 0))
		return -1;
	*ret = hr_json_string(o, HR_BOX_RECORD_MAX, err);
	return *ret != NULL ? 0 : -1;
}

/* Chooses the tag of a new snapshot. */
static int
choose(const struct hr_box_store *s, const struct hr_box *b, const char *tag, char **ret,
    struct hr_err *err)
{
	return b->replaces && tag != NULL ? hr_text_set(ret, tag, err)
					  : hr_box_store_choose(s, b->h->sid, tag, ret, err);
}

/* Counts the files of the unfinished snapshot, which are also those of its layers. */
static int
measure(const struct hr_box *b, const char *storage, struct hr_box_size *ret, struct hr_err *err)
{
	if (!b->counted)
		return 0;
	if (hr_box_count(b->h->state_dir, storage, ret, err) < 0)
		return -1;
	return b->most == 0 || ret->bytes <= b->most
		   ? 0
		   : hr_err_set(err, HR_E_TOOLARGE,
			 "the snapshot would take %" PRId64 " bytes, more than %" PRId64,
			 ret->bytes, b->most);
}

/* Copies the files of the box to the unfinished snapshot, and makes layers of them, on which boxes
 * can be started without another copy. */
static int
copy(const struct hr_box_store *s, const struct hr_box *b, struct hr_box_size *ret,
    struct hr_err *err)
{
	struct hr_box_copy c = {.locks = s->locks, .most = b->most};
	HR_FREE char *storage = hr_sidecar_path(&b->side, STORAGE);
	HR_FREE char *to = hr_path_join(s->at, STORAGE);
	HR_FREE char *from = storage != NULL ? realpath(storage, NULL) : NULL;
	int r;

	if (to == NULL || storage == NULL)
		return hr_err_nomem(err);
	if (from == NULL)
		return hr_err_sys(err, errno, "%s", storage);
	c.from = from;
	c.to = to;
	r = hr_box_copy(hr_box_is_frozen(b) ? NULL : b, &c, err);
	if (r == 0 && !c.shifted)
		r = hr_box_layer_freeze(b->h->state_dir, to, hr_box_top(b->root), err);
	return r == 0 ? measure(b, to, ret, err) : r;
}

static int
make(struct hr_box_store *s, struct hr_box *b, const char *tag, char **ret_json, struct hr_err *err)
{
	const bool still = hr_box_is_frozen(b) || hr_box_freezer(b) != NULL;
	struct hr_box_size size = {0};
	HR_FREE char *name = NULL;
	int r = copy(s, b, &size, err);

	hr_fd_close(&s->locks[1]); /* the box need not wait for the readers of other snapshots */
	while (r == 0) {
		free(*ret_json);
		*ret_json = NULL;
		if (choose(s, b, tag, &name, err) < 0 ||
		    compose(b, name, still, &size, ret_json, err) < 0)
			return -1;
		r = b->replaces && tag != NULL ? hr_box_store_replace(s, b->h, name, *ret_json, err)
					       : hr_box_store_finish(s, name, *ret_json, err);
	}
	return r < 0 ? -1 : 0;
}

/* Removes the unfinished snapshot; always returns -1. */
static int
undo(const struct hr_box_store *s, char **ret_json)
{
	free(*ret_json);
	*ret_json = NULL;
	(void)hr_box_remove_tree(s->locks, s->at, NULL);
	return -1;
}

int
hr_box_snapshot(void *self, const char *tag, char **ret_json, struct hr_err *err)
{
	HR_CLEAN(hr_box_store_close) struct hr_box_store s = HR_BOX_STORE_CLOSED;
	struct hr_box *b = self;
	HR_FREE char *name = NULL;
	int r;

	*ret_json = NULL;
	if ((tag != NULL && hr_box_check_tag(tag, err) < 0) ||
	    hr_box_store_open(&s, b->h, err) < 0 || choose(&s, b, tag, &name, err) < 0 ||
	    hr_box_hold(b, &s.locks[1], err) < 0 || hr_box_layers_repair(b, err) < 0 ||
	    hr_box_store_begin(&s, b->h, err) < 0)
		return -1;
	r = make(&s, b, tag, ret_json, err);
	return r == 0 ? 0 : undo(&s, ret_json);
}

int
hr_box_snapshot_within(struct hr_sandbox *s, const char *tag, const struct hr_box_bounds *bounds,
    char **ret_json, struct hr_err *err)
{
	const bool is_box = strcmp(s->ops->name, "box") == 0;

	if ((bounds->most > 0 || bounds->replaces) && !is_box)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "only snapshots of boxes have a limit, or replace others");
	if (is_box) {
		((struct hr_box *)s->self)->most = bounds->most;
		((struct hr_box *)s->self)->replaces = bounds->replaces;
		((struct hr_box *)s->self)->counted = bounds->counted;
	}
	return hr_sandbox_snapshot(s, tag, ret_json, err);
}

/* ---- use ---- */

/* Returns true if a snapshot fits a box with that root directory (NULL: the host's programs). */
static bool
fits(struct json_object *record, const char *root)
{
	const char *own = hr_json_text_at(record, "root");

	return own == NULL || root == NULL ? own == root : strcmp(own, root) == 0;
}

static int
fill(const struct hr_box_store *s, const struct hr_box *b, const char *tag, const char *storage,
    struct hr_err *err)
{
	HR_FREE char *snapshot = hr_path_join(s->path, tag);
	HR_FREE char *from = snapshot != NULL ? hr_path_join(snapshot, STORAGE) : NULL;
	HR_FREE char *dir = realpath(b->side.dir, NULL);
	HR_FREE char *part = dir != NULL ? hr_path_join(dir, STORAGE ".new") : NULL;
	HR_PUT struct json_object *o = hr_box_store_read(s->path, tag);

	if (from == NULL || part == NULL)
		return hr_err_nomem(err);
	if (o == NULL)
		return hr_box_no_snapshot(tag, err);
	if (!fits(o, hr_config_text(b->h->config, "box.root")))
		return hr_err_set(err, HR_E_INVAL,
		    "the snapshot \"%s\" is of a box with %s%s: set box.root to the same", tag,
		    hr_json_text_at(o, "root") != NULL ? "the root " : "no box.root",
		    hr_json_text_or(o, "root", ""));
	/* an earlier command may have been killed here */
	if (hr_box_remove_tree(s->locks, part, err) < 0)
		return -1;
	if (hr_box_copy(NULL, &(struct hr_box_copy){.locks = s->locks, .from = from, .to = part},
		err) < 0) {
		(void)hr_box_remove_tree(s->locks, part, NULL);
		return -1;
	}
	return rename(part, storage) == 0 ? 0 : hr_err_sys(err, errno, "create %s", storage);
}

int
hr_box_fill(struct hr_box *b, struct hr_err *err)
{
	const char *tag = hr_config_text(b->h->config, "box.from");
	HR_CLEAN(hr_box_store_close) struct hr_box_store s = HR_BOX_STORE_CLOSED;
	HR_FREE char *storage = hr_sidecar_path(&b->side, STORAGE);

	if (tag == NULL)
		return 0;
	if (storage == NULL)
		return hr_err_nomem(err);
	if (hr_box_check_tag(tag, err) < 0)
		return -1;
	if (access(storage, F_OK) == 0) {
		b->h->log(b->h->arg, "The sandbox has files of its own: box.from has no effect.");
		return 0;
	}
	return hr_box_store_hold(&s, b->h, tag, false, err) < 0 ? -1
								: fill(&s, b, tag, storage, err);
}

/* Counts the files of a snapshot whose size nobody has asked for yet. */
static int
complete(struct json_object **record, const char *state_dir, const char *tag, struct hr_err *err)
{
	HR_CLEAN(hr_box_store_close) struct hr_box_store s = HR_BOX_STORE_CLOSED;
	const struct hr_backend_host h = {.state_dir = state_dir};
	HR_FREE char *storage = NULL;
	HR_FREE char *json = NULL;
	struct hr_box_size size = {0};

	/* another command may remove or replace it now */
	if (hr_box_store_hold(&s, &h, tag, false, err) < 0)
		return err->code == HR_E_NOTFOUND ? 0 : -1;
	json_object_put(*record);
	*record = hr_box_store_read(s.path, tag);
	if (*record == NULL || hr_json_at(*record, "bytes") != NULL)
		return 0;
	if (hr_text_setf(&storage, err, "%s/%s/" STORAGE, s.path, tag) < 0 ||
	    hr_box_count(state_dir, storage, &size, err) < 0 || add_size(*record, &size, err) < 0)
		return -1;
	json = hr_json_string(*record, HR_BOX_RECORD_MAX, err);
	return json != NULL ? hr_box_store_write(&s, tag, json, err) : -1;
}

int
hr_box_snapshots(
    const char *state_dir, const char *prefix, bool counted, char **ret_json, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(state_dir, HR_BOX_STORE);
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	HR_PUT struct json_object *list = json_object_new_array();
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;
	size_t i;

	if (path == NULL)
		return hr_err_nomem(err);
	d = opendir(path);
	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0)
			hr_strv_add(&names, e->d_name);
	if (errno != 0 && errno != ENOENT)
		return hr_err_sys(err, errno, "read %s", path);
	if (names.failed)
		return hr_err_nomem(err);
	if (names.n > 0)
		qsort(names.v, names.n, sizeof(*names.v), hr_strv_compare);
	for (i = 0; i < names.n; i++) {
		struct json_object *o = hr_box_store_read(path, names.v[i]);
		struct hr_err why = {0};

		/* another command may remove it now */
		if (counted && o != NULL && hr_json_at(o, "bytes") == NULL &&
		    complete(&o, state_dir, names.v[i], &why) < 0 && o != NULL)
			(void)hr_json_set(o, "uncounted", json_object_new_string(why.msg), NULL);
		if (o != NULL && hr_json_append(list, o, err) < 0)
			return -1;
	}
	*ret_json = hr_json_string(list, LIST_MAX, err);
	return *ret_json != NULL ? 0 : -1;
}

/* ---- files ---- */

int
hr_box_snapshot_export(const struct hr_backend_host *h, const char *tag, int fd, struct hr_err *err)
{
	HR_CLEAN(hr_box_store_close) struct hr_box_store s = HR_BOX_STORE_CLOSED;
	HR_CLEAN(hr_strv_done) struct hr_strv below = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *storage = NULL;
	HR_FREE char *path = NULL;
	HR_BUF(said, SAID_MAX);
	size_t i;

	if (hr_box_store_hold(&s, h, tag, false, err) < 0)
		return -1;
	path = hr_path_join(s.path, tag);
	if (path == NULL)
		return hr_err_nomem(err);
	o = hr_box_store_read(s.path, tag);
	if (o == NULL)
		return hr_box_no_snapshot(tag, err);
	if (hr_text_setf(&storage, err, "%s/" STORAGE, path) < 0 ||
	    hr_box_below(h->state_dir, storage, &below, err) < 0)
		return -1;
	hr_strv_add_all(&argv, (const char *const[]){LAYER, "--export", path, NULL});
	for (i = below.n; i-- > 0;) {
		hr_strv_add(&argv, "--layer");
		hr_strv_add(&argv, below.v[i]);
	}
	if (argv.failed)
		return hr_err_nomem(err);
	return hr_box_run_program(
	    s.locks, hr_strv_list(&argv), false, &(const struct hr_spawn_fd){fd, 1}, &said, err);
}

/* Makes the unfinished snapshot from the file, and names it. */
static int
take(const struct hr_box_store *s, const char *tag, int fd, char **ret_json, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *name = NULL;
	HR_BUF(said, HR_BOX_RECORD_MAX);
	int r;

	if (hr_box_run_program(s->locks, (const char *const[]){LAYER, "--import", s->at, tag, NULL},
		false, &(const struct hr_spawn_fd){fd, 0}, &said, err) < 0)
		return -1;
	if (hr_json_decode(hr_buf_str(&said), said.len, &o, NULL) < 0)
		return hr_err_set(err, HR_E_RUNTIME, LAYER " ended without a result");
	*ret_json = hr_json_string(o, HR_BOX_RECORD_MAX, err);
	if (*ret_json == NULL)
		return -1;
	r = hr_box_store_finish(s, tag, *ret_json, err);
	return r > 0 ? 0 : r < 0 ? -1 : hr_box_store_choose(s, "", tag, &name, err);
}

/* Copies a stream to a file without a name. Otherwise the store would stay locked until the stream
 * ends, and an export of the same store may write it. Returns a descriptor, or -1 with *err set. */
static int
spool(const char *state_dir, int from, struct hr_err *err)
{
	HR_FREE char *piece = malloc(PIECE);
	ssize_t n;
	int fd;

	if (piece == NULL)
		return hr_err_nomem(err);
	if (hr_state_directory(state_dir, true, err) < 0)
		return -1;
	fd = hr_path_unnamed(state_dir);
	if (fd < 0)
		return hr_err_sys(err, errno, "make a file without a name in %s", state_dir);
	while ((n = hr_fd_read(from, piece, PIECE)) > 0)
		if (hr_fd_write_full(fd, piece, (size_t)n, err) < 0)
			break;
	if (n == 0 && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	if (n <= 0)
		(void)hr_err_sys(err, errno, "read the image");
	hr_fd_close(&fd);
	return -1;
}

int
hr_box_snapshot_import(
    const struct hr_backend_host *h, const char *tag, int fd, char **ret_json, struct hr_err *err)
{
	HR_CLEAN(hr_box_store_close) struct hr_box_store s = HR_BOX_STORE_CLOSED;
	HR_FREE char *name = NULL;
	HR_CLOSE int copy = -1;
	struct stat st;

	*ret_json = NULL;
	if (hr_box_check_tag(tag, err) < 0)
		return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		fd = copy = spool(h->state_dir, fd, err);
	if (fd < 0 || hr_box_store_open(&s, h, err) < 0 ||
	    hr_box_store_choose(&s, "", tag, &name, err) < 0 || hr_box_store_begin(&s, h, err) < 0)
		return -1;
	return take(&s, tag, fd, ret_json, err) == 0 ? 0 : undo(&s, ret_json);
}

int
hr_box_snapshot_remove(const struct hr_backend_host *h, const char *tag, struct hr_err *err)
{
	HR_CLEAN(hr_box_store_close) struct hr_box_store s = HR_BOX_STORE_CLOSED;

	if (hr_box_store_hold(&s, h, tag, true, err) < 0 || hr_box_store_remove(&s, tag, err) < 0)
		return -1;
	hr_box_layers_clean(h);
	return 0;
}
