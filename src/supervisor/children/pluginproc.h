/* hr_pluginproc: what a plugin's process is made of: sockets, directory, user, environment, words.
 */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGINPROC_H
#define HR_SUPERVISOR_CHILDREN_PLUGINPROC_H

#include <stdbool.h>

#include "base/err.h"

struct hr_manifest_http;
struct hr_plugin;
struct hr_plugins;

/* Descriptors of a plugin, beside 0 and 1 (/dev/null) and 2 (our log). */
#define HR_PLUGIN_READY_FD 3
#define HR_PLUGIN_ACTION_FD 4
#define HR_PLUGIN_HTTP_FD 5

/* Sockets, state directory, and a look for what the plugin needs. -1: why it cannot be had. */
int hr_plugin_prepare(struct hr_plugin *p, struct hr_err *err);
/* The link of that name in the directory of actions is as that plugin would make it that takes
 * them.
 */
bool hr_plugin_owns_link(const struct hr_plugins *ps, int dir, const char *type);
/* ready: the writing end of its readiness line. */
int hr_plugin_spawn(struct hr_plugin *p, int ready, struct hr_err *err);
/* How long it may take to be ready. */
long long hr_plugin_patience_s(const struct hr_plugin *p);
/* Where it listens by itself; 0: what its manifest names is no port. */
int hr_plugin_port(const struct hr_plugin *p, const struct hr_manifest_http *h);

#endif
