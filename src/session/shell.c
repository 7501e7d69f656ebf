/* Implements the core's operations on terminal, FIFOs and process. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process/spawn.h"
#include "session/confine.h"
#include "session/prompt/mount.h"

#define TURN_READS 8    /* reads per wake-up; a terminal provides 4 kB in each */
#define FULL_SIZE 1024  /* after a shorter read the terminal is nearly always empty */
#define QUICK_BYTES 512 /* readline reads this many bytes in a millisecond */

static void
drop_master(struct hr_keeper *k)
{
	hr_watch_drop(&k->master_readable);
	hr_watch_drop(&k->master_writable);
	hr_watch_drop(&k->shell_ends);
	hr_fd_close(&k->shell_fd);
	if (!k->leaves)
		resume_unlay(k);
	hr_buf_reset(&k->typed);
	k->typed_at = 0;
	k->answered = false;
}

void
shell_close(struct hr_keeper *k, bool kill_all)
{
	drop_master(k);
	if (k->leaves)
		k->shell.pid = 0; /* leaves the shell running, so that the next keeper tries */
	hr_shellproc_hangup(&k->shell, kill_all);
	prompt_close(k);
	files_close(k);
}

/* ---- terminal output ---- */

void
shell_answer(struct hr_keeper *k)
{
	char reply[256];
	size_t len = hr_core_replies(k->core, reply, sizeof(reply));

	if (len == 0)
		return;
	prompt_read(k); /* the program that asked may have ended and cannot read the answer */
	if (!hr_core_running(k->core))
		return;
	k->answered = true;
	shell_ops.type(k, reply, len, false);
}

void
shell_unanswer(struct hr_keeper *k)
{
	if (!k->answered)
		return;
	k->answered = false;
	hr_shellproc_flush(&k->shell);
	shell_drain(k);
}

/* Passes bytes of the terminal to the core and to the log, but not a command's echo to the log,
 * which has the command already. */
static void
take_read(struct hr_keeper *k, size_t n)
{
	struct hr_kept *p = k->kept;
	bool over;
	size_t echo = hr_core_echo_bytes(k->core, p->read, n, &over);

	p->read_len = n;
	if (over)
		hr_outlog_add(&p->outlog, HR_READLINE_LEAVES, strlen(HR_READLINE_LEAVES));
	hr_outlog_add(&p->outlog, p->read + echo, n - echo);
	resume_lay_log(k);
	k->printed_at = hr_now_ms();
	hr_core_place(k->core, p->outlog.end - n);
	hr_core_output(k->core, p->read, n, k->printed_at);
	hr_core_place(k->core, p->outlog.end);
	if (echo > 0) { /* a successor would take the echo for an unlogged read */
		memset(p->read, 0, n);
		p->read_len = 0;
	}
}

/* Reads at most `turns` times; with `all` also until the terminal's queue is empty. With `holds` it
 * stops as soon as the output must wait for its reader. */
static void
read_master(struct hr_keeper *k, int turns, bool all, bool holds)
{
	struct hr_kept *p = k->kept;
	ssize_t n;

	while (turns-- > 0 && k->shell.master >= 0) {
		/* Bytes that a successor finds here and not in the log came with this read. */
		memset(p->read, 0, p->read_len);
		p->read_len = 0;
		p->read_at = p->outlog.end;
		atomic_signal_fence(memory_order_seq_cst);
		n = hr_fd_read(k->shell.master, p->read, sizeof(p->read));
		if (n > 0) {
			take_read(k, (size_t)n);
			if ((!all && n < FULL_SIZE) || (holds && follow_holds(k)))
				break;
			continue;
		}
		if (n < 0 && errno != EAGAIN) {
			/* EIO is impossible while the slave is open here. Do not spin on any other
			 * error. */
			hr_watch_drop(&k->master_readable);
		}
		break;
	}
}

/* Reads up to a limit, since a background job may print for ever. The terminal's queue is smaller.
 */
void
shell_drain(struct hr_keeper *k)
{
	read_master(k, 64, true, false);
}

