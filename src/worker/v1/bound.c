/* handrail-bound: minds one command of the V1 API, its child, until nothing of the command is left.
 * It ends the command at its time limit, bounds the files of its output, which it watches with
 * inotify(7) outside the data path, and records the end in the status file, which it locks until
 * then. The command is stopped when a file `stop` of the directory is written, and then all that an
 * ended command has left in the background; all is ended when a file of the directory is removed.
 * The directory is locked while this process runs.
 *
 * The processes of the command are recognised as children: this process is their subreaper. */
#include "config.h"

#include "worker/v1/bound.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/process/pid.h"
#include "session/exec_work.h"

#define GRACE_MS 1000 /* time from SIGTERM to SIGKILL */

struct minder {
	pid_t command;        /* leader of a session; 0: it has ended */
	pid_t group;          /* gets SIGKILL, after a stop that its leader obeyed; or 0 */
	int64_t until;        /* as hr_now_ms() counts: the time limit, then that of SIGKILL */
	bool pressed;         /* SIGTERM was sent */
	bool timed_out;       /* ... at the time limit */
	bool told;            /* the note is in stderr */
	bool kills;           /* all processes are to end */
	struct timespec stop; /* when the last stop was written */
	int events, signals;
};

static const char note[] = HR_BOUND_NOTE;

/* ---- the output ---- */

/* Returns true if the file was longer than `most` and was truncated. */
static bool
cut(int fd, off_t most)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > most &&
	       ftruncate(fd, most) == 0;
}

/* Moves the offset, which the command shares, so that later output follows the note. */
static void
write_note(bool at_bound)
{
	off_t at = lseek(STDERR_FILENO, 0, SEEK_END);

	if (at_bound)
		at = HR_BOUND_BYTES;
	(void)lseek(STDERR_FILENO, at + (off_t)sizeof(note) - 1, SEEK_SET);
	if (pwrite(STDERR_FILENO, note, sizeof(note) - 1, at) < 0)
		return; /* there is no other channel for an error */
}

static void
bound_output(struct minder *m)
{
	bool out = cut(STDOUT_FILENO, HR_BOUND_BYTES);
	bool err = cut(STDERR_FILENO, HR_BOUND_BYTES + (m->told ? (off_t)sizeof(note) - 1 : 0));

	if (!out && !err)
		return;
	if (!m->told)
		write_note(err);
	m->told = m->kills = true;
}

/* ---- the processes ---- */

/* Signals all children, or the group if a child is in it: a group without one may be another's. */
static void
signal_children(pid_t group, int signo)
{
	HR_CLOSEDIR DIR *d = opendir("/proc");
	char text[HR_PID_STAT];
	pid_t pid, self = getpid();
	const char *stat;

	while ((pid = hr_pid_next(d)) > 0) {
		stat = hr_pid_stat(pid, text);
		if (hr_pid_field(stat, HR_PID_PARENT) == (unsigned long long)self &&
		    (group == 0 || hr_pid_field(stat, HR_PID_GROUP) == (unsigned long long)group))
			(void)kill(group == 0 ? pid : -group, signo);
	}
}

/* Sends a signal to the command's group, to the command before it has one, or to the processes that
 * an ended command has left. */
static void
signal_command(const struct minder *m, int signo)
{
	if (m->command == 0)
		signal_children(0, signo);
	else if (kill(-m->command, signo) < 0)
		(void)kill(m->command, signo);
}

/* Kills the command's group and all children. The children of these become children of this
 * process and are killed when their parents are reaped. */
static void
kill_all(const struct minder *m)
{
	signal_command(m, SIGKILL);
	if (m->command > 0)
		signal_children(0, SIGKILL);
}

/* Writes the result, which makes it visible, and releases the lock; before, the directory's, if no
 * process is left. A signal N is -N. */
static void
record_end(struct minder *m, int status)
{
	siginfo_t ignored;
	char text[64];
	int code = m->timed_out          ? HR_BOUND_NO_CODE
		   : WIFSIGNALED(status) ? -WTERMSIG(status)
					 : WEXITSTATUS(status);
	int n = snprintf(text, sizeof(text), "%d %lld\n", code, (long long)hr_wall_ns() / 1000);

	if (m->pressed)
		m->group = m->command;
	else
		m->until = INT64_MAX;
	m->command = 0;
	m->pressed = false; /* the next stop is for what is left */
	if (waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) < 0)
		(void)flock(HR_BOUND_DIR, LOCK_UN);
	/* a result that cannot be written is that of a command without a minder */
	(void)!write(HR_BOUND_STATUS, text, (size_t)n);
	(void)flock(HR_BOUND_STATUS, LOCK_UN);
	(void)close(HR_BOUND_STATUS);
}

/* Returns false when no child is left. */
static bool
reap(struct minder *m)
{
	bool any = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		any = true;
		if (pid != m->command)
			continue;
		/* the note precedes the result, with which clients read the output */
		bound_output(m);
		record_end(m, status);
	}
	if (any && m->kills) {
		kill_all(m);
	} else if (any && m->pressed && m->command == 0) {
		signal_command(m, SIGTERM); /* orphans became children */
		signal_command(m, SIGCONT);
	}
	return pid == 0 || errno == EINTR;
}

