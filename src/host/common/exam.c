/* What the kinds' doctors look at alike. */
#include "config.h"

#include "host/common/exam.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text/quote.h"

#define TEXT_MAX_LEN 700

void
hr_exam_say(hr_finding_fn *fn, void *arg, bool ok, const char *what, const char *fmt, ...)
{
	char text[TEXT_MAX_LEN];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fn(arg, ok, what, text);
}

void
hr_exam_line(struct hr_buf *b, bool ok, const char *what, const char *text)
{
	hr_buf_addf(b, "%-4s %-16s ", ok ? "ok" : "BAD", what);
	hr_quote_text(b, text, strlen(text));
	hr_buf_addc(b, '\n');
}

void
hr_exam_program(
    hr_finding_fn *fn, void *arg, const char *const *env, const char *name, const char *hint)
{
	const char *dirs = NULL;
	HR_FREE char *path = NULL;

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			dirs = *env + 5;
	path = hr_path_which(dirs, name);
	hr_exam_file(fn, arg, name, path, hint);
}

void
hr_exam_file(hr_finding_fn *fn, void *arg, const char *what, const char *path, const char *hint)
{
	if (path != NULL && access(path, X_OK) == 0)
		fn(arg, true, what, path);
	else
		hr_exam_say(fn, arg, false, what, "%s is not properly installed. %s", what, hint);
}
