/* hr_filebody: an open file, or a part of it, as the body of an answer. */
#ifndef HR_FILES_FILEBODY_H
#define HR_FILES_FILEBODY_H

#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/httperr.h"

/* What a client asks for of a file with `size` bytes (RFC 9110, 14). One range is answered;
 * several, and what is no range, mean the whole file. */
enum hr_range { HR_RANGE_ALL, HR_RANGE_PART, HR_RANGE_NONE /* outside of the file: 416 */ };
enum hr_range hr_range_parse(const char *header, off_t size, off_t *ret_from, off_t *ret_len);

/* Both as nginx writes them, so that a download can be gone on with whoever sent its first part. */
void hr_filebody_etag(struct hr_buf *b, time_t mtime, off_t size);
void hr_filebody_date(struct hr_buf *b, time_t mtime);
/* Is the tag in the list of an If-None-Match header? */
bool hr_filebody_matches(const char *header, const char *etag);

/* Takes fd. NULL: no memory, and fd is closed. A file that has become shorter breaks the answer
 * off. */
void *hr_filebody_new(int fd, off_t from, off_t len);
int hr_filebody_send(void *body, struct hr_sink *sink, struct hr_err *err);
void hr_filebody_free(void *body);

#endif
