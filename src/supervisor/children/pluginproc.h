/* hr_plugin, and what its process is made of: sockets, directory, user, environment, words. */
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
	struct hr_service svc; /* WAITING: for those it follows; READY: also without a process */
	bool lost;             /* the process before ended unasked; the next one is told */
	uint64_t ends;         /* of its process, unasked for */
	int action, http;      /* listening; -1: it takes none */
	struct hr_watch *action_use, *http_use;
	char *state_dir;
	int mark; /* of hr_plugins while it looks for a circle */
};

struct hr_plugins {
	struct hr_context *ctx;
	TAILQ_HEAD(hr_plugin_list, hr_plugin) list;
	struct hr_token token;                  /* shown while a plugin that has it is ready */
	void (*changed)(struct hr_plugins *ps); /* one of them has changed its state */
};

/* NULL: none of that name. */
struct hr_plugin *hr_plugins_find(const struct hr_plugins *ps, const char *name);

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
