/* hr_http_reader: parses HTTP/1.1 answers step by step. Pure. */
#ifndef HR_HTTP_ANSWER_H
#define HR_HTTP_ANSWER_H

#include <stdint.h>

#include "http/request.h"

#define HR_HTTP_HEAD_MAX 65536   /* maximum bytes of a line of the head */
#define HR_HTTP_HEADS_MAX 262144 /* maximum bytes of all lines around the body */

struct hr_http_reader {
	const struct hr_http_request *r;
	struct hr_http_answer *a;
	enum {
		HR_HTTP_STATUS_LINE,
		HR_HTTP_HEAD,
		HR_HTTP_LENGTH,
		HR_HTTP_CHUNK,
		HR_HTTP_DATA,
		HR_HTTP_DATA_END,
		HR_HTTP_TRAILER,
		HR_HTTP_UNTIL_END,
		HR_HTTP_DONE,
	} part;
	struct hr_buf line;
	size_t lines;  /* bytes of lines since the last bytes of the body */
	uint64_t left; /* bytes left of the body or of its chunk */
	uint64_t length, got;
	int64_t away; /* milliseconds that the sink took */
	bool has_length, chunked;
};

/* Initialises a parser that stores the answer in *a, which must be initialised, and the body as r
 * requests. Both must outlive h. */
void hr_http_reader_init(
    struct hr_http_reader *h, const struct hr_http_request *r, struct hr_http_answer *a);
void hr_http_reader_done(struct hr_http_reader *h);
/* Parses the next bytes. Returns 0, with h->part HR_HTTP_DONE once the answer is whole (later bytes
 * are ignored), or -1 with *err and a->fault: the answer is malformed or too long, or the sink gave
 * up. */
int hr_http_reader_feed(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err);
/* Ends the input. */
int hr_http_reader_end(struct hr_http_reader *h, struct hr_err *err);

/* The times of a request, by hr_now_ms(). */
struct hr_http_pace {
	int64_t moved;      /* the last progress, or the start; 0: not started */
	int64_t answered;   /* the first bytes of the answer's body; 0: none yet */
	int64_t away;       /* milliseconds that the sink took, which do not count */
	uint64_t sent, got; /* bytes at the last progress */
};

/* Passes bytes to the request's sink, and adds the milliseconds that it takes to *away. Returns the
 * sink's result. */
int hr_http_drain(const struct hr_http_request *r, const char *p, size_t len, int64_t *away);

/* Returns the time at which the request is late, or 0 if it has no limit. `sent` and `got` are the
 * bytes so far: of the request, which is `whole` once all of it is sent, and of the answer's body.
 * Bytes of the answer's head are no progress, nor are fewer than r->sink_least bytes for a sink or
 * fewer than r->timeout_s KiB of a request, except its last ones, and a body that goes into the
 * answer must have 16 bytes per millisecond after the limit, so that a hostile server cannot hold a
 * request by single bytes. */
int64_t hr_http_late_at(struct hr_http_pace *p, const struct hr_http_request *r,
    const struct hr_http_answer *a, uint64_t sent, bool whole, uint64_t got, int64_t now);

/* Copies at most cap bytes of a header's value, without blanks around it. */
void hr_http_keep(char *to, size_t cap, const char *p, size_t len);
/* Returns true if a line of the head is a header of this name, and copies its value. */
bool hr_http_field(const char *line, size_t len, const char *name, char *value, size_t cap);

#endif
