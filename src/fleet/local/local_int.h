/* The parts of the engine "local", which runs sandboxes on this machine. */
#ifndef HR_FLEET_LOCAL_LOCAL_INT_H
#define HR_FLEET_LOCAL_LOCAL_INT_H

#include "fleet/engine.h"
#include "host/handrail.h"

struct json_object;

/* ---- localconfig.c: settings ---- */

/* The place of the engine's sandboxes on this machine. */
struct hr_local_place {
	const struct hr_fleet_options *o;
	char *dir; /* directory of the records */
	/* directory of the workspaces of back-ends that use this machine's files; NULL for
	 * others */
	char *work;
	char *sockets; /* directory of the servers' Unix sockets; NULL: they have addresses */
	bool only;     /* no server has an address */
};

/* Returns the service's settings with those of the request `q` of a row. The caller frees them.
 * NULL: *err is set. */
struct hr_config *hr_local_config(const struct hr_local_place *l, const struct hr_fleet_row *row,
    struct json_object *q, struct hr_err *err);

/* ---- localcopies.c: forks and snapshots of boxes ---- */

struct hr_local_copies {
	const struct hr_fleet_options *o;
	const char *dir; /* directory of the records */
	const char *const *environ;
};

/* Implements copies() of struct hr_fleet_engine. */
int hr_local_copies(const struct hr_local_copies *l, const char *what, const char *id,
    const char *args, char **ret_json, struct hr_err *err);

/* ---- localimage.c: images of a Docker Engine; other back-ends have none ---- */

/* Implements image() and build() of struct hr_fleet_engine. */
int hr_local_image(
    const struct hr_fleet_options *o, const char *name, char **ret_json, struct hr_err *err);
int hr_local_build(const struct hr_fleet_options *o, const char *id, struct hr_err *err);

/* ---- locallog.c: ends of logs, read in a process of their own, which ends after some seconds ----
 * The functions return 0 with *ret_text, which the caller frees, or -1 with *err set. */

/* Reads the newest lines of the server's log. */
int hr_local_log(struct hr_sandbox *s, char **ret_text, struct hr_err *err);
/* Reads the newest refusals of the sandbox's network. */
int hr_local_network_log(struct hr_sandbox *s, char **ret_text, struct hr_err *err);

/* ---- localrules.c: rules of a sandbox's network ---- */

/* Puts the rules of the row in force, unless they are already. Returns 0, or -1 with *err set. */
int hr_local_set_rules(struct hr_sandbox *s, const struct hr_fleet_row *row, struct hr_err *err);
/* Returns true if a client may choose the rules of a container's network: rules take the place of
 * the operator's own settings for networks, and do not hold beside them. */
bool hr_local_may_have_rules(const struct hr_config *c);
/* Returns false, after it has logged the reason, if the back-end can never hold rules. An Engine
 * that does not answer is no reason: it is asked again before each sandbox with rules. */
bool hr_local_rules_hold(const struct hr_fleet_options *o);

/* ---- localstray.c: recorded sandboxes, and strays, which no record names, because the process
 * that made them was killed before it wrote one ---- */

/* Lists the sandboxes that are recorded in dir. */
int hr_local_list_recorded(const char *dir, hr_fleet_id_fn *fn, void *arg, struct hr_err *err);
/* Lists sandboxes without a record that were made with that directory; for a back-end with
 * HR_KIND_OF_STATE. */
int hr_local_list_strays(const struct hr_fleet_options *o, const char *dir, hr_fleet_id_fn *fn,
    void *arg, struct hr_err *err);
/* Removes the stray with that id; succeeds if there is none. */
int hr_local_end_stray(
    const struct hr_fleet_options *o, const char *dir, const char *id, struct hr_err *err);

#endif
