/* hr_fleet_api: handles requests and makes their answers. It knows neither FastCGI nor nginx. */
#ifndef HR_FLEET_API_API_H
#define HR_FLEET_API_API_H

#include "fleet/build/build.h"
#include "fleet/fleet.h"
#include "base/strv.h"
#include "proto/signinweb.h"

#define HR_FLEET_BODY_MAX (1u << 20)

struct hr_fleet_api {
	struct hr_fleet *fleet;
	const char *public_url; /* base of "/ID" URLs; NULL: the address of the request */
	const char *domain;     /* suffix of names like PORT-ID.DOMAIN; NULL: none */
	bool wakes;             /* true: requests without a key of the sandbox resume it, too */
	bool new_keys;          /* true: /resume gives a new session key */
	bool by_name;           /* true: answers give "ID.DOMAIN" instead of ".../ID" */
	const char *registry_prefix;            /* "": none */
	struct hr_fleet_builds *builds;         /* NULL: images are not built here */
	struct hr_fleet_console *console;       /* NULL: there is no console */
	const struct hr_fleet_options *options; /* options of the engine */
	const char *kind;                       /* back-end of the sandboxes */
	const struct hr_strv *templates;        /* values of --e2b-template */
	int64_t most_hours; /* longest time that a client of the E2B API may ask for */
	bool file_forks;    /* copies of that API may be of files alone */
	bool internet;      /* sandboxes of that API have open rules where a client asks for none */
	const char
	    *listen; /* address of the service's own nginx; NULL: an existing nginx is used */
};

enum hr_fleet_of_route {
	HR_FLEET_ROUTE_NONE,
	HR_FLEET_ROUTE_ASK,     /* nginx asks where a request goes */
	HR_FLEET_ROUTE_REFUSED, /* nginx asks for the reason of a refusal */
	HR_FLEET_ROUTE_CONSOLE, /* the request came through the console's server */
	HR_FLEET_ROUTE_E2B,     /* a call of the E2B API */
};

/* A request; absent strings are "". */
struct hr_fleet_request {
	const char *method, *uri; /* uri: as it was sent, with the query */
	const char *api_key, *session_key, *host, *scheme;
	/* values of the headers X-Sandbox-ID and X-Sandbox-Port */
	const char *sandbox_id, *sandbox_port;
	/* headers of the E2B API: E2b-Sandbox-Id, E2b-Sandbox-Port, X-Access-Token,
	 * E2b-Traffic-Access-Token, Idempotency-Key, Authorization */
	const char *e2b_id, *e2b_port, *access_token, *traffic_token, *idempotency_key,
	    *authorization;
	const char *accept, *last_event_id;
	const char *cookie, *page_token, *origin; /* sent by the console */
	const struct hr_signin *signed_in;        /* NULL: the request has the key itself */
	enum hr_fleet_of_route route;
	bool direct; /* the request may take the direct way (HR_FLEET_DIRECT) */
	const char *content_type;
	hr_fleet_body_fn
	    *read_body; /* reads the body of /build, used instead of `body`; NULL: none */
	void *read_arg;
	const char *body;
	size_t body_len;
};

struct hr_fleet_answer {
	int status;
	bool again;         /* there is no answer: nginx asks the next process */
	int retry_after_s;  /* 0: no header */
	const char *type;   /* content type of the body */
	struct hr_buf body; /* JSON, except for /metrics */
	struct hr_buf head; /* more lines of the head, each with its end */
	/* stream that continues the body; NULL: the body is complete */
	struct hr_fleet_stream *stream;
	struct hr_buf at;                  /* target of a route: "127.0.0.1:31000/path?query" */
	bool own_origin;                   /* the target is a program at a host name of its own */
	char cookie[HR_SIGNIN_COOKIE_MAX]; /* value of Set-Cookie; "": none */
	char prefix[HR_FLEET_ID + 1]; /* part of a route's path that names the sandbox, "/ID" */
	char server_key[129]; /* the sandbox's key, which replaces the session key on a route */
	/* server_key, a blank and the SHA-256 of session_key, for a server that checks keys in the
	 * first message of a WebSocket; "": none */
	char front[129 + 65];
	char e2b[HR_FLEET_ID]; /* id of the sandbox on a route of the E2B API */
	bool cors;             /* pages of other origins may read the answer */
};

/* Handles the request; hr_fleet_answer_done() must follow, whatever the status. */
void hr_fleet_handle(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *ret);
void hr_fleet_answer_done(struct hr_fleet_answer *a);

/* Waits for the next part of the body, which must be sent even if it is tiny. Returns false if the
 * stream has ended. */
bool hr_fleet_stream_next(struct hr_fleet_stream *s, struct hr_buf *b);

/* Returns a console that lasts as long as the process. */
struct hr_fleet_console *hr_fleet_console_open(struct hr_err *err);

/* ---- internal ---- */

int hr_fleet_say(struct hr_fleet_answer *a, int status, const char *detail);
/* Answers with the status and text of a result, without an object. */
void hr_fleet_refuse(struct hr_fleet_answer *a, enum hr_fleet_result r,
    const struct hr_fleet_row *row, const struct hr_err *err);
/* Answers where nginx must send a client's request (route.c). */
void hr_fleet_handle_route(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Answers a request through the console's server (console.c). */
void hr_fleet_handle_console(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Answers a call of the E2B API (e2b/control.c). */
void hr_fleet_handle_e2b(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Answers where a request of the E2B API goes (e2b/edge.c). Returns false if it is none. */
bool hr_e2b_route(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Finds the key of a request. Returns 0 with *ret set, or -1 after it has answered. */
int hr_fleet_who(const struct hr_fleet_api *api, const struct hr_fleet_request *q, int scope,
    struct hr_fleet_key *ret, struct hr_fleet_answer *a);
void hr_fleet_handle_call(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a);
/* Returns true if the console issued `text` for a sign-in to the page of this sandbox. Tickets are
 * short-lived and work once. */
bool hr_fleet_console_opens(const struct hr_fleet_api *api, const char *text, const char *id);
/* Returns true if that sign-in is still valid. */
bool hr_fleet_console_knows(struct hr_fleet_console *c, const struct hr_signin *s);
void hr_fleet_stream_end(struct hr_fleet_stream *s); /* Ends the stream; s may be NULL. */
void hr_fleet_handle_metrics(const struct hr_fleet_api *api, struct hr_fleet_answer *a);

#endif
