/* hr_multipart: parses multipart/form-data as it arrives, in constant memory. It is handrail's own,
 * since Debian has no maintained C library that parses a stream: libapreq2 uses httpd's bucket
 * brigades, gmime and libetpan read mail with the whole message at hand, libmicrohttpd's and
 * civetweb's parsers belong to their servers. The contract is the original's parser,
 * python-multipart 0.0.20, whose handling of odd input is kept: line ends before the first boundary
 * are skipped, bytes after the last one are ignored, a boundary followed by neither CR LF nor "--"
 * is data, unless blanks follow it (as in 0.0.34), a body that ends early is no error but its
 * unfinished part is lost. t/fuzz/fuzz_multipart.c compares a body cut anywhere with the whole one.
 * A different cut of the input only changes how data is split over calls. */
#ifndef HR_FILES_MULTIPART_H
#define HR_FILES_MULTIPART_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_MULTIPART_BOUNDARY_MAX 250 /* maximum bytes; RFC 2046 allows 70 */
/* maximum bytes of the headers of one part, names and values */
#define HR_MULTIPART_HEADERS_MAX (64u << 10)

/* Callbacks; a negative return ends the parsing with it. Arguments are borrowed for the call. */
struct hr_multipart_ops {
	/* The headers of a part are complete; disposition is the value of its last
	 * Content-Disposition header, or NULL. */
	int (*begin)(void *arg, const char *disposition, size_t len);
	int (*data)(void *arg, const char *p, size_t len); /* receives data; len > 0 */
	int (*end)(void *arg);
};

enum hr_multipart_state {
	HR_MULTIPART_START,
	HR_MULTIPART_FIRST,         /* inside the first boundary */
	HR_MULTIPART_FIRST_PADDING, /* after the first boundary and a blank */
	HR_MULTIPART_FIRST_LF,      /* after the CR of the first boundary */
	HR_MULTIPART_FIRST_HYPHEN,  /* after "--boundary-": the body has no part */
	HR_MULTIPART_NAME,
	HR_MULTIPART_BLANK, /* before a header's value */
	HR_MULTIPART_VALUE,
	HR_MULTIPART_VALUE_LF,
	HR_MULTIPART_HEADERS_LF, /* after the CR that ends the headers */
	HR_MULTIPART_DATA,
	HR_MULTIPART_CR,      /* after CR LF "--boundary" CR */
	HR_MULTIPART_HYPHEN,  /* after CR LF "--boundary-" */
	HR_MULTIPART_PADDING, /* after CR LF "--boundary" and a blank */
	HR_MULTIPART_PADDING_LF,
	HR_MULTIPART_END,
};

struct hr_multipart {
	const struct hr_multipart_ops *ops;
	void *arg;
	enum hr_multipart_state state;
	char boundary[4 + HR_MULTIPART_BOUNDARY_MAX]; /* CR LF "--" and the boundary */
	size_t boundary_len;
	size_t matched; /* bytes of boundary seen so far */
	struct hr_buf name, value, disposition;
	size_t headers_len;
	bool has_disposition;
};

/* Returns -1 if the boundary is empty or too long. */
int hr_multipart_init(struct hr_multipart *m, const char *boundary, size_t len,
    const struct hr_multipart_ops *ops, void *arg);
void hr_multipart_done(struct hr_multipart *m);

/* Returns 0; -1 with *err set if the body is malformed or without memory; or the negative return of
 * a callback with *err unchanged. Must not be called again after a failure. */
int hr_multipart_feed(struct hr_multipart *m, const char *p, size_t len, struct hr_err *err);

#endif
