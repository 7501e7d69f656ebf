/* Runs the guard of a box. A credential change in the box makes the kernel forget that process 1
 * must die with the launcher; a process outside does not forget. */
#include "config.h"

#include "box/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "box/group.h"

#define PATIENCE_S 2
#define TRIES 100 /* tries to remove a group */
#define TRY_MS 10

static void
interrupt(int signo)
{
	(void)signo;
}

/* Returns 0, or an error number: EINTR after PATIENCE_S. */
static int
lock_in_time(int fd)
{
	/* the timer repeats, since its first signal may come before flock() waits */
	const struct itimerval on = {.it_value = {PATIENCE_S, 0}, .it_interval = {0, 100000}};
	const struct itimerval off = {.it_value = {0, 0}};
	const struct sigaction act = {.sa_handler = interrupt};
	struct sigaction before;
	int sys;

	(void)sigaction(SIGALRM, &act, &before);
	(void)setitimer(ITIMER_REAL, &on, NULL);
	sys = flock(fd, LOCK_EX) == 0 ? 0 : errno;
	(void)setitimer(ITIMER_REAL, &off, NULL);
	(void)sigaction(SIGALRM, &before, NULL);
	return sys;
}

int
box_guard_lock(struct box_guard *g, const char *storage, struct hr_err *err)
{
	int sys;

	*g = (struct box_guard){.lock = -1, .tie = -1};
	g->lock = open(storage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (g->lock < 0)
		return hr_err_sys(err, errno, "open the storage %s", storage);
	sys = lock_in_time(g->lock);
	if (sys == EINTR)
		return hr_err_set(err, HR_E_BUSY,
		    "another box uses the storage %s: end that box first, or give this one another "
		    "directory",
		    storage);
	return sys == 0 ? 0 : hr_err_sys(err, sys, "lock the storage %s", storage);
}

/* the descriptors that the guard keeps, under these numbers */
enum { LOCK = STDERR_FILENO + 1, TIE, KEPT };

/* Keeps no stream of the launcher: a reader would wait for its end as long as the box lives. */
static void
keep(int lock, int tie)
{
	const int copies[] = {fcntl(lock, F_DUPFD, KEPT), fcntl(tie, F_DUPFD, KEPT)};
	int i, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (i = 0; i <= STDERR_FILENO; i++)
		(void)dup2(null, i);
	for (i = 0; i < 2; i++)
		(void)dup2(copies[i], LOCK + i);
	hr_fd_close_from(KEPT);
}

/* Runs the work, and sends the launcher its result: a byte, and the message of an error. Then gives
 * the memory back, since the guard lives as long as the box. */
static void
work(box_guard_fn *fn, const void *arg)
{
	struct hr_err e = {0};
	char answer[1 + sizeof(e.msg)] = "d";

	if (fn(arg, &e) < 0)
		(void)snprintf(answer + 1, sizeof(e.msg), "%s", e.msg);
	/* fails if the launcher has ended */
	(void)hr_fd_send(TIE, answer, strlen(answer), -1, NULL);
	(void)malloc_trim(0);
}

/* Runs as the guard, which ends after the box. Unless the box may outlive the launcher, nothing of
 * it is left then. */
static void __attribute__((noreturn)) watch(const char *name)
{
	struct pollfd p[] = {{.events = POLLIN}, {.fd = TIE, .events = POLLIN}};
	bool left = false;
	char byte;
	int i;

	if (hr_fd_recv(TIE, &byte, 1, &p[0].fd, NULL) <= 0)
		p[0] = (struct pollfd){.fd = -1, .revents = POLLIN};
	while (p[0].revents == 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p[1].revents == 0)
			continue;
		p[1] = (struct pollfd){.fd = -1};
		left = hr_fd_read(TIE, &byte, 1) == 1;
		if (!left)
			(void)hr_pid_signal(p[0].fd, SIGKILL);
	}
	/* a first process that the guard does not know of ends by itself, soon */
	for (i = 0; !left && !box_group_remove(name, hr_account_is_root()) && i < TRIES; i++)
		(void)poll(NULL, 0, TRY_MS);
	_exit(0);
}

int
box_guard_start(
    struct box_guard *g, const char *name, box_guard_fn *fn, const void *arg, struct hr_err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return hr_err_sys(err, errno, "a socket pair");
	g->pid = fork();
	if (g->pid == 0) {
		/* a signal to the launcher's process group must not reach the guard */
		if (setsid() < 0 || chdir("/") < 0)
			_exit(1);
		keep(g->lock, ends[0]);
		work(fn, arg);
		watch(name);
	}
	hr_fd_close(&ends[0]);
	g->tie = ends[1];
	return g->pid > 0 ? 0 : hr_err_sys(err, errno, "start the guard of the box");
}

int
box_guard_wait(const struct box_guard *g, struct hr_err *err)
{
	char answer[1 + sizeof(err->msg)];
	const ssize_t n = hr_fd_read(g->tie, answer, sizeof(answer) - 1);

	if (n < 1)
		return hr_err_set(err, HR_E_GONE, "the guard of the box has ended");
	answer[n] = '\0';
	return n == 1 ? 0 : hr_err_set(err, HR_E_SYS, "%s", answer + 1);
}

int
box_guard_watch(const struct box_guard *g, int pidfd, struct hr_err *err)
{
	return hr_fd_send(g->tie, "w", 1, pidfd, err);
}

int
box_guard_leave(struct box_guard *g, struct hr_err *err)
{
	int r = hr_fd_send(g->tie, "l", 1, -1, err);

	g->pid = 0;
	return r;
}

void
box_guard_end(struct box_guard *g)
{
	hr_fd_close(&g->tie);
	if (g->pid > 0)
		(void)hr_spawn_end(g->pid, NULL); /* fails where the guard was waited for already */
	hr_fd_close(&g->lock);
}
