/* br_calls: finds the calls in a program's text, as the original's grammar does: anything but a
 * call with literal arguments is skipped. Pure. */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_CALLS_H
#define HR_PLUGINS_BROWSER_PROGRAM_CALLS_H

#include <stddef.h>

#include "base/buf.h"
#include "plugins/browser/program/value.h"

struct br_argument {
	char *name; /* name of the argument; NULL: positional */
	char *key;  /* name in the form that Python compares */
	struct br_value value;
};

struct br_found {
	char *name;
	struct br_argument *args; /* positional arguments come first */
	size_t n;
};

struct br_calls {
	struct br_found *v;
	size_t n;
};

/* Returns 0; 1 if reading the text raises *why, with *ret empty; -1 without memory. */
int br_calls_find(struct br_calls *ret, const char *text, size_t len, struct hr_buf *why);
void br_calls_done(struct br_calls *c);

#endif
