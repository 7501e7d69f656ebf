/* Runs the first process of a box: its namespaces, the order in which both sides prepare it, its
 * end. */
#include "config.h"

#include "box/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/account.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/loopback.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "box/fence.h"
#include "box/group.h"
#include "box/guard.h"
#include "box/ids.h"
#include "box/view.h"
#include "proto/json.h"

/* The namespaces that the box's first process makes itself, while the launcher works. The network
 * is none of them: the caller enters it as soon as it knows the process. */
#define INNER (CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static pid_t
cloned(const struct box_spec *s, int group, int *ret_pidfd)
{
	struct clone_args a = {.flags = CLONE_NEWPID | CLONE_PIDFD |
					(s->host_network ? 0 : CLONE_NEWNET) |
					(hr_account_is_root() ? 0 : CLONE_NEWUSER) |
					(group >= 0 ? CLONE_INTO_CGROUP : 0),
	    .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
	    .exit_signal = SIGCHLD,
	    .cgroup = (uint64_t)(group >= 0 ? group : 0)};

	return (pid_t)syscall(SYS_clone3, &a, sizeof(a));
}

static bool
setting_is(const char *path, char value)
{
	HR_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c;

	return fd >= 0 && hr_fd_read(fd, &c, 1) == 1 && c == value;
}

/* Sets an error that names the setting which forbids namespaces. */
static int
not_cloned(int sys, struct hr_err *err)
{
	static const struct {
		const char *path;
		char value;
		const char *reason;
	} knobs[] = {{"/proc/sys/kernel/unprivileged_userns_clone", '0',
			 "this kernel lets only root make namespaces: set the sysctl "
			 "kernel.unprivileged_userns_clone to 1"},
	    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1',
		"AppArmor lets only root make namespaces: set the sysctl "
		"kernel.apparmor_restrict_unprivileged_userns to 0"},
	    {"/proc/sys/user/max_user_namespaces", '0',
		"this machine allows no user namespaces: raise the sysctl "
		"user.max_user_namespaces"}};
	size_t i;

	for (i = 0; !hr_account_is_root() && i < sizeof(knobs) / sizeof(*knobs); i++)
		if (setting_is(knobs[i].path, knobs[i].value))
			return hr_err_set(err, HR_E_UNSUPPORTED, "%s, or be root", knobs[i].reason);
	return hr_err_sys(
	    err, sys, "make the namespaces of a box (inside a container, it must be allowed to)");
}

/* ---- the box itself ---- */

/* Lets every account of the box listen on ports below 1024, as container engines do: the ports are
 * the box's own. A kernel or a container that keeps the setting leaves them to the box's root. */
static void
open_low_ports(void)
{
	HR_CLOSE int fd =
	    open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)hr_fd_write_full(fd, "0", 1, NULL);
}

/* The data that the first process of a box needs. */
struct first {
	const struct box_spec *s;
	int sync; /* the launcher has the other end */
	const struct box_groups *groups;
	bool detached;
	bool plain;  /* the caller is not root, so that there is a user namespace */
	bool one_id; /* the user namespace has a single account */
	/* Signals that wait for the program: process 1 would lose one that it neither handles nor
	 * blocks. handraild sets its own mask. */
	sigset_t held;
};

/* Prepares all of the box but its program, while the launcher's caller records it. */
static int
prepare_inside(const struct first *f, struct hr_err *err)
{
	const struct box_spec *s = f->s;

	/* kill(0, ...) in the box must not reach the launcher's process group */
	if ((f->detached ? setsid() : setpgid(0, 0)) < 0)
		return hr_err_sys(err, errno, "a process group of the box's own");
	if (unshare(INNER) < 0)
		return not_cloned(errno, err);
	/* the kernel forbids setgroups() with one id: a group could take rights away */
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
	    (!f->one_id && setgroups(0, NULL) < 0))
		return hr_err_sys(err, errno, "become root of the box");
	if (sethostname(s->name, strlen(s->name)) < 0)
		return hr_err_sys(err, errno, "set the host name of the box");
	if (!s->host_network &&
	    (hr_loopback_raise(err) < 0 || (s->egress && hr_loopback_take_all(err) < 0)))
		return -1;
	if (!s->host_network)
		open_low_ports();
	return box_view_enter(s, f->plain, f->sync, err);
}