void
shell_look(struct hr_keeper *k)
{
	if (!k->hold.holds)
		read_master(k, 64, true, true);
}

static void
on_master(void *arg)
{
	struct hr_keeper *k = arg;

	if (follow_holds(k)) {
		hr_watch_drop(&k->master_readable);
		return;
	}
	/* One wake-up reads the output that a busy program has ready; then requests and timers get
	 * their turn. */
	read_master(k, TURN_READS, false, true);
	shell_answer(k);
	keeper_arm(k);
}

void
shell_read_again(struct hr_keeper *k)
{
	struct hr_err err = {0};

	if (k->shell.master < 0 || k->master_readable != NULL)
		return;
	k->master_readable = hr_loop_readable(k->loop, k->shell.master, on_master, k, &err);
	if (k->master_readable == NULL)
		hr_log(HR_LOG_ERROR, "cannot read the shell's terminal: %s", err.msg);
}

/* ---- typing ---- */

/* Notes a text that may change line editing, the hook or exported variables. */
static void
suspect(struct hr_keeper *k, const char *p, size_t len)
{
	static const char *const words[] = {"bind", "inputrc", "INPUTRC", "set ", "TERM", "export",
	    "declare", "typeset", "source", ". ", "unset", "eval", "exec", "exit", "readonly",
	    "PROMPT_COMMAND", "PS0"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		k->suspicious |= memmem(p, len, words[i], strlen(words[i])) != NULL;
}

void
shell_drop_input(struct hr_keeper *k, bool own)
{
	hr_buf_reset(&k->typed);
	k->typed_at = 0;
	hr_watch_drop(&k->master_writable);
	if (!own)
		hr_shellproc_flush(&k->shell);
}

void
shell_unsize(struct hr_keeper *k)
{
	if (k->resized)
		hr_shellproc_resize(&k->shell, HR_SHELL_ROWS, HR_SHELL_COLS);
	k->resized = false;
}

/* Writes in pieces: an unread terminal accepts some 4 kB, and echoes them. */
static void
write_typed(struct hr_keeper *k)
{
	size_t left;
	ssize_t n;

	while ((left = k->typed.len - k->typed_at) > 0 && k->shell.master >= 0) {
		if (k->literal)
			hr_shellproc_literal(&k->shell);
		n = write(k->shell.master, k->typed.p + k->typed_at, left < 1024 ? left : 1024);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break; /* the shell's end is noticed elsewhere */
		k->typed_at += (size_t)n;
	}
	hr_buf_reset(&k->typed);
	k->typed_at = 0;
}

static void
on_writable(void *arg)
{
	struct hr_keeper *k = arg;

	write_typed(k);
	if (k->typed.len == 0) {
		hr_watch_drop(&k->master_writable);
		resume_note(k);
	}
}

static void
op_type(void *arg, const char *p, size_t len, bool literal)
{
	struct hr_keeper *k = arg;
	struct hr_err err = {0};

	resume_unsure(k);
	suspect(k, p, len);
	k->literal = literal;
	hr_buf_add(&k->typed, p, len);
	if (k->typed.fail != HR_OK)
		hr_log(HR_LOG_ERROR, "input for the shell was lost: out of memory");
	if (k->master_writable != NULL)
		return;
	write_typed(k);
	k->quick = k->typed.len == 0 && len <= QUICK_BYTES;
	if (k->typed.len == 0)
		return;
	k->master_writable = hr_loop_writable(k->loop, k->shell.master, on_writable, k, &err);
	if (k->master_writable == NULL)
		hr_log(HR_LOG_ERROR, "cannot write the input for the shell: %s", err.msg);
}

bool
shell_take_back(void *arg)
{
	struct hr_keeper *k = arg;
	/* a single read must take the text, since the shell may read, too */
	static char text[HR_HOOK_LINE_MAX + 1];
	bool any = false;

	resume_unsure(k);
	while (hr_fd_read(k->line_fd, text, sizeof(text)) > 0) {
		any = true;
		if (text[0] != '\0' && k->given > 0)
			k->given--;
	}
	return any;
}

/* ---- commands for readline, past the terminal ---- */

static bool
op_give(void *arg, const char *p, size_t len)
{
	struct hr_keeper *k = arg;
	const struct iovec parts[] = {{(void *)p, len}, {(void *)"", 1}};

	if (!k->has_line)
		return false;
	resume_unsure(k);
	if (k->sent_away) /* readline was not waiting there, so the empty line is unread */
		(void)shell_take_back(k);
	k->sent_away = len == 0;
	/* A user who has very many pipes gets small ones: the shell could read a part of the text,
	 * and run it. */
	if (len >= PIPE_BUF && fcntl(k->line_fd, F_GETPIPE_SZ) <= (int)len)
		return false;
	/* An empty pipe accepts the whole text. */
	if (writev(k->line_fd, parts, 2) != (ssize_t)len + 1) {
		(void)shell_take_back(k);
		return false;
	}
	k->quick = len <= QUICK_BYTES;
	suspect(k, p, len);
	if (len == 0)
		return true;
	k->given = k->given < INT_MAX ? k->given + 1 : 0;
	return true;
}

static bool
op_away(void *arg)
{
	const struct hr_keeper *k = arg;

	return k->shell.pid > 0 && !hr_shellproc_foreground(&k->shell, k->shell.pid);
}

static bool
op_blind(void *arg)
{
	const struct hr_keeper *k = arg;

	return !hr_shellproc_shows(&k->shell, STDERR_FILENO);
}

static bool
op_echoes(void *arg)
{
	const struct hr_keeper *k = arg;

	return hr_shellproc_echoes(&k->shell);
}

/* ---- the process ---- */

static void
shell_ended(struct hr_keeper *k, int code)
{
	prompt_read(k);
	shell_drain(k);
	drop_master(k);
	hr_shellproc_hangup(&k->shell, false);
	k->shell.pid = 0;
	if (!k->stopping)
		hr_core_exited(k->core, code, hr_now_ms());
}

int
shell_start(struct hr_keeper *k, const char *dir, struct hr_err *err)
{
	char *where = NULL;

	if (k->starts >= 2) {
		k->starts = 0; /* the next request tries again */
		return hr_err_set(err, HR_E_GONE, "the shell ends before its first prompt");
	}
	if (k->starts == 1)
		hr_log(HR_LOG_WARNING, "bash printed no prompt: trying without start-up files");
	if (files_put_rc(k, k->starts > 0, err) < 0)
		return -1;
	k->has_line = false;
	(void)shell_take_back(k); /* drops lines meant for the former shell */
	k->given = 0;
	k->kept->root = hr_root_mount();
	k->hides = 0;
	k->starts++;
	if (hr_shellproc_start(&k->shell, k->config->bash, k->rcfile, &k->user, k->environ.v, dir,
		&where, err) < 0)
		return -1;
	free(k->dir);
	k->dir = where;
	k->resized = false;
	k->shell_fd = hr_pidfd_open(k->shell.pid);
	if (shell_watch(k, false, err) < 0)
		return -1;
	if (hr_kept_outlives(&k->store))
		resume_lay(k);
	return 0;
}

static void
on_shell_end(void *arg)
{
	struct hr_keeper *k = arg;

	shell_ended(k, hr_shellproc_exit_code(k->shell_fd));
	keeper_arm(k);
}

int
shell_watch(struct hr_keeper *k, bool other, struct hr_err *err)
{
	k->master_readable = hr_loop_readable(k->loop, k->shell.master, on_master, k, err);
	if (k->master_readable == NULL)
		return -1;
	if (!other)
		return 0;
	k->shell_ends = hr_loop_readable(k->loop, k->shell_fd, on_shell_end, k, err);
	return k->shell_ends != NULL ? 0 : -1;
}

/* Continues a shell stopped by `kill -STOP $$`, of which only its parent is notified. */
void
shell_unstop(struct hr_keeper *k)
{
	if (k->shell_ends != NULL && hr_shellproc_stopped(&k->shell))
		(void)kill(k->shell.pid, SIGCONT);
}

static const char *
op_restart(void *arg, struct hr_err *err)
{
	struct hr_keeper *k = arg;
	pid_t old = k->shell.pid;

	drop_master(k);
	if (old > 0) {
		hr_log(HR_LOG_WARNING, "shell %d is replaced", (int)old);
		hr_shellproc_hangup(&k->shell, false);
		(void)kill(old, SIGKILL);
		k->shell.pid = 0; /* the old shell's end, however late, no longer matters */
	}
	/* stays set if no answer has reported an earlier restart yet */
	k->restarted |= k->prompted;
	if (prompt_renew(k, err) < 0 || shell_start(k, hr_core_working_dir(k->core), err) < 0) {
		hr_log(HR_LOG_ERROR, "cannot start the shell: %s", err->msg);
		return NULL;
	}
	return k->dir;
}

void
shell_end(struct hr_keeper *k)
{
	pid_t group = 0;

	if (k->shell.pid <= 0)
		return;
	prompt_last(k);
	if (ioctl(k->shell.master, TIOCGPGRP, &group) < 0 || group == k->shell.pid)
		group = 0;
	/* Kill the shell first: otherwise it would report the end of its foreground, which then
	 * ended in a running shell. */
	(void)kill(k->shell.pid, SIGKILL);
	/* A foreground that ignores SIGHUP is the reason why the shell is ended. */
	if (group > 1)
		(void)kill(-group, SIGKILL);
	shell_drain(k);
	hr_core_exited(k->core, 128 + SIGKILL, hr_now_ms());
}

void
shell_on_child(void *arg)
{
	struct hr_keeper *k = arg;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != k->shell.pid) {
			if (!WIFSTOPPED(status))
				(void)exec_ended(k, pid, hr_exit_code(status));
			continue;
		}
		if (WIFSTOPPED(status)) {
			/* undoes `kill -STOP $$`, which no other process would do */
			(void)kill(pid, SIGCONT);
			continue;
		}
		shell_ended(k, hr_exit_code(status));
	}
	keeper_arm(k);
}

