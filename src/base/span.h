/* hr_span: bytes of somebody else's, with their length; they need no NUL at the end. */
#ifndef HR_BASE_SPAN_H
#define HR_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"

struct hr_span {
	const char *p; /* may be NULL where len is 0 */
	size_t len;
};

/* Of a text. */
static inline struct hr_span
hr_span_of(const char *text)
{
	return (struct hr_span){text, strlen(text)};
}

/* Of what a buffer holds until it changes. */
static inline struct hr_span
hr_span_of_buf(const struct hr_buf *b)
{
	return (struct hr_span){hr_buf_str(b), b->len};
}

/* Is this text in a list that ends with NULL? */
static inline bool
hr_is_one_of(const char *text, const char *const *list)
{
	while (*list != NULL && strcmp(*list, text) != 0)
		list++;
	return *list != NULL;
}

static inline bool
hr_span_equal(struct hr_span a, struct hr_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

#endif
