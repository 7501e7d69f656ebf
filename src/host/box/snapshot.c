/* Keeps snapshots of boxes, and starts boxes from them. The launcher copies and removes the files,
 * since those of a user's box can belong to subordinate ids. */
#include "config.h"

#include "host/box/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/text.h"
#include "host/box/box_int.h"
#include "host/common/lock.h"
#include "host/common/statedir.h"
#include "host/records/record.h"
#include "proto/json.h"

#define STORE "snapshots"
#define STORAGE "storage"
#define RECORD "snapshot.json"
#define LAYER "handrail-layer"
#define PIECE (128u << 10)
#define RECORD_MAX (1u << 16)
#define LIST_MAX (16u << 20)
#define UNFINISHED ".new"
#define REMOVED ".gone"
#define FIRST_LOCK 3 /* the launcher's descriptors of locks begin here */
#define QUIET_MS 1000
#define PATIENCE_MS (5 * 60 * 1000)
#define SAID_MAX 4096
#define REMOVALS 5       /* tries to remove a tree */
#define NUMBER_MAX 10000 /* snapshots of a sandbox whose names the store chooses */

/* An open store: its directory is locked until it is closed. */
struct store {
	char *path;
	int locks[HR_BOX_LOCKS]; /* the store's, and that of the box that is copied; -1: none */
};

static void
store_close(struct store *s)
{
	hr_fd_close(&s->locks[1]);
	hr_fd_close(&s->locks[0]);
	free(s->path);
}

/* Waits for flock()'s lock `how` of a directory, and reports a wait. */
static int
wait_for(const struct hr_backend_host *h, int fd, int how, const char *path, struct hr_err *err)
{
	int sys = hr_lock_in_time(fd, how, QUIET_MS);

	if (sys == EWOULDBLOCK && h->log != NULL)
		h->log(h->arg, "Another command copies or removes these files: waiting for it.");
	if (sys == EWOULDBLOCK)
		sys = hr_lock_in_time(fd, how, PATIENCE_MS - QUIET_MS);
	return sys == 0             ? 0
	       : sys != EWOULDBLOCK ? hr_err_sys(err, sys, "lock %s", path)
				    : hr_err_set(err, HR_E_BUSY,
					  "another command has held the lock of %s for %d seconds: "
					  "wait until it ends, or end it",
					  path, PATIENCE_MS / 1000);
}

