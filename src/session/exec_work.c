/* Runs in the children of the keeper that become the command of an EXEC and the process that minds
 * it. */
#include "config.h"

#include "session/exec_work.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process/spawn.h"
#include "session/confine.h"
#include "session/keeper_int.h"

#define LATE 124       /* exit code of a command that its limit has ended */
#define NO_DIRECTORY 1 /* exit code of a shell's failed cd */
#define NO_PROGRAM 127

/* Waits for the command as timeout(1) does: at its limit, or when the keeper has ended, its group
 * gets SIGTERM, and SIGKILL a second later. */
static _Noreturn void
mind(pid_t command, int64_t limit_s, const sigset_t *awaited)
{
	int64_t now = hr_now_ms(), until = now + limit_s * 1000;
	int sig, status, cause = 0; /* the signal that ends the command; SIGALRM: its limit */

	hr_fd_close_from(0); /* the keeper's connections must end with it */
	do {
		const struct timespec left = {
		    .tv_sec = (until - now) / 1000, .tv_nsec = (until - now) % 1000 * 1000000};

		sig = sigtimedwait(awaited, NULL, &left);
		if (waitpid(command, &status, WNOHANG) == command)
			_exit(cause == SIGALRM    ? LATE
			      : WIFEXITED(status) ? WEXITSTATUS(status)
						  : 128 + WTERMSIG(status));
		now = hr_now_ms();
		if (cause == 0 && (sig == SIGTERM || now >= until)) {
			cause = now >= until ? SIGALRM : SIGTERM;
			until = now + 1000;
			(void)signal(SIGTERM, SIG_IGN);
			(void)kill(0, SIGTERM);
			(void)kill(0, SIGCONT);
		}
	} while (now < until);
	(void)kill(0, SIGKILL);
	_exit(LATE);
}

/* Starts a session with these standard streams. */
static void
take_streams(const int fds[2])
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fds[0], 1) < 0 ||
	    dup2(fds[1], 2) < 0)
		_exit(NO_PROGRAM);
}

/* Takes the shell's account, limits and directory. `parting` comes when the parent ends. */
static void
take_place(const struct exec_work *w, int parting)
{
	const struct hr_shell_user *user = &w->keeper->user;

	if (user->confine != NULL)
		hr_confine_enter(user->confine);
	if (user->change && (setgid(user->gid) < 0 || initgroups(user->name, user->gid) < 0 ||
				setuid(user->uid) < 0))
		_exit(NO_PROGRAM);
	(void)prctl(PR_SET_PDEATHSIG, parting, 0, 0, 0); /* setuid() would undo the setting */
	if (user->confine != NULL)
		hr_confine_limit(user->confine);
	if (chdir(w->dir) < 0 && w->given) {
		(void)dprintf(2, "bash: line 0: cd: %s: %s\n", w->dir, strerror(errno));
		_exit(NO_DIRECTORY);
	}
}

static _Noreturn void
become(const struct exec_work *w)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (w->input >= 0 && (lseek(w->input, 0, SEEK_SET) < 0 || dup2(w->input, 0) < 0))
		_exit(NO_PROGRAM);
	(void)execvpe(w->argv[0], (char *const *)w->argv, w->keeper->environ.v);
	(void)dprintf(2, "%s: %s\n", w->argv[0], strerror(errno));
	_exit(NO_PROGRAM);
}

/* Becomes the minder of a kept command, its child. The minder has this process's account, so that
 * the command cannot end it; the kernel ends the command together with the minder. */
static _Noreturn void
become_minder(const struct exec_work *w)
{
	int dir = fcntl(w->kept, F_DUPFD_CLOEXEC, HR_BOUND_FDS);
	int status = fcntl(w->status, F_DUPFD_CLOEXEC, HR_BOUND_FDS);
	char number[32], limit[32];
	const char *const argv[] = {w->minder, number, limit, NULL};
	pid_t self = getpid(), command;

	take_streams(w->fds);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || dir < 0 || status < 0)
		_exit(NO_PROGRAM);
	command = fork();
	if (command == 0) {
		if (setsid() < 0)
			_exit(NO_PROGRAM);
		take_place(w, SIGKILL);
		if (getppid() == self)
			become(w);
		_exit(NO_PROGRAM);
	}
	(void)snprintf(number, sizeof(number), "%ld", (long)command);
	(void)snprintf(limit, sizeof(limit), "%lld", (long long)w->limit_s);
	if (command > 0 && dup2(dir, HR_BOUND_DIR) >= 0 && dup2(status, HR_BOUND_STATUS) >= 0) {
		hr_fd_close_from(HR_BOUND_FDS);
		(void)execv(w->minder, (char *const *)argv);
	}
	(void)dprintf(2, "%s: %s\n", w->minder, strerror(errno));
	_exit(NO_PROGRAM);
}

static _Noreturn void
child_run(const struct exec_work *w)
{
	sigset_t awaited;
	pid_t command;

	hr_spawn_reset_signals();
	(void)sigemptyset(&awaited);
	(void)sigaddset(&awaited, SIGCHLD);
	(void)sigaddset(&awaited, SIGTERM);
	(void)sigprocmask(SIG_SETMASK, &awaited, NULL);
	if (w->minder != NULL)
		become_minder(w);
	take_streams(w->fds);
	take_place(w, SIGTERM);
	command = fork();
	if (command > 0)
		mind(command, w->limit_s, &awaited);
	if (command == 0)
		become(w);
	(void)dprintf(2, "%s: %s\n", w->argv[0], strerror(errno));
	_exit(NO_PROGRAM);
}

pid_t
exec_fork(const struct exec_work *w)
{
	sigset_t all, was;
	pid_t pid;

	/* A handler of this process must not run in the child. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &was);
	pid = fork();
	if (pid == 0)
		child_run(w);
	(void)sigprocmask(SIG_SETMASK, &was, NULL);
	return pid;
}
