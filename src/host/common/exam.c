/* Implements checks that the back-ends' doctors share. */
#include "config.h"

#include "host/common/exam.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/quote.h"

#define TEXT_MAX_LEN 700
#define CHROMIUM_MIN 131 /* minimum version, as in man/handrail-browser.8 */
#define CHROMIUM_MS 20000

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

void
hr_exam_chromium(hr_finding_fn *fn, void *arg, const char *given)
{
	/* src/plugins/browser/main.c tries the same ones */
	const char *const usual[] = {
	    "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
	/* Debian's chromium is a script, which needs the system's programs whatever PATH is */
	const char *argv[] = {"/bin/sh", "-c",
	    "PATH=$PATH:/usr/bin:/bin; export PATH; exec \"$0\" --version >&2", NULL, NULL},
		   *p;
	char said[TEXT_MAX_LEN / 2] = "";
	struct hr_err err = {0};
	int version = 0;
	size_t i;

	if (given != NULL && given[0] != '\0')
		argv[3] = given;
	for (i = 0; i < sizeof(usual) / sizeof(*usual) && argv[3] == NULL; i++)
		if (access(usual[i], X_OK) == 0)
			argv[3] = usual[i];
	if (argv[3] == NULL) {
		fn(arg, true, "chromium",
		    "not installed, so sandboxes have no browser. Debian: apt-get install "
		    "chromium");
		return;
	}
	if (access(argv[3], X_OK) != 0) {
		hr_exam_say(fn, arg, false, "chromium",
		    "%s cannot be executed: %s; change or unset HANDRAIL_BROWSER_CHROMIUM", argv[3],
		    strerror(errno));
		return;
	}
	if (hr_spawn_wait_for(argv, CHROMIUM_MS, said, sizeof(said), &err) < 0)
		(void)snprintf(said, sizeof(said), "%.300s", err.msg);
	for (p = said; version == 0 && (p = strstr(p, "Chrom")) != NULL; p++)
		if ((i = strspn(p + 5, "eium")) > 0 && p[5 + i] == ' ')
			version = (int)strtol(p + 5 + i, NULL, 10);
	if (version >= CHROMIUM_MIN)
		hr_exam_say(fn, arg, true, "chromium", "%s, version %d", argv[3], version);
	else if (version > 0)
		hr_exam_say(fn, arg, false, "chromium",
		    "%s has version %d; the browser needs %d or later. Debian: apt-get install "
		    "chromium",
		    argv[3], version, CHROMIUM_MIN);
	else
		hr_exam_say(fn, arg, false, "chromium",
		    "%s does not print its version: %s. Debian: apt-get install chromium", argv[3],
		    said);
}
