/* Handles other processes by pidfd, which is immune to a reused number. */
#include "config.h"

#include "host/common/proc.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"

#define CHILDREN_MAX 256

int
hr_proc_watch(pid_t pid, unsigned long long started)
{
	int fd = hr_pid_open(pid, started);

	if (fd >= 0 && hr_pid_wait(fd, 0)) {
		hr_fd_close(&fd);
		errno = ESRCH;
	}
	return fd;
}

static bool
is_child(pid_t pid, pid_t of)
{
	char text[HR_PID_STAT];
	const char *stat = hr_pid_stat(pid, text);

	return *stat != 'Z' && hr_pid_field(stat, HR_PID_PARENT) == (unsigned long long)of;
}

/* Reads the parent again after opening the pidfd: the number may have been reused before. */
static size_t
watch_children(pid_t of, int fds[CHILDREN_MAX])
{
	HR_CLOSEDIR DIR *d = opendir("/proc");
	size_t n = 0;
	pid_t pid;

	while (n < CHILDREN_MAX && (pid = hr_pid_next(d)) > 0) {
		if (!is_child(pid, of))
			continue;
		fds[n] = hr_pidfd_open(pid);
		if (fds[n] >= 0 && is_child(pid, of))
			n++;
		else
			hr_fd_close(&fds[n]);
	}
	return n;
}

/* Kills the process with its children, since some would live on, like the keeper of a shell. Stops
 * it first, so that it makes no more. */
static void
end_by_force(pid_t pid, int watch_fd, int patience_ms)
{
	int fds[CHILDREN_MAX];
	int64_t until, left;
	size_t n, i;

	(void)hr_pid_signal(watch_fd, SIGSTOP);
	n = watch_children(pid, fds);
	if (hr_pid_signal(watch_fd, SIGKILL))
		(void)hr_pid_wait(watch_fd, -1);
	for (i = 0; i < n; i++)
		(void)hr_pid_signal(fds[i], SIGTERM);
	until = hr_now_ms() + patience_ms;
	for (i = 0; i < n; i++) {
		left = until - hr_now_ms();
		if (!hr_pid_wait(fds[i], left > 0 ? (int)left : 0) &&
		    hr_pid_signal(fds[i], SIGKILL))
			(void)hr_pid_wait(fds[i], patience_ms);
		hr_fd_close(&fds[i]);
	}
}

void
hr_proc_end(pid_t pid, int watch_fd, int patience_ms)
{
	bool ended = false;
	int i;

	for (i = 0; i < 2 && !ended; i++)
		ended = !hr_pid_signal(watch_fd, SIGTERM) || hr_pid_wait(watch_fd, patience_ms);
	if (!ended)
		end_by_force(pid, watch_fd, patience_ms);
	while (waitpid(pid, NULL, WNOHANG) < 0 && errno == EINTR)
		;
}

int
hr_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg, struct hr_err *err)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, NULL, fn, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r == 0 ? 0 : hr_err_sys(err, r, "start a thread");
}

int
hr_thread_detached(void *(*fn)(void *arg), void *arg, struct hr_err *err)
{
	pthread_t t;

	if (hr_thread_start(&t, fn, arg, err) != 0)
		return -1;
	(void)pthread_detach(t);
	return 0;
}
