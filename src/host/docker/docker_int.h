/* Internals of the back-end "docker": one container, and calls of its Docker Engine. */
#ifndef HR_HOST_DOCKER_DOCKER_INT_H
#define HR_HOST_DOCKER_DOCKER_INT_H

#include <stdbool.h>
#include <time.h>

#include <json-c/json.h>

#include "host/docker/engine.h"
#include "host/records/portlock.h"
#include "host/handle.h"

struct hr_docker {
	const struct hr_backend_host *h;
	struct hr_engine engine;
	bool engine_there; /* the Engine was asked for its version */
	char *name, *id, *url, *key;
	bool recorded; /* the id comes from a record of this machine */
	int port, vscode_port, app_ports[2];
	struct hr_portlock locks[4];
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

/* Returns the container's id in an Engine's object, or "" if it has characters that would change a
 * path. */
const char *hr_docker_id(struct json_object *o, const char *name);

#endif
