/* Opens the store of snapshots, and holds entries of it. */
#include "config.h"

#include "host/box/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "base/text/text.h"
#include "host/common/lock.h"
#include "host/common/statedir.h"
#include "host/records/record.h"
#include "proto/json.h"

#define RECORD "snapshot.json"
#define QUIET_MS 1000
#define PATIENCE_MS (5 * 60 * 1000)
#define NUMBER_MAX 10000 /* snapshots of a sandbox whose names the store chooses */
#define DIGITS 16

void
hr_box_store_close(struct hr_box_store *s)
{
	hr_fd_close(&s->locks[1]);
	hr_fd_close(&s->locks[0]);
	hr_fd_close(&s->dir);
	free(s->at);
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

/* Waits for the lock of the directory that has the name in the end. *ret_fd is -1 without an error
 * if there is none. */
static int
hold(const struct hr_backend_host *h, const char *path, int how, int *ret_fd, struct hr_err *err)
{
	struct stat held, named;

	*ret_fd = -1;
	do {
		hr_fd_close(ret_fd);
		*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*ret_fd < 0)
			return errno == ENOENT ? 0 : hr_err_sys(err, errno, "open %s", path);
		if (wait_for(h, *ret_fd, how, path, err) < 0)
			return -1;
		/* the directory may have been removed and made again meanwhile */
	} while (fstat(*ret_fd, &held) != 0 || stat(path, &named) != 0 ||
		 held.st_ino != named.st_ino || held.st_dev != named.st_dev);
	return 0;
}

