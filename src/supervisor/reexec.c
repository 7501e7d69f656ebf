/* Upgrade. Invariant: until execve() nothing of the running server has changed. */
#include "config.h"

#include "supervisor/reexec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/spawn.h"
#include "supervisor/server.h"

#define HANDOVER "HANDRAIL_HANDOVER" /* "PID LISTENER KEYS", -1: none */
#define FIRST_FD (STDERR_FILENO + 1)
#define ABOVE 100 /* out of the way of those two */

extern char **environ;

/* Ours from now on, at a low number; everything else above is closed. -1 stays -1. */
static void
keep_two(int *a, int *b)
{
	int high_a = *a >= 0 ? fcntl(*a, F_DUPFD_CLOEXEC, ABOVE) : -1;
	int high_b = *b >= 0 ? fcntl(*b, F_DUPFD_CLOEXEC, ABOVE) : -1;

	*a = high_a >= 0 ? dup3(high_a, FIRST_FD, O_CLOEXEC) : -1;
	*b = high_b >= 0 ? dup3(high_b, FIRST_FD + 1, O_CLOEXEC) : -1;
	if (*a < 0)
		(void)close(FIRST_FD);
	if (*b < 0)
		(void)close(FIRST_FD + 1);
	hr_fd_close_from(FIRST_FD + 2);
}

static int
copy_words(struct hr_reexec *r, char *const *argv, struct hr_err *err)
{
	size_t n = 0, i;

	while (argv[n] != NULL)
		n++;
	r->argv = calloc(n + 1, sizeof(*r->argv));
	if (r->argv == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < n; i++)
		r->argv[i] = argv[i];
	return 0;
}

int
hr_reexec_begin(struct hr_server *s, char *const *argv, struct hr_err *err)
{
	const char *text = getenv(HANDOVER);
	long pid = 0;
	int listener = -1, keys = -1;
	ssize_t n;

	/* from an earlier image of our process, or from one that asks us whether we could go on;
	 * not a variable that somebody set */
	if (text != NULL && (sscanf(text, "%ld %d %d", &pid, &listener, &keys) != 3 ||
				(pid != (long)getpid() && pid != (long)getppid())))
		listener = keys = -1;
	(void)unsetenv(HANDOVER);
	keep_two(&listener, &keys);
	s->listener = listener;
	if (keys >= 0) {
		s->keys.fd = keys;
		s->keys.count = 1;
		s->keys.from_environment = true;
	}
	/* now: later the file may be another one, which is what an upgrade is about */
	n = readlink("/proc/self/exe", s->reexec.program, sizeof(s->reexec.program) - 1);
	if (n < 0)
		return hr_err_sys(err, errno, "/proc/self/exe");
	s->reexec.program[n] = '\0';
	return copy_words(&s->reexec, argv, err);
}

void
hr_reexec_check_listener(struct hr_server *s)
{
	struct sockaddr_storage is;
	socklen_t len = sizeof(is);

	if (s->listener < 0)
		return;
	memset(&is, 0, sizeof(is));
	if (s->settings.start_nginx &&
	    getsockname(s->listener, (struct sockaddr *)&is, &len) == 0 && len == s->listen.len &&
	    memcmp(&is, &s->listen.addr, len) == 0)
		return;
	hr_fd_close(&s->listener);
}

/* What the new image would do with the settings, but for doing it. */
static int
ask(const struct hr_server *s, struct hr_err *err)
{
	size_t n = 0, i;
	const char **words;
	char said[1024], *last;
	int status;

	while (s->reexec.argv[n] != NULL)
		n++;
	words = calloc(n + 2, sizeof(*words));
	if (words == NULL)
		return hr_err_nomem(err);
	words[0] = s->reexec.program;
	words[1] = "--check";
	for (i = 1; i < n; i++)
		words[i + 1] = s->reexec.argv[i];
	status = hr_spawn_wait(words, said, sizeof(said), err);
	free(words);
	if (status < 0)
		return -1;
	n = strlen(said);
	while (n > 0 && said[n - 1] == '\n')
		said[--n] = '\0';
	last = strrchr(said, '\n'); /* after the usage, if that is what is wrong */
	return status == 0 ? 0 : hr_err_set(err, HR_E_INVAL, "%s", last != NULL ? last + 1 : said);
}

/* As we were started: the next one raises and lowers it again. */
static void
restore_process(const struct hr_server *s)
{
	sigset_t all;

	(void)sigfillset(&all); /* inherited: what comes now waits for the next image */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)umask((mode_t)s->umask_given);
	(void)setrlimit(RLIMIT_NOFILE, &s->nofile_given);
	hr_children_protect(&s->kids, false);
}

void
hr_reexec_go(struct hr_server *s, struct hr_err *err)
{
	int listener = s->listener >= 0 ? fcntl(s->listener, F_DUPFD, FIRST_FD) : -1;
	int keys = s->keys.from_environment ? fcntl(s->keys.fd, F_DUPFD, FIRST_FD) : -1;
	struct rlimit lim = s->nofile_given;
	char text[64];
	sigset_t was;

	(void)getrlimit(RLIMIT_NOFILE, &lim);
	(void)snprintf(text, sizeof(text), "%ld %d %d", (long)getpid(), listener, keys);
	(void)sigprocmask(SIG_SETMASK, NULL, &was);
	if (setenv(HANDOVER, text, 1) != 0)
		(void)hr_err_nomem(err);
	else if (ask(s, err) == 0) {
		hr_notify_send(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%lld\n",
		    (long long)hr_now_ms() * 1000);
		hr_log(HR_LOG_NOTICE, "going on as %s", s->reexec.program);
		restore_process(s);
		(void)execve(s->reexec.program, s->reexec.argv, environ);
		(void)hr_err_sys(err, errno, "%s", s->reexec.program);
		hr_children_protect(&s->kids, true);
		(void)setrlimit(RLIMIT_NOFILE, &lim);
		(void)umask(022);
		(void)sigprocmask(SIG_SETMASK, &was, NULL);
		hr_notify_send(&s->notify, "READY=1\n");
	}
	(void)unsetenv(HANDOVER);
	hr_fd_close(&listener);
	hr_fd_close(&keys);
}

void
hr_reexec_done(struct hr_reexec *r)
{
	free(r->argv);
	r->argv = NULL;
}
