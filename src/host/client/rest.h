/* hr_rest: calls of a service's HTTP API with JSON in and out, over hr_http. It sends the headers
 * of the service, repeats what may be repeated, reads the answer within a limit, and makes one line
 * of an error of it, in which no secret and no control character is. It blocks; one thread at a
 * time.
 *
 * The server in a sandbox is asked with hr_client, whose repetitions and texts are the original's;
 * an Engine with hr_engine. */
#ifndef HR_HOST_CLIENT_REST_H
#define HR_HOST_CLIENT_REST_H

#include "base/buf.h"
#include "host/handrail.h"
#include "http/http.h"

struct json_object;

/* The failures of an attempt, a bit each. */
enum {
	HR_REST_UNSENT = 1 << 0,   /* no connection: nobody has seen the call */
	HR_REST_LOST = 1 << 1,     /* the answer did not come, or not whole */
	HR_REST_LIMITED = 1 << 2,  /* 429 */
	HR_REST_BUSY = 1 << 3,     /* 503 */
	HR_REST_CONFLICT = 1 << 4, /* 409 */
	HR_REST_REFUSED = 1 << 5,  /* another status below 500 */
	HR_REST_SLOW = 1 << 6,     /* 408 */
	HR_REST_GATEWAY = 1 << 7,  /* 502 */
	HR_REST_LATE = 1 << 8,     /* 504 */
	HR_REST_BROKEN = 1 << 9,   /* 500 */
	HR_REST_ODD = 1 << 10,     /* another status from 500 up */
	HR_REST_FAILED = HR_REST_BUSY | HR_REST_GATEWAY | HR_REST_LATE | HR_REST_BROKEN,
	/* the call was not carried out, and: it may have been */
	HR_REST_UNDONE =
	    HR_REST_UNSENT | HR_REST_LIMITED | HR_REST_BUSY | HR_REST_CONFLICT | HR_REST_REFUSED,
	HR_REST_UNSURE = HR_REST_LOST | HR_REST_SLOW | HR_REST_GATEWAY | HR_REST_LATE |
			 HR_REST_BROKEN | HR_REST_ODD,
};

/* The first rule that has a failure decides, and counts its own attempts. The wait before attempt
 * k + 1 is first_ms * 2^(k - 1), at least least_ms, at most most_ms, without a random part of it.
 * The time that the answer asks for (Retry-After) takes its place. */
struct hr_rest_rule {
	unsigned failures;
	unsigned always;   /* those after which a call that is not idempotent is repeated, too */
	unsigned attempts; /* in all */
	unsigned first_ms, least_ms, most_ms;
	unsigned jitter_percent;
	unsigned after_max_s; /* a longer Retry-After is ignored; 0: it ends the call */
};

/* For services: UNSENT and LIMITED for all calls, LOST and FAILED for idempotent ones. Like each
 * table of rules it ends with a row of zeros. */
extern const struct hr_rest_rule hr_rest_rules[];
extern const struct hr_rest_rule hr_rest_once[]; /* no call is repeated */

struct hr_rest_options {
	const char *url;         /* what paths are put behind; a slash at its end is left out */
	const char *unix_socket; /* NULL: TCP */
	const struct hr_rest_rule *rules; /* NULL: hr_rest_rules */
	unsigned timeout_s;               /* to connect, and without progress; 0: 60 */
	unsigned total_s;                 /* for one attempt; 0: no bound; streams have none */
	unsigned
	    patience_ms; /* all waits of a call; 0: two minutes. What is to wait longer fails */
	unsigned deadline_ms; /* for a call with all its attempts and waits; 0: no bound */
	size_t answer_max;    /* 0: 16 MiB */
	int watch_fd;         /* readable: calls and waits are given up; -1: none */
	/* A header whose "true" or "false" decides instead of the rules; borrowed; NULL: none. */
	const char *should;
};

/* In place of the system's ways; NULL where nothing is said. */
struct hr_rest_peer {
	const char *ca_pem, *cert_pem, *key_pem; /* texts */
	const char *proxy, *connect_to;          /* as hr_http_request has them */
	bool insecure;                           /* the server's certificate is not looked at */
};

struct hr_rest;

/* Texts are copied; rules are borrowed. NULL: *err. */
struct hr_rest *hr_rest_new(const struct hr_rest_options *o, struct hr_err *err);
void hr_rest_free(struct hr_rest *r); /* NULL: nothing */

static inline void
hr_rest_clean(struct hr_rest **r) /* for HR_CLEAN() */
{
	hr_rest_free(*r);
}

