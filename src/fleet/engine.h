/* hr_fleet_engine: makes sandboxes for the fleet; a table of functions. Each function blocks until
 * it is done, and runs for one sandbox at a time, for several sandboxes in several threads.
 * Sandboxes are named by the id of their incarnation, so that a late call does not reach a newer
 * one. Repeating a finished call succeeds, because a restart after a crash repeats calls. A new
 * engine is a file with one `const struct hr_fleet_backing` and its line in backings[] (backing.c).
 * The engine brings its store: store.h. Members that may be NULL say so; new members are added at
 * the end. */
#ifndef HR_FLEET_ENGINE_H
#define HR_FLEET_ENGINE_H

#include "fleet/store/store.h"
#include "host/handrail.h"

#define HR_FLEET_LOGS 8192

typedef void hr_fleet_id_fn(void *arg, const char *id);
/* Takes a report; `what` is "die", "oom", "exited", "destroy" (the sandbox has ended), or anything
 * else. Returns non-zero to stop the watch. */
typedef int hr_fleet_news_fn(void *arg, const char *id, const char *what, const char *detail);

enum hr_fleet_pause {
	HR_PAUSE_USUAL,  /* as the settings say */
	HR_PAUSE_MEMORY, /* processes continue at the resume */
	HR_PAUSE_FILES,  /* processes end; the resume starts the server again with the files */
};

/* The calls that copies() takes, with their arguments. */
#define HR_COPIES_FORK "fork" /* {"ids": [ID], "freeze"?: BOOLEAN, "user"?: NAME} */
/* {"tag": NAME, "most"?: BYTES, "replaces"?: BOOLEAN}; answers its record; HR_E_TOOLARGE: it would
 * take more */
#define HR_COPIES_MAKE "snapshot"
#define HR_COPIES_LIST "snapshots"    /* id "", {"prefix": TEXT}; answers their records */
#define HR_COPIES_REMOVE "unsnapshot" /* id "", {"tag": NAME} */

struct hr_fleet_engine {
	/* Creates row->id as row->request says, after it has removed the remains of an interrupted
	 * call. A row in HR_FLEET_WARMING has no session, and its request no environment. Fills in
	 * at, server_key and the ports of *row. */
	int (*start)(void *self, struct hr_fleet_row *row, struct hr_err *err);
	/* Gives a warm sandbox, which runs at row->at, the parts of row->request beyond its shape,
	 * such as the environment. If NULL, or on an error, start() creates the sandbox again. */
	int (*claim)(void *self, struct hr_fleet_row *row, struct hr_err *err);
	int (*pause)(void *self, const char *id, enum hr_fleet_pause how, struct hr_err *err);
	/* Resumes the sandbox; may change at and the ports of *row. */
	int (*resume)(void *self, struct hr_fleet_row *row, struct hr_err *err);
	int (*stop)(void *self, const char *id, struct hr_err *err);
	/* Removes a sandbox that has died, but keeps the files of its workspace, from which a
	 * start() of the same id continues. Looks first, then calls sure(arg), and deletes only
	 * what it saw, and nothing if that returns false: another process may have started the id
	 * again. NULL: stop() is called, and the files are lost. */
	int (*clear)(
	    void *self, const char *id, bool (*sure)(void *arg), void *arg, struct hr_err *err);
	/* copies "running", "copying", "paused", "exited" or "gone" */
	int (*state)(void *self, const char *id, char ret[32], struct hr_err *err);
	/* Removes the half-done work of a killed process; called before all else. NULL: there is
	 * none. */
	int (*tidy)(void *self, struct hr_err *err);
	/* Lists all sandboxes, including unfinished ones and those that only the back-end knows. */
	int (*list)(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err);
	/* Reports changes of sandboxes; returns an error when it cannot. NULL: no reports. */
	int (*watch)(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_err *err);
	/* Reports whether the image exists, as JSON {"exists": ...}; the caller frees *ret_json. */
	int (*image)(void *self, const char *name, char **ret_json, struct hr_err *err);
	/* Returns the last output of a sandbox's server, about HR_FLEET_LOGS bytes of whole lines;
	 * the sandbox may have ended. The caller frees *ret_text. NULL: this engine does not know
	 * it. */
	int (*logs)(void *self, const char *id, char **ret_text, struct hr_err *err);
	/* Makes an image of the files in the directory of that build (build.h), within
	 * HR_FLEET_BUILD_S seconds. NULL: the engine makes none. */
	int (*build)(void *self, const char *id, struct hr_err *err);
	bool stays; /* true: none of its sandboxes can be paused */
	bool rules; /* true: a request may give the network of its sandbox rules */
	/* Puts the rules of row->request in force, in a sandbox that runs or is paused and was
	 * started with rules; on an error the earlier ones hold. NULL: if `rules` is false. */
	int (*network)(void *self, const struct hr_fleet_row *row, struct hr_err *err);
	/* Returns the newest refusals of the sandbox's network, about HR_FLEET_LOGS bytes of lines
	 * with one JSON object each (handrail-egress(8)). The caller frees *ret_text. NULL: as
	 * above. */
	int (*network_log)(void *self, const char *id, char **ret_text, struct hr_err *err);
	/* Does one of HR_COPIES_* for the sandbox `id` with these arguments as JSON. A fork makes
	 * branches of it, all or none, which start() then finds by the member "fork" of their
	 * requests. The caller frees *ret_json. HR_E_NOTFOUND: there is no such snapshot. NULL:
	 * this engine copies no files. */
	int (*copies)(void *self, const char *what, const char *id, const char *args,
	    char **ret_json, struct hr_err *err);
};

