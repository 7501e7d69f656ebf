/* Reads the literals of a program as Python does. */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_PYLITERALS_H
#define HR_PLUGINS_BROWSER_PROGRAM_PYLITERALS_H

#include <stddef.h>

#include "base/buf.h"
#include "plugins/browser/program/value.h"

/* Says how the attempt to read an item ended. */
enum br_reading {
	BR_READ = 0,
	BR_RAISED = 1, /* Python raises; the exception is in why */
	BR_NOMEM = -1,
	BR_NOT_THERE = 2,
};

/* Reads a string literal with its quotes, whose end the caller has found. */
int br_pystring(const char *p, size_t len, struct br_value *ret, struct hr_buf *why);

/* Reads the number at *p, and moves *p after it. */
int br_pynumber(const char **p, const char *end, struct br_value *ret, struct hr_buf *why);

#endif
