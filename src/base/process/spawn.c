/* fork + exec. The child reports a failed step through a close-on-exec pipe: end of file there
 * means that exec succeeded, so a missing program is an error value here and not a mysterious exit
 * 127. */
#include "config.h"

#include "base/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define SPAWN_FDS_MAX 16
#define START_MS 10000 /* limit until exec for a child of another account */

extern char **environ;

enum spawn_step {
	STEP_NONE,
	STEP_SESSION,
	STEP_FDS,
	STEP_LIMITS,
	STEP_USER,
	STEP_DEATH,
	STEP_EXEC
};

static const char *const spawn_step_names[] = {"", "new session", "place descriptors", "set limits",
    "change user", "tie to the parent", "exec"};

struct spawn_failure {
	enum spawn_step step;
	int sys;
};

/* All calls below are async-signal-safe. */

void
hr_spawn_reset_signals(void)
{
	/* the kernel's struct sigaction; all zero means SIG_DFL */
	static const unsigned long dfl[4];
	sigset_t none;
	int sig;

	/* The library's calls refuse 32 and 33, which a caller may have left ignored. */
	for (sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, 8); /* some cannot be set */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
child_session(const struct hr_spawn *s)
{
	if (s->setsid && setsid() < 0)
		return -1;
	return s->setpgid ? setpgid(0, 0) : 0;
}

static int
child_user(const struct hr_spawn *s)
{
	if (s->user != NULL && (setgroups(s->user->ngroups, s->user->groups) != 0 ||
				   setgid(s->user->gid) != 0 || setuid(s->user->uid) != 0))
		return -1;
	if (s->dir != NULL && chdir(s->dir) != 0)
		return chdir("/");
	return 0;
}

/* Runs after the change of user, which would undo the setting. */
static int
child_death(const struct hr_spawn *s, pid_t parent)
{
	if (s->pdeathsig == 0)
		return 0;
	if (prctl(PR_SET_PDEATHSIG, s->pdeathsig) != 0)
		return -1;
	if (getppid() != parent) /* the parent died before prctl() */
		_exit(0);
	return 0;
}

/* Moves descriptors to their numbers. Numbers may cross (from 3 to 4 and from 4 to 3), so it first
 * moves all descriptors above all targets. */
static int
child_place_fds(const struct hr_spawn *s, int *report)
{
	int high[SPAWN_FDS_MAX];
	int top = STDERR_FILENO, null, moved;
	bool std[3] = {false, false, false};
	size_t i;

	if (s->alone && hr_fd_cloexec_from(STDERR_FILENO + 1) != 0)
		return -1;
	for (i = 0; i < s->nfds; i++) {
		if (s->fds[i].to > top)
			top = s->fds[i].to;
		if (s->fds[i].to <= STDERR_FILENO)
			std[s->fds[i].to] = true;
	}
	moved = fcntl(*report, F_DUPFD_CLOEXEC, top + 1);
	if (moved < 0)
		return -1;
	*report = moved;
	for (i = 0; i < s->nfds; i++) {
		high[i] = fcntl(s->fds[i].from, F_DUPFD_CLOEXEC, top + 1);
		if (high[i] < 0)
			return -1;
	}
	for (i = 0; i < s->nfds; i++)
		if (dup2(high[i], s->fds[i].to) < 0)
			return -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -1;
	for (i = 0; i < 3; i++)
		if (!std[i] && null != (int)i && dup2(null, (int)i) < 0)
			return -1;
	return null <= STDERR_FILENO ? fcntl(null, F_SETFD, 0) : close(null);
}

static int
child_limits(const struct hr_spawn *s)
{
	if (s->umask >= 0)
		(void)umask((mode_t)s->umask);
	if (s->nofile != NULL && setrlimit(RLIMIT_NOFILE, s->nofile) != 0)
		return -1;
	return s->data != NULL ? setrlimit(RLIMIT_DATA, s->data) : 0;
}

/* Waits until the caller has recorded this child's pid. The caller does that in its own process: it
 * may have threads, whose locks a child would never get. The end of file alone is not enough:
 * another thread's child may hold that end. */
static void
child_wait(pid_t parent, int gate)
{
	char go;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
	    hr_fd_read(gate, &go, 1) != 1 || prctl(PR_SET_PDEATHSIG, 0) != 0)
		_exit(0);
}