/* Returns only with an error. */
static int
become_program(const struct first *f, struct hr_err *err)
{
	const struct box_spec *s = f->s;

	if (chdir(s->directory) < 0)
		return hr_err_sys(err, errno, "enter %s in the box", s->directory);
	if (box_fence_raise(err) < 0)
		return -1;
	/* This also ends a box whose launcher and guard are killed at once. A later change of ids
	 * undoes it. */
	if (!f->detached && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return hr_err_sys(err, errno, "end with the launcher");
	(void)execve(s->argv[0], s->argv, s->env);
	return hr_err_sys(err, errno, "execute %s in the box", s->argv[0]);
}

/* Runs the child. Its end of `sync` is closed by exec, which the launcher takes for success. */
static void __attribute__((noreturn)) in_box(const struct first *f)
{
	struct hr_err e = {0};
	char go;
	int r = box_group_join(f->groups, &e);

	/* a link that the box has planted must not lead to a descriptor of the caller's */
	(void)close_range(STDERR_FILENO + 1, (unsigned)f->sync - 1, 0);
	(void)close_range((unsigned)f->sync + 1, ~0u, 0);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGTTOU, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &f->held, NULL);
	/* no byte means that the launcher has given up, or was killed */
	if (hr_fd_read(f->sync, &go, 1) != 1)
		_exit(1);
	if (r == 0)
		r = prepare_inside(f, &e);
	/* reads the byte for box_view_enter() too, if that did not */
	go = '\0';
	while (go != 'g' && hr_fd_read(f->sync, &go, 1) == 1) {
	}
	if (go == 'g') {
		if (r == 0)
			(void)become_program(f, &e);
		/* fails if the launcher has ended, and there is no reader */
		(void)hr_fd_write_full(f->sync, e.msg, strlen(e.msg), NULL);
	}
	_exit(1);
}

/* ---- the launcher ---- */

/* Reports the process to the caller. */
static int
tell_control(const struct box_spec *s, int control, pid_t pid, const struct hr_buf *groups,
    struct hr_err *err)
{
	HR_BUF(line, 1 << 16);
	HR_BUF(lacks, 1 << 12);

	box_start_lacks(s->host_network, &lacks);
	hr_buf_addf(&line,
	    "{\"pid\": %ld, \"started\": %llu, \"groups\": [%s], \"lacks\": ", (long)pid,
	    hr_pid_started(pid), hr_buf_str(groups));
	(void)hr_json_put_str(&line, hr_buf_str(&lacks), lacks.len, HR_JSON_REPLACE);
	hr_buf_adds(&line, "}\n");
	return hr_buf_check(&line, err) < 0 ? -1 : hr_fd_write_full(control, line.p, line.len, err);
}

/* Waits for the byte of the caller that lets the box continue. */
static int
wait_for_control(int control, struct hr_err *err)
{
	char go;

	return hr_fd_read(control, &go, 1) == 1
		   ? 0
		   : hr_err_set(err, HR_E_GONE, "the caller ended before the box was started");
}

/* Prepares the layers, in the guard: that takes longest, and needs no process of the box. */
static int
prepare_layers(const void *arg, struct hr_err *err)
{
	return box_view_prepare(arg, !hr_account_is_root(), err);
}

/* Lets the waiting child go, and does the work outside that takes long while the child, the guard
 * and the caller do theirs. */
static int
work_beside(const struct box_spec *s, pid_t pid, const struct box_guard *guard, int sync,
    int control, const struct hr_buf *groups, struct hr_err *err)
{
	if (hr_fd_write_full(sync, "p", 1, err) < 0 ||
	    (control >= 0 && tell_control(s, control, pid, groups, err) < 0) ||
	    box_guard_wait(guard, err) < 0 || hr_fd_write_full(sync, "l", 1, err) < 0 ||
	    (control >= 0 && wait_for_control(control, err) < 0))
		return -1;
	return hr_fd_write_full(sync, "g", 1, err);
}

