/* Writes a back-end's record of a sandbox, as a JSON object: members are appended to an initialised
 * buffer. Errors show at the end. */
#ifndef HR_HOST_COMMON_RECORDTEXT_H
#define HR_HOST_COMMON_RECORDTEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/strv.h"

/* Appends a string; NULL becomes null. */
void hr_record_put_text(struct hr_buf *b, const char *name, const char *value);
void hr_record_put_int(struct hr_buf *b, const char *name, long long value);
void hr_record_put_bool(struct hr_buf *b, const char *name, bool value);
void hr_record_put_list(struct hr_buf *b, const char *name, const struct hr_strv *list);
/* Returns the object, which the caller owns, and frees the buffer. Returns NULL without memory, or
 * if the object is longer than the buffer's cap. */
char *hr_record_take(struct hr_buf *b, struct hr_err *err);

#endif
