/* Sends reports of a sandbox to its opener, without secrets. */
#ifndef HR_HOST_REPORT_H
#define HR_HOST_REPORT_H

#include "host/handle.h"

void hr_sandbox_report(struct hr_sandbox *s, const char *status, const char *text);
void
hr_sandbox_log(struct hr_sandbox *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
