/* hr_mask: hides the secrets of a sandbox in texts. */
#ifndef HR_HOST_MASK_H
#define HR_HOST_MASK_H

#include <stddef.h>

#include "host/handle.h"

/* Copies text with ****** for each secret: tokens, and variables whose name has SECRET, _KEY, _CODE
 * or _TOKEN. Cuts the copy to cap bytes. */
void hr_mask_text(const struct hr_sandbox *s, const char *text, char *out, size_t cap);
/* Appends len bytes of text, masked; may be called from another thread than the sandbox's. */
void hr_mask_add(const struct hr_sandbox *s, struct hr_buf *out, const char *text, size_t len);
/* Sets err to a text that may contain a program's output: masked before it is cut, as half a secret
 * would not be recognised. Returns -1. */
int hr_mask_err_set(const struct hr_sandbox *s, struct hr_err *err, enum hr_errc code,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Masks the error's text in place. err may be NULL. */
void hr_mask_error(const struct hr_sandbox *s, struct hr_err *err);

/* Replaces the entry of that name in s->tokens by "NAME=TOKEN"; another thread may mask
 * meanwhile. */
void hr_mask_token(struct hr_sandbox *s, const char *entry);

#endif