static void __attribute__((noreturn)) child_run(const struct hr_spawn *s, pid_t parent, int report)
{
	struct spawn_failure f = {STEP_NONE, 0};

	hr_spawn_reset_signals();
	if (child_session(s) != 0)
		f.step = STEP_SESSION;
	else if (child_place_fds(s, &report) != 0)
		f.step = STEP_FDS;
	else if (child_limits(s) != 0) /* comes last: a low limit would forbid the moves above */
		f.step = STEP_LIMITS;
	else if (child_user(s) != 0)
		f.step = STEP_USER;
	else if (child_death(s, parent) != 0)
		f.step = STEP_DEATH;
	if (f.step == STEP_NONE) {
		char *const *argv =
		    (char *const *)(uintptr_t)s->argv; /* exec does not change the strings */

		if (s->image != NULL && *s->image >= 0)
			(void)syscall(SYS_execveat, *s->image, "", argv,
			    s->envp != NULL ? s->envp : environ, AT_EMPTY_PATH);
		if (s->envp != NULL)
			(void)execvpe(s->path, argv, s->envp);
		else
			(void)execvp(s->path, argv);
		f.step = STEP_EXEC;
	}
	f.sys = errno;
	/* nothing else could receive the report */
	(void)hr_fd_write_full(report, &f, sizeof(f), NULL);
	_exit(127);
}

int
hr_spawn_end(pid_t pid, int *ret_status)
{
	int status;
	pid_t got;

	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (ret_status != NULL)
		*ret_status = got == pid ? status : 255 << 8;
	return got == pid ? 0 : -1;
}

