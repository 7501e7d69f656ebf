/* hr_kube_status: what an API server says that refuses, and that in our words. Pure. */
#ifndef HR_HOST_KUBERNETES_STATUS_H
#define HR_HOST_KUBERNETES_STATUS_H

#include "host/handrail.h"

struct json_object;

struct hr_kube_status {
	int code;          /* of HTTP, or of an event of a watch; 0: nobody answered */
	char reason[48];   /* "AlreadyExists", "NotFound", ...; "" */
	char message[800]; /* the server's */
};

/* From a body, which may be anything. */
void hr_kube_status_read(struct hr_kube_status *ret, int code, const char *p, size_t len);
/* From an object of the kind Status; false: it is none. */
bool hr_kube_status_of(struct hr_kube_status *ret, struct json_object *o);

/* *err as a person reads it; -1. */
int hr_kube_status_error(const struct hr_kube_status *s, struct hr_err *err);
bool hr_kube_status_is(const struct hr_kube_status *s, const char *reason);

#endif
