/* A call that was found, for comparing. */
#ifndef FOUND_H
#define FOUND_H

#include "plugins/browser/program/calls.h"

/* As Python writes it: click('1', button='right'). */
static inline void
found_python(struct hr_buf *b, const struct br_found *f)
{
	size_t i;

	hr_buf_addf(b, "%s(", f->name);
	for (i = 0; i < f->n; i++) {
		hr_buf_adds(b, i > 0 ? ", " : "");
		if (f->args[i].name != NULL)
			hr_buf_addf(b, "%s=", f->args[i].name);
		br_value_repr(b, &f->args[i].value);
	}
	hr_buf_addc(b, ')');
}

#endif
