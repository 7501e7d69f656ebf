/* hr_buf: a growing array of bytes with a mandatory cap and a sticky error, so that ten appends
 * need one check.
 *
 * json-c's printbuf does not suffice: the session keeper and the supervisor need buffers but no
 * JSON, and printbuf counts in int. */
#ifndef HR_BASE_BUF_H
#define HR_BASE_BUF_H

#include <stddef.h>

#include "base/clean.h"
#include "base/err.h"

struct hr_buf {
	char *p;     /* NUL-terminated after the first append; may contain NULs */
	size_t len;  /* bytes, the NUL not counted */
	size_t room; /* allocated bytes */
	size_t cap;  /* maximum of len */
	enum hr_errc
	    fail; /* first failure: HR_E_NOMEM or HR_E_TOOLARGE; appends are then ignored */
};

void hr_buf_init(struct hr_buf *b, size_t cap); /* Allocates nothing. */
void hr_buf_done(struct hr_buf *b); /* Frees the memory; hr_buf_init() makes b usable again. */

/* Declares a buffer local to a block, freed when the block is left. */
#define HR_BUF(name, bytes) HR_CLEAN(hr_buf_done) struct hr_buf name = {.cap = (bytes)}

/* Empties the buffer, clears the error and keeps the memory. */
void hr_buf_reset(struct hr_buf *b);

void hr_buf_add(struct hr_buf *b, const void *p, size_t len);
void hr_buf_addc(struct hr_buf *b, char c);
void hr_buf_adds(struct hr_buf *b, const char *s);
void hr_buf_addf(struct hr_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for `want` more bytes at p + len; returns NULL after a failure. The caller writes
 * there and then adds the number of bytes to len with hr_buf_grew(). */
char *hr_buf_reserve(struct hr_buf *b, size_t want);
void hr_buf_grew(struct hr_buf *b, size_t len);

void hr_buf_drop_front(struct hr_buf *b, size_t n); /* Drops the first n bytes, n <= len. */

/* Returns 0, or -1 with the sticky error in *err. */
int hr_buf_check(const struct hr_buf *b, struct hr_err *err);

/* Returns a borrowed string, "" while nothing was appended. */
const char *hr_buf_str(const struct hr_buf *b);
/* Returns the content, which the caller frees, and empties b. Returns NULL after a failure, without
 * a change of b, or without memory. */
char *hr_buf_take(struct hr_buf *b);
/* Does the same as hr_buf_take() and ends the use of b. Returns NULL without memory. */
char *hr_buf_end(struct hr_buf *b, struct hr_err *err);

#endif
