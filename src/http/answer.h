/* hr_http_reader: an answer of HTTP/1.1 from its bytes, as they come. Pure. */
#ifndef HR_HTTP_ANSWER_H
#define HR_HTTP_ANSWER_H

#include <stdint.h>

#include "http/request.h"

#define HR_HTTP_HEAD_MAX 65536   /* bytes of a line of the head */
#define HR_HTTP_HEADS_MAX 262144 /* and of all lines before, between and behind the body */

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
	size_t lines;  /* bytes of all of them since something of the body came */
	uint64_t left; /* of the body or of its chunk */
	uint64_t length, got;
	bool has_length, chunked;
};

/* The answer goes into *a, which is initialised, and where r says. Both have to stay. */
void hr_http_reader_init(
    struct hr_http_reader *h, const struct hr_http_request *r, struct hr_http_answer *a);
void hr_http_reader_done(struct hr_http_reader *h);
/* The next bytes: 0, and h->part is HR_HTTP_DONE once it is whole (what follows is not looked at).
 * -1 with *err and a->fault: this is no answer, it is too long, or the sink wants no more. */
int hr_http_reader_feed(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err);
/* There is no more. */
int hr_http_reader_end(struct hr_http_reader *h, struct hr_err *err);

/* At most so many bytes of a header's value, without blanks around it. */
void hr_http_keep(char *to, size_t cap, const char *p, size_t len);
/* True: the line of a head is a header of this name; its value is kept so. */
bool hr_http_field(const char *line, size_t len, const char *name, char *value, size_t cap);

#endif
