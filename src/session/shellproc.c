/* Runs a bash on a PTY. The slave stays open here, too: its modes are read and set through it, and
 * unread input can be dropped only from that side. The shell's end is noticed when its process
 * ends. */
#include "config.h"

#include "session/shellproc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pty.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/dir.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "session/confine.h"

void
hr_shellproc_init(struct hr_shellproc *s)
{
	s->pid = 0;
	s->master = s->slave = -1;
}

int
hr_shell_user_find(struct hr_shell_user *u, const char *name, bool change, struct hr_err *err)
{
	const struct passwd *pw;

	memset(u, 0, sizeof(*u));
	errno = 0;
	pw = change ? getpwnam(name) : getpwuid(geteuid());
	if (pw == NULL && change) {
		if (errno != 0)
			return hr_err_sys(err, errno, "user \"%s\"", name);
		return hr_err_set(err, HR_E_NOTFOUND, "there is no user \"%s\"", name);
	}
	u->uid = pw != NULL ? pw->pw_uid : geteuid();
	u->gid = pw != NULL ? pw->pw_gid : getegid();
	u->change = change && u->uid != geteuid();
	u->login = change;
	u->name = strdup(pw != NULL ? pw->pw_name : name);
	u->home = strdup(pw != NULL ? pw->pw_dir : "/");
	if (u->name == NULL || u->home == NULL) {
		hr_shell_user_done(u);
		return hr_err_nomem(err);
	}
	return 0;
}

void
hr_shell_user_done(struct hr_shell_user *u)
{
	free(u->name);
	free(u->home);
	u->name = u->home = NULL;
}

/* ---- the child ---- */

/* Cuts off the last component. Returns false at the top. */
static bool
parent_of(char *dir)
{
	char *slash = strrchr(dir, '/');

	if (slash == NULL || strcmp(dir, "/") == 0)
		return false;
	if (slash == dir)
		slash++;
	*slash = '\0';
	return true;
}

