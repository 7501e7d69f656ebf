#include "config.h"

#include "plugins/envd/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/strv.h"
#include "base/tempfiles.h"
#include "e2b/entry.h"

#define MASK                                                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_MODIFY | IN_ATTRIB |             \
	    IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define BUCKETS 1024
#define READ_MAX 65536
#define TURN_MAX 4096   /* bytes of events that one turn of the loop handles */
#define FOUND_MAX 65536 /* names of all directories; more may be reported twice */

/* A directory of a watcher. Several watchers may have the same one. */
struct node {
	LIST_ENTRY(node) bucket, mine;
	struct envd_watcher *of;
	int wd;     /* -1: no longer watched, freed after the event */
	char *name; /* relative to the watched directory; "": itself */
	LIST_ENTRY(node) searched;
	struct hr_strv found; /* entries that were reported before their event came; sorted */
};

struct envd_watcher {
	LIST_ENTRY(envd_watcher) all;
	struct envd_watchers *set;
	LIST_HEAD(, node) nodes;
	char *path;
	struct envd_watch_options options;
	dev_t device; /* the directory's, whose file system was checked */
	envd_watch_fn *fn;
	void *arg;
};

struct envd_watchers {
	int fd;
	struct hr_watch *readable;
	LIST_HEAD(, envd_watcher) all;
	LIST_HEAD(bucket, node) buckets[BUCKETS];
	LIST_HEAD(, node) dropped, searched;
	unsigned count, dirs;
	size_t found;      /* names of all directories */
	uint32_t replaces; /* cookie of the last move of an upload's file; 0: none */
};

/* ---- directories ---- */

static struct bucket *
bucket_of(struct envd_watchers *ws, int wd)
{
	return &ws->buckets[(unsigned)wd % BUCKETS];
}

static bool
is_watched(struct envd_watchers *ws, int wd)
{
	const struct node *n;

	LIST_FOREACH(n, bucket_of(ws, wd), bucket)
	if (n->wd == wd)
		return true;
	return false;
}

/* Forgets which entries were reported before their event. */
static void
forget_found(struct node *n)
{
	if (n->found.n > 0) {
		LIST_REMOVE(n, searched);
		n->of->set->found -= n->found.n;
	}
	hr_strv_done(&n->found);
}

/* Notes an entry whose event may still come. */
static void
note_found(struct node *n, const char *name)
{
	struct envd_watchers *ws = n->of->set;
	size_t before = n->found.n;

	if (ws->found >= FOUND_MAX)
		return;
	hr_strv_add(&n->found, name);
	if (before == 0 && n->found.n > 0)
		LIST_INSERT_HEAD(&ws->searched, n, searched);
	ws->found += n->found.n - before;
}

/* Returns 0, or -1 with errno. */
static int
sort_found(struct node *n)
{
	if (n->found.n > 0)
		qsort(n->found.v, n->found.n, sizeof(*n->found.v), hr_strv_compare);
	if (!n->found.failed)
		return 0;
	errno = ENOMEM;
	return -1;
}

/* Takes a directory from its watcher; an event may still walk over the bucket. `gone`: the kernel
 * has removed the watch. */
static void
node_drop(struct node *n, bool gone)
{
	struct envd_watchers *ws = n->of->set;
	int wd = n->wd;

	forget_found(n);
	LIST_REMOVE(n, mine);
	LIST_INSERT_HEAD(&ws->dropped, n, mine);
	n->wd = -1;
	if (!gone && !is_watched(ws, wd))
		(void)inotify_rm_watch(ws->fd, wd); /* fails if the directory is gone */
}

static void
free_dropped(struct envd_watchers *ws)
{
	struct node *n;

	while ((n = LIST_FIRST(&ws->dropped)) != NULL) {
		LIST_REMOVE(n, bucket);
		LIST_REMOVE(n, mine);
		ws->dirs--;
		free(n->name);
		free(n);
	}
}

