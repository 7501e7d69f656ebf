/* hr_dockerspec: composes the body of the Engine's create call from settings (doc/host.md, "The
 * create call"). */
#ifndef HR_HOST_DOCKER_SPEC_H
#define HR_HOST_DOCKER_SPEC_H

#include "host/handrail-backend.h"

struct hr_sidecars;
struct json_object;

struct hr_dockerspec {
	const struct hr_backend_host *host;
	const char *image;
	const char *const *command;
	const char
	    *payload;    /* mounted at the place of handrail's programs; NULL: the image has them */
	const char *key; /* value of SESSION_API_KEY; NULL: none */
	const char *owner; /* value of the label HR_CONTAINER_LABEL; NULL: there is none */
	const struct hr_sidecars *side; /* the network has rules; NULL: it has none */
	int port, vscode_port, app_ports[2];
};

/* Returns the body, which the caller owns, or NULL with *err naming the wrong value. The only I/O
 * is for the rules of the network. */
struct json_object *hr_dockerspec_build(const struct hr_dockerspec *d, struct hr_err *err);

#endif