static void
child_fail(int fd, const char *step)
{
	char text[200];
	int n = snprintf(text, sizeof(text), "%s: %s", step, strerror(errno));

	if (n > 0)
		(void)!write(fd, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
	_exit(126);
}

/* Runs in the child; sends the parent the directory as "/dir", or a failure as any other text. */
static void
child_run(int slave, int tell, const char *bash, const char *rcfile,
    const struct hr_shell_user *user, char *const *envp, char *dir)
{
	const char *const argv[] = {"bash", "--noprofile", "--rcfile", rcfile, "-i", NULL};

	hr_spawn_reset_signals();
	if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		child_fail(tell, "controlling terminal");
	if (dup2(slave, 0) < 0 || dup2(slave, 1) < 0 || dup2(slave, 2) < 0)
		child_fail(tell, "standard streams");
	if (user->confine != NULL)
		hr_confine_enter(user->confine);
	if (user->change && (setgid(user->gid) < 0 || initgroups(user->name, user->gid) < 0 ||
				setuid(user->uid) < 0))
		child_fail(tell, "cannot become the shell's user");
	if (user->confine != NULL)
		hr_confine_limit(user->confine);
	while (chdir(dir) < 0)
		if (!parent_of(dir))
			child_fail(tell, "no directory to start in");
	/* If the keeper is killed its terminal hangs up, maybe right before bash opens the hook's
	 * pipe; bash does not handle that while it waits there. So the kernel also sends SIGHUP
	 * when the keeper dies. setuid() clears this setting, so it is made here. */
	if (!user->stays)
		(void)prctl(PR_SET_PDEATHSIG, SIGHUP, 0, 0, 0);
	(void)hr_fd_write_full(
	    tell, dir, strlen(dir) + 1, NULL); /* exec would fail and report it */
	execve(bash, (char *const *)argv, envp);
	child_fail(tell, bash);
}

/* ---- starting ---- */

static int
open_terminal(struct hr_shellproc *s, const struct hr_shell_user *user, struct hr_err *err)
{
	const struct winsize size = {.ws_row = HR_SHELL_ROWS, .ws_col = HR_SHELL_COLS};
	struct termios t;

	if (openpty(&s->master, &s->slave, NULL, NULL, &size) < 0)
		return hr_err_sys(err, errno, "no pseudo-terminal");
	if (hr_fd_cloexec(s->master, err) < 0 || hr_fd_cloexec(s->slave, err) < 0 ||
	    hr_fd_nonblock(s->master, true, err) < 0)
		return -1;
	if (tcgetattr(s->slave, &t) == 0) {
		t.c_iflag |= IUTF8;
		(void)tcsetattr(s->slave, TCSANOW, &t); /* a failure loses only a convenience */
	}
	if (user->change && fchown(s->slave, user->uid, (gid_t)-1) < 0)
		return hr_err_sys(err, errno, "the terminal's owner");
	return 0;
}

/* Reads the child's message before exec: the directory with nothing after it means success. */
static int
read_child(int fd, char **ret_dir, struct hr_err *err)
{
	char text[8192];
	ssize_t n = hr_fd_read_full(fd, text, sizeof(text) - 1, err);
	char *nul;

	if (n < 0)
		return -1;
	text[n] = '\0';
	if (n == 0)
		return hr_err_set(err, HR_E_SYS, "the shell could not be started");
	if (text[0] != '/')
		return hr_err_set(err, HR_E_SYS, "%s", text);
	/* The text is "/dir" and a NUL; the reason of a failed exec would follow. */
	nul = memchr(text, '\0', (size_t)n);
	if (nul != NULL && nul + 1 < text + n)
		return hr_err_set(err, HR_E_SYS, "%s", nul + 1);
	*ret_dir = strdup(text);
	return *ret_dir != NULL ? 0 : hr_err_nomem(err);
}

int
hr_shellproc_start(struct hr_shellproc *s, const char *bash, const char *rcfile,
    const struct hr_shell_user *user, char *const *envp, const char *dir, char **ret_dir,
    struct hr_err *err)
{
	int tell[2] = {-1, -1};
	HR_FREE char *at = strdup(dir);
	int result = -1, failed;
	sigset_t all, was;
	pid_t pid;

	*ret_dir = NULL;
	if (at == NULL)
		return hr_err_nomem(err);
	if (access(bash, X_OK) < 0) {
		(void)hr_err_sys(err, errno, "%s", bash);
		goto out;
	}
	if (open_terminal(s, user, err) < 0)
		goto out;
	if (pipe2(tell, O_CLOEXEC) < 0) {
		(void)hr_err_sys(err, errno, "pipe");
		goto out;
	}
	/* A handler of this process must not run in the child. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &was);
	pid = fork();
	if (pid == 0)
		child_run(s->slave, tell[1], bash, rcfile, user, envp, at);
	failed = errno;
	(void)sigprocmask(SIG_SETMASK, &was, NULL);
	if (pid < 0) {
		(void)hr_err_sys(err, failed, "fork");
		goto out;
	}
	hr_fd_close(&tell[1]);
	if (read_child(tell[0], ret_dir, err) < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		goto out;
	}
	s->pid = pid;
	result = 0;
out:
	hr_fd_close(&tell[0]);
	hr_fd_close(&tell[1]);
	if (result < 0) {
		hr_fd_close(&s->master);
		hr_fd_close(&s->slave);
	}
	return result;
}

/* ---- the terminal ---- */

void
hr_shellproc_flow(struct hr_shellproc *s)
{
	if (s->slave >= 0)
		(void)ioctl(s->slave, TCXONC, TCOON); /* TCXONC cannot fail on a terminal */
}

/* Gets the terminal's modes. Another line discipline has none, and neither reads nor writes. */
static int
get_modes(struct hr_shellproc *s, struct termios *t)
{
	const int ordinary = N_TTY;

	if (s->slave < 0)
		return -1;
	if (tcgetattr(s->slave, t) == 0)
		return 0;
	if (ioctl(s->slave, TIOCSETD, &ordinary) < 0)
		return -1;
	return tcgetattr(s->slave, t);
}

/* Frees letters that commands are typed with from being special characters. */
static void
free_letters(struct termios *t)
{
	static const struct {
		int key;
		cc_t usual;
	} keys[] = {{VINTR, 003}, {VQUIT, 034}, {VERASE, 0177}, {VKILL, 025}, {VEOF, 004},
	    {VEOL, 0}, {VEOL2, 0}, {VSTART, 021}, {VSTOP, 023}, {VSUSP, 032}, {VREPRINT, 022},
	    {VDISCARD, 017}, {VWERASE, 027}, {VLNEXT, 026}};
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		cc_t c = t->c_cc[keys[i].key];

		if ((c >= ' ' && c < 0177) || c > 0177 || c == '\n' || c == '\r' || c == '\t')
			t->c_cc[keys[i].key] = keys[i].usual;
	}
}

void
hr_shellproc_tidy(struct hr_shellproc *s)
{
	struct termios t = {0}, was; /* libc fills only a part */

	if (get_modes(s, &t) < 0)
		return;
	/* TCOON restarts only output that a call has stopped, so turn a ^S into such a stop
	 * first. */
	(void)ioctl(s->slave, TCXONC, TCOOFF);
	hr_shellproc_flow(s);
	(void)ioctl(s->slave, TIOCNXCL);
	was = t;
	t.c_iflag |= ICRNL;
	t.c_iflag &= ~(tcflag_t)(INLCR | IGNCR | ISTRIP | IUCLC | PARMRK | IGNBRK);
	t.c_oflag |= OPOST | ONLCR;
	t.c_oflag &= ~(tcflag_t)(OLCUC | OCRNL | ONOCR | ONLRET);
	t.c_lflag |= ICANON | ISIG | IEXTEN | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
	t.c_lflag &= ~(tcflag_t)(ECHONL | NOFLSH | TOSTOP | XCASE | FLUSHO);
	t.c_cflag |= CREAD;
	t.c_cflag = (t.c_cflag & ~(tcflag_t)(CSIZE | PARENB)) | CS8;
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	free_letters(&t);
	if (memcmp(&t, &was, sizeof(t)) != 0)
		(void)tcsetattr(s->slave, TCSANOW, &t); /* nothing else could be tried */
	(void)tcflush(s->slave, TCIFLUSH);              /* TCIFLUSH cannot fail on a terminal */
}

void
hr_shellproc_flush(struct hr_shellproc *s)
{
	struct pollfd p = {.fd = s->slave, .events = POLLIN};

	if (s->slave < 0)
		return;
	/* Text just typed is still on its way: poll() of an empty terminal fetches it. */
	(void)tcflush(s->slave, TCIFLUSH);
	(void)poll(&p, 1, 0);
	(void)tcflush(s->slave, TCIFLUSH);
}

void
hr_shellproc_literal(struct hr_shellproc *s)
{
	struct termios t;

	if (s->slave < 0 || tcgetattr(s->slave, &t) < 0 || (t.c_lflag & ICANON) != 0)
		return;
	t.c_lflag &= ~(tcflag_t)(ISIG | IEXTEN);
	t.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR | ISTRIP);
	(void)tcsetattr(s->slave, TCSANOW, &t);
}

