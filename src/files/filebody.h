/* hr_filebody: sends an open file, or a part of it, as the body of a response. */
#ifndef HR_FILES_FILEBODY_H
#define HR_FILES_FILEBODY_H

#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/httperr.h"

/* Parses the Range header for a file of `size` bytes (RFC 9110, 14). One range is served; several
 * ranges, or an invalid header, mean the whole file. */
enum hr_range {
	HR_RANGE_ALL,
	HR_RANGE_PART,
	HR_RANGE_NONE /* NONE: the range is outside the file, which is a 416 */
};
enum hr_range hr_range_parse(const char *header, off_t size, off_t *ret_from, off_t *ret_len);

/* Appends the header as nginx writes it, so that a download resumes whether handrail or nginx began
 * it. */
void hr_filebody_etag(struct hr_buf *b, time_t mtime, off_t size);
void hr_filebody_date(struct hr_buf *b, time_t mtime);
/* Returns true if the tag is in the list of an If-None-Match header. */
bool hr_filebody_matches(const char *header, const char *etag);

/* Takes fd. Returns NULL if out of memory, with fd closed. A file that has become shorter aborts
 * the response. */
void *hr_filebody_new(int fd, off_t from, off_t len);
int hr_filebody_send(void *body, struct hr_sink *sink, struct hr_err *err);
void hr_filebody_free(void *body);

#endif
