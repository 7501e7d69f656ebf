/* hr_rest: calls a service's HTTP API with JSON in and out, over hr_http. It sends the service's
 * headers, retries where that is safe, limits the answer's size, and turns an error into one line
 * without secrets and control characters. Calls block; one thread at a time. hr_client, which has
 * the original's retries and texts, calls the server in a sandbox; hr_engine calls a Docker
 * Engine. */
#ifndef HR_HOST_CLIENT_REST_H
#define HR_HOST_CLIENT_REST_H

#include "base/buf.h"
#include "host/handrail.h"
#include "http/http.h"

struct json_object;

/* the failures of an attempt, one bit each */
enum {
	HR_REST_UNSENT = 1 << 0,   /* there was no connection: the call was not sent */
	HR_REST_LOST = 1 << 1,     /* there was no answer, or an incomplete one */
	HR_REST_LIMITED = 1 << 2,  /* status 429 */
	HR_REST_BUSY = 1 << 3,     /* status 503 */
	HR_REST_CONFLICT = 1 << 4, /* status 409 */
	HR_REST_REFUSED = 1 << 5,  /* another status below 500 */
	HR_REST_SLOW = 1 << 6,     /* status 408 */
	HR_REST_GATEWAY = 1 << 7,  /* status 502 */
	HR_REST_LATE = 1 << 8,     /* status 504 */
	HR_REST_BROKEN = 1 << 9,   /* status 500 */
	HR_REST_ODD = 1 << 10,     /* another status from 500 up */
	HR_REST_FAILED = HR_REST_BUSY | HR_REST_GATEWAY | HR_REST_LATE | HR_REST_BROKEN,
	/* the call was not executed; and below: it may have been */
	HR_REST_UNDONE =
	    HR_REST_UNSENT | HR_REST_LIMITED | HR_REST_BUSY | HR_REST_CONFLICT | HR_REST_REFUSED,
	HR_REST_UNSURE = HR_REST_LOST | HR_REST_SLOW | HR_REST_GATEWAY | HR_REST_LATE |
			 HR_REST_BROKEN | HR_REST_ODD,
};

/* A retry rule. The first rule with a failure decides, and counts its own attempts. The wait before
 * attempt k + 1 is first_ms * 2^(k - 1), at least least_ms, at most most_ms, less a random part of
 * it. The answer's Retry-After takes its place. */
struct hr_rest_rule {
	unsigned failures;
	unsigned always;   /* failures after which even a call that is not idempotent is retried */
	unsigned attempts; /* number of attempts, including the first */
	unsigned first_ms, least_ms, most_ms;
	unsigned jitter_percent;
	/* seconds; a longer Retry-After is ignored; 0: a Retry-After ends the call */
	unsigned after_max_s;
};

/* the rules for services: UNSENT and LIMITED for all calls, LOST and FAILED for idempotent ones; a
 * table of rules ends with a row of zeros */
extern const struct hr_rest_rule hr_rest_rules[];
extern const struct hr_rest_rule hr_rest_once[]; /* the rules that retry nothing */

struct hr_rest_options {
	const char *url;                  /* prefix of paths; a trailing slash is ignored */
	const char *unix_socket;          /* NULL: TCP */
	const struct hr_rest_rule *rules; /* NULL: hr_rest_rules */
	unsigned timeout_s;               /* limit to connect, and without progress; 0: 60 */
	unsigned total_s;                 /* limit per attempt, not for streams; 0: no limit */
	/* limit of all waits of a call, beyond which a wait fails; 0: two minutes */
	unsigned patience_ms;
	unsigned deadline_ms; /* limit of a call with all its attempts and waits; 0: no limit */
	size_t answer_max;    /* maximum bytes; 0: 16 MiB */
	int watch_fd;         /* when it is readable, calls and waits are aborted; -1: none */
	/* name of a header whose "true" or "false" overrides the rules; borrowed; NULL: none */
	const char *should;
};

/* TLS and proxy settings that override the system's; NULL: no override. */
struct hr_rest_peer {
	const char *ca_pem, *cert_pem, *key_pem; /* texts in PEM */
	const char *proxy, *connect_to;          /* as in hr_http_request */
	bool insecure;                           /* do not verify the server's certificate */
};

struct hr_rest;

/* Makes an object. Copies strings; borrows rules. Returns NULL with *err set. */
struct hr_rest *hr_rest_new(const struct hr_rest_options *o, struct hr_err *err);
void hr_rest_free(struct hr_rest *r); /* Frees r, which may be NULL. */

static inline void
hr_rest_clean(struct hr_rest **r) /* Frees *r, for HR_CLEAN(). */
{
	hr_rest_free(*r);
}

