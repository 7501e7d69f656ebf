/* What Python makes of a literal in a program. */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_PYLITERALS_H
#define HR_PLUGINS_BROWSER_PROGRAM_PYLITERALS_H

#include <stddef.h>

#include "base/buf.h"
#include "plugins/browser/program/value.h"

/* What became of trying to read something. */
enum br_reading {
	BR_READ = 0,
	BR_RAISED = 1, /* Python raises; what, was told */
	BR_NOMEM = -1,
	BR_NOT_THERE = 2,
};

/* The value of a string literal with its quotes, whose end the caller found. */
int br_pystring(const char *p, size_t len, struct br_value *ret, struct hr_buf *why);

/* The number at *p, which moves behind it. */
int br_pynumber(const char **p, const char *end, struct br_value *ret, struct hr_buf *why);

#endif
