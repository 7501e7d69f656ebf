/* hr_fleet_api: requests and what is answered to them. Knows neither FastCGI nor nginx. */
#ifndef HR_FLEET_API_API_H
#define HR_FLEET_API_API_H

#include "fleet/build/build.h"
#include "fleet/fleet.h"
#include "proto/signinweb.h"

#define HR_FLEET_BODY_MAX (1u << 20)

struct hr_fleet_api {
	struct hr_fleet *fleet;
	const char *public_url;           /* before "/ID"; NULL: as the request came */
	const char *domain;               /* of names like PORT-ID.DOMAIN; NULL: none */
	bool wakes;                       /* also what comes without a key of the sandbox */
	bool by_name;                     /* clients are told "ID.DOMAIN" and not ".../ID" */
	const char *registry_prefix;      /* "" for none */
	struct hr_fleet_builds *builds;   /* NULL: images are not built here */
	struct hr_fleet_console *console; /* NULL: there is none */
	const char *listen;               /* of our nginx; NULL: an nginx that is there is used */
};

enum hr_fleet_of_route {
	HR_FLEET_ROUTE_NONE,
	HR_FLEET_ROUTE_ASK,     /* nginx asks where a request goes */
	HR_FLEET_ROUTE_REFUSED, /* and why it was refused */
	HR_FLEET_ROUTE_CONSOLE, /* it came by the console's server */
};

/* Texts are "" where there is none. */
struct hr_fleet_request {
	const char *method, *uri; /* with the query, as it was sent */
	const char *api_key, *session_key, *host, *scheme;
	const char *sandbox_id, *sandbox_port; /* the headers X-Sandbox-ID, X-Sandbox-Port */
	const char *accept, *last_event_id;
	const char *cookie, *page_token, *origin; /* of the console's */
	const struct hr_signin *signed_in;        /* NULL: it came with the key itself */
	enum hr_fleet_of_route route;
	const char *content_type;
	hr_fleet_body_fn
	    *read_body; /* of /build, not read yet, in place of body; NULL: it has none */
	void *read_arg;
	const char *body;
	size_t body_len;
};

struct hr_fleet_answer {
	int status;
	bool again;                        /* is not answered: nginx asks who comes behind us */
	int retry_after_s;                 /* 0: none */
	const char *type;                  /* of the body */
	struct hr_buf body;                /* JSON, but for /metrics */
	struct hr_fleet_stream *stream;    /* what the body goes on with; NULL: it is whole */
	struct hr_buf at;                  /* of a route: "127.0.0.1:31000/path?query" */
	char cookie[HR_SIGNIN_COOKIE_MAX]; /* Set-Cookie; "": none */
	char prefix[HR_FLEET_ID + 1]; /* of a route: what of the path leads to the sandbox, "/ID" */
	char server_key[129]; /* of a route: what the sandbox is told in place of the session key */
};

/* hr_fleet_answer_done() afterwards, whatever came of it. */
void hr_fleet_handle(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *ret);
void hr_fleet_answer_done(struct hr_fleet_answer *a);

/* Waits for what comes next in the body; it may be next to nothing, which is to be sent all the
 * same. false: the stream has ended. */
bool hr_fleet_stream_next(struct hr_fleet_stream *s, struct hr_buf *b);

/* For as long as the process is there. */
struct hr_fleet_console *hr_fleet_console_open(struct hr_err *err);

/* ---- for its files ---- */

int hr_fleet_say(struct hr_fleet_answer *a, int status, const char *detail);
/* The result of something as an answer without an object. */
void hr_fleet_refuse(struct hr_fleet_answer *a, enum hr_fleet_result r,
    const struct hr_fleet_row *row, const struct hr_err *err);
/* Where a request of a client's goes (route.c). */
void hr_fleet_handle_route(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Below /handrail/v1/, with a key for it (operator.c). */
void hr_fleet_handle_operator(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const char *path, struct hr_fleet_answer *a);
/* By the console's server (console.c). */
void hr_fleet_handle_console(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
void hr_fleet_handle_call(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Is that what the console gave out for a sign-in to the page of this sandbox? Once, and not for
 * long. */
bool hr_fleet_console_opens(const struct hr_fleet_api *api, const char *text, const char *id);
/* Whether that sign-in lasts. */
bool hr_fleet_console_knows(struct hr_fleet_console *c, const struct hr_signin *s);
void hr_fleet_stream_end(struct hr_fleet_stream *s); /* NULL: nothing */
void hr_fleet_handle_metrics(const struct hr_fleet_api *api, struct hr_fleet_answer *a);

#endif