static bool
is_network(int fd)
{
	static const uint32_t types[] = {
	    0x6969, 0xff534d42, 0x517b, 0xfe534d42, 0x65735546}; /* NFS, CIFS, SMB, SMB2, FUSE */
	struct statfs fs;
	size_t i;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (i = 0; i < sizeof(types) / sizeof(*types); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

/* Watches an open directory. Returns NULL with errno. */
static struct node *
node_add(struct envd_watcher *w, int fd, const char *name)
{
	struct envd_watchers *ws = w->set;
	struct node *n;
	char proc[64];

	if (ws->dirs >= ENVD_WATCH_DIRS_MAX) {
		errno = ENOSPC;
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	if (n == NULL || (n->name = strdup(name)) == NULL) {
		free(n);
		errno = ENOMEM;
		return NULL;
	}
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n->of = w;
	n->wd = inotify_add_watch(ws->fd, proc, MASK);
	if (n->wd < 0) {
		free(n->name);
		free(n);
		return NULL;
	}
	ws->dirs++;
	LIST_INSERT_HEAD(bucket_of(ws, n->wd), n, bucket);
	LIST_INSERT_HEAD(&w->nodes, n, mine);
	return n;
}

static char *
below(const char *directory, const char *name)
{
	return directory[0] != '\0' ? hr_path_join(directory, name) : strdup(name);
}

/* Reports an event of an entry of the directory `name`. */
static void
report(struct envd_watcher *w, const char *name, const char *type)
{
	HR_FREE char *path = name[0] != '\0' ? hr_path_join(w->path, name) : strdup(w->path);

	if (path == NULL)
		w->fn(w->arg, "", "", NULL);
	else
		w->fn(w->arg, name[0] != '\0' ? name : ".", path, type);
}

/* Returns true for the name that a file has until it replaces another. */
static bool
is_upload(const char *name)
{
	return strncmp(name, HR_TEMPFILE_PREFIX, strlen(HR_TEMPFILE_PREFIX)) == 0;
}

/* Watches a directory and those below it. Reports what is in one that was made after the start
 * (`late`), since its events may have come before the watch. Takes fd. Returns -1 with errno. */
static int
tree_add(struct envd_watcher *w, int fd, const char *name, bool late, unsigned depth)
{
	HR_CLOSEDIR DIR *d = NULL;
	struct dirent *e;
	struct stat st;
	struct node *n = node_add(w, fd, name);
	int sub, r = n != NULL ? 0 : -1;

	if (r == 0 && w->options.recursive && depth < HR_PATH_DEPTH) {
		d = hr_dir_take(fd);
		fd = -1;
	}
	hr_fd_close(&fd);
	while (r == 0 && d != NULL && (e = hr_dir_next(d)) != NULL) {
		HR_FREE char *at = below(name, e->d_name);

		if (at == NULL) {
			errno = ENOMEM;
			return -1;
		}
		if (late && !is_upload(e->d_name)) {
			note_found(n, e->d_name);
			report(w, at, "CREATE");
			if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    S_ISREG(st.st_mode) && st.st_size > 0)
				report(w, at, "WRITE");
		}
		if (!hr_dir_is_directory(dirfd(d), e))
			continue;
		sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* the directory may be gone, or be a network mount that the client excluded */
		if (sub >= 0 && !w->options.network && fstat(sub, &st) == 0 &&
		    st.st_dev != w->device && is_network(sub))
			hr_fd_close(&sub);
		if (sub >= 0)
			r = tree_add(w, sub, at, late, depth + 1);
	}
	return r == 0 ? sort_found(n) : -1;
}

static void
tree_remove(struct envd_watcher *w, const char *name)
{
	struct node *n = LIST_FIRST(&w->nodes), *next;
	size_t len = strlen(name);

	for (; n != NULL; n = next) {
		next = LIST_NEXT(n, mine);
		if (strncmp(n->name, name, len) == 0 &&
		    (n->name[len] == '/' || n->name[len] == '\0'))
			node_drop(n, false);
	}
}

/* ---- events ---- */

/* Returns true if the event of a new entry was reported when its directory was found. */
static bool
was_found(const struct node *n, const char *name)
{
	return n->found.n > 0 &&
	       bsearch(&name, n->found.v, n->found.n, sizeof(*n->found.v), hr_strv_compare) != NULL;
}

static void
new_directory(struct envd_watcher *w, const char *name)
{
	HR_FREE char *path = hr_path_join(w->path, name);
	int fd =
	    path != NULL ? hr_plain_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : -1;

	if (path == NULL || (fd >= 0 && tree_add(w, fd, name, true, 0) < 0 && errno != ENOENT))
		w->fn(w->arg, "", "", NULL);
}

/* Returns true for events of a file that an upload writes before it gives the file its name. */
static bool
is_unfinished(const struct envd_watcher *w, const char *name, const struct inotify_event *e)
{
	HR_FREE char *path = e->len > 0 && e->name[0] == '#' ? hr_path_join(w->path, name) : NULL;
	struct stat st;

	/* the kernel calls a file without a name by '#' and its number */
	if (path != NULL && (e->mask & (IN_ATTRIB | IN_MODIFY)) != 0)
		return lstat(path, &st) < 0;
	return e->len > 0 && is_upload(e->name);
}

/* Handles an event of one watcher's directory. */
static void
node_event(struct node *n, const struct inotify_event *e)
{
	static const struct {
		uint32_t mask;
		const char *type;
	} types[] = {{IN_CREATE | IN_MOVED_TO, "CREATE"}, {IN_MODIFY, "WRITE"},
	    {IN_DELETE | IN_DELETE_SELF, "REMOVE"}, {IN_MOVED_FROM | IN_MOVE_SELF, "RENAME"},
	    {IN_ATTRIB, "CHMOD"}};
	struct envd_watcher *w = n->of;
	bool of_itself = e->len == 0, directory = (e->mask & IN_ISDIR) != 0;
	HR_FREE char *name = of_itself ? strdup(n->name) : below(n->name, e->name);
	size_t i;

	if (name == NULL) {
		w->fn(w->arg, "", "", NULL);
		return;
	}
	/* the directory above has reported the same */
	if (of_itself && n->name[0] != '\0')
		return;
	if ((e->mask & IN_CREATE) != 0 && was_found(n, e->name))
		return;
	if (is_unfinished(w, name, e)) {
		w->set->replaces = (e->mask & IN_MOVED_FROM) != 0 ? e->cookie : 0;
		return;
	}
	if ((e->mask & IN_MOVED_TO) != 0 && e->cookie == w->set->replaces) {
		report(w, name, "WRITE"); /* an upload has replaced the file */
		return;
	}
	/* a directory that is removed is empty, and IN_IGNORED follows from its own watch */
	if (directory && (e->mask & IN_MOVED_FROM) != 0 && w->options.recursive)
		tree_remove(w, name);
	for (i = 0; i < sizeof(types) / sizeof(*types); i++)
		if ((e->mask & types[i].mask) != 0)
			report(w, name, types[i].type);
	if (directory && (e->mask & (IN_MOVED_TO | IN_CREATE)) != 0 && w->options.recursive)
		new_directory(w, name);
}

static void
event(struct envd_watchers *ws, const struct inotify_event *e)
{
	struct envd_watcher *w;
	struct node *n, *next;

	if ((e->mask & IN_Q_OVERFLOW) != 0) {
		LIST_FOREACH(w, &ws->all, all)
		w->fn(w->arg, "", "", NULL);
		return;
	}
	for (n = LIST_FIRST(bucket_of(ws, e->wd)); n != NULL; n = next) {
		next = LIST_NEXT(n, bucket);
		if (n->wd != e->wd)
			continue;
		if ((e->mask & IN_IGNORED) != 0)
			node_drop(n, true);
		else
			node_event(n, e);
	}
	free_dropped(ws);
}

/* Returns the bytes of the events that wait, all of them whole. */
static size_t
waiting(const struct envd_watchers *ws)
{
	int n = 0;

	return ioctl(ws->fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

/* Handles events of at most `max` bytes. Returns their bytes; 0: none came. */
static size_t
read_events(struct envd_watchers *ws, size_t max)
{
	_Alignas(struct inotify_event) char buffer[READ_MAX];
	const struct inotify_event *e;
	ssize_t n = hr_fd_read(ws->fd, buffer, max < sizeof(buffer) ? max : sizeof(buffer));
	char *p;

	for (p = buffer; n > 0 && p < buffer + n; p += sizeof(*e) + e->len) {
		e = (const struct inotify_event *)(const void *)p;
		event(ws, e);
	}
	if (waiting(ws) == 0) /* all events up to now have come */
		while (!LIST_EMPTY(&ws->searched))
			forget_found(LIST_FIRST(&ws->searched));
	return n > 0 ? (size_t)n : 0;
}

void
envd_watchers_drain(struct envd_watchers *ws)
{
	size_t left = waiting(ws), n;

	/* new events may come as fast as they are handled */
	for (; left > 0 && (n = read_events(ws, left)) > 0; left -= n)
		;
}

/* Handles some events: other calls must get their turns while a program makes more of them. */
static void
on_readable(void *arg)
{
	(void)read_events(arg, TURN_MAX);
}

/* ---- watchers ---- */

struct envd_watchers *
envd_watchers_new(struct hr_loop *loop, struct hr_err *err)
{
	struct envd_watchers *ws = calloc(1, sizeof(*ws));

	if (ws == NULL) {
		(void)hr_err_nomem(err);
		return NULL;
	}
	ws->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (ws->fd < 0)
		(void)hr_err_sys(err, errno, "inotify");
	else
		ws->readable = hr_loop_readable(loop, ws->fd, on_readable, ws, err);
	if (ws->readable != NULL)
		return ws;
	envd_watchers_free(ws);
	return NULL;
}

void
envd_watchers_free(struct envd_watchers *ws)
{
	if (ws == NULL)
		return;
	while (!LIST_EMPTY(&ws->all))
		envd_watcher_close(LIST_FIRST(&ws->all));
	hr_watch_free(ws->readable);
	hr_fd_close(&ws->fd);
	free(ws);
}

/* Opens the directory. Returns -1 with *e set. */
static int
open_directory(const char *path, bool network, struct hr_connect_error *e)
{
	int fd = hr_plain_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK), sys = errno;
	HR_BUF(why, 256);

	hr_e2b_entry_errno(&why, sys);
	if (fd < 0 && sys == ENOENT)
		return hr_connect_fail(e, HR_CONNECT_NOT_FOUND, "path %s not found: stat %s: %s",
		    path, path, hr_buf_str(&why));
	if (fd < 0 && sys == ENOTDIR && access(path, F_OK) == 0) /* the original's text */
		return hr_connect_fail(
		    e, HR_CONNECT_INVALID_ARGUMENT, "path %s not a directory: %%!w(<nil>)", path);
	if (fd < 0)
		return hr_connect_fail(e, HR_CONNECT_INTERNAL,
		    "error statting path %s: stat %s: %s", path, path, hr_buf_str(&why));
	if (network || !is_network(fd))
		return fd;
	hr_fd_close(&fd);
	return hr_connect_fail(
	    e, HR_CONNECT_INVALID_ARGUMENT, "cannot watch path on network filesystem: %s", path);
}

struct envd_watcher *
envd_watcher_open(struct envd_watchers *ws, const char *path, const struct envd_watch_options *o,
    envd_watch_fn *fn, void *arg, struct hr_connect_error *e)
{
	int fd = open_directory(path, o->network, e);
	struct envd_watcher *w = fd >= 0 ? calloc(1, sizeof(*w)) : NULL;
	HR_BUF(why, 256);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (w == NULL || ws->count >= ENVD_WATCHERS_MAX) {
		(void)hr_connect_fail(e, HR_CONNECT_RESOURCE_EXHAUSTED,
		    "there are %d watchers: remove some", ENVD_WATCHERS_MAX);
		free(w);
		hr_fd_close(&fd);
		return NULL;
	}
	w->set = ws;
	w->options = *o;
	w->fn = fn;
	w->arg = arg;
	w->device = fstat(fd, &st) == 0 ? st.st_dev : 0;
	w->path = strdup(path);
	LIST_INSERT_HEAD(&ws->all, w, all);
	ws->count++;
	/* events of other watchers' earlier time are not this one's */
	envd_watchers_drain(ws);
	errno = ENOMEM;
	if (w->path != NULL && tree_add(w, fd, "", false, 0) == 0)
		return w;
	hr_e2b_entry_errno(&why, errno);
	(void)hr_connect_fail(e,
	    errno == ENOSPC ? HR_CONNECT_RESOURCE_EXHAUSTED : HR_CONNECT_INTERNAL,
	    "error adding path %s to watcher: %s", path, hr_buf_str(&why));
	envd_watcher_close(w);
	return NULL;
}

void
envd_watcher_close(struct envd_watcher *w)
{
	while (!LIST_EMPTY(&w->nodes))
		node_drop(LIST_FIRST(&w->nodes), false);
	free_dropped(w->set);
	LIST_REMOVE(w, all);
	w->set->count--;
	free(w->path);
	free(w);
}
