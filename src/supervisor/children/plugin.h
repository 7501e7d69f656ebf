/* hr_plugin: one plugin: its sockets and its process.
 *
 * We own its listening sockets from start to end and hand them to each of its processes. While none
 * runs, the first connection is what starts one, so a use waits for the start and is never refused
 * for being early; when it cannot be started, whoever waits is told why. */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGIN_H
#define HR_SUPERVISOR_CHILDREN_PLUGIN_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/err.h"
#include "supervisor/children/child.h"
#include "supervisor/children/manifest.h"
#include "supervisor/children/readyline.h"

struct hr_plugins;
struct hr_watch;

enum hr_plugin_state {
	HR_PLUGIN_OFF,         /* its first use starts it */
	HR_PLUGIN_WAITING,     /* to be started when those it follows are ready */
	HR_PLUGIN_STARTING,    /* runs, has not said that it is ready */
	HR_PLUGIN_READY,       /* also: there is no process to it */
	HR_PLUGIN_DOWN,        /* ended; starts again when its time has come */
	HR_PLUGIN_FAILED,      /* did not start: uses are refused until its time has come */
	HR_PLUGIN_UNAVAILABLE, /* for good: something is missing */
	HR_PLUGIN_STOPPING,
	HR_PLUGIN_STOPPED,
};

struct hr_plugin {
	TAILQ_ENTRY(hr_plugin) entry;
	struct hr_plugins *all;
	struct hr_manifest m;
	enum hr_plugin_state state;
	char reason[240]; /* why it is not ready; "" otherwise */
	bool never;       /* it has said so */
	bool lost;        /* the process before ended unasked; the next one is told */
	uint64_t ends;    /* of its process, unasked for */
	struct hr_child child;
	struct hr_readyline line;
	struct hr_backoff backoff;
	int action, http; /* listening; -1: it takes none */
	struct hr_watch *action_use, *http_use;
	struct hr_watch *patience, *restart;
	char *state_dir;
	int mark; /* of hr_plugins while it looks for a circle */
};

/* all->server's settings decide; nothing is made yet. Takes m over. NULL: no memory. */
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
/* No process any more, its sockets are closed. Ends in HR_PLUGIN_STOPPED; fast: at once. */
void hr_plugin_stop(struct hr_plugin *p, bool fast);
bool hr_plugin_has_process(const struct hr_plugin *p);

const char *hr_plugin_state_text(const struct hr_plugin *p);

#endif
