/* What the kinds' doctors look at alike. Each tells fn what it found. */
#ifndef HR_HOST_COMMON_EXAM_H
#define HR_HOST_COMMON_EXAM_H

#include "host/handrail.h"

void hr_exam_say(hr_finding_fn *fn, void *arg, bool ok, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* A finding as people read it. */
struct hr_buf;
void hr_exam_line(struct hr_buf *b, bool ok, const char *what, const char *text);

/* A program on the PATH of env; hint: the command that brings it. */
void hr_exam_program(
    hr_finding_fn *fn, void *arg, const char *const *env, const char *name, const char *hint);
/* One of a known place; path NULL: it has none. */
void
hr_exam_file(hr_finding_fn *fn, void *arg, const char *what, const char *path, const char *hint);
/* The version of the Chromium that the browser would start; nothing where there is none. given:
 * what HANDRAIL_BROWSER_CHROMIUM says, or NULL. */
void hr_exam_chromium(hr_finding_fn *fn, void *arg, const char *given);

#endif
