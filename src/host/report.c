/* Reports to the sandbox's opener. */
#include "config.h"

#include "host/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/mask.h"

#define LINE_MAX_LEN 2000

void
hr_sandbox_report(struct hr_sandbox *s, const char *status, const char *text)
{
	s->runtime_status = status;
	if (s->status != NULL)
		s->status(s->status_arg, "info", status, text);
}

void
hr_sandbox_log(struct hr_sandbox *s, const char *fmt, ...)
{
	char masked[LINE_MAX_LEN], *text = NULL;
	va_list ap;
	int n;

	if (s->log == NULL)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	/* masks before the text is cut: half a secret would not be recognised */
	hr_mask_text(s, n >= 0 ? text : "out of memory", masked, sizeof(masked));
	if (n >= 0)
		free(text);
	s->log(s->log_arg, masked);
}
