/* Declares internals of the back-end "docker": a container, and calls of its Docker Engine. */
#ifndef HR_HOST_DOCKER_DOCKER_INT_H
#define HR_HOST_DOCKER_DOCKER_INT_H

#include <stdbool.h>
#include <time.h>

#include <json-c/json.h>

#include "host/docker/engine.h"
#include "host/records/portlock.h"
#include "host/sidecar/egress.h"
#include "host/handle.h"

struct hr_docker {
	const struct hr_backend_host *h;
	struct hr_engine engine;
	bool engine_there; /* the Engine was asked for its version */
	char *name, *id, *url, *key;
	bool recorded; /* the id comes from a record of this machine */
	int port, vscode_port, app_ports[2];
	struct hr_portlock locks[4];
	struct hr_sidecars side; /* side.dir is NULL if the network has no rules */
};

/* Connects to the Engine at first use. */
int hr_docker_engine(struct hr_docker *d, struct hr_err *err);
/* Returns the container's id where it is known, its name otherwise. */
const char *hr_docker_ref(const struct hr_docker *d);
/* Makes a call about the container: "/containers/REF" and `what`. ret may be NULL; otherwise the
 * caller puts *ret. */
int hr_docker_call(struct hr_docker *d, const char *method, const char *what,
    struct json_object **ret, struct hr_err *err);

/* Derives the URL from d->port. */
int hr_docker_set_url(struct hr_docker *d, struct hr_err *err);
/* Waits until the log, from `since` (Unix time in the Engine's format) on, has the line by which a
 * server reports that it is ready. If the container ends instead, the error has its last lines. */
int hr_docker_wait_ready(struct hr_docker *d, const char *since, struct hr_err *err);
/* Creates and starts the container; one that does not become ready is removed. */
int hr_docker_make(struct hr_docker *d, struct hr_err *err);
/* Joins sandbox.additional_networks; logs a network that refuses. */
void hr_docker_join_networks(struct hr_docker *d);

/* ---- a network with rules (rules.c); all of it does nothing for a container without ---- */

/* Checks the settings before anything is made. */
int hr_docker_check_rules(const struct hr_backend_host *h, struct hr_err *err);
/* Sets d->side.dir and makes the files that a new container sees. */
int hr_docker_prepare_rules(struct hr_docker *d, struct hr_err *err);
/* Starts the broker of a running container, unless that runs already. */
int hr_docker_keep_rules(struct hr_docker *d, struct hr_err *err);
/* Opens the socket of a server that is ready. */
int hr_docker_open_socket(struct hr_docker *d, struct hr_err *err);
/* Starts the broker and opens the socket if the container runs; logs why the broker does not start.
 */
void hr_docker_find_rules(struct hr_docker *d);
/* Ends the processes for a container that has stopped, before it starts again. */
void hr_docker_stop_rules(const struct hr_docker *d);
/* Ends them for good, and removes their files. */
void hr_docker_end_rules(struct hr_docker *d);
void hr_docker_forget_rules(struct hr_docker *d);

/* Implements the table's call. */
int hr_docker_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);
int hr_docker_stats(void *self, char **ret_json, struct hr_err *err);
int hr_docker_exec(void *self, const char *const *argv, int *ret_status, struct hr_err *err);
int hr_docker_web_url(void *self, char **ret, struct hr_err *err);
int hr_docker_vscode_url(void *self, char **ret, struct hr_err *err);
int hr_docker_web_hosts(void *self, char **ret_json, struct hr_err *err);
int hr_docker_holds_rules(void *self, struct hr_err *err);
int hr_docker_rules(void *self, char **ret_json, struct hr_err *err);
int hr_docker_set_rules(void *self, const char *json, struct hr_err *err);
int hr_docker_rules_log(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);

/* Writes "/images/NAME", keeping the slashes of the name. */
void hr_docker_image_path(struct hr_buf *b, const char *name);
/* Pulls the image if it is missing. `progress` reports the bytes received; NULL: no reports. */
int hr_docker_pull(struct hr_engine *e, const char *image, hr_progress_fn *progress, void *arg,
    struct hr_err *err);

#define HR_CONTAINER_REMOVE "?v=true&link=False&force=True"

/* Makes the value of a new container's label: this user of this machine, and the state directory,
 * if there is one, which is created. The caller owns *ret. */
int hr_docker_owner(const struct hr_backend_host *h, char **ret, struct hr_err *err);
/* Returns true if a label of that value was set by this user of this machine, with whatever state
 * directory; NULL: the container has no label. */
bool hr_docker_is_users(const char *label);
/* Ends the container of that name with this user's label, even if the Engine creates it late, after
 * a create at `since` or before that got no answer. */
int hr_docker_end_named(struct hr_docker *d, const struct timespec *since, struct hr_err *err);

/* Implements the table's call. */
int hr_docker_found(void *self, char **ret_json, struct hr_err *err);
int hr_docker_end_found(void *self, const char *id, struct hr_err *err);
int hr_docker_events(void *self, hr_event_fn *fn, void *arg, struct hr_err *err);
int hr_docker_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);
int
hr_docker_build(void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err);

/* Implements the table's call: the container becomes an image. */
int hr_docker_snapshot(void *self, const char *tag, char **ret_json, struct hr_err *err);

/* Returns the container's id in an Engine's object, or "" if it has characters that would change a
 * path. */
const char *hr_docker_id(struct json_object *o, const char *name);

#endif