void
hr_shellproc_resize(struct hr_shellproc *s, unsigned rows, unsigned columns)
{
	const struct winsize size = {
	    .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

	if (s->master >= 0)
		/* TIOCSWINSZ cannot fail on a terminal */
		(void)ioctl(s->master, TIOCSWINSZ, &size);
}

void
hr_shellproc_size(const struct hr_shellproc *s, unsigned *ret_rows, unsigned *ret_columns)
{
	struct winsize size = {.ws_row = HR_SHELL_ROWS, .ws_col = HR_SHELL_COLS};

	if (s->master >= 0)
		(void)ioctl(s->master, TIOCGWINSZ, &size);
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
}

bool
hr_shellproc_raw(const struct hr_shellproc *s)
{
	struct termios t;

	return s->slave >= 0 && tcgetattr(s->slave, &t) == 0 && (t.c_lflag & ICANON) == 0;
}

bool
hr_shellproc_echoes(const struct hr_shellproc *s)
{
	struct termios t;

	if (s->slave < 0 || tcgetattr(s->slave, &t) < 0)
		return false;
	return (t.c_lflag & (ICANON | ECHO)) != ICANON;
}

bool
hr_shellproc_shows(const struct hr_shellproc *s, int fd)
{
	struct stat shown, terminal;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)s->pid, fd);
	return s->slave >= 0 && stat(path, &shown) == 0 && fstat(s->slave, &terminal) == 0 &&
	       S_ISCHR(shown.st_mode) &&
	       (shown.st_rdev == terminal.st_rdev ||
		   shown.st_rdev == makedev(5, 0) /* /dev/tty is another name of the terminal */);
}

