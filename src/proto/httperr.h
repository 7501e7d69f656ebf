/* hr_answer: an HTTP answer before it is sent, and the bodies of all the error answers
 * (doc/http.md, "Error answers"). */
#ifndef HR_PROTO_HTTPERR_H
#define HR_PROTO_HTTPERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/metrics.h"

/* A hidden observation is not cut, and a control character takes six bytes. */
#define HR_ANSWER_MAX (1u << 30)

struct hr_event_class;

/* What the log and the counters want to know of an action; the client is not told. */
struct hr_note {
	const struct hr_event_class *cls; /* NULL: no action */
	bool error;                       /* an error observation */
	const char *session; /* "default", "static"; NULL: no shell was asked. What follows is
				about its command */
	enum hr_clock clock;
	int64_t exit_code;            /* -1: it goes on */
	uint64_t output;              /* bytes */
	char plugin[HR_METRICS_NAME]; /* who performed it; "": we did */
	bool plugin_failed;           /* it did not answer, or not as it should */
};

/* Where the parts of a streamed body go. */
struct hr_sink {
	/* 0; -1: nobody is there any more, stop. Blocks while the client is slow. */
	int (*write)(struct hr_sink *sink, const void *p, size_t len);
	int fd; /* readable when the client has left; -1: not known */
};

/* A body that is made while it is sent. All members or none. */
struct hr_stream {
	/* Writes the whole body. -1: it cannot be finished (err says why, and is empty if it is
	 * the client who left); the connection is then broken off, so that nobody takes a part for
	 * the whole. */
	int (*send)(void *arg, struct hr_sink *sink, struct hr_err *err);
	void (*done)(void *arg); /* frees arg; called in any case */
	void *arg;
	int64_t length; /* -1: not known */
};

struct hr_answer {
	int status;
	const char *content_type; /* static; NULL: the header is left out */
	struct hr_buf body;
	struct hr_buf location; /* empty: no such header */
	struct hr_buf headers;  /* further ones, whole lines; see hr_answer_header() */
	int retry_after_s;      /* 0: no such header */
	struct hr_note note;
	struct hr_buf key;       /* the action's at-most-once key, for the log */
	char trace[56];          /* traceparent; "": no such header */
	bool replayed;           /* given before, to the same request */
	bool held;               /* the head of a stream that somebody else goes on with */
	struct hr_stream stream; /* send is NULL: the body is in `body` */
};

void hr_answer_init(struct hr_answer *a);
void hr_answer_done(struct hr_answer *a);
/* For the next request: empty, 200, application/json. Memory is kept unless it is much. */
void hr_answer_reset(struct hr_answer *a);

/* All of these replace whatever the body holds. Text that has no JSON form (a lone surrogate) makes
 * the answer the generic 500, as in the original. False, for who returns that it has answered. */
bool hr_answer_generic(struct hr_answer *a);
/* {"detail":text}. A client takes 404, 502 and 504 for "gone for good", 503 for "paused" and
 * repeats after 429: none of them may be said for another reason. */
bool hr_answer_detail(struct hr_answer *a, int status, const char *text);
/* 503: nothing was done, and in a second it may be. */
bool hr_answer_later(struct hr_answer *a, const char *text);
/* Of an action that was begun by who died then: detail of a 500. */
extern const char hr_answer_unknown[];
/* 500 "Internal server error: <text>"; takes the text from a buffer that may have failed. */
bool hr_answer_internal(struct hr_answer *a, const struct hr_buf *text);
/* 422; errors is the repr of the list. */
bool hr_answer_invalid(struct hr_answer *a, const struct hr_buf *errors);

/* One more header. A control character in the value makes the answer the generic 500 when it is
 * settled: it would be a header of its own. */
void hr_answer_header(struct hr_answer *a, const char *name, const char *value);
/* The body is s, which the answer frees; whatever was in the body is dropped. */
void hr_answer_stream(struct hr_answer *a, const struct hr_stream *s);

/* If building the body failed, makes it the generic 500. */
void hr_answer_settle(struct hr_answer *a);

const char *hr_answer_reason(int status); /* "Not Found"; "" if unknown */

#endif
