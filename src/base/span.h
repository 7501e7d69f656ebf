/* hr_span: borrowed bytes with their length; no NUL is needed at the end. */
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

/* Returns the span of a string. */
static inline struct hr_span
hr_span_of(const char *text)
{
	return (struct hr_span){text, strlen(text)};
}

/* Returns the span of a buffer's content, valid until the buffer changes. */
static inline struct hr_span
hr_span_of_buf(const struct hr_buf *b)
{
	return (struct hr_span){hr_buf_str(b), b->len};
}

/* Returns true if the string is in a NULL-terminated list. */
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
