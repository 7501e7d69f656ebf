/* hr_remote: one sandbox of a service, for the files of the kind "remote" (doc/host.md, "The kind
 * remote"). */
#ifndef HR_HOST_REMOTE_REMOTE_INT_H
#define HR_HOST_REMOTE_REMOTE_INT_H

#include "host/handrail-backend.h"
#include "host/client/rest.h"

struct json_object;

struct hr_remote {
	const struct hr_backend_host *h;
	struct hr_rest *api;
	char *id, *url, *key;      /* of the sandbox; NULL: not known, none */
	char *hosts;               /* where programs of it are, as JSON; NULL: none */
	char *key_line;            /* "X-API-Key: ..." */
	const char *headers[2];    /* of each request to it */
	char *vscode;              /* where the editor is; NULL: none */
	struct hr_err resumed_for; /* what made us resume it */
	bool stopped;
};

/* Is there one of this name at the service? 1: it is used now, and was resumed if it was paused; 0:
 * there is none that can be; -1: *err. *ret: how it came. */
int hr_remote_find(struct hr_remote *r, enum hr_connected *ret, struct hr_err *err);
/* Makes one, of an image that the service may build first; or is given the one that a call made
 * whose answer was lost. *ret: made, or found where the service refused it as there already. */
int hr_remote_start(struct hr_remote *r, enum hr_connected *ret, struct hr_err *err);
/* Until the sandbox answers. */
int hr_remote_wait(struct hr_remote *r, struct hr_err *err);
/* "/pause" and the like, of this sandbox. */
int hr_remote_post(struct hr_remote *r, const char *what, struct hr_err *err);
int hr_remote_resume(void *remote, struct hr_err *err);
/* What the service tells of the session; *ret NULL: there is none. */
int hr_remote_session(struct hr_remote *r, struct json_object **ret, struct hr_err *err);

/* The image that the service has, or builds of the configuration's base; the caller frees. NULL:
 * *err. */
char *hr_remote_build(struct hr_remote *r, const struct hr_build_options *o, struct hr_err *err);

#endif
