/* handrail-browser: runs as the plugin for browse and browse_interactive (handrail-plugin(5)). */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "plugins/browser/serve.h"

enum { READY_FD = 3, ACTION_FD = 4 };

#define DOWNLOAD_MAX (1024.0 * 1024 * 1024)
#define BYTES_MAX 1e18 /* maximum bytes; no machine has more */
/* bytes per process; enough for any usual page */
#define MEMORY_MAX (4 * 1024.0 * 1024 * 1024)

static const char *
choose_program(void)
{
	static const char *const usual[] = {
	    "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
	const char *wanted = getenv("HANDRAIL_BROWSER_CHROMIUM");
	size_t i;

	if (wanted != NULL && wanted[0] != '\0')
		return wanted;
	for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (access(usual[i], X_OK) == 0)
			return usual[i];
	return usual[0];
}

static double
bytes_of(const char *name, double otherwise)
{
	const char *wanted = getenv(name);
	char *end = NULL;
	double n = wanted != NULL ? strtod(wanted, &end) : 0;

	if (wanted == NULL || wanted[0] == '\0')
		return otherwise;
	if (*end == '\0' && n >= 0 && n <= BYTES_MAX)
		return n;
	hr_log(
	    HR_LOG_WARNING, "%s must be a number of bytes, not \"%.40s\": ignored", name, wanted);
	return otherwise;
}

/* Returns true if PDFs must be downloaded: Chromium's viewer shows a PDF without an accessibility
 * tree. */
static bool
saves_pdf(void)
{
	const char *wanted = getenv("HANDRAIL_BROWSER_PDF");

	if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "show") == 0)
		return false;
	if (strcmp(wanted, "download") != 0)
		hr_log(HR_LOG_WARNING,
		    "HANDRAIL_BROWSER_PDF must be show or download, not \"%.40s\": ignored",
		    wanted);
	return strcmp(wanted, "download") == 0;
}

static void
tell(int *ready, const char *text)
{
	(void)hr_fd_write_full(*ready, text, strlen(text), NULL);
	hr_fd_close(ready);
}

static int
run(struct browser *b, struct br_desk *d, int *ready, struct hr_err *err)
{
	b->loop = hr_loop_new(err);
	if (b->loop == NULL)
		return -1;
	tell(ready, "ready\n");
	return br_serve(b, d, ACTION_FD, err);
}

int
main(void)
{
	const char *dir = getenv("HANDRAIL_STATE_DIR"), *workspace = getenv("HANDRAIL_WORKSPACE");
	struct browser b;
	struct br_desk d = {.dir = workspace};
	struct hr_err err = {0};
	char text[400];
	HR_FREE char *profile = NULL;
	int ready = READY_FD, r = -1;

	hr_log_setup("browser", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	/* lets this process end Chromium's orphans */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (dir == NULL || workspace == NULL || hr_fd_cloexec(READY_FD, &err) != 0 ||
	    hr_fd_cloexec(ACTION_FD, &err) != 0) {
		(void)fprintf(stderr, "handrail-browser: is started by handraild\n");
		return EXIT_FAILURE;
	}
	br_init(&b);
	b.program = choose_program();
	b.download_max = bytes_of("HANDRAIL_BROWSER_DOWNLOAD_MAX", DOWNLOAD_MAX);
	b.memory_max = bytes_of("HANDRAIL_BROWSER_MEMORY_MAX", MEMORY_MAX);
	b.saves_pdf = saves_pdf();
	profile = hr_path_join(dir, "profile");
	b.profile = profile;
	if (access(b.program, X_OK) != 0) {
		(void)snprintf(text, sizeof(text),
		    "unavailable there is no %s: install chromium, or name one in "
		    "HANDRAIL_BROWSER_CHROMIUM\n",
		    b.program);
		tell(&ready, text);
	} else if (profile == NULL || br_desk_open(&d, workspace, dir, &err) != 0) {
		(void)snprintf(text, sizeof(text), "failed %.240s\n",
		    profile != NULL ? err.msg : "out of memory");
		tell(&ready, text);
	} else {
		b.downloads = d.downloads;
		r = run(&b, &d, &ready, &err);
		if (r != 0)
			hr_log(HR_LOG_ERROR, "%s", err.msg);
	}
	br_done(&b);
	hr_loop_free(b.loop);
	br_desk_close(&d);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