/* A header of each call, in place of an earlier one of that name; value NULL: without it. A secret
 * is replaced by ****** in each error. */
int hr_rest_header(
    struct hr_rest *r, const char *name, const char *value, bool secret, struct hr_err *err);
/* Who is asked, and as whom, from now on; borrowed until the next one. */
void hr_rest_peer(struct hr_rest *r, const struct hr_rest_peer *p);
/* The descriptor that ends calls, from now on. */
void hr_rest_watch(struct hr_rest *r, int watch_fd);

struct hr_rest_call {
	const char *method;
	const char *path;           /* "/sessions/x?y=z", escaped, or a whole http(s) URL */
	const char *const *headers; /* of this call, NULL-terminated; NULL: none */
	struct json_object *json;   /* the body; or: */
	const void *body;           /* with a Content-Type among the headers */
	size_t body_len;
	bool idempotent; /* a POST or PATCH that may be done twice; other methods are so anyway */
	bool raw;        /* the answer is not JSON: it is in ret->body */
	unsigned timeout_s; /* 0: as of the service */
	bool endless;       /* it may be silent for as long as it likes */
	/* The answer of 2xx as a stream, not repeated once something came; ret->body stays empty.
	 * Non-zero: enough, which is a success. A line comes without its end and has 1 MiB at most;
	 * one that ends with the stream instead is given, too. */
	hr_line_fn *line;
	hr_http_sink_fn *sink;
	void *arg;
	const char *header; /* one of the answer's that is kept; NULL: none */
};

struct hr_rest_answer {
	long status;              /* 0: none came */
	struct json_object *json; /* NULL: none, or null; of an error as well, where it is JSON */
	struct hr_buf body;
	char header[512]; /* the one that was asked for, "" for none */
	unsigned failure; /* of the last attempt: one of the bits above, or 0 */
};

/* 0: a status of 2xx, and what was asked for; -1: *err: HR_E_HTTP_STATUS with err->status for
 * another status, HR_E_HTTP_NETWORK, _TIMEOUT and _PROTOCOL where no answer came,
 * HR_E_INVAL for a call that cannot be made, HR_E_RUNTIME for an answer that is no JSON or
 * too long, and for one that was given up. ret may be NULL; else hr_rest_answer_done() in both
 * cases. */
int hr_rest_call(struct hr_rest *r, const struct hr_rest_call *c, struct hr_rest_answer *ret,
    struct hr_err *err);
void hr_rest_answer_done(struct hr_rest_answer *a); /* of one that is zeroed or filled */

/* The plain cases. *ret, the caller's, may be NULL. */
int hr_rest_get(struct hr_rest *r, const char *path, struct json_object **ret, struct hr_err *err);
int hr_rest_send(struct hr_rest *r, const char *method, const char *path, struct json_object *body,
    struct json_object **ret, struct hr_err *err);

/* The error of a request without an answer; returns -1. */
int hr_rest_fault(const struct hr_http_answer *a, const struct hr_err *he, struct hr_err *err);
/* Sleeps; true: watch_fd (-1: none) became readable before. */
bool hr_rest_wait(int watch_fd, unsigned ms);

/* ---- repetition, for the clients that speak something else than JSON, too ---- */

struct hr_rest_failure {
	unsigned bit;                            /* 0: none of them */
	char after[64], after_ms[32], should[8]; /* the answer's headers; "": none */
};

struct hr_rest_tries {
	const struct hr_rest_rule *rules; /* at most 8 */
	unsigned patience_ms;             /* all waits together; 0: no bound */
	int64_t end_ms;                   /* no attempt starts after it (hr_now_ms()); 0: none */
	int watch_fd;                     /* readable: no further attempt; -1: none */
	unsigned failed;                  /* attempts so far */
	unsigned waited_ms, last_ms;      /* in all, and before the next attempt */
	unsigned used[8];                 /* attempts that failed, of each rule */
	bool spent;                       /* the rule had another attempt, but for its number */
};

/* Keeps a line of an answer's head, where it says when the call may be repeated. */
void hr_rest_heed(struct hr_rest_failure *f, const char *should, const char *line, size_t len);
/* The wait in ms after the k-th failure of a rule. Pure but for the jitter. */
unsigned long
hr_rest_wait_ms(const struct hr_rest_rule *rule, unsigned k, const struct hr_rest_failure *f);
/* Waits for the next attempt; false: there is none. */
bool hr_rest_again(struct hr_rest_tries *t, const struct hr_rest_failure *f, bool idempotent);

#endif
