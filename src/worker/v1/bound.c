/* handrail-bound: executes a command and bounds its output. It becomes the command; a child process
 * watches the files of standard output and error with inotify(7), outside the data path. If a file
 * exceeds the bound, the child kills the command's process group and truncates the file; it does so
 * again if a process has left the group. The child ends with the shell's session: by SIGHUP, or
 * when its terminal hangs up. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/v1/bound.h"

/* the status that timeout(1) uses as well: an error of this program, not of the command */
#define NOT_DONE 125

static const char note[] = HR_BOUND_NOTE;

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

/* Kills the group. A process group's number is not reused while the group exists; a process with
 * that number in another session is unrelated. */
static void
kill_group(pid_t group)
{
	pid_t session = getsid(group);

	if (session < 0 || session == getsid(0))
		(void)kill(-group, SIGKILL); /* the group may have ended */
}

static _Noreturn void
watch_output(int events, int terminal, pid_t group)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd fds[] = {{.fd = events, .events = POLLIN}, {.fd = terminal}};
	bool told = false, out, err;

	(void)signal(SIGHUP, SIG_DFL);
	(void)setpgid(0, 0);
	(void)close(STDIN_FILENO);
	do {
		out = cut(STDOUT_FILENO, HR_BOUND_BYTES);
		err = cut(STDERR_FILENO, HR_BOUND_BYTES + (told ? (off_t)sizeof(note) - 1 : 0));
		if (!out && !err)
			continue;
		if (!told)
			/* precedes the kill: a client reads the result once the command ends */
			write_note(err);
		told = true;
		kill_group(group);
	} while ((poll(fds, 2, -1) >= 0 || errno == EINTR) && fds[1].revents == 0 &&
		 (read(events, buf, sizeof(buf)) > 0 || errno == EINTR || errno == EAGAIN));
	_exit(EXIT_FAILURE);
}

int
main(int argc, char **argv)
{
	pid_t self = getpid(), child = -1;
	int events, terminal;

	if (argc < 2) {
		(void)fputs("usage: handrail-bound COMMAND [WORD...]\n", stderr);
		return NOT_DONE;
	}
	terminal =
	    open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC); /* the shell may have no terminal */
	events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (events >= 0 && inotify_add_watch(events, "/proc/self/fd/1", IN_MODIFY) >= 0 &&
	    inotify_add_watch(events, "/proc/self/fd/2", IN_MODIFY) >= 0)
		child = fork();
	if (child == 0)
		watch_output(events, terminal, self);
	if (child < 0) /* the user's inotify instances may be used up */
		(void)fprintf(stderr, "handrail: the output has no bound: %s\n", strerror(errno));
	(void)execvp(argv[1], argv + 1);
	(void)fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
	return NOT_DONE;
}
