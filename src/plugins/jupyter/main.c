/* handrail-jupyter: runs as the plugin for run_ipython and the code interpreter
 * (handrail-plugin(5)). The code interpreter is a second process of the same program. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "plugins/jupyter/code.h"
#include "plugins/jupyter/serve.h"

enum { READY_FD = 3, ACTION_FD = 4, HTTP_FD = 5 };

extern char **environ;

/* Makes the kernel's environment: this process's, which is that of a fresh login, without the
 * plugin's own variables. */
static char **
kernel_environment(void)
{
	size_t n = 0, i;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (i = n = 0; env != NULL && environ[i] != NULL; i++)
		if (strncmp(environ[i], "HANDRAIL_", 9) != 0)
			env[n++] = environ[i];
	return env;
}

/* Returns Python's path, or its name to be searched on PATH. */
static const char *
choose_python(void)
{
	static const char usual[] = "/usr/bin/python3";
	const char *wanted = getenv("HANDRAIL_JUPYTER_PYTHON");

	if (wanted != NULL && wanted[0] != '\0')
		return wanted;
	return access(usual, X_OK) == 0 ? usual : "python3";
}

static int
fail(int ready, const char *why)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "failed %s\n", why);
	(void)hr_fd_write_full(ready, text, strlen(text), NULL);
	hr_log(HR_LOG_ERROR, "%s", why);
	return EXIT_FAILURE;
}

static int
serve_code(const char *dir, char *const *env)
{
	struct hr_err err = {0};

	if (hr_code_serve(HR_SERVE_CODE_FD, dir, choose_python(), env, &err) == 0)
		return EXIT_SUCCESS;
	hr_log(HR_LOG_ERROR, "%s", err.msg);
	return EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	const char *dir = getenv("HANDRAIL_STATE_DIR"), *init = getenv("HANDRAIL_KERNEL_INIT");
	HR_FREE char **env = kernel_environment();
	struct hr_jupyter j;
	struct hr_err err = {0};
	sigset_t set;
	int r;

	hr_log_setup("jupyter", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], HR_SERVE_CODE) == 0 && dir != NULL && env != NULL)
		return serve_code(dir, env);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	if (dir == NULL || hr_fd_cloexec(READY_FD, &err) < 0 ||
	    hr_fd_cloexec(ACTION_FD, &err) < 0 || hr_fd_cloexec(HTTP_FD, &err) < 0) {
		(void)fprintf(stderr, "handrail-jupyter: is started by handraild\n");
		return EXIT_FAILURE;
	}
	if (env == NULL)
		return fail(READY_FD, "out of memory");
	r = hr_jupyter_init(&j, dir, choose_python(), env, init != NULL ? init : "",
	    getenv("HANDRAIL_STATE_LOST") != NULL, &err);
	if (r == 0)
		r = hr_serve(&j, ACTION_FD, HTTP_FD, READY_FD, &err);
	else
		(void)fail(READY_FD, err.msg);
	if (r != 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
	hr_jupyter_done(&j);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
