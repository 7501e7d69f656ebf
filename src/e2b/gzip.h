/* hr_gzip: compresses messages in memory. */
#ifndef HR_E2B_GZIP_H
#define HR_E2B_GZIP_H

#include "base/buf.h"
#include "base/span.h"

/* Appends the compressed or the plain bytes, within the cap of b. Returns 0, or -1 without memory
 * or for data that is not one whole gzip stream. */
int hr_gzip(struct hr_buf *b, struct hr_span data);
int hr_gunzip(struct hr_buf *b, struct hr_span data);

#endif
