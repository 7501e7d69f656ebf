/* What a kind keeps of a sandbox, as the text of a JSON object: members one after the other into a
 * buffer that was only initialised. What goes wrong shows at the end. */
#ifndef HR_HOST_COMMON_RECORDTEXT_H
#define HR_HOST_COMMON_RECORDTEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/strv.h"

void hr_record_put_text(struct hr_buf *b, const char *name, const char *value); /* NULL: null */
void hr_record_put_int(struct hr_buf *b, const char *name, long long value);
void hr_record_put_bool(struct hr_buf *b, const char *name, bool value);
void hr_record_put_list(struct hr_buf *b, const char *name, const struct hr_strv *list);
/* The object, the caller's; the buffer is done with. NULL: no memory, or longer than its cap. */
char *hr_record_take(struct hr_buf *b, struct hr_err *err);

#endif
