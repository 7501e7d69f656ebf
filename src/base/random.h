/* hr_random: bytes that nobody can guess, as numbers or as text. */
#ifndef HR_BASE_RANDOM_H
#define HR_BASE_RANDOM_H

#include <stddef.h>

#include "base/err.h"

#define HR_RANDOM_MAX 256 /* bytes at once: so many never come in parts */
#define HR_UUID_TEXT 37

/* -1 with *err: the kernel gives none (a filter of system calls); *p is not filled. */
int hr_random(void *p, size_t len, struct hr_err *err);
/* `digits` lower-case hexadecimal digits, an even number, and a NUL. */
int hr_random_hex(char *text, size_t digits, struct hr_err *err);
int hr_random_uuid(char text[HR_UUID_TEXT], struct hr_err *err); /* of version 4 */

#endif