static void
op_began(void *arg, const char *p, size_t len)
{
	struct hr_keeper *k = arg;

	/* All descriptors are redirected during a report; a change by exec is seen the next
	 * time. */
	if (!k->tells_hides)
		k->hides = memmem(p, len, "exec", 4) == NULL ? look_hides(k, k->said_pid) : 0;
	hr_confine_begin(k->config->confine);
	hr_netlog_begin(&k->netlog);
	resume_unsure(k);
	resume_log_given(k, p, k->hidden ? 0 : len);
	follow_began(k, p, len);
}

#define ELSEWHERE(what, how)                                                                       \
	"\n[The shell's standard " what " not go to its terminal (exec): what is printed there "   \
	"may not be shown here. To undo it: exec " how "]"

static void
op_why(void *arg, int exit_code, struct hr_buf *out)
{
	static const char *const notes[] = {"", ELSEWHERE("output does", ">/dev/tty"),
	    ELSEWHERE("error does", "2>/dev/tty"),
	    ELSEWHERE("output and error do", ">/dev/tty 2>&1")};
	struct hr_keeper *k = arg;

	hr_confine_why(k->config->confine, exit_code != 0 ? claims_place(k) : NULL, out);
	hr_netlog_why(&k->netlog, out);
	hr_buf_adds(out, notes[k->hides]);
}

const struct hr_core_ops shell_ops = {
    .type = op_type,
    .ack = shell_ack,
    .give = op_give,
    .take_back = shell_take_back,
    .strays = look_strays,
    .away = op_away,
    .works = look_works,
    .look = look_waits,
    .in_readline = look_in_readline,
    .blind = op_blind,
    .echoes = op_echoes,
    .restart = op_restart,
    .began = op_began,
    .over = follow_over,
    .why = op_why,
};