/* Prepares the waiting child from outside, lets it go, and waits until the program runs. */
static int
prepare(const struct box_spec *s, const struct box_ids *ids, pid_t pid, int pidfd,
    struct box_guard *guard, int sync, int control, const struct hr_buf *groups, struct hr_err *err)
{
	char text[sizeof(err->msg)];
	siginfo_t ended = {.si_pid = 0};
	ssize_t n;

	if (box_guard_watch(guard, pidfd, err) < 0)
		goto failed;
	if (!hr_account_is_root() && box_ids_map(ids, pid, err) < 0)
		goto failed;
	if (work_beside(s, pid, guard, sync, control, groups, err) < 0)
		goto failed;
	n = hr_fd_read_full(sync, text, sizeof(text) - 1, err);
	/* exec has closed the other end, or the child was killed */
	if (n == 0 && waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    (ended.si_pid == 0 || ended.si_code == CLD_EXITED) &&
	    (control < 0 || box_guard_leave(guard, err) == 0))
		return 0;
	if (n == 0 && err->code == HR_OK)
		(void)hr_err_set(err, HR_E_GONE, "the box was killed before its program started");
	if (n > 0) {
		text[n] = '\0';
		(void)hr_err_set(err, HR_E_SYS, "%s", text);
	}
failed:
	(void)kill(pid, SIGKILL);
	(void)hr_spawn_end(pid, NULL);
	return -1;
}

