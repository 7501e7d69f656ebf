/* hr_invalid: builds the text of a 422 answer, a Python list of dictionaries (doc/http.md, "Errors
 * of validation"). */
#ifndef HR_WORKER_REQUEST_INVALID_H
#define HR_WORKER_REQUEST_INVALID_H

#include "proto/httperr.h"

#define HR_INVALID_MAX (16u << 20) /* maximum bytes of errors; more become a generic 500 */

/* Opens an entry; loc is the text of the tuple. The caller appends the repr of the input. */
void hr_invalid_open(struct hr_buf *errors, const char *type, const char *loc, const char *msg);
/* Closes the entry; ctx is the text of one more member, or NULL. */
void hr_invalid_close(struct hr_buf *errors, const char *ctx);
/* Appends the error of a missing field. */
void hr_invalid_missing(struct hr_buf *errors, const char *loc);
/* Sends the errors and returns false. */
bool hr_invalid_answer(struct hr_buf *errors, struct hr_answer *ret);

#endif
