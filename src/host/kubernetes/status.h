/* hr_kube_status: holds an API server's refusal, and its explanation. No I/O. */
#ifndef HR_HOST_KUBERNETES_STATUS_H
#define HR_HOST_KUBERNETES_STATUS_H

#include "host/handrail.h"

struct json_object;

struct hr_kube_status {
	int code;          /* HTTP status, or the code in a watch's event; 0: there is no answer */
	char reason[48];   /* "AlreadyExists", "NotFound", ...; "": none */
	char message[800]; /* message of the server */
};

/* Reads a body, which may be malformed. */
void hr_kube_status_read(struct hr_kube_status *ret, int code, const char *p, size_t len);
/* Reads an object of the kind Status; returns false if it is not one. */
bool hr_kube_status_of(struct hr_kube_status *ret, struct json_object *o);

/* Sets *err to a readable explanation; returns -1. */
int hr_kube_status_error(const struct hr_kube_status *s, struct hr_err *err);
bool hr_kube_status_is(const struct hr_kube_status *s, const char *reason);

/* Copies a message of the server, as much as fits, as one line without terminal control
 * characters. */
void hr_kube_status_text(char *to, size_t cap, const char *text, size_t len);

#endif
