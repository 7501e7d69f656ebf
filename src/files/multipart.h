/* hr_multipart: multipart/form-data taken apart as it arrives, in constant memory.
 *
 * Of our own, since Debian has no C library for it that works on a stream and is kept: libapreq2
 * lives on httpd's bucket brigades, gmime and libetpan read mail with the whole message at hand,
 * libmicrohttpd's and civetweb's parsers belong to their servers. It is a machine of a few states;
 * the contract names the original's, python-multipart 0.0.20, whose answers to odd input are kept:
 * line ends before the first boundary are skipped, what follows the last one is ignored, a boundary
 * behind which neither CR LF nor "--" follows is data, a body that ends early is no error but has
 * no unfinished part. t/fuzz/fuzz_multipart.c compares a body cut anywhere with the whole of it.
 *
 * Fed with pieces of any size it makes the same calls, but for how data is cut. */
#ifndef HR_FILES_MULTIPART_H
#define HR_FILES_MULTIPART_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_MULTIPART_BOUNDARY_MAX 250        /* bytes; RFC 2046 allows 70 */
#define HR_MULTIPART_HEADERS_MAX (64u << 10) /* of one part, names and values */

/* What comes; a negative return ends the parsing with it. Everything is borrowed for the call. */
struct hr_multipart_ops {
	/* The headers of a part are complete; disposition is the value of its last
	 * Content-Disposition, NULL if there is none. */
	int (*begin)(void *arg, const char *disposition, size_t len);
	int (*data)(void *arg, const char *p, size_t len); /* len > 0 */
	int (*end)(void *arg);
};

enum hr_multipart_state {
	HR_MULTIPART_START,
	HR_MULTIPART_FIRST,        /* inside of the first boundary */
	HR_MULTIPART_FIRST_LF,     /* behind its CR */
	HR_MULTIPART_FIRST_HYPHEN, /* behind "--boundary-": nothing in it at all */
	HR_MULTIPART_NAME,
	HR_MULTIPART_BLANK, /* before a header's value */
	HR_MULTIPART_VALUE,
	HR_MULTIPART_VALUE_LF,
	HR_MULTIPART_HEADERS_LF, /* behind the CR that ends the headers */
	HR_MULTIPART_DATA,
	HR_MULTIPART_CR,     /* behind CR LF "--boundary" CR */
	HR_MULTIPART_HYPHEN, /* behind CR LF "--boundary-" */
	HR_MULTIPART_END,
};

struct hr_multipart {
	const struct hr_multipart_ops *ops;
	void *arg;
	enum hr_multipart_state state;
	char boundary[4 + HR_MULTIPART_BOUNDARY_MAX]; /* CR LF "--" and the boundary */
	size_t boundary_len;
	size_t matched; /* bytes of boundary that were seen */
	struct hr_buf name, value, disposition;
	size_t headers_len;
	bool has_disposition;
};

/* -1: the boundary is empty or too long. */
int hr_multipart_init(struct hr_multipart *m, const char *boundary, size_t len,
    const struct hr_multipart_ops *ops, void *arg);
void hr_multipart_done(struct hr_multipart *m);

/* 0; -1: not well-formed, or no memory, with err set; or the negative return of a call, err
 * untouched. Not to be called again after a failure. */
int hr_multipart_feed(struct hr_multipart *m, const char *p, size_t len, struct hr_err *err);

#endif