/* ---- the end ---- */

static void
press(struct minder *m, bool timed_out)
{
	if (m->pressed)
		return;
	m->pressed = true;
	m->timed_out = timed_out;
	m->group = 0; /* part of all that is left */
	m->until = hr_now_ms() + GRACE_MS;
	signal_command(m, SIGTERM);
	signal_command(m, SIGCONT);
}

static void
check_time(struct minder *m)
{
	if (hr_now_ms() < m->until)
		return;
	if (m->group > 0) {
		signal_children(m->group, SIGKILL);
		m->group = 0;
		m->until = INT64_MAX;
	} else if (m->pressed) {
		signal_command(m, SIGKILL);
		m->kills = m->kills || m->command == 0;
		m->until = INT64_MAX;
	} else {
		press(m, true);
	}
}

/* Returns true if `stop` was written since the last call. */
static bool
was_stopped(struct minder *m)
{
	struct timespec before = m->stop;
	struct stat st;

	if (fstatat(HR_BOUND_DIR, HR_BOUND_STOP, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	m->stop = st.st_mtim;
	return before.tv_sec != m->stop.tv_sec || before.tv_nsec != m->stop.tv_nsec;
}

/* Handles a stop and a removal whose events were not seen. */
static void
check_directory(struct minder *m)
{
	struct stat st;

	if (was_stopped(m))
		press(m, false);
	if (fstat(STDOUT_FILENO, &st) == 0 && st.st_nlink == 0)
		m->kills = true;
}

static void
read_events(struct minder *m)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	ssize_t n, at;

	while ((n = read(m->events, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
			e = (const struct inotify_event *)(const void *)(buf + at);
			if ((e->mask & IN_Q_OVERFLOW) != 0) { /* many small writes cause that */
				check_directory(m);
			} else if ((e->mask & IN_DELETE) != 0) {
				m->kills = true;
			} else if (e->len > 0 && strcmp(e->name, HR_BOUND_STOP) == 0) {
				(void)was_stopped(m);
				press(m, false);
			}
		}
	}
	if (m->kills)
		kill_all(m);
}

static void
read_signals(struct minder *m)
{
	struct signalfd_siginfo s;

	while (read(m->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGTERM) {
			m->kills = true;
			kill_all(m);
		}
	}
}

static int
wait_ms(const struct minder *m)
{
	int64_t left = m->until - hr_now_ms();

	if (m->until == INT64_MAX)
		return -1;
	return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

static void
mind(struct minder *m)
{
	struct pollfd fds[] = {
	    {.fd = m->events, .events = POLLIN}, {.fd = m->signals, .events = POLLIN}};

	while (reap(m)) {
		(void)poll(fds, 2, wait_ms(m));
		read_signals(m);
		read_events(m);
		bound_output(m);
		if (m->kills)
			kill_all(m);
		check_time(m);
	}
}

static bool
watch(struct minder *m)
{
	sigset_t awaited;

	(void)sigemptyset(&awaited);
	(void)sigaddset(&awaited, SIGCHLD);
	(void)sigaddset(&awaited, SIGTERM);
	(void)sigprocmask(SIG_SETMASK, &awaited, NULL);
	m->signals = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
	m->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return m->signals >= 0 && m->events >= 0 &&
	       inotify_add_watch(m->events, "/proc/self/fd/1", IN_MODIFY) >= 0 &&
	       inotify_add_watch(m->events, "/proc/self/fd/2", IN_MODIFY) >= 0 &&
	       inotify_add_watch(m->events, "/proc/self/fd/3", IN_CLOSE_WRITE | IN_DELETE) >= 0;
}

/* Ends a command whose output has no bound, since the inotify instances of the account may be used
 * up. */
static void
end_unwatched(struct minder *m)
{
	siginfo_t ignored;

	(void)dprintf(STDERR_FILENO,
	    "handrail: the command was ended: its output cannot be watched: %s\n", strerror(errno));
	m->kills = true;
	kill_all(m);
	while (reap(m))
		(void)waitid(P_ALL, 0, &ignored, WEXITED | WNOWAIT);
}

int
main(int argc, char **argv)
{
	struct minder m = {.events = -1, .signals = -1};
	long limit_s = 0;
	struct stat st;

	if (argc == 3) {
		m.command = (pid_t)strtol(argv[1], NULL, 10);
		limit_s = strtol(argv[2], NULL, 10);
	}
	if (m.command < 1 || limit_s < 0 || fstat(HR_BOUND_STATUS, &st) < 0) {
		(void)fputs(
		    "usage: handrail-bound PID SECONDS, started by handrail-session\n", stderr);
		return EXIT_FAILURE;
	}
	m.until = hr_now_ms() + limit_s * 1000;
	if (watch(&m)) {
		check_directory(&m);
		if (limit_s == 0)
			press(&m, true);
		mind(&m);
	} else {
		end_unwatched(&m);
	}
	return EXIT_SUCCESS;
}
