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

/* What a call can fail with, and be made again. */
enum {
	HR_REST_UNSENT = 1,  /* no connection: nobody has seen the call */
	HR_REST_LOST = 2,    /* the answer did not come, or not whole */
	HR_REST_LIMITED = 4, /* 429 */
	HR_REST_FAILED = 8,  /* 500, 502, 503, 504 */
};

/* The first rule that fits a failure is the one; it counts for itself. The wait before attempt k +
 * 1 is first_ms * 2^(k - 1), at most most_ms, of which a random half is left out. A Retry-After of
 * the answer takes its place. */
struct hr_rest_rule {
	unsigned failures;
	bool all; /* also calls that are not idempotent */
	unsigned attempts;
	unsigned first_ms, most_ms;
};

/* For services: UNSENT and LIMITED for all calls, LOST and FAILED for idempotent ones. Like each
 * table of rules it ends with a row of zeros. */
extern const struct hr_rest_rule hr_rest_rules[];

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
	/* In place of the rules, after an attempt that failed with one of the bits above (0: none
	 * of them): the wait in ms before the next one; -1: there is none. NULL: by the rules. */
	long (*judge)(void *arg, unsigned failure, long status, unsigned attempts);
	void *judge_arg;
	/* Told each line of each answer's head; NULL: nobody asks. */
	void (*on_header)(void *arg, const char *line, size_t len);
	void *header_arg;
};

struct hr_rest_answer {
	long status;              /* 0: none came */
	struct json_object *json; /* NULL: none, or null; of an error as well, where it is JSON */
	struct hr_buf body;
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
/* The wait before attempt k + 1: first_ms * 2^(k - 1), at most most_ms, of which up to so many
 * percent are left out at random. */
unsigned hr_rest_back_off(unsigned first_ms, unsigned most_ms, unsigned percent, unsigned k);
/* Sleeps; true: watch_fd (-1: none) became readable before. */
bool hr_rest_wait(int watch_fd, unsigned ms);

#endif
