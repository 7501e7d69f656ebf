/* Internals of hr_remote, the back-end "remote": one sandbox of a service (doc/host.md, "The
 * back-end remote"). */
#ifndef HR_HOST_REMOTE_REMOTE_INT_H
#define HR_HOST_REMOTE_REMOTE_INT_H

#include "host/handrail-backend.h"
#include "host/client/rest.h"

struct json_object;

struct hr_remote {
	const struct hr_backend_host *h;
	struct hr_rest *api;
	char *id, *url, *key;      /* id, address and key of the sandbox; NULL: unknown or none */
	char *hosts;               /* addresses of the sandbox's programs, as JSON; NULL: none */
	char *key_line;            /* the header line "X-API-Key: ..." */
	const char *headers[2];    /* headers of each request to the sandbox */
	char *vscode;              /* address of the editor; NULL: none */
	struct hr_err resumed_for; /* error that led to the last resume */
	bool stopped;
};

/* Looks for a sandbox of this name at the service. Returns 1 if there is one, which is then used
 * and was resumed if it was paused, 0 if there is no usable one, or -1 with *err set. *ret reports
 * how it was found. */
int hr_remote_find(struct hr_remote *r, enum hr_connected *ret, struct hr_err *err);
/* Creates a sandbox from an image, which the service may build first, or finds the one of a call
 * whose answer was lost. *ret reports whether it was made, or found if the service reports that it
 * exists. */
int hr_remote_start(struct hr_remote *r, enum hr_connected *ret, struct hr_err *err);
/* Waits until the sandbox answers. */
int hr_remote_wait(struct hr_remote *r, struct hr_err *err);
/* Asks the service for the sandbox's key, which a resume by another process may have replaced.
 * Returns true if it is another one than before. */
bool hr_remote_has_new_key(struct hr_remote *r);
/* Sends "/pause" or the like for this sandbox. */
int hr_remote_post(struct hr_remote *r, const char *what, struct hr_err *err);
int hr_remote_resume(void *remote, struct hr_err *err);
/* Fetches the service's data of the session; *ret is NULL if there are none. */
int hr_remote_session(struct hr_remote *r, struct json_object **ret, struct hr_err *err);

/* Returns an image that the service has or builds from the configuration's base; the caller frees
 * it. Returns NULL with *err set. */
char *hr_remote_build(struct hr_remote *r, const struct hr_build_options *o, struct hr_err *err);

#endif
