/* hr_request: describes a request and its handling. There is no FastCGI here: hr_handle() is a
 * function of the request, so tests and the fuzzer need no server (fcgi.c connects it to
 * FastCGI). */
#ifndef HR_WORKER_REQUEST_REQUEST_H
#define HR_WORKER_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "proto/httperr.h"

struct hr_worker;

/* The source of a body. */
struct hr_body {
	/* Returns the number of bytes (> 0), 0 at the end, or -1 if the sender broke off. */
	ssize_t (*read)(void *ctx, char *p, size_t len);
	void *ctx;
};

/* Strings are NUL-terminated and borrowed; a missing header is "". */
struct hr_request {
	const char *method;
	const char *uri; /* as sent: percent-encoded, with its query */
	const char *content_type;
	const char *session_key; /* value of X-Session-API-Key; the first one if repeated */
	const char *authorization;
	const char *host;            /* value of Host */
	const char *scheme;          /* "http" or "https" */
	const char *client_id;       /* value of X-Request-ID */
	const char *idempotency_key; /* value of Idempotency-Key */
	const char *request_id;      /* nginx's id of the request */
	const char *traceparent;     /* value of traceparent (W3C Trace Context) */
	const char *connection;      /* the client's connection, for hr_peer_parse() */
	const char *forwarded_for;   /* value of X-Forwarded-For */
	const char *user_agent;      /* value of User-Agent */
	/* used by /download_file */
	const char *range, *if_range, *if_none_match;
	bool conditional; /* true: If-Match, If-Modified-Since or If-Unmodified-Since is sent */
	/* used by /handrail/v1/output */
	const char *accept, *last_event_id;
	/* sent by a browser that has signed in to the page */
	const char *cookie, *page_token;
	const char *asked_method, *asked_uri; /* /-/auth: the original request */
	/* used by /handrail/mcp */
	const char *mcp_version, *mcp_method, *mcp_name;
	const char *rex_key; /* value of X-API-Key, for /swerex/ */
	const char *origin;
	bool cors;                /* the settings allow pages of this origin */
	bool mcp;                 /* the MCP endpoint is enabled */
	bool rex;                 /* the SWE-ReX endpoint is enabled */
	bool v1;                  /* the OpenHands V1 endpoint is enabled */
	bool direct;              /* nginx could not send the file */
	bool viewer;              /* the request came to the file viewer, another server */
	const char *viewer_base;  /* "/SECRET" of the viewer's address; "": not the viewer */
	const char *action_limit; /* /-/refused: the limit of concurrent actions */
	const char *remote;       /* the client's address; only for the viewer */
	/* all FastCGI parameters, "NAME=value"; for /handrail/e2b/; NULL: none, as in tests */
	char *const *params;
	struct hr_body body;

	/* ---- set by hr_handle() ---- */
	struct hr_buf *path; /* decoded; may contain null characters */
	const char *query;   /* points into uri after '?', or "" */
	bool admitted;       /* the viewer's base was valid and is stripped from path */
};

/* Answers the request: ret is always filled. Blocks until the answer is ready. */
void hr_handle(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret);

/* Returns the bearer token (RFC 6750) of Authorization, or "". */
const char *hr_request_bearer(const struct hr_request *r);

/* Sets the decoded path and the query from the target. Returns 0, or -1 if memory runs out. */
int hr_request_split(struct hr_request *r);

/* Answers 307 with the address of `path`, which needs no encoding, and the request's query. */
void hr_request_redirect(const struct hr_request *r, const char *path, struct hr_answer *ret);
/* Returns true if the Origin header names this server, is allowed or is missing. A browser sends
 * the origin of its page, and a page from elsewhere must not use this server under any name ("DNS
 * rebinding"). */
bool hr_request_from_here(const struct hr_request *r);

/* Appends the value of a query parameter, form-decoded; the last one if repeated. Returns false if
 * it is missing. */
bool hr_request_query(const struct hr_request *r, const char *name, struct hr_buf *ret);
/* Does the same for values that need not be UTF-8, such as file names. */
bool hr_request_query_bytes(const struct hr_request *r, const char *name, struct hr_buf *ret);
/* Does the same for one of several values, counted from 0. */
bool
hr_request_query_at(const struct hr_request *r, const char *name, size_t which, struct hr_buf *ret);

#endif
