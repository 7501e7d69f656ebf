/* hr_base64_read: the bytes that a text in base64 stands for; blanks and ends of lines are left
 * out. */
#ifndef HR_HOST_KUBERNETES_BASE64_H
#define HR_HOST_KUBERNETES_BASE64_H

#include "base/buf.h"

/* Appends to b. false: this is no base64. */
bool hr_base64_read(struct hr_buf *b, const char *text);

#endif
