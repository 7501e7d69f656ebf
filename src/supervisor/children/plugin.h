/* hr_plugin: one plugin: its sockets and its process.
 *
 * We own its listening sockets from start to end and hand them to each of its processes. While none
 * runs, the first connection is what starts one, so a use waits for the start and is never refused
 * for being early; when it cannot be started, whoever waits is told why. */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGIN_H
#define HR_SUPERVISOR_CHILDREN_PLUGIN_H

#include <stdbool.h>

#include "base/err.h"

struct hr_manifest;
struct hr_plugin;
struct hr_plugins;

/* all->ctx's settings decide; nothing is made yet. Takes m over. NULL: no memory. */
struct hr_plugin *hr_plugin_new(struct hr_plugins *all, struct hr_manifest *m, struct hr_err *err);
void hr_plugin_free(struct hr_plugin *p);

/* Makes sockets and directory, and looks for what the plugin needs. A failure is a state of the
 * plugin, -1 only when there is no memory for timers. */
int hr_plugin_open(struct hr_plugin *p, struct hr_err *err);
/* From off: it is to be started; hr_plugin_advance() does it. */
void hr_plugin_want(struct hr_plugin *p);
/* From off: starts it now, or when those it follows are ready. */
void hr_plugin_start(struct hr_plugin *p);
/* Another one has changed: starts if it waited for that. */
void hr_plugin_advance(struct hr_plugin *p);
/* No process any more, its sockets are closed. Ends in HR_SERVICE_STOPPED; fast: at once. */
void hr_plugin_stop(struct hr_plugin *p, bool fast);

#endif
