/* hr_outlog: the last bytes that a terminal printed, with absolute offsets: the first byte of the
 * first shell is 0, and no offset ever means another byte. */
#ifndef HR_SESSION_OUTLOG_H
#define HR_SESSION_OUTLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hr_outlog {
	char *p; /* memory that is taken only as it is written; NULL: nothing is kept */
	size_t cap;
	uint64_t end; /* offset behind the last byte */
};

int hr_outlog_init(struct hr_outlog *o, size_t cap, struct hr_err *err);
void hr_outlog_done(struct hr_outlog *o);
/* Cannot fail: the oldest bytes make room. */
void hr_outlog_add(struct hr_outlog *o, const char *p, size_t len);
uint64_t hr_outlog_start(const struct hr_outlog *o); /* of the oldest byte that is kept */
/* The bytes from an offset between start and end on that lie in one piece; valid until the next
 * add. *ret_len is 0 at the end only. */
const char *hr_outlog_at(const struct hr_outlog *o, uint64_t from, size_t *ret_len);

#endif