int
hr_box_hold(const struct hr_box *b, int *ret_fd, struct hr_err *err)
{
	struct stat held, named;

	*ret_fd = -1;
	if (b->side.dir == NULL)
		return 0;
	do {
		hr_fd_close(ret_fd);
		*ret_fd = open(b->side.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (*ret_fd < 0)
			return errno == ENOENT ? 0 : hr_err_sys(err, errno, "open %s", b->side.dir);
		if (wait_for(b->h, *ret_fd, LOCK_EX, b->side.dir, err) < 0)
			return -1;
		/* the directory may have been removed and made again meanwhile */
	} while (fstat(*ret_fd, &held) != 0 || stat(b->side.dir, &named) != 0 ||
		 held.st_ino != named.st_ino || held.st_dev != named.st_dev);
	return 0;
}

static int
no_snapshot(const char *tag, struct hr_err *err)
{
	return hr_err_set(err, HR_E_NOTFOUND,
	    "there is no snapshot \"%s\"; \"handrail snapshot ls\" lists them", tag);
}

static int
check_tag(const char *tag, struct hr_err *err)
{
	return hr_sid_valid(tag) && *tag != '.' ? 0
						: hr_err_set(err, HR_E_INVAL,
						      "invalid name of a snapshot, \"%.200s\": use "
						      "letters, digits, '_', '.' and "
						      "'-', and no dot as the first character",
						      tag);
}

/* Runs the program of boxes with these arguments. It keeps the locks, so that they hold until the
 * files are at rest. `thaws`: it has frozen a box. `data`: its input or output; NULL: the output is
 * appended to *out. */
static int
run_program(const int locks[HR_BOX_LOCKS], const char *const *argv, bool thaws,
    const struct hr_spawn_fd *data, struct hr_buf *out, struct hr_err *err)
{
	HR_FREE char *path = hr_box_program(argv[0], err);
	int back[2], status = -1, i;
	struct hr_spawn_fd fds[3 + HR_BOX_LOCKS];
	/* The process that thaws a box outlives this one, and gets no signal of the terminal.
	 * Others end, so that the next command can remove their files. */
	struct hr_spawn sp = {.path = path,
	    .argv = argv,
	    .umask = -1,
	    .fds = fds,
	    .nfds = 2,
	    .setsid = true,
	    .pdeathsig = thaws ? 0 : SIGKILL};
	const char *said;
	pid_t pid;

	if (path == NULL)
		return -1;
	if (pipe2(back, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "a pipe");
	fds[0] = (struct hr_spawn_fd){back[1], 2};
	fds[1] = (struct hr_spawn_fd){back[1], 1};
	if (data != NULL)
		fds[data->to == 1 ? 1 : sp.nfds++] = *data;
	for (i = 0; locks != NULL && i < HR_BOX_LOCKS; i++)
		if (locks[i] >= 0)
			fds[sp.nfds++] = (struct hr_spawn_fd){locks[i], FIRST_LOCK + i};
	pid = hr_spawn(&sp, err);
	hr_fd_close(&back[1]);
	if (pid > 0)
		(void)hr_path_read_fd(back[0], argv[0], out, NULL);
	hr_fd_close(&back[0]);
	if (pid < 0)
		return -1;
	if (hr_spawn_end(pid, &status) < 0)
		return hr_err_sys(err, errno, "wait for %s", argv[0]);
	if (status == 0)
		return 0;
	said = hr_buf_str(out);
	if (strncmp(said, argv[0], strlen(argv[0])) == 0 &&
	    strncmp(said + strlen(argv[0]), ": ", 2) == 0)
		said += strlen(argv[0]) + 2;
	return hr_err_set(err, HR_E_RUNTIME, "%.*s%s%s%s", (int)strcspn(said, "\n"), said,
	    *said != '\0' ? "" : argv[0], *said != '\0' ? "" : ": ",
	    *said != '\0' ? "" : hr_exit_words(status));
}

int
hr_box_remove_tree(const int locks[HR_BOX_LOCKS], const char *path, struct hr_err *err)
{
	const char *const argv[] = {"handrail-box", "--remove", path, NULL};
	HR_BUF(out, SAID_MAX);
	int i, r = -1;

	/* the first process of a box whose launcher was killed can make files until it ends */
	for (i = 0; r < 0 && i < REMOVALS; i++) {
		if (access(path, F_OK) != 0 || hr_path_remove(path, NULL) == 0)
			return 0;
		hr_buf_reset(&out);
		r = run_program(locks, argv, false, NULL, &out, err);
	}
	return r;
}

static int
remove_leftovers(const struct store *s, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = opendir(s->path);
	const struct dirent *e;
	int r = 0;

	while (r == 0 && d != NULL && (e = hr_dir_next(d)) != NULL)
		if (e->d_name[0] == '.') {
			HR_FREE char *path = hr_path_join(s->path, e->d_name);

			r = path != NULL ? hr_box_remove_tree(s->locks, path, err)
					 : hr_err_nomem(err);
		}
	return r;
}

/* Opens the store, whose path has no links then, and waits for its lock. With `change` it is made
 * where it is missing, and leftovers of a killed command are removed. */
static int
store_open(struct store *s, const struct hr_backend_host *h, bool change, struct hr_err *err)
{
	HR_FREE char *path = h->state_dir != NULL ? hr_path_join(h->state_dir, STORE) : NULL;

	if (path == NULL)
		return h->state_dir != NULL
			   ? hr_err_nomem(err)
			   : hr_err_set(err, HR_E_UNSUPPORTED, "snapshots need a state directory");
	if (hr_state_directory(h->state_dir, change, err) < 0)
		return -1;
	if (change && mkdir(path, 0700) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "create %s", path);
	s->path = realpath(path, NULL);
	s->locks[0] = s->path != NULL ? open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (s->locks[0] < 0)
		return hr_err_sys(err, errno, "open %s", path);
	if (wait_for(h, s->locks[0], change ? LOCK_EX : LOCK_SH, path, err) < 0)
		return -1;
	return change ? remove_leftovers(s, err) : 0;
}

/* Reads the record of a snapshot. Returns NULL if there is none. */
static struct json_object *
read_record(const struct store *s, const char *tag)
{
	HR_FREE char *dir = hr_path_join(s->path, tag);
	HR_FREE char *path = dir != NULL ? hr_path_join(dir, RECORD) : NULL;
	struct json_object *o = NULL;
	HR_BUF(text, RECORD_MAX);

	if (path == NULL || hr_path_read(path, &text, NULL) < 0 ||
	    hr_json_decode(hr_buf_str(&text), text.len, &o, NULL) < 0)
		return NULL;
	return o;
}

/* ---- copies ---- */

/* Copies a storage without the server's journal. The box has the journal in its root, or in the
 * layer of a root directory of its own. */
int
hr_box_copy(const int locks[HR_BOX_LOCKS], const char *from, const char *to, const char *group,
    struct hr_buf *out, struct hr_err *err)
{
	const char *const argv[] = {"handrail-box", "--copy", from, to, "--without",
	    "root" HR_BOX_STATE_DIR, "--without", "layers/root/upper" HR_BOX_STATE_DIR,
	    group != NULL ? "--freeze" : NULL, group, NULL};

	return run_program(locks, argv, group != NULL, NULL, out, err);
}

/* ---- making ---- */

/* Sets *ret to the name of the new snapshot. */
static int
choose_tag(const struct store *s, const char *sid, const char *tag, char **ret, struct hr_err *err)
{
	struct stat st;
	int n;

	if (tag != NULL && fstatat(s->locks[0], tag, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return hr_err_set(err, HR_E_INVAL,
		    "there is a snapshot \"%s\" already: \"handrail snapshot rm %s\" removes it",
		    tag, tag);
	if (tag != NULL)
		return hr_text_set(ret, tag, err);
	for (n = 1; n < NUMBER_MAX; n++)
		if (hr_text_setf(ret, err, "%s-%d", sid, n) < 0)
			return -1;
		else if (fstatat(s->locks[0], *ret, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return check_tag(*ret, err);
	return hr_err_set(err, HR_E_TOOLARGE, "the sandbox has %d snapshots: give a name", n - 1);
}

/* Composes the record of a snapshot; `said` is the launcher's line. */
static int
compose(const struct hr_box *b, const char *tag, bool still, const char *said, char **ret,
    struct hr_err *err)
{
	HR_PUT struct json_object *size = NULL;
	HR_PUT struct json_object *o =
	    hr_json_texts(err, "tag", tag, "sandbox", b->h->sid, "root", b->root, NULL);

	if (hr_json_decode(said, strlen(said), &size, NULL) < 0 ||
	    !json_object_is_type(size, json_type_object))
		return hr_err_set(err, HR_E_RUNTIME, "the launcher did not report its copy");
	if (hr_json_set(o, "created", json_object_new_int64(time(NULL)), err) < 0 ||
	    hr_json_set(o, "still", json_object_new_boolean(still), err) < 0)
		return -1;
	json_object_object_foreach(size, key, value)
	{
		if (hr_json_set(o, key, json_object_get(value), err) < 0)
			return -1;
	}
	*ret = hr_json_string(o, RECORD_MAX, err);
	return *ret != NULL ? 0 : -1;
}

static int
make(const struct store *s, struct hr_box *b, const char *tag, char **ret_json, struct hr_err *err)
{
	const bool paused = hr_box_is_frozen(b);
	const char *group = paused ? NULL : hr_box_freezer(b);
	HR_FREE char *dir = hr_path_join(s->path, UNFINISHED);
	HR_FREE char *to = dir != NULL ? hr_path_join(dir, STORAGE) : NULL;
	HR_FREE char *record = dir != NULL ? hr_path_join(dir, RECORD) : NULL;
	HR_FREE char *storage = hr_sidecar_path(&b->side, STORAGE);
	HR_FREE char *from = storage != NULL ? realpath(storage, NULL) : NULL;
	HR_BUF(said, SAID_MAX);
	int r;

	if (to == NULL || record == NULL || storage == NULL)
		return hr_err_nomem(err);
	if (from == NULL)
		return hr_err_sys(err, errno, "%s", storage);
	if (mkdir(dir, 0700) != 0)
		return hr_err_sys(err, errno, "create %s", dir);
	r = hr_box_copy(s->locks, from, to, group, &said, err);
	/* the launcher may have been killed */
	if (r < 0 && group != NULL)
		(void)hr_box_freeze(b, false, NULL);
	if (r < 0)
		return -1;
	if (compose(b, tag, paused || group != NULL, hr_buf_str(&said), ret_json, err) < 0 ||
	    hr_path_write(record, *ret_json, strlen(*ret_json), 0600, err) < 0)
		return -1;
	return hr_path_rename_free(s->locks[0], UNFINISHED, s->locks[0], tag) == 0
		   ? 0
		   : hr_err_sys(err, errno, "name the snapshot %s", tag);
}

int
hr_box_snapshot(void *self, const char *tag, char **ret_json, struct hr_err *err)
{
	HR_CLEAN(store_close) struct store s = {.locks = {-1, -1}};
	struct hr_box *b = self;
	HR_FREE char *name = NULL;
	int r;

	*ret_json = NULL;
	if ((tag != NULL && check_tag(tag, err) < 0) || store_open(&s, b->h, true, err) < 0 ||
	    choose_tag(&s, b->h->sid, tag, &name, err) < 0 || hr_box_hold(b, &s.locks[1], err) < 0)
		return -1;
	r = make(&s, b, name, ret_json, err);
	if (r < 0) {
		free(*ret_json);
		*ret_json = NULL;
		(void)remove_leftovers(&s, NULL);
	}
	return r;
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
fill(const struct store *s, const struct hr_box *b, const char *tag, const char *storage,
    struct hr_err *err)
{
	HR_FREE char *snapshot = hr_path_join(s->path, tag);
	HR_FREE char *from = snapshot != NULL ? hr_path_join(snapshot, STORAGE) : NULL;
	HR_FREE char *dir = realpath(b->side.dir, NULL);
	HR_FREE char *part = dir != NULL ? hr_path_join(dir, STORAGE ".new") : NULL;
	HR_PUT struct json_object *o = read_record(s, tag);
	HR_BUF(said, SAID_MAX);

	if (from == NULL || part == NULL)
		return hr_err_nomem(err);
	if (o == NULL)
		return no_snapshot(tag, err);
	if (!fits(o, hr_config_text(b->h->config, "box.root")))
		return hr_err_set(err, HR_E_INVAL,
		    "the snapshot \"%s\" is of a box with %s%s: set box.root to the same", tag,
		    hr_json_text_at(o, "root") != NULL ? "the root " : "no box.root",
		    hr_json_text_or(o, "root", ""));
	/* an earlier command may have been killed here */
	if (hr_box_remove_tree(s->locks, part, err) < 0)
		return -1;
	if (hr_box_copy(s->locks, from, part, NULL, &said, err) < 0) {
		(void)hr_box_remove_tree(s->locks, part, NULL);
		return -1;
	}
	return rename(part, storage) == 0 ? 0 : hr_err_sys(err, errno, "create %s", storage);
}

int
hr_box_fill(struct hr_box *b, struct hr_err *err)
{
	const char *tag = hr_config_text(b->h->config, "box.from");
	HR_CLEAN(store_close) struct store s = {.locks = {-1, -1}};
	HR_FREE char *storage = hr_sidecar_path(&b->side, STORAGE);

	if (tag == NULL)
		return 0;
	if (storage == NULL)
		return hr_err_nomem(err);
	if (check_tag(tag, err) < 0)
		return -1;
	if (access(storage, F_OK) == 0) {
		b->h->log(b->h->arg, "The sandbox has files of its own: box.from has no effect.");
		return 0;
	}
	if (store_open(&s, b->h, false, err) < 0)
		return s.path == NULL && err != NULL && err->sys == ENOENT ? no_snapshot(tag, err)
									   : -1;
	return fill(&s, b, tag, storage, err);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
hr_box_snapshots(const char *state_dir, char **ret_json, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(state_dir, STORE);
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	HR_PUT struct json_object *list = json_object_new_array();
	const struct store s = {.path = path, .locks = {-1, -1}};
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;
	size_t i;

	if (path == NULL)
		return hr_err_nomem(err);
	d = opendir(path);
	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (e->d_name[0] != '.')
			hr_strv_add(&names, e->d_name);
	if (errno != 0 && errno != ENOENT)
		return hr_err_sys(err, errno, "read %s", path);
	if (names.failed)
		return hr_err_nomem(err);
	if (names.n > 0)
		qsort(names.v, names.n, sizeof(*names.v), by_name);
	for (i = 0; i < names.n; i++) {
		struct json_object *o = read_record(&s, names.v[i]);

		/* another command may remove it now */
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
	HR_CLEAN(store_close) struct store s = {.locks = {-1, -1}};
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *path = NULL;
	HR_BUF(said, SAID_MAX);

	if (check_tag(tag, err) < 0)
		return -1;
	if (store_open(&s, h, false, err) < 0)
		return s.path == NULL && err != NULL && err->sys == ENOENT ? no_snapshot(tag, err)
									   : -1;
	path = hr_path_join(s.path, tag);
	if (path == NULL)
		return hr_err_nomem(err);
	o = read_record(&s, tag);
	if (o == NULL)
		return no_snapshot(tag, err);
	return run_program(s.locks, (const char *const[]){LAYER, "--export", path, NULL}, false,
	    &(const struct hr_spawn_fd){fd, 1}, &said, err);
}

/* Makes the unfinished snapshot from the file, and names it. */
static int
take(const struct store *s, const char *tag, int fd, char **ret_json, struct hr_err *err)
{
	HR_FREE char *dir = hr_path_join(s->path, UNFINISHED);
	HR_FREE char *record = dir != NULL ? hr_path_join(dir, RECORD) : NULL;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(said, RECORD_MAX);

	if (record == NULL)
		return hr_err_nomem(err);
	if (mkdir(dir, 0700) != 0)
		return hr_err_sys(err, errno, "create %s", dir);
	if (run_program(s->locks, (const char *const[]){LAYER, "--import", dir, tag, NULL}, false,
		&(const struct hr_spawn_fd){fd, 0}, &said, err) < 0)
		return -1;
	if (hr_json_decode(hr_buf_str(&said), said.len, &o, NULL) < 0)
		return hr_err_set(err, HR_E_RUNTIME, LAYER " did not report its work");
	*ret_json = hr_json_string(o, RECORD_MAX, err);
	if (*ret_json == NULL || hr_path_write(record, *ret_json, strlen(*ret_json), 0600, err) < 0)
		return -1;
	return hr_path_rename_free(s->locks[0], UNFINISHED, s->locks[0], tag) == 0
		   ? 0
		   : hr_err_sys(err, errno, "name the snapshot %s", tag);
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
	HR_CLEAN(store_close) struct store s = {.locks = {-1, -1}};
	HR_FREE char *name = NULL;
	HR_CLOSE int copy = -1;
	struct stat st;

	*ret_json = NULL;
	if (check_tag(tag, err) < 0)
		return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		fd = copy = spool(h->state_dir, fd, err);
	if (fd < 0 || store_open(&s, h, true, err) < 0 || choose_tag(&s, "", tag, &name, err) < 0)
		return -1;
	if (take(&s, tag, fd, ret_json, err) == 0)
		return 0;
	free(*ret_json);
	*ret_json = NULL;
	(void)remove_leftovers(&s, NULL);
	return -1;
}

int
hr_box_snapshot_remove(const struct hr_backend_host *h, const char *tag, struct hr_err *err)
{
	HR_CLEAN(store_close) struct store s = {.locks = {-1, -1}};

	if (check_tag(tag, err) < 0 || store_open(&s, h, true, err) < 0)
		return -1;
	if (hr_path_rename_free(s.locks[0], tag, s.locks[0], REMOVED) != 0)
		return errno == ENOENT ? no_snapshot(tag, err)
				       : hr_err_sys(err, errno, "remove the snapshot %s", tag);
	return remove_leftovers(&s, err);
}
