/* Watches files: inotify reports changes, so the guard is idle without them. It checks after a
 * pause, since removals mostly come in groups. */
#include "config.h"

#include "supervisor/run/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/run/context.h"

#define PAUSE_MS 200  /* ms to pause before a check, after a change */
#define AGAIN_MS 5000 /* ms to pause after a check that found damage */
#define FILES_MAX 1024
#define GONE (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB)

void
hr_guard_init(struct hr_guard *g)
{
	memset(g, 0, sizeof(*g));
	g->fd = -1;
}

static int
remember(struct hr_guard *g, const char *path, struct hr_err *err)
{
	struct hr_guard_file *more;
	struct stat st = {0}; /* the first check finds a directory that is gone already */

	if (lstat(path, &st) != 0 && errno != ENOENT)
		return hr_err_sys(err, errno, "%s", path);
	if (g->n == FILES_MAX)
		return 0;
	more = realloc(g->files, (g->n + 1) * sizeof(*more));
	if (more == NULL)
		return hr_err_nomem(err);
	g->files = more;
	more[g->n].path = strdup(path);
	if (more[g->n].path == NULL)
		return hr_err_nomem(err);
	more[g->n].mode = st.st_mode;
	more[g->n++].ino = S_ISDIR(st.st_mode) ? st.st_ino : 0;
	return 0;
}

static int
watch(struct hr_guard *g, const char *path, struct hr_err *err)
{
	const int id = inotify_add_watch(g->fd, path, GONE | IN_ONLYDIR);

	if (id < 0)
		return hr_err_sys(err, errno, "inotify: %s", path);
	g->watches[g->nwatches++] = id;
	return 0;
}

/* Records a directory, and the sockets and directories in it; the name of a socket that is about to
 * replace another ends with "~". */
static int
remember_directory(struct hr_guard *g, const char *path, bool below, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = opendir(path);
	const struct dirent *e;
	struct stat st;

	if (d == NULL && errno == ENOENT)
		return remember(g, path, err);
	if (d == NULL)
		return hr_err_sys(err, errno, "%s", path);
	if (watch(g, path, err) < 0 || remember(g, path, err) < 0)
		return -1;
	while ((e = hr_dir_next(d)) != NULL) {
		HR_FREE char *name = hr_path_join(path, e->d_name);

		if (name == NULL)
			return hr_err_nomem(err);
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    e->d_name[strlen(e->d_name) - 1] == '~')
			continue;
		if ((S_ISSOCK(st.st_mode) || (below && S_ISDIR(st.st_mode))) &&
		    remember(g, name, err) < 0)
			return -1;
	}
	return 0;
}

/* Returns the first file that is missing or was replaced, or NULL if there is none. */
static const char *
changed(const struct hr_guard *g)
{
	struct stat st;
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (lstat(g->files[i].path, &st) != 0 || st.st_mode != g->files[i].mode ||
		    (S_ISDIR(st.st_mode) && st.st_ino != g->files[i].ino))
			return g->files[i].path;
	}
	return NULL;
}

static void
report_change(void *arg)
{
	struct hr_guard *g = arg;
	const char *path = changed(g);

	g->pending = path != NULL && hr_watch_arm(g->timer, AGAIN_MS, NULL) == 0;
	if (path != NULL)
		g->fn(g->arg, path);
}

static void
on_inotify(void *arg)
{
	struct hr_guard *g = arg;
	_Alignas(struct inotify_event) char text[4096];

	while (hr_fd_read(g->fd, text, sizeof(text)) > 0)
		;
	if (g->pending)
		return;
	g->pending = hr_watch_arm(g->timer, PAUSE_MS, NULL) == 0;
	if (!g->pending)
		report_change(g);
}

/* Watches the journal's parent for its removal only, since entries come and go in the journal. */
static int
remember_journal(struct hr_guard *g, const char *path, struct hr_err *err)
{
	HR_FREE char *parent = strndup(path, (size_t)(hr_path_leaf(path) - path));

	if (parent == NULL)
		return hr_err_nomem(err);
	return watch(g, parent, err) < 0 ? -1 : remember(g, path, err);
}

static int
remember_all(struct hr_guard *g, const struct hr_context *ctx, struct hr_err *err)
{
	static const char *const names[HR_GUARD_WATCHES - 2] = {"fcgi", "plugin", "shell"};
	HR_FREE char *shell = hr_rundir_file(&ctx->run, "shell/default");
	size_t i;

	if (shell == NULL)
		return hr_err_nomem(err);
	if (remember_directory(g, ctx->run.path, true, err) < 0)
		return -1;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		HR_FREE char *path = hr_rundir_file(&ctx->run, "%s", names[i]);

		if (path == NULL)
			return hr_err_nomem(err);
		if (remember_directory(g, path, false, err) < 0)
			return -1;
	}
	if (remember(g, shell, err) < 0)
		return -1;
	return remember_journal(g, ctx->journal, err);
}

int
hr_guard_open(struct hr_guard *g, const struct hr_context *ctx,
    void (*fn)(void *arg, const char *path), void *arg, struct hr_err *err)
{
	g->fn = fn;
	g->arg = arg;
	g->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (g->fd < 0)
		return hr_err_sys(err, errno, "inotify");
	if (remember_all(g, ctx, err) < 0)
		return -1;
	g->timer = hr_loop_timer(ctx->loop, report_change, g, err);
	if (g->timer == NULL)
		return -1;
	g->events = hr_loop_readable(ctx->loop, g->fd, on_inotify, g, err);
	g->pending = g->events != NULL && hr_watch_arm(g->timer, PAUSE_MS, err) == 0;
	return g->pending ? 0 : -1;
}

void
hr_guard_stop(struct hr_guard *g)
{
	hr_watch_free(g->events);
	hr_watch_free(g->timer);
	g->events = g->timer = NULL;
	while (g->nwatches > 0)
		(void)inotify_rm_watch(g->fd, g->watches[--g->nwatches]); /* may be gone already */
}

void
hr_guard_close(struct hr_guard *g)
{
	hr_guard_stop(g);
	hr_fd_close(&g->fd);
	while (g->n > 0)
		free(g->files[--g->n].path);
	free(g->files);
	hr_guard_init(g);
}
