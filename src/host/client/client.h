/* hr_client: sends requests to the server in a sandbox, with the original client's retries and
 * error texts (doc/host.md, "Requests of the host"). */
#ifndef HR_HOST_CLIENT_CLIENT_H
#define HR_HOST_CLIENT_CLIENT_H

#include "host/handrail-backend.h"
#include "http/http.h"

struct hr_client {
	struct hr_http *http;
	char *url; /* address without a trailing slash */
	char *unix_socket;
	/* "X-Session-API-Key: ..." and the endpoint's own; NULL-terminated */
	char *headers[HR_ENDPOINT_HEADERS + 2];
	/* Handles a request that failed for good; returns true to send it again. May change *err
	 * and the server's address. NULL: there is no such retry. */
	bool (*failed)(void *arg, unsigned attempt, struct hr_err *err);
	void *failed_arg;
};

int hr_client_init(struct hr_client *c, const struct hr_endpoint *e, struct hr_err *err);
/* Sends later requests to that endpoint. After a failure there is no endpoint. */
int hr_client_point(struct hr_client *c, const struct hr_endpoint *e, struct hr_err *err);
void hr_client_done(struct hr_client *c); /* Frees c, which must be zeroed or initialised. */

/* Sends a request; r->url is a path here ("/alive"), r->headers are additional. A status other than
 * 2xx is HR_E_HTTP_STATUS; retries 429 (3 attempts) and broken answers (5 attempts), then fails
 * with HR_E_RETRY. The caller frees the answer's body in both cases. */
int hr_client_send(struct hr_client *c, const struct hr_http_request *r, struct hr_http_answer *ret,
    struct hr_err *err);
/* Does the same with one attempt, and without c->failed. */
int hr_client_send_once(struct hr_client *c, const struct hr_http_request *r,
    struct hr_http_answer *ret, struct hr_err *err);

#endif
