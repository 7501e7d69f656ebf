/* hr_random: provides unpredictable bytes, as numbers or as text. */
#ifndef HR_BASE_RANDOM_H
#define HR_BASE_RANDOM_H

#include <stddef.h>

#include "base/err.h"

#define HR_RANDOM_MAX 256 /* maximum bytes per call: the kernel returns so many at once */
#define HR_UUID_TEXT 37

/* Fills *p with random bytes. Returns 0, or -1 with *err and *p not filled if the kernel gives none
 * (a system-call filter). */
int hr_random(void *p, size_t len, struct hr_err *err);
/* Writes an even number of lower-case hexadecimal digits and a NUL. */
int hr_random_hex(char *text, size_t digits, struct hr_err *err);
int hr_random_uuid(char text[HR_UUID_TEXT], struct hr_err *err); /* Writes a UUID of version 4. */

#endif
