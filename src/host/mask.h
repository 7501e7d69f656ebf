/* hr_mask: texts without the secrets that a sandbox knows of. */
#ifndef HR_HOST_MASK_H
#define HR_HOST_MASK_H

#include <stddef.h>

#include "host/handle.h"

/* text with ****** for each secret: tokens, and what the environment holds under a name with
 * SECRET, _KEY, _CODE or _TOKEN. out: room for cap bytes, which is cut to. */
void hr_mask_text(const struct hr_sandbox *s, const char *text, char *out, size_t cap);
/* Appends len bytes of text, masked as well; also from another thread than the sandbox's. */
void hr_mask_add(const struct hr_sandbox *s, struct hr_buf *out, const char *text, size_t len);
/* Fills err with a text that may hold what a program printed: masked before it is cut, as half a
 * secret would not be known for one. Returns -1. */
int hr_mask_err_set(const struct hr_sandbox *s, struct hr_err *err, enum hr_errc code,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Masks in place. NULL: nothing. */
void hr_mask_error(const struct hr_sandbox *s, struct hr_err *err);

/* "NAME=TOKEN" takes the place of what s->tokens has under that name; another thread may mask
 * meanwhile. */
void hr_mask_token(struct hr_sandbox *s, const char *entry);

#endif
