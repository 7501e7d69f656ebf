/* hr_template: fills @name@ places in a text. Pure. */
#ifndef HR_BASE_TEXT_TEMPLATE_H
#define HR_BASE_TEXT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_place {
	const char *name;
	const char *value;
	bool whole; /* a complete directive that handrail wrote: not checked */
};

/* Appends the filled text to out. A place without value is an error that names the place; "@@" is
 * "@"; an '@' that begins no name stays. A value that nginx's configuration cannot contain unquoted
 * (blanks, quotes, ";{}$#\", control characters) is an error too: nothing is quoted here. */
int hr_template_fill(struct hr_buf *out, const char *text, size_t len,
    const struct hr_place *places, size_t nplaces, struct hr_err *err);

#endif
