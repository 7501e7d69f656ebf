/* hr_buf: growing bytes with a mandatory cap and a sticky error, so that ten appends need one
 * check.
 *
 * Not built on json-c's printbuf: the session keeper and the supervisor need buffers but no JSON,
 * and printbuf counts in int. */
#ifndef HR_BASE_BUF_H
#define HR_BASE_BUF_H

#include <stddef.h>

#include "base/clean.h"
#include "base/err.h"

struct hr_buf {
	char *p;     /* NUL-terminated once anything was appended; may hold NULs */
	size_t len;  /* without the NUL */
	size_t room; /* allocated bytes */
	size_t cap;  /* len never exceeds it */
	enum hr_errc
	    fail; /* first failure: HR_E_NOMEM or HR_E_TOOLARGE; appends are then ignored */
};

void hr_buf_init(struct hr_buf *b, size_t cap); /* allocates nothing */
void hr_buf_done(struct hr_buf *b);             /* frees; b may be used again after init */

/* A buffer of a block's own, freed where the block is left. */
#define HR_BUF(name, bytes) HR_CLEAN(hr_buf_done) struct hr_buf name = {.cap = (bytes)}

void hr_buf_reset(struct hr_buf *b); /* empty, error cleared, memory kept */

void hr_buf_add(struct hr_buf *b, const void *p, size_t len);
void hr_buf_addc(struct hr_buf *b, char c);
void hr_buf_adds(struct hr_buf *b, const char *s);
void hr_buf_addf(struct hr_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Room for `want` more bytes to be written at p + len; NULL after a failure. The caller then adds
 * what it wrote to len with hr_buf_grew(). */
char *hr_buf_reserve(struct hr_buf *b, size_t want);
void hr_buf_grew(struct hr_buf *b, size_t len);

void hr_buf_drop_front(struct hr_buf *b, size_t n); /* n <= len */

/* 0, or -1 with the sticky error in *err. */
int hr_buf_check(const struct hr_buf *b, struct hr_err *err);

const char *hr_buf_str(const struct hr_buf *b); /* "" while nothing was appended; borrowed */
char *hr_buf_take(struct hr_buf *b); /* the caller frees; NULL after a failure; b is empty again */
char *
hr_buf_end(struct hr_buf *b, struct hr_err *err); /* the same; b is done with; NULL: no memory */

#endif
