/* hr_answer: holds an HTTP answer before it is sent, and makes the bodies of all error answers
 * (doc/http.md, "Error answers"). */
#ifndef HR_PROTO_HTTPERR_H
#define HR_PROTO_HTTPERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/metrics.h"

/* A hidden observation is not cut, and an escaped control character takes six bytes. */
#define HR_ANSWER_MAX (1u << 30)

struct hr_event_class;

/* Facts about an action for the log and the counters; the client does not see them. */
struct hr_note {
	const struct hr_event_class *cls; /* NULL: no action */
	bool error;                       /* the observation is an error */
	const char *session; /* "default", "static"; NULL: no shell was involved. The next members
				are about its command */
	enum hr_clock clock;
	int64_t exit_code;            /* -1: the command still runs */
	uint64_t output;              /* bytes */
	char plugin[HR_METRICS_NAME]; /* the plugin that performed the action; "": the worker */
	bool plugin_failed;           /* the plugin did not answer, or not correctly */
};

/* Receives the parts of a streamed body. */
struct hr_sink {
	/* Returns 0, or -1 if the client has left: then stop. Blocks while the client is slow. */
	int (*write)(struct hr_sink *sink, const void *p, size_t len);
	int fd; /* readable when the client has left; -1: not known */
};

/* A body that is generated while it is sent; either all members are set or none. */
struct hr_stream {
	/* Writes the whole body. Returns -1 if it cannot be finished (err has the reason, and is
	 * empty if the client left); the connection is then broken off, so that nobody mistakes a
	 * part for the whole. */
	int (*send)(void *arg, struct hr_sink *sink, struct hr_err *err);
	void (*done)(void *arg); /* frees arg; called in any case */
	void *arg;
	int64_t length; /* -1: not known */
};

struct hr_answer {
	int status;
	const char *content_type; /* static; NULL: no such header */
	struct hr_buf body;
	struct hr_buf location; /* empty: no such header */
	struct hr_buf headers;  /* further headers, whole lines; see hr_answer_header() */
	int retry_after_s;      /* 0: no such header */
	struct hr_note note;
	struct hr_buf key;       /* the action's at-most-once key, for the log */
	char trace[56];          /* traceparent; "": no such header */
	bool replayed;           /* the stored answer to the same request */
	bool held;               /* the head of a stream that another thread continues */
	struct hr_stream stream; /* send is NULL: the body is in `body` */
};

void hr_answer_init(struct hr_answer *a);
void hr_answer_done(struct hr_answer *a);
/* Empties the answer for the next request: 200, application/json. Keeps memory unless it is large.
 */
void hr_answer_reset(struct hr_answer *a);

/* Replaces the body, as all functions below. Text without a JSON form (a lone surrogate) makes the
 * answer the generic 500, as in the original. Returns false, so that a handler can return the
 * call. */
bool hr_answer_generic(struct hr_answer *a);
/* Answers {"detail":text}. A client takes 404, 502 and 504 for "gone for good", 503 for "paused"
 * and repeats after 429: use none of these for another reason. */
bool hr_answer_detail(struct hr_answer *a, int status, const char *text);
/* Answers 503: nothing was done, and a retry in a second may succeed. */
bool hr_answer_later(struct hr_answer *a, const char *text);
/* Detail of the 500 for an action whose performer died after starting it. */
extern const char hr_answer_unknown[];
/* Answers 500 "Internal server error: <text>"; takes the text from a buffer that may have
 * failed. */
bool hr_answer_internal(struct hr_answer *a, const struct hr_buf *text);
/* Answers 422; `errors` is the repr of the list. */
bool hr_answer_invalid(struct hr_answer *a, const struct hr_buf *errors);

/* Adds a header. A control character in the value, which could start another header, makes the
 * answer the generic 500 when it is settled. */
void hr_answer_header(struct hr_answer *a, const char *name, const char *value);
/* Sets the body to stream s, which the answer frees; drops the previous body. */
void hr_answer_stream(struct hr_answer *a, const struct hr_stream *s);

/* Makes the answer the generic 500 if building the body failed. */
void hr_answer_settle(struct hr_answer *a);

/* Returns "Not Found" and the like, or "" if the status is unknown. */
const char *hr_answer_reason(int status);

#endif
