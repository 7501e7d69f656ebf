/* handraild: runs as the supervisor of one sandbox's server. */
#include "config.h"

#include <signal.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/log.h"
#include "supervisor/server.h"

/* Blocks SIGTERM and the others until the loop can handle them; long steps poll for them. */
static void
block_signals(void)
{
	static const int held[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		(void)sigaddset(&set, held[i]);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

static int
usage_error(const struct hr_err *err)
{
	hr_options_usage(stderr);
	(void)fprintf(stderr, "handraild: error: %s\n", err->msg);
	return HR_EXIT_USAGE;
}

static int
act(struct hr_server *s)
{
	switch (s->options.action) {
	case HR_ACTION_CHECK: return hr_server_check(s);
	case HR_ACTION_PRINT_NGINX: return hr_server_print_nginx(s);
	default: return hr_server_serve(s);
	}
}

/* Ends as the original does, by the same signal. Process 1 cannot die of it and reports it in its
 * status. */
static int
end(int status, int signo)
{
	sigset_t none;

	if (status != 0 || signo == 0)
		return status;
	(void)signal(signo, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)raise(signo);
	return 128 + signo;
}

int
main(int argc, char **argv)
{
	static struct hr_server s;
	struct hr_err err = {0};
	int status = HR_EXIT_START, signo;

	if (hr_fd_open_stdio(&err) < 0)
		return HR_EXIT_START;
	block_signals();
	hr_server_init(&s);
	hr_log_setup("handraild", HR_LOG_TEXT, HR_LOG_INFO);
	hr_log_keep(&s.log_lines);
	if (hr_reexec_begin(&s, argv, &err) < 0)
		return hr_server_fail(&s, HR_EXIT_START, &err);
	if (hr_keys_take_environment(&s.site.keys, &err) < 0)
		return hr_server_fail(&s, HR_EXIT_USAGE, &err);
	if (hr_options_parse(&s.options, argc, argv, &err) < 0)
		return usage_error(&err);
	if (s.options.action == HR_ACTION_HELP) {
		hr_options_help(stdout);
		return 0;
	}
	if (s.options.action == HR_ACTION_VERSION) {
		(void)printf("handraild (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
		return 0;
	}
	if (hr_server_settings(&s, &status, &err) < 0)
		status =
		    status == HR_EXIT_USAGE ? usage_error(&err) : hr_server_fail(&s, status, &err);
	else
		status = act(&s);
	signo = s.exit_signal;
	hr_server_release(&s);
	return end(status, signo);
}
