/* Internals of hr_plugin, and its process: sockets, directory, user, environment, arguments. */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGINPROC_H
#define HR_SUPERVISOR_CHILDREN_PLUGINPROC_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/err.h"
#include "supervisor/children/manifest.h"
#include "supervisor/children/service.h"
#include "supervisor/run/token.h"

struct hr_context;
struct hr_plugins;
struct hr_watch;

struct hr_plugin {
	TAILQ_ENTRY(hr_plugin) entry;
	struct hr_plugins *all;
	struct hr_manifest m;
	struct hr_service svc; /* WAITING: for other plugins; READY: possibly without a process */
	bool lost;             /* the last process ended by itself; the next one is informed */
	bool ran;              /* a plugin that outlives its process must be restarted at once */
	uint64_t ends;         /* number of unexpected exits */
	int action, http;      /* listening sockets; -1: none */
	int direct;            /* the same, at direct_path; -1: none */
	char *direct_path;
	int sums; /* memory file of hr_plugins_keys(); -1: none */
	struct hr_watch *action_use, *http_use, *direct_use;
	char *state_dir;
	int mark; /* mark for the search for a cycle in hr_plugins */
};

struct hr_plugins {
	struct hr_context *ctx;
	TAILQ_HEAD(hr_plugin_list, hr_plugin) list;
	struct hr_token token; /* published while the plugin that owns it is ready */
	void (*changed)(struct hr_plugins *ps); /* called when a plugin has changed its state */
};

/* Returns NULL if there is no plugin of that name. */
struct hr_plugin *hr_plugins_find(const struct hr_plugins *ps, const char *name);

/* a plugin's descriptors, besides 0 and 1 (/dev/null) and 2 (the server's log) */
#define HR_PLUGIN_READY_FD 3
#define HR_PLUGIN_ACTION_FD 4
#define HR_PLUGIN_HTTP_FD 5
#define HR_PLUGIN_SUMS_FD 6
#define HR_PLUGIN_DIRECT_FD 7

/* Makes sockets and state directory, and checks the plugin's needs. Returns -1 with the reason if
 * the plugin is not available. */
int hr_plugin_prepare(struct hr_plugin *p, struct hr_err *err);
/* Returns true if the link of that name in the directory of actions is the one that its present
 * plugin makes. */
bool hr_plugin_owns_link(const struct hr_plugins *ps, int dir, const char *type);
/* Spawns the process. `ready` is the write end of the pipe for its readiness line. */
int hr_plugin_spawn(struct hr_plugin *p, int ready, struct hr_err *err);
/* Returns how long it may take to be ready, in seconds. */
long long hr_plugin_patience_s(const struct hr_plugin *p);
/* Returns the port on which the plugin listens itself; 0 if its manifest's value is not a port. */
int hr_plugin_port(const struct hr_plugin *p, const struct hr_manifest_http *h);

#endif
