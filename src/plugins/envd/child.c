/* Waits in a child of the keeper for a process, then takes the last steps before exec. If the
 * program cannot run, the child writes to stderr and exits as a shell would, since the client has
 * its process already. A waiting child must hold no descriptor of the keeper: the reader of a pipe,
 * or the server, would miss the end. */
#include "config.h"

#include "plugins/envd/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process/spawn.h"
#include "plugins/envd/record.h"

#define SOCK_FD 3

extern char **environ;

static void __attribute__((noreturn)) give_up(const char *step)
{
	(void)dprintf(STDERR_FILENO, "%s: %s\n", step, strerror(errno));
	_exit(126);
}

static void
read_record(struct envd_record *r, int fd)
{
	struct stat st;
	void *p, *store;

	if (fstat(fd, &st) != 0)
		give_up("record");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED ||
	    envd_record_get(r, (struct hr_span){p, (size_t)st.st_size}, &store) != 0)
		give_up("record");
}

/* Sets 0, 1 and 2; all other descriptors close at exec. A terminal has one descriptor. */
static void
place(int fds[ENVD_FDS])
{
	int in = fds[ENVD_FD_CHILD_IN], out = fds[ENVD_FD_CHILD_OUT], e = fds[ENVD_FD_CHILD_ERR];

	if (in < 0)
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (dup2(e >= 0 ? e : in, STDERR_FILENO) < 0 || dup2(in, STDIN_FILENO) < 0 ||
	    dup2(out >= 0 ? out : in, STDOUT_FILENO) < 0)
		_exit(126);
}

/* Sets what the original's wrapper sets; a server that is not root cannot lower its values. */
static void
set_ranks(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)hr_fd_write_full(fd, "100", 3, NULL);
	hr_fd_close(&fd);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	(void)umask(022);
}

/* Lets this process end with the keeper. */
static void
end_with(pid_t keeper)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != keeper)
		_exit(126);
}

static int
take_account(const struct envd_record *r)
{
	/* a box of an ordinary user has one account, and the kernel forbids setgroups() there */
	bool one = r->uid == geteuid() && r->gid == getegid();

	if (setgroups(r->ngroups, r->groups) != 0 && !(one && errno == EPERM))
		return -1;
	return setgid(r->gid) != 0 || setuid(r->uid) != 0 ? -1 : 0;
}

static void __attribute__((noreturn)) run(int fds[ENVD_FDS], pid_t keeper)
{
	struct envd_record r;
	int sys;

	place(fds);
	read_record(&r, fds[ENVD_FD_RECORD]);
	if (r.pty && (setsid() < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0))
		give_up("terminal");
	/* not by name and not as the user: the server has checked that the user may enter it */
	if (fchdir(fds[ENVD_FD_CWD]) != 0)
		give_up("directory");
	/* a signal to the group must not reach the keeper, whose account may be the same */
	if (!r.pty && r.uid == geteuid() && setpgid(0, 0) != 0)
		give_up("process group");
	if (r.identity && take_account(&r) != 0)
		give_up("account");
	/* the change of the account has cleared the signal */
	end_with(keeper);
	environ = (char **)(uintptr_t)r.env; /* execvp() looks at its PATH */
	(void)execvp(r.argv[0], r.argv);
	sys = errno;
	(void)dprintf(STDERR_FILENO, "/usr/bin/nice: '%s': %s\n", r.argv[0], strerror(sys));
	_exit(sys == ENOENT ? 127 : 126);
}

/* Waits for a process; the socket's end is the keeper's. */
static void __attribute__((noreturn)) await(int sock, const struct rlimit *nofile, pid_t keeper)
{
	struct envd_packet p;
	int fds[ENVD_FDS], r;

	if (sock != SOCK_FD && dup3(sock, SOCK_FD, O_CLOEXEC) < 0)
		_exit(126);
	hr_fd_close_from(SOCK_FD + 1);
	end_with(keeper);
	(void)setrlimit(RLIMIT_NOFILE, nofile);
	set_ranks();
	hr_spawn_reset_signals();
	r = envd_packet_recv(SOCK_FD, &p, fds, 0);
	if (r != 1)
		_exit(r == 0 ? 0 : 126);
	run(fds, keeper);
}

int
envd_child_fork(struct envd_child *c, const struct rlimit *nofile)
{
	pid_t keeper = getpid();
	sigset_t all, old;
	int ends[2], sys;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	/* no handler of the keeper may run in the child */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	c->pid = fork();
	sys = errno;
	if (c->pid == 0)
		await(ends[1], nofile, keeper);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	hr_fd_close(&ends[1]);
	c->sock = ends[0];
	if (c->pid > 0)
		return 0;
	envd_child_drop(c);
	errno = sys;
	return -1;
}

void
envd_child_drop(struct envd_child *c)
{
	c->pid = 0;
	hr_fd_close(&c->sock);
}
