/* hr_client: requests to the server in a sandbox, with the original client's retries and error
 * texts (doc/host.md, "Requests of the host"). */
#ifndef HR_HOST_CLIENT_CLIENT_H
#define HR_HOST_CLIENT_CLIENT_H

#include "host/handrail-backend.h"
#include "http/http.h"

struct hr_client {
	struct hr_http *http;
	char *url; /* without a slash at its end */
	char *unix_socket;
	/* "X-Session-API-Key: ..." and the endpoint's own; they end with NULL */
	char *headers[HR_ENDPOINT_HEADERS + 2];
	/* Of a request that failed for good: true: it is sent once more. May change *err, and
	 * where the server is. NULL: nobody mends anything. */
	bool (*failed)(void *arg, unsigned attempt, struct hr_err *err);
	void *failed_arg;
};

int hr_client_init(struct hr_client *c, const struct hr_endpoint *e, struct hr_err *err);
/* The next request goes there. After a failure it goes nowhere. */
int hr_client_point(struct hr_client *c, const struct hr_endpoint *e, struct hr_err *err);
void hr_client_done(struct hr_client *c); /* of one that is zeroed or initialised */

/* r->url is a path here ("/alive"), and r->headers are further ones. A status outside of 2xx is
 * HR_E_HTTP_STATUS; repeated are 429 (3 attempts) and broken answers (5 attempts), and then it
 * is HR_E_RETRY. The caller frees the answer's body in both cases. */
int hr_client_send(struct hr_client *c, const struct hr_http_request *r, struct hr_http_answer *ret,
    struct hr_err *err);

#endif
