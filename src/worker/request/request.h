/* hr_request: a request as the worker sees it, and what handles it. No FastCGI here: hr_handle() is
 * a function of the request, so that tests and the fuzzer need no server (fcgi.c is the edge). */
#ifndef HR_WORKER_REQUEST_REQUEST_H
#define HR_WORKER_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "proto/httperr.h"

struct hr_worker;

/* Where the body comes from. */
struct hr_body {
	/* Some bytes (> 0), 0 at the end, -1 if the sender broke off. */
	ssize_t (*read)(void *ctx, char *p, size_t len);
	void *ctx;
};

/* Strings are NUL-terminated and borrowed; "" stands for a header that is absent. */
struct hr_request {
	const char *method;
	const char *uri; /* as the client sent it: percent-encoded, with its query */
	const char *content_type;
	const char *session_key; /* X-Session-API-Key; the first one if repeated */
	const char *authorization;
	const char *host;            /* Host */
	const char *scheme;          /* "http" or "https" */
	const char *client_id;       /* X-Request-ID */
	const char *idempotency_key; /* Idempotency-Key */
	const char *request_id;      /* nginx's own */
	const char *traceparent;     /* of W3C Trace Context */
	const char *connection;      /* the client's, as hr_peer_parse() takes it */
	const char *forwarded_for;   /* X-Forwarded-For */
	const char *user_agent;      /* User-Agent */
	/* of /download_file */
	const char *range, *if_range, *if_none_match;
	/* of /handrail/v1/output */
	const char *accept, *last_event_id;
	/* of a browser that has signed in to the page */
	const char *cookie, *page_token;
	const char *asked_method, *asked_uri; /* of /-/auth: what it is asked about */
	/* of /handrail/mcp */
	const char *mcp_version, *mcp_method, *mcp_name;
	const char *rex_key; /* X-API-Key, of /swerex/ */
	const char *origin;
	bool mcp;                 /* the door is open */
	bool rex;                 /* and that of SWE-ReX */
	bool v1;                  /* and that of OpenHands V1 */
	bool direct;              /* nginx could not send the file */
	bool viewer;              /* came to the file viewer, which is another server */
	const char *viewer_base;  /* "/SECRET" of the viewer's address; "": not the viewer */
	const char *action_limit; /* how many actions at a time; of /-/refused */
	const char *remote;       /* address of the client; of the viewer alone */
	struct hr_body body;

	/* set by hr_handle() */
	struct hr_buf *path; /* decoded; may hold nulls */
	const char *query;   /* inside uri, behind '?', or "" */
	bool admitted;       /* the viewer was asked below its base, which path is without */
};

/* Answers the request; ret is filled whatever happens. Blocks as long as the answer takes. */
void hr_handle(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret);

/* The token of RFC 6750 in Authorization; "": there is none. */
const char *hr_request_bearer(const struct hr_request *r);

/* The decoded path and the query of a target; 0 or -1 for memory. */
int hr_request_split(struct hr_request *r);

/* A browser says where its page is from, and a page from elsewhere must not talk to us, by whatever
 * name it found us: see "DNS rebinding". True as well where nothing is said. */
bool hr_request_from_here(const struct hr_request *r);

/* The value of a query parameter, form-decoded, appended to ret; the last one counts if repeated.
 * false: there is none. */
bool hr_request_query(const struct hr_request *r, const char *name, struct hr_buf *ret);
/* The same with bytes that are no UTF-8, which names of files may have. */
bool hr_request_query_bytes(const struct hr_request *r, const char *name, struct hr_buf *ret);

#endif
