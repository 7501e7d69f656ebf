/* hr_fleet_engine: who makes sandboxes for the fleet, as a table of functions. Each blocks for as
 * long as it takes and is called for one sandbox at a time, of several from several threads. A
 * sandbox is meant by the id of its incarnation, so that what comes late meets nothing newer. What
 * is done twice is a success: after a crash it is.
 *
 * A new engine is a file with one `const struct hr_fleet_backing` and its line in backings[]
 * (backing.c). Who keeps the facts comes with it: store.h. Members that may be NULL say so; others
 * may come behind them. */
#ifndef HR_FLEET_ENGINE_H
#define HR_FLEET_ENGINE_H

#include "fleet/store/store.h"
#include "host/handrail.h"

#define HR_FLEET_LOGS 8192

typedef void hr_fleet_id_fn(void *arg, const char *id);
/* what: "die", "oom", "exited", "destroy" (it has ended), or something else; non-zero: enough. */
typedef int hr_fleet_news_fn(void *arg, const char *id, const char *what, const char *detail);

struct hr_fleet_engine {
	/* Makes row->id as row->request says; what an interrupted call left is cleared away first.
	 * A row in HR_FLEET_WARMING has no session, and its request no environment. Fills at,
	 * server_key and the ports of *row. */
	int (*start)(void *self, struct hr_fleet_row *row, struct hr_err *err);
	/* Gives a warm one, which runs at row->at, what row->request has beyond its shape, such as
	 * the environment. NULL, or an error: it is made anew by start(). */
	int (*claim)(void *self, struct hr_fleet_row *row, struct hr_err *err);
	int (*pause)(void *self, const char *id, struct hr_err *err);
	/* *row's at and ports may be others afterwards. */
	int (*resume)(void *self, struct hr_fleet_row *row, struct hr_err *err);
	int (*stop)(void *self, const char *id, struct hr_err *err);
	/* Clears away a sandbox that has died, but not the files of its workspace, with which a
	 * start() of the same id continues. It looks first, then calls sure(arg), and deletes only
	 * what it saw, and nothing where that returns false: another process may have started the
	 * id again. NULL: stop() is called, and the files are lost. */
	int (*clear)(
	    void *self, const char *id, bool (*sure)(void *arg), void *arg, struct hr_err *err);
	/* "running", "paused", "exited", "gone" */
	int (*state)(void *self, const char *id, char ret[32], struct hr_err *err);
	/* Clears away what a process left half done that was killed; before all else. NULL:
	 * nothing. */
	int (*tidy)(void *self, struct hr_err *err);
	/* All that are there, begun ones and those that only the kind knows as well. */
	int (*list)(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err);
	/* Tells of what happens to them until it cannot: an error. NULL: nothing is told. */
	int (*watch)(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_err *err);
	/* Is there such an image? As JSON, {"exists": ...}; the caller frees. */
	int (*image)(void *self, const char *name, char **ret_json, struct hr_err *err);
	/* What its server printed last, some HR_FLEET_LOGS bytes of whole lines, of one that may
	 * have ended; the caller frees. NULL: not known here. */
	int (*logs)(void *self, const char *id, char **ret_text, struct hr_err *err);
	/* Makes an image of what is in the directory of that build (build.h), for HR_FLEET_BUILD_S
	 * seconds at most. NULL: it makes none. */
	int (*build)(void *self, const char *id, struct hr_err *err);
	bool stays; /* none of its sandboxes can be paused */
};

/* What an engine and its store are opened with: options of the service. */
struct hr_fleet_options {
	const char *dir;                /* of the service's own, private */
	const struct hr_config *config; /* handrail(1)'s settings; core.runtime: the kind */
	const char *const *environ;
	char *const *argv; /* of the service, for engines that call it again */
	int argc;
	const char *image; /* for requests that name none; NULL: none */
	int64_t memory_mb; /* for a resource factor of 1; 0: no limit */
	int64_t cpu_percent;
};

struct hr_fleet_backing {
	const char *name; /* of --engine */
	/* make: a new one where there is none. HR_E_BUSY: another process has it, and may not share
	 * it. HR_E_UNSUPPORTED: it was written by another version. */
	struct hr_store *(*open_store)(
	    const struct hr_fleet_options *o, bool make, struct hr_err *err);
	/* For the service; after the store, before there are threads. *o stays. */
	int (*open_engine)(const struct hr_fleet_options *o, const struct hr_fleet_engine **ret,
	    void **ret_self, struct hr_err *err);
	/* In a process of its own, while a service goes on: would another one with these options
	 * start with what is kept now? Changes nothing that is kept. */
	int (*check)(const struct hr_fleet_options *o, struct hr_err *err);
	/* In a process that the engine started with "--call WHAT ID" behind the service's options:
	 * the exit status. NULL: it starts none. */
	int (*call)(const struct hr_fleet_options *o, const char *what, const char *id);
};

/* Makes a directory for secrets where it is missing, with mode 0700, and gives one that exists that
 * mode. Refuses a directory that others may write to. */
int hr_fleet_directory(const char *dir, struct hr_err *err);

/* By its name; NULL: there is none of it. */
const struct hr_fleet_backing *hr_fleet_backing(const char *name);

extern const struct hr_fleet_backing hr_fleet_local; /* SQLite and libhandrail, on this machine */
extern const struct hr_fleet_backing hr_fleet_kubernetes; /* objects of an API server */

#endif