/* Returns false if the child has not reported in time. */
static bool
spawn_reports(const struct hr_spawn *s, int report)
{
	const int limit = s->start_ms > 0 ? s->start_ms : s->user != NULL ? START_MS : -1;
	struct pollfd p = {.fd = report, .events = POLLIN};
	int n;

	if (limit < 0)
		return true;
	do {
		n = poll(&p, 1, limit);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

static int
spawn_wait_exec(const struct hr_spawn *s, pid_t pid, int report, struct hr_err *err)
{
	const bool in_time = spawn_reports(s, report);
	struct spawn_failure f;
	ssize_t n = in_time ? hr_fd_read_full(report, &f, sizeof(f), NULL) : -1;

	if (n == 0)
		return 0;
	if (n < 0) /* the program may run, and would not end by itself */
		(void)kill(pid, SIGKILL);
	(void)hr_spawn_end(pid, NULL);
	if (!in_time)
		return hr_err_set(err, HR_E_SYS, "%s: not started in time", s->path);
	if (n != (ssize_t)sizeof(f))
		return hr_err_set(err, HR_E_SYS, "%s: died before exec", s->path);
	return hr_err_sys(err, f.sys, "%s: %s", s->path, spawn_step_names[f.step]);
}

pid_t
hr_spawn(const struct hr_spawn *s, struct hr_err *err)
{
	sigset_t all, old;
	pid_t parent = getpid(), pid;
	int report[2], gate[2] = {-1, -1}, sys;

	hr_assert(s->nfds <= SPAWN_FDS_MAX);
	if (pipe2(report, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "%s: pipe", s->path);
	if (s->forked != NULL && pipe2(gate, O_CLOEXEC) != 0) {
		(void)hr_err_sys(err, errno, "%s: pipe", s->path);
		hr_fd_close(&report[0]);
		hr_fd_close(&report[1]);
		return -1;
	}
	/* No handler of the caller may run in the child: block all signals. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	/* A child that shares this memory until exec copies no tables of its pages, which takes
	 * 0.07 ms a megabyte. One that changes its account must not share it: the kernel would
	 * apply fs.suid_dumpable to this process, too. One that enters a directory should not: if
	 * that hangs, no signal but SIGKILL would end this process. */
	pid = s->user == NULL && s->forked == NULL && s->dir == NULL ? vfork() : fork();
	sys = errno;
	if (pid == 0) {
		if (s->forked != NULL)
			child_wait(parent, gate[0]);
		child_run(s, parent, report[1]);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	hr_fd_close(&report[1]);
	if (pid > 0 && s->forked != NULL) {
		s->forked(s->arg, pid);
		(void)hr_fd_write_full(
		    gate[1], "", 1, NULL); /* if the child is gone, the read below shows it */
	}
	hr_fd_close(&gate[0]);
	hr_fd_close(&gate[1]);
	if (pid < 0)
		(void)hr_err_sys(err, sys, "%s: fork", s->path);
	else if (spawn_wait_exec(s, pid, report[0], err) < 0)
		pid = -1;
	hr_fd_close(&report[0]);
	return pid;
}

/* Reads to the end, or (with a bound) until the program has ended, and keeps what fits, since the
 * writer must not block on a full pipe. Returns false on timeout. */
static bool
spawn_drain(int fd, int ended, int patience_ms, char *text, size_t cap)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = ended, .events = POLLIN}};
	int64_t until = hr_now_ms() + patience_ms;
	char chunk[512];
	size_t len = 0;
	ssize_t n = 1;
	int left = -1;

	if (cap > 0)
		text[0] = '\0';
	while (n > 0 || ended >= 0) {
		if (patience_ms >= 0)
			left = (int)(until - hr_now_ms());
		if (patience_ms >= 0 && left <= 0)
			return false;
		if (poll(p, 2, left) <= 0)
			continue;
		if (p[0].revents == 0)
			break;
		n = hr_fd_read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			p[0].fd = -1;
		if (n <= 0 || cap == 0)
			continue;
		if ((size_t)n > cap - 1 - len)
			n = (ssize_t)(cap - 1 - len);
		memcpy(text + len, chunk, (size_t)n);
		len += (size_t)n;
		text[len] = '\0';
		n = 1;
	}
	return true;
}

int
hr_spawn_wait_for(
    const char *const *argv, int patience_ms, char *text, size_t cap, struct hr_err *err)
{
	int said[2], ended = -1, status = 0;
	bool in_time = true;
	pid_t pid;

	if (pipe2(said, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "%s: pipe", argv[0]);
	pid = hr_spawn(&(const struct hr_spawn){.path = argv[0],
			   .argv = argv,
			   .fds = &(const struct hr_spawn_fd){said[1], STDERR_FILENO},
			   .nfds = 1,
			   .setpgid = patience_ms >= 0,
			   .umask = -1},
	    err);
	hr_fd_close(&said[1]);
	if (pid >= 0) {
		if (patience_ms >= 0)
			ended = hr_pidfd_open(pid);
		in_time = spawn_drain(said[0], ended, patience_ms, text, cap);
		hr_fd_close(&ended);
	}
	hr_fd_close(&said[0]);
	if (pid < 0)
		return -1;
	if (!in_time)
		(void)kill(-pid, SIGKILL);
	if (hr_spawn_end(pid, &status) != 0)
		return hr_err_sys(err, errno, "%s: wait", argv[0]);
	if (!in_time)
		return hr_err_set(err, HR_E_TIMEOUT, "%s: it does not end within %d seconds",
		    argv[0], patience_ms / 1000);
	return status;
}

int
hr_spawn_wait(const char *const *argv, char *text, size_t cap, struct hr_err *err)
{
	return hr_spawn_wait_for(argv, -1, text, cap, err);
}

int
hr_spawn_here(struct hr_spawn *s, int *ret_code, struct hr_err *err)
{
	static const struct hr_spawn_fd fds[] = {{0, 0}, {1, 1}, {2, 2}};
	int status;
	pid_t pid;

	s->fds = fds;
	s->nfds = 3;
	pid = hr_spawn(s, err);
	if (pid < 0)
		return -1;
	if (hr_spawn_end(pid, &status) != 0)
		return hr_err_sys(err, errno, "%s: wait", s->path);
	*ret_code = hr_exit_code(status);
	return 0;
}

int
hr_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0u);

	if (fd < 0 && errno == ENOENT)
		errno = ESRCH; /* newer kernels return ENOENT while the process is reaped */
	return fd;
}

int
hr_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const char *
hr_exit_words(int status)
{
	static _Thread_local char text[64];

	if (WIFSIGNALED(status))
		(void)snprintf(text, sizeof(text), "signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else
		(void)snprintf(text, sizeof(text), "exit %d", WEXITSTATUS(status));
	return text;
}
