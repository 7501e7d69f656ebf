/* The checks that the back-ends' doctors share. Each reports its finding to fn. */
#ifndef HR_HOST_COMMON_EXAM_H
#define HR_HOST_COMMON_EXAM_H

#include "host/handrail.h"

void hr_exam_say(hr_finding_fn *fn, void *arg, bool ok, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Formats a finding for people. */
struct hr_buf;
void hr_exam_line(struct hr_buf *b, bool ok, const char *what, const char *text);

/* Checks for a program on the PATH of env; `hint` is the command that installs it. */
void hr_exam_program(
    hr_finding_fn *fn, void *arg, const char *const *env, const char *name, const char *hint);
/* Checks for a file; path NULL: no place is known. */
void
hr_exam_file(hr_finding_fn *fn, void *arg, const char *what, const char *path, const char *hint);
/* Checks the version of the Chromium that the browser would start. A machine without Chromium is no
 * fault: sandboxes then have no browser. `given` is the value of HANDRAIL_BROWSER_CHROMIUM, or
 * NULL. */
void hr_exam_chromium(hr_finding_fn *fn, void *arg, const char *given);

#endif