static int
look_at_directories(const struct box_spec *s, struct hr_err *err)
{
	struct statx x;
	struct stat st;
	size_t i;

	/* the root of a process changes between mounts alone */
	if (statx(AT_FDCWD, "/", 0, STATX_TYPE, &x) == 0 &&
	    (x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
	    (x.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
		return hr_err_set(err, HR_E_SYS,
		    "/ is the directory of a chroot and no mount, so that no box can be made: bind "
		    "the "
		    "directory to itself before the chroot (mount --rbind DIR DIR)");
	if (lstat(s->storage, &st) != 0 || !S_ISDIR(st.st_mode))
		return hr_err_set(
		    err, HR_E_INVAL, "the storage %s must be a directory that exists", s->storage);
	if (s->root != NULL && (stat(s->root, &st) != 0 || !S_ISDIR(st.st_mode)))
		return hr_err_set(
		    err, HR_E_INVAL, "the root %s must be a directory that exists", s->root);
	for (i = 0; i < s->nbelow; i++)
		if (lstat(s->below[i], &st) != 0 || !S_ISDIR(st.st_mode))
			return hr_err_set(err, HR_E_INVAL,
			    "%s of \"below\" must be a directory that exists", s->below[i]);
	for (i = 0; i < s->nmounts; i++)
		if (stat(s->mounts[i].source, &st) != 0)
			return hr_err_sys(
			    err, errno, "the source of a mount, %s", s->mounts[i].source);
	return 0;
}

/* Waits for the end of the box, and ends it if its guard has ended. Returns 0, or -1 with errno. */
static int
wait_for(pid_t pid, pid_t guard, int *ret_status)
{
	pid_t ended;

	do {
		ended = waitpid(-1, ret_status, 0);
		if (ended == guard)
			(void)kill(pid, SIGKILL);
	} while (ended != pid && (ended >= 0 || errno == EINTR));
	return ended == pid ? 0 : -1;
}

/* Implements box_start() with the storage locked. */
static int
start(const struct box_spec *s, struct box_guard *guard, int control, int *ret_status,
    struct hr_err *err)
{
	const bool root = hr_account_is_root();
	HR_CLEAN(box_group_close) struct box_groups groups = {.into = -1};
	struct first first = {.s = s, .groups = &groups, .detached = control >= 0, .plain = !root};
	HR_BUF(dirs, 1 << 16);
	HR_CLOSE int pidfd = -1;
	struct box_ids ids = {0};
	bool terminal = false;
	int sync[2], status, r;
	sigset_t before;
	pid_t pid = -1;

	if (first.plain)
		box_ids_find(&ids);
	first.one_id = first.plain && !ids.many;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
		return hr_err_sys(err, errno, "a socket pair");
	(void)signal(SIGPIPE, SIG_IGN); /* the other side may end at any time */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGTTOU, SIG_IGN);
	r = box_guard_start(guard, s->name, prepare_layers, s, err);
	if (r == 0)
		r = box_group_make(s, "/proc", root, &groups, &dirs, err);
	(void)sigemptyset(&first.held);
	if (first.detached)
		(void)sigaddset(&first.held, SIGTERM);
	if (r == 0) {
		(void)sigprocmask(SIG_BLOCK, &first.held, &before);
		pid = cloned(s, groups.into, &pidfd);
		r = pid < 0 ? not_cloned(errno, err) : 0;
		if (pid != 0)
			(void)sigprocmask(SIG_SETMASK, &before, NULL);
	}
	if (pid == 0) {
		hr_fd_close(&sync[0]);
		first.sync = sync[1];
		in_box(&first);
	}
	hr_fd_close(&sync[1]);
	if (r == 0) {
		/* the terminal's signals are for the box */
		terminal = control < 0 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
			   setpgid(pid, pid) == 0 && tcsetpgrp(STDIN_FILENO, pid) == 0;
		r = prepare(s, &ids, pid, pidfd, guard, sync[0], control, &dirs, err);
	}
	hr_fd_close(&sync[0]);
	*ret_status = 0;
	if (r == 0 && control < 0) {
		r = wait_for(pid, guard->pid, &status) == 0
			? 0
			: hr_err_sys(err, errno, "wait for the box");
		*ret_status = hr_exit_code(status);
	}
	if (r < 0 || control < 0)
		(void)box_group_remove(s->name, root);
	if (terminal)
		(void)tcsetpgrp(STDIN_FILENO, getpgrp());
	return r;
}

int
box_start(const struct box_spec *s, int control, int *ret_status, struct hr_err *err)
{
	struct box_guard guard;
	int r;

	if (look_at_directories(s, err) < 0)
		return -1;
	r = box_guard_lock(&guard, s->storage, err);
	if (r == 0)
		r = start(s, &guard, control, ret_status, err);
	box_guard_end(&guard);
	return r;
}

int
box_start_check(const struct box_spec *s, struct hr_err *err)
{
	HR_CLOSE int pidfd = -1;
	int status;
	pid_t pid;

	if (look_at_directories(s, err) < 0)
		return -1;
	pid = cloned(s, -1, &pidfd);
	if (pid == 0)
		_exit(unshare(INNER) == 0 && (!s->egress || (hr_loopback_raise(NULL) == 0 &&
								hr_loopback_take_all(NULL) == 0))
			  ? 0
			  : errno);
	if (pid < 0)
		return not_cloned(errno, err);
	if (hr_spawn_end(pid, &status) < 0)
		return hr_err_sys(err, errno, "wait for a process");
	return status == 0 ? 0 : not_cloned(hr_exit_code(status), err);
}

void
box_start_explain(struct hr_buf *b)
{
	struct box_ids ids;

	box_ids_find(&ids);
	if (hr_account_is_root())
		hr_buf_adds(b, "Its root is root of this machine, with few capabilities.\n");
	else if (ids.many)
		hr_buf_addf(b,
		    "Its root is your account; it has %ld more accounts, your subordinate ids from "
		    "%ld on.\n",
		    ids.uid_count, ids.uid_start);
	hr_buf_adds(b, "Nothing limits the size of its files.\n");
}

void
box_start_lacks(bool host_network, struct hr_buf *b)
{
	struct box_ids ids;

	box_group_lacks(hr_account_is_root(), b);
	if (host_network)
		box_fence_lacks(b);
	if (hr_account_is_root())
		return;
	box_ids_find(&ids);
	if (!ids.many)
		hr_buf_adds(b,
		    "The box has one account, yours, so that its commands can end its server. For "
		    "more install the package uidmap, and give yourself a range in /etc/subuid and "
		    "/etc/subgid.\n");
}
