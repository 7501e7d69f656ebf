/* hr_plugin: runs a plugin: its sockets and its process. The supervisor owns the listening sockets
 * from start to end and passes them to each process. While none runs, the first connection starts
 * one, so an early client waits for the start and is not refused; if it cannot be started, waiting
 * clients get the reason. */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGIN_H
#define HR_SUPERVISOR_CHILDREN_PLUGIN_H

#include <stdbool.h>

#include "base/err.h"

struct hr_manifest;
struct hr_plugin;
struct hr_plugins;

/* Makes a plugin by the settings of all->ctx; creates no files yet. Takes ownership of m. Returns
 * NULL without memory. */
struct hr_plugin *hr_plugin_new(struct hr_plugins *all, struct hr_manifest *m, struct hr_err *err);
void hr_plugin_free(struct hr_plugin *p);

/* Makes sockets and directory, and checks the plugin's needs. A failure is a state of the plugin;
 * -1 is returned only if there is no memory for timers. */
int hr_plugin_open(struct hr_plugin *p, struct hr_err *err);
/* Requests a start from OFF, which hr_plugin_advance() does. */
void hr_plugin_want(struct hr_plugin *p);
/* Starts the plugin from OFF, now or once the plugins that it follows are ready. */
void hr_plugin_start(struct hr_plugin *p);
/* Starts a plugin that waited for another plugin's change; call after each change. */
void hr_plugin_advance(struct hr_plugin *p);
/* Ends the plugin's process and closes its sockets; the state becomes HR_SERVICE_STOPPED. With
 * `fast` it ends at once. */
void hr_plugin_stop(struct hr_plugin *p, bool fast);

#endif
