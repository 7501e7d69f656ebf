/* hr_fleet_engine: who makes sandboxes for the fleet, as a table of functions. Each blocks for as
 * long as it takes and is called for one sandbox at a time, of several from several threads. A
 * sandbox is meant by the id of its incarnation, so that what comes late meets nothing newer. What
 * is done twice is a success. */
#ifndef HR_FLEET_ENGINE_H
#define HR_FLEET_ENGINE_H

#include "fleet/store.h"
#include "host/handrail.h"

typedef void hr_fleet_id_fn(void *arg, const char *id);
/* what: "die", "oom", "exited" and so on; non-zero: enough. */
typedef int hr_fleet_news_fn(void *arg, const char *id, const char *what, const char *detail);

struct hr_fleet_engine {
	const char *name;
	/* Makes row->id as row->request says; what an interrupted call left is cleared away first.
	 * Fills at, server_key and the ports of *row. */
	int (*start)(void *self, struct hr_fleet_row *row, struct hr_error *err);
	int (*pause)(void *self, const char *id, struct hr_error *err);
	int (*resume)(void *self, const char *id, struct hr_error *err);
	int (*stop)(void *self, const char *id, struct hr_error *err);
	/* "running", "paused", "exited", "gone" */
	int (*state)(void *self, const char *id, char ret[32], struct hr_error *err);
	/* Clears away what a process left half done that was killed; before all else. NULL:
	 * nothing. */
	int (*tidy)(void *self, struct hr_error *err);
	/* All that are there, begun ones as well. */
	int (*list)(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_error *err);
	/* Tells of what happens to them until it cannot: an error. */
	int (*watch)(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_error *err);
	/* Is there such an image? As JSON, {"exists": ...}; the caller frees. */
	int (*image)(void *self, const char *name, char **ret_json, struct hr_error *err);
};

/* The back-ends of libhandrail on this machine. */
struct hr_fleet_local {
	const struct hr_config *config; /* core.runtime says which of them */
	const char *dir;                /* where they are recorded */
	const char *work;               /* of kinds on this machine's files: their workspaces */
	const char *const *environ;
	const char *image; /* for requests that name none; NULL: none */
	int64_t memory_mb; /* for a resource factor of 1; 0: no limit */
	int64_t cpu_percent;
};
extern const struct hr_fleet_engine hr_fleet_local;

#endif
