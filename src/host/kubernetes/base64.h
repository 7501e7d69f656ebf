/* hr_base64_read: decodes base64; ignores blanks and line ends. */
#ifndef HR_HOST_KUBERNETES_BASE64_H
#define HR_HOST_KUBERNETES_BASE64_H

#include "base/buf.h"

/* Appends the bytes to b. Returns false if the text is not base64. */
bool hr_base64_read(struct hr_buf *b, const char *text);

#endif