bool
hr_box_is_held(const struct hr_box *b)
{
	HR_CLOSE int fd = open(b->side.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

int
hr_box_hold(const struct hr_box *b, int *ret_fd, struct hr_err *err)
{
	*ret_fd = -1;
	return b->side.dir != NULL ? hold(b->h, b->side.dir, LOCK_EX, ret_fd, err) : 0;
}

int
hr_box_no_snapshot(const char *tag, struct hr_err *err)
{
	return hr_err_set(err, HR_E_NOTFOUND,
	    "there is no snapshot \"%s\"; \"handrail snapshot ls\" lists them", tag);
}

int
hr_box_check_tag(const char *tag, struct hr_err *err)
{
	return hr_sid_valid(tag) && *tag != '.' ? 0
						: hr_err_set(err, HR_E_INVAL,
						      "invalid name of a snapshot, \"%.200s\": use "
						      "letters, digits, '_', '.' and "
						      "'-', and no dot as the first character",
						      tag);
}

/* Removes unfinished and removed snapshots that no command holds. One that stays, which is
 * reported, keeps no command from its work. */
static int
remove_leftovers(const struct hr_box_store *s, const struct hr_backend_host *h, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = opendir(s->path);
	const struct dirent *e;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		HR_FREE char *path = NULL;
		HR_FREE char *text = NULL;
		int locks[HR_BOX_LOCKS] = {-1, -1};
		struct hr_err why = {0};

		if (e->d_name[0] != '.')
			continue;
		path = hr_path_join(s->path, e->d_name);
		if (path == NULL)
			return hr_err_nomem(err);
		locks[0] = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (locks[0] < 0 && errno != ENOENT)
			(void)hr_err_sys(&why, errno, "open it");
		else if (locks[0] >= 0 && flock(locks[0], LOCK_EX | LOCK_NB) == 0)
			(void)hr_box_remove_tree(locks, path, &why);
		hr_fd_close(&locks[0]);
		if (why.code != HR_OK && h->log != NULL &&
		    hr_text_setf(
			&text, NULL, "The leftover %s of a snapshot stays: %s", path, why.msg) == 0)
			h->log(h->arg, text);
	}
	return d != NULL && errno == 0 ? 0 : hr_err_sys(err, errno, "read %s", s->path);
}

/* Opens the store, whose path has no links then. With `change` it is made where it is missing, and
 * leftovers of a killed command are removed. */
static int
open_it(struct hr_box_store *s, const struct hr_backend_host *h, bool change, struct hr_err *err)
{
	HR_FREE char *path = h->state_dir != NULL ? hr_path_join(h->state_dir, HR_BOX_STORE) : NULL;

	if (path == NULL)
		return h->state_dir != NULL
			   ? hr_err_nomem(err)
			   : hr_err_set(err, HR_E_UNSUPPORTED, "snapshots need a state directory");
	if (hr_state_directory(h->state_dir, change, err) < 0)
		return -1;
	if (change && mkdir(path, 0700) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "create %s", path);
	s->path = realpath(path, NULL);
	s->dir = s->path != NULL ? open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (s->dir < 0)
		return hr_err_sys(err, errno, "open %s", path);
	if (!change)
		return 0;
	hr_box_layers_clean(h);
	return remove_leftovers(s, h, err);
}

int
hr_box_store_open(struct hr_box_store *s, const struct hr_backend_host *h, struct hr_err *err)
{
	return open_it(s, h, true, err);
}

/* Chooses the name of an unfinished or removed entry. */
static int
choose_name(struct hr_box_store *s, struct hr_err *err)
{
	char digits[DIGITS + 1];

	if (hr_random_hex(digits, DIGITS, err) < 0)
		return -1;
	(void)snprintf(s->name, sizeof(s->name), ".new%s", digits);
	free(s->at);
	s->at = hr_path_join(s->path, s->name);
	return s->at != NULL ? 0 : hr_err_nomem(err);
}

int
hr_box_store_begin(struct hr_box_store *s, const struct hr_backend_host *h, struct hr_err *err)
{
	/* another command may take the entry for a leftover before it is held */
	do {
		if (choose_name(s, err) < 0)
			return -1;
		if (mkdir(s->at, 0700) != 0)
			return hr_err_sys(err, errno, "create %s", s->at);
		if (hold(h, s->at, LOCK_EX, &s->locks[0], err) < 0)
			return -1;
	} while (s->locks[0] < 0);
	return 0;
}

int
hr_box_store_hold(struct hr_box_store *s, const struct hr_backend_host *h, const char *tag,
    bool remove, struct hr_err *err)
{
	HR_FREE char *path = NULL;

	if (hr_box_check_tag(tag, err) < 0)
		return -1;
	if (open_it(s, h, remove, err) < 0)
		return s->path == NULL && err != NULL && err->sys == ENOENT
			   ? hr_box_no_snapshot(tag, err)
			   : -1;
	path = hr_path_join(s->path, tag);
	if (path == NULL)
		return hr_err_nomem(err);
	if (hold(h, path, remove ? LOCK_EX : LOCK_SH, &s->locks[0], err) < 0)
		return -1;
	return s->locks[0] >= 0 ? 0 : hr_box_no_snapshot(tag, err);
}

struct json_object *
hr_box_store_read(const char *store, const char *tag)
{
	HR_FREE char *dir = hr_path_join(store, tag);
	HR_FREE char *path = dir != NULL ? hr_path_join(dir, RECORD) : NULL;
	struct json_object *o = NULL;
	HR_BUF(text, HR_BOX_RECORD_MAX);

	if (path == NULL || hr_path_read(path, &text, NULL) < 0 ||
	    hr_json_decode(hr_buf_str(&text), text.len, &o, NULL) < 0)
		return NULL;
	return o;
}

int
hr_box_store_choose(
    const struct hr_box_store *s, const char *sid, const char *tag, char **ret, struct hr_err *err)
{
	struct stat st;
	int n;

	if (tag != NULL && fstatat(s->dir, tag, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return hr_err_set(err, HR_E_INVAL,
		    "there is a snapshot \"%s\" already: \"handrail snapshot rm %s\" removes it",
		    tag, tag);
	if (tag != NULL)
		return hr_text_set(ret, tag, err);
	for (n = 1; n < NUMBER_MAX; n++)
		if (hr_text_setf(ret, err, "%s-%d", sid, n) < 0)
			return -1;
		else if (fstatat(s->dir, *ret, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return hr_box_check_tag(*ret, err);
	return hr_err_set(err, HR_E_TOOLARGE, "the sandbox has %d snapshots: give a name", n - 1);
}

static int
write_record(const char *entry, const char *json, struct hr_err *err)
{
	HR_FREE char *record = hr_path_join(entry, RECORD);

	return record != NULL ? hr_path_write(record, json, strlen(json), 0600, err)
			      : hr_err_nomem(err);
}

int
hr_box_store_write(
    const struct hr_box_store *s, const char *tag, const char *json, struct hr_err *err)
{
	HR_FREE char *entry = hr_path_join(s->path, tag);

	return entry != NULL ? write_record(entry, json, err) : hr_err_nomem(err);
}

int
hr_box_store_finish(
    const struct hr_box_store *s, const char *tag, const char *json, struct hr_err *err)
{
	if (write_record(s->at, json, err) < 0)
		return -1;
	if (hr_path_rename_free(s->dir, s->name, s->dir, tag) == 0)
		return 1;
	return errno == EEXIST ? 0 : hr_err_sys(err, errno, "name the snapshot %s", tag);
}

int
hr_box_store_replace(struct hr_box_store *s, const struct hr_backend_host *h, const char *tag,
    const char *json, struct hr_err *err)
{
	int locks[HR_BOX_LOCKS] = {-1, -1}, r = -1;
	HR_FREE char *path = hr_path_join(s->path, tag);
	struct hr_err why = {0};

	if (path == NULL)
		return hr_err_nomem(err);
	if (hold(h, path, LOCK_EX, &locks[0], err) < 0)
		goto out;
	if (locks[0] < 0) {
		r = hr_box_store_finish(s, tag, json, err);
		goto out;
	}
	if (write_record(s->at, json, err) < 0)
		goto out;
	if (renameat2(s->dir, s->name, s->dir, tag, RENAME_EXCHANGE) != 0) {
		(void)hr_err_sys(err, errno, "replace the snapshot %s", tag);
		goto out;
	}
	r = 1;
	hr_fd_close(&s->locks[0]); /* the new snapshot can be used from here on */
	/* the next change tries again to remove the replaced one */
	if (hr_box_remove_tree(locks, s->at, &why) < 0 && h->log != NULL)
		h->log(h->arg, why.msg);
	hr_box_layers_clean(h);
out:
	hr_fd_close(&locks[0]);
	return r;
}

int
hr_box_store_remove(struct hr_box_store *s, const char *tag, struct hr_err *err)
{
	if (choose_name(s, err) < 0)
		return -1;
	if (hr_path_rename_free(s->dir, tag, s->dir, s->name) != 0)
		return hr_err_sys(err, errno, "remove the snapshot %s", tag);
	return hr_box_remove_tree(s->locks, s->at, err);
}
