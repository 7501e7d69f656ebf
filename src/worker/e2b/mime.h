/* Finds the type of a file as Go's libraries mime and net/http do. */
#ifndef HR_WORKER_E2B_MIME_H
#define HR_WORKER_E2B_MIME_H

#include <stddef.h>

#include "base/buf.h"

#define HR_MIME_SNIFF 512 /* bytes that decide about a file without a known extension */

/* Returns the type that the extension of a name stands for; NULL: unknown. */
const char *hr_mime_by_name(const char *path);
/* Returns the type that the first bytes of a file look like. */
const char *hr_mime_by_content(const char *p, size_t len);

/* Appends the value of Content-Disposition for an inline file of that name. */
void hr_mime_put_disposition(struct hr_buf *b, const char *name);

#endif