bool
hr_shellproc_foreground(const struct hr_shellproc *s, pid_t pid)
{
	pid_t group;

	if (s->slave < 0 || s->pid <= 0 || pid <= 0)
		return false;
	/* Only the master may query a terminal that is not the caller's own. */
	if (ioctl(s->master, TIOCGPGRP, &group) < 0)
		return false;
	return getpgid(pid) == group && getsid(pid) == s->pid;
}

bool
hr_shellproc_stopped(const struct hr_shellproc *s)
{
	char text[HR_PID_STAT];

	return *hr_pid_stat(s->pid, text) == 'T';
}

/* ---- the end ---- */

/* The kernel's struct, which Debian 12's headers lack. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define GET_INFO _IOWR(0xff, 11, struct pidfd_info)
#define INFO_EXIT ((uint64_t)1 << 3)
#define REAPED_MS 200 /* available when the parent has reaped the process, at once */

int
hr_shellproc_exit_code(int pidfd)
{
	struct pidfd_info info = {.mask = INFO_EXIT};
	struct pollfd reaped = {.fd = pidfd};

	(void)poll(&reaped, 1, REAPED_MS);
	if (ioctl(pidfd, GET_INFO, &info) < 0 || (info.mask & INFO_EXIT) == 0)
		return -1;
	return hr_exit_code(info.exit_code);
}

#define MEMBERS 256
#define GRACE_MS 500

/* Signals every process of the session, found in /proc: background jobs have groups of their own.
 * If ret_fds is given, stores a pidfd for each of the first MEMBERS. Returns their number. */
static size_t
signal_session(pid_t sid, int signo, struct pollfd *ret_fds)
{
	HR_CLOSEDIR DIR *d = opendir("/proc");
	size_t n = 0;
	pid_t pid;
	int fd;

	while ((pid = hr_pid_next(d)) > 0) {
		if (getsid(pid) != sid)
			continue;
		fd = ret_fds != NULL && n < MEMBERS ? hr_pidfd_open(pid) : -1;
		if (fd >= 0)
			ret_fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
		(void)kill(pid, signo); /* the process may just have ended */
	}
	return n;
}

void
hr_shellproc_kill(pid_t sid)
{
	(void)signal_session(sid, SIGKILL, NULL);
}

/* Waits until all have ended, for a short time. */
static void
wait_for_ends(struct pollfd *fds, size_t n)
{
	int64_t until = hr_now_ms() + GRACE_MS, ms = GRACE_MS;
	size_t i, left = n;

	while (left > 0 && ms > 0 && (poll(fds, n, (int)ms) > 0 || errno == EINTR)) {
		for (i = left = 0; i < n; i++) {
			if (fds[i].revents != 0)
				hr_fd_close(&fds[i].fd); /* poll() ignores -1 */
			left += fds[i].fd >= 0;
		}
		ms = until - hr_now_ms();
	}
	for (i = 0; i < n; i++)
		hr_fd_close(&fds[i].fd);
}

void
hr_shellproc_hangup(struct hr_shellproc *s, bool kill_all)
{
	HR_FREE struct pollfd *fds = kill_all ? calloc(MEMBERS, sizeof(*fds)) : NULL;
	size_t n = 0;

	if (s->pid > 0) {
		n = signal_session(s->pid, SIGHUP, fds);
		(void)signal_session(s->pid, SIGCONT, NULL);
	}
	/* a process that is printing must not block on this end */
	hr_fd_close(&s->master);
	hr_fd_close(&s->slave);
	if (fds != NULL)
		wait_for_ends(fds, n);
	if (s->pid > 0 && kill_all)
		(void)signal_session(s->pid, SIGKILL, NULL);
}
