/* What the parts of the kind "docker" share: one container, and how to ask its Engine about it. */
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
	bool engine_there; /* it was asked for its version */
	char *name, *id, *url, *key;
	bool recorded; /* id is that of a record of this machine */
	int port, vscode_port, app_ports[2];
	struct hr_portlock locks[4];
};

/* The Engine is looked for at first use. */
int hr_docker_engine(struct hr_docker *d, struct hr_err *err);
/* Returns the container's id where it is known, its name otherwise. */
const char *hr_docker_ref(const struct hr_docker *d);
/* One call about the container: "/containers/REF" and what follows. ret may be NULL; otherwise the
 * caller puts it. */
int hr_docker_call(struct hr_docker *d, const char *method, const char *what,
    struct json_object **ret, struct hr_err *err);

/* From d->port. */
int hr_docker_set_url(struct hr_docker *d, struct hr_err *err);
/* Until the log, from `since` (Unix time as the Engine takes it) on, has the line with which a
 * server says that it answers. The error has the last lines of a container that ended instead. */
int hr_docker_wait_ready(struct hr_docker *d, const char *since, struct hr_err *err);
/* Creates and starts the container; one that does not become ready is removed. */
int hr_docker_make(struct hr_docker *d, struct hr_err *err);
/* sandbox.additional_networks; a network that refuses is logged. */
void hr_docker_join_networks(struct hr_docker *d);

/* "/images/NAME", of whose slashes all stay. */
void hr_docker_image_path(struct hr_buf *b, const char *name);
/* The image is here afterwards. progress: of what is loaded; NULL: nobody asks. */
int hr_docker_pull(struct hr_engine *e, const char *image, hr_progress_fn *progress, void *arg,
    struct hr_err *err);

#define HR_CONTAINER_REMOVE "?v=true&link=False&force=True"

/* Gives the value of a new container's label: this user of this machine, and the state directory,
 * if there is one; it exists afterwards. *ret is the caller's. */
int hr_docker_owner(const struct hr_backend_host *h, char **ret, struct hr_err *err);
/* Returns true if a label of that value was given by this user of this machine, with whatever state
 * directory; NULL: it has none. */
bool hr_docker_is_users(const char *label);
/* Ends the container of that name that has this user's label, also one that the Engine makes late:
 * it was asked for at that time or before, and the Engine did not answer. */
int hr_docker_end_named(struct hr_docker *d, const struct timespec *since, struct hr_err *err);

/* Of the table. */
int hr_docker_found(void *self, char **ret_json, struct hr_err *err);
int hr_docker_end_found(void *self, const char *id, struct hr_err *err);
int hr_docker_events(void *self, hr_event_fn *fn, void *arg, struct hr_err *err);
int hr_docker_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);
int
hr_docker_build(void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err);

/* What a container is called by the Engine goes into paths: "" if it could say more there. */
const char *hr_docker_id(struct json_object *o, const char *name);

#endif
