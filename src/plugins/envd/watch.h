/* envd_watch: watches directories, with those below if wanted, also ones that are made later. All
 * watchers share one inotify instance, of which an account has few. */
#ifndef HR_PLUGINS_ENVD_WATCH_H
#define HR_PLUGINS_ENVD_WATCH_H

#include <stdbool.h>

#include "e2b/connect.h"

#define ENVD_WATCHERS_MAX 256
#define ENVD_WATCH_DIRS_MAX 65536 /* limit of all watchers together */

struct hr_loop;
struct envd_watchers;
struct envd_watcher;

/* An event: `name` is relative to the watched directory, "." is itself; `path` is absolute; `type`
 * is "CREATE" and the like. type NULL: events were lost. The callback must not close a watcher. */
typedef void envd_watch_fn(void *arg, const char *name, const char *path, const char *type);

struct envd_watchers *envd_watchers_new(struct hr_loop *loop, struct hr_err *err);
void envd_watchers_free(struct envd_watchers *ws); /* Frees all watchers, too. */

struct envd_watch_options {
	bool recursive;
	bool network; /* network file systems are allowed, whose other clients cause no events */
};

/* Watches a cleaned path. Returns NULL with *e set. */
struct envd_watcher *envd_watcher_open(struct envd_watchers *ws, const char *path,
    const struct envd_watch_options *o, envd_watch_fn *fn, void *arg, struct hr_connect_error *e);
void envd_watcher_close(struct envd_watcher *w);
/* Delivers all events that have happened so far, and not those that happen meanwhile. */
void envd_watchers_drain(struct envd_watchers *ws);

#endif