/* Sets a header of all calls, replacing an earlier one of that name; value NULL removes the header.
 * A secret is replaced by ****** in errors. */
int hr_rest_header(
    struct hr_rest *r, const char *name, const char *value, bool secret, struct hr_err *err);
/* Sets the TLS and proxy settings from now on; borrowed until the next call. */
void hr_rest_peer(struct hr_rest *r, const struct hr_rest_peer *p);
/* Sets the descriptor that aborts calls. */
void hr_rest_watch(struct hr_rest *r, int watch_fd);

struct hr_rest_call {
	const char *method;
	const char *path;           /* "/sessions/x?y=z", escaped, or a whole http(s) URL */
	const char *const *headers; /* additional headers; NULL-terminated; NULL: none */
	struct json_object *json;   /* the body, or use the next member */
	const void *body;           /* needs a Content-Type among the headers */
	size_t body_len;
	bool idempotent; /* a POST or PATCH that may be executed twice; other methods are idempotent
			    anyway */
	bool raw;        /* the answer is not JSON: it is in ret->body */
	unsigned timeout_s; /* 0: the timeout of the service */
	bool endless;       /* no time limit without progress */
	/* Receive the streams of a 2xx answer, which is not retried once data came; ret->body stays
	 * empty. A non-zero result stops, which is a success. A line is passed without its end and
	 * has at most 1 MiB; the last one may lack an end. */
	hr_line_fn *line;
	hr_http_sink_fn *sink;
	void *arg;
	const char *header; /* name of the answer's header to keep; NULL: none */
};

struct hr_rest_answer {
	long status; /* 0: there was no answer */
	/* NULL: there is none, or null; an error's as well, if it is JSON */
	struct json_object *json;
	struct hr_buf body;
	char header[512]; /* the requested header, "": none */
	unsigned failure; /* failure of the last attempt: one of the bits above, or 0 */
};

/* Makes a call. Returns 0 for a 2xx status with the expected answer; or -1 with *err set:
 * HR_E_HTTP_STATUS with err->status for another status, HR_E_HTTP_NETWORK, _TIMEOUT and _PROTOCOL
 * without an answer, HR_E_INVAL for an impossible call, HR_E_RUNTIME for an answer that is not JSON
 * or too long, and for an aborted call. ret may be NULL; else hr_rest_answer_done() must follow in
 * both cases. */
int hr_rest_call(struct hr_rest *r, const struct hr_rest_call *c, struct hr_rest_answer *ret,
    struct hr_err *err);
void hr_rest_answer_done(struct hr_rest_answer *a); /* Frees a, which must be zeroed or filled. */

/* Does the same with JSON only. The caller owns *ret; ret may be NULL. */
int hr_rest_get(struct hr_rest *r, const char *path, struct json_object **ret, struct hr_err *err);
int hr_rest_send(struct hr_rest *r, const char *method, const char *path, struct json_object *body,
    struct json_object **ret, struct hr_err *err);

/* Sets the error of a request without an answer; returns -1. */
int hr_rest_fault(const struct hr_http_answer *a, const struct hr_err *he, struct hr_err *err);
/* Sleeps. Returns true if watch_fd (-1: none) became readable before the end. */
bool hr_rest_wait(int watch_fd, unsigned ms);

/* ---- retries, also for clients of other protocols than JSON ---- */

struct hr_rest_failure {
	unsigned bit;                            /* 0: no failure that has a bit */
	char after[64], after_ms[32], should[8]; /* headers of the answer; "": missing */
};

struct hr_rest_tries {
	const struct hr_rest_rule *rules; /* at most 8 rules */
	unsigned patience_ms;             /* limit of all waits together; 0: none */
	int64_t end_ms;              /* time (hr_now_ms()) after which no attempt starts; 0: none */
	int watch_fd;                /* when it is readable, no further attempt starts; -1: none */
	unsigned failed;             /* number of attempts so far */
	unsigned waited_ms, last_ms; /* sum of all waits, and the wait before the next attempt */
	unsigned used[8];            /* number of failed attempts of each rule */
	bool spent;                  /* the rule's attempts are used up */
};

/* Keeps a line of an answer's head if it says when to retry. */
void hr_rest_heed(struct hr_rest_failure *f, const char *should, const char *line, size_t len);
/* Returns the wait in ms after the k-th failure of a rule. Its only side effect is the use of a
 * random jitter. */
unsigned long
hr_rest_wait_ms(const struct hr_rest_rule *rule, unsigned k, const struct hr_rest_failure *f);
/* Waits for the next attempt. Returns false if there is none. */
bool hr_rest_again(struct hr_rest_tries *t, const struct hr_rest_failure *f, bool idempotent);

#endif