/* The options of the service with which an engine and its store are opened. */
struct hr_fleet_options {
	const char *dir; /* private directory of the service */
	/* settings as in handrail(1); core.runtime names the back-end */
	const struct hr_config *config;
	const char *const *environ;
	char *const *argv; /* arguments of the service, for engines that execute it again */
	int argc;
	const char *image; /* image of requests that name none; NULL: none */
	int64_t memory_mb; /* megabytes for a resource factor of 1; 0: no limit */
	int64_t cpu_percent;
	bool other_nginx; /* the service starts no nginx */
};

struct hr_fleet_backing {
	const char *name; /* value of --engine */
	/* Opens the store; `make` creates it if missing. HR_E_BUSY: another process holds it and
	 * cannot share it. HR_E_UNSUPPORTED: another version wrote it. */
	struct hr_store *(*open_store)(
	    const struct hr_fleet_options *o, bool make, struct hr_err *err);
	/* Opens the engine for the service, after the store, before threads start. *o outlives
	 * it. */
	int (*open_engine)(const struct hr_fleet_options *o, const struct hr_fleet_engine **ret,
	    void **ret_self, struct hr_err *err);
	/* Checks, in a process of its own while a service runs, whether a service with these
	 * options would start with the present store. Changes nothing in the store. */
	int (*check)(const struct hr_fleet_options *o, struct hr_err *err);
	/* Runs in a process that the engine started with "--call WHAT ID" after the service's
	 * options. Returns the exit status. NULL: the engine starts no such process. */
	int (*call)(const struct hr_fleet_options *o, const char *what, const char *id);
};

/* Makes a directory for secrets if it is missing, with mode 0700, and sets that mode on an existing
 * one. Refuses a directory that other accounts may write to. */
int hr_fleet_directory(const char *dir, struct hr_err *err);

/* Returns the engine of that name, or NULL. */
const struct hr_fleet_backing *hr_fleet_backing(const char *name);

/* the engine with SQLite and libhandrail, on this machine */
extern const struct hr_fleet_backing hr_fleet_local;
/* the engine with objects in a Kubernetes API server */
extern const struct hr_fleet_backing hr_fleet_kubernetes;

#endif
