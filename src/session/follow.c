/* Followers are given the output from an offset, as fast as they read, and hold up nobody. One that
 * is slower than the log is long misses bytes, and sees it by the offsets.
 *
 * The client of a command may ask that none of its output is lost (hr_run_request, `whole`). Then
 * the terminal is not read while more than half a log of it has not been passed on, so that the
 * command waits, as it would for a pipe's reader; but no longer than HOLD_MS for each step, so that
 * a client that has stopped holds up no shell. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "proto/frame.h"
#include "shell/keys.h"

#define FOLLOWERS_MAX 64
#define PIECE_MAX (64u << 10)
#define HOLD_MS 30000

struct follower {
	TAILQ_ENTRY(follower) link;
	struct hr_keeper *keeper;
	int fd;
	struct hr_watch *readable, *writable;
	bool stays;      /* waits for more at the end */
	bool told;       /* where it begins, and that a command is over */
	int64_t command; /* it ends with that one; 0: with none */
	uint64_t at;
	struct hr_buf out;
	size_t sent;
};

static void hold_move(struct follower *f);

static void
follower_free(struct follower *f)
{
	hold_move(f);
	TAILQ_REMOVE(&f->keeper->followers, f, link);
	f->keeper->nfollowers--;
	hr_watch_free(f->readable);
	hr_watch_free(f->writable);
	hr_fd_close(&f->fd);
	hr_buf_done(&f->out);
	free(f);
}

void
follow_free_all(struct hr_keeper *k)
{
	struct follower *f;

	while ((f = TAILQ_FIRST(&k->followers)) != NULL)
		follower_free(f);
}

/* Its command runs, or it is bound to none. */
static bool
follower_unbound(const struct follower *f)
{
	const struct hr_commands *c = &f->keeper->kept->commands;

	return f->command == 0 || (c->runs && c->begun == f->command);
}

/* Where it ends: what is behind the end of its command is another's, and so is all that there is
 * where its command is no longer known. */
static uint64_t
follower_end(const struct follower *f)
{
	const struct hr_command_state *s;

	if (follower_unbound(f))
		return UINT64_MAX;
	s = hr_commands_ended(&f->keeper->kept->commands, f->command);
	return s != NULL ? s->log_end : 0;
}

/* ---- a command whose output waits for its reader ---- */

static void
hold_release(struct hr_keeper *k)
{
	if (!k->hold.holds)
		return;
	k->hold.holds = false;
	hr_watch_disarm(k->hold.late);
	shell_read_again(k);
}

/* No command's output waits any more. */
static void
hold_drop(struct hr_keeper *k)
{
	k->hold.command = 0;
	hold_release(k);
}

static void
on_hold_late(void *arg)
{
	struct hr_keeper *k = arg;

	hr_log(
	    HR_LOG_NOTICE, "the reader of a command's output takes too long: output may be lost");
	hold_drop(k);
	keeper_arm(k);
}

/* Too much of its output has not been passed on. */
static bool
hold_due(const struct hr_keeper *k)
{
	const struct hr_outlog *o = &k->kept->outlog;

	return k->hold.command != 0 && o->end - k->hold.at > o->cap / 2;
}

bool
follow_holds(struct hr_keeper *k)
{
	struct hr_err err = {0};

	if (!hold_due(k))
		return false;
	if (k->hold.late == NULL)
		k->hold.late = hr_loop_timer(k->loop, on_hold_late, k, &err);
	if (k->hold.late == NULL || hr_watch_arm(k->hold.late, HOLD_MS, &err) < 0) {
		hr_log(HR_LOG_WARNING, "output may be lost: %s", err.msg);
		k->hold.command = 0;
		return false;
	}
	k->hold.holds = true;
	return true;
}

/* The follower has got so far. */
static void
hold_move(struct follower *f)
{
	struct hr_keeper *k = f->keeper;
	struct hr_err err = {0};

	if (f->command == 0 || f->command != k->hold.command || f->at < k->hold.at)
		return;
	/* each step begins the time again */
	if (k->hold.holds && f->at > k->hold.at && hr_watch_arm(k->hold.late, HOLD_MS, &err) < 0)
		hr_log(HR_LOG_ERROR, "timer: %s", err.msg);
	k->hold.at = f->at;
	if (!follower_unbound(f) && f->at >= follower_end(f))
		k->hold.command = 0;
	if (!hold_due(k))
		hold_release(k);
}

/* The next frame, if there is something to say. */
static bool
follower_fill(struct follower *f)
{
	const uint64_t end = follower_end(f);
	struct hr_output_piece piece;
	size_t len;

	piece.bytes.p = hr_outlog_read(&f->keeper->kept->outlog, &f->at, &len);
	if (len > 0 && len > (end > f->at ? end - f->at : 0))
		len = end > f->at ? (size_t)(end - f->at) : 0;
	if (len == 0 && f->told)
		return false;
	piece.bytes.len = len < PIECE_MAX ? len : PIECE_MAX;
	piece.offset = f->at;
	f->told = true;
	hr_buf_reset(&f->out);
	f->sent = 0;
	hr_frame_put_output(&f->out, &piece);
	f->at += piece.bytes.len;
	hold_move(f);
	return true;
}

static void on_follower_writable(void *arg);

/* false: it is gone. */
static bool
follower_pump(struct follower *f)
{
	ssize_t n;

	for (;;) {
		if (f->sent == f->out.len && !follower_fill(f))
			break;
		if (f->out.fail != HR_OK)
			goto gone;
		n = send(
		    f->fd, f->out.p + f->sent, f->out.len - f->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			f->sent += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			goto gone;
		if (f->writable == NULL)
			f->writable =
			    hr_loop_writable(f->keeper->loop, f->fd, on_follower_writable, f, NULL);
		if (f->writable == NULL)
			goto gone;
		return true;
	}
	if (f->stays && follower_unbound(f)) {
		hr_watch_free(f->writable);
		f->writable = NULL;
		return true;
	}
gone:
	follower_free(f);
	return false;
}

static void
on_follower_writable(void *arg)
{
	(void)follower_pump(arg);
}

/* It has nothing more to say, so this is its end. */
static void
on_follower_readable(void *arg)
{
	follower_free(arg);
}

void
follow_wake(struct hr_keeper *k)
{
	struct follower *f, *next;

	for (f = TAILQ_FIRST(&k->followers); f != NULL; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->writable == NULL)
			(void)follower_pump(f);
	}
}

void
follow_add(struct hr_keeper *k, int fd, const struct hr_follow_request *r)
{
	struct follower *f = k->nfollowers < FOLLOWERS_MAX ? calloc(1, sizeof(*f)) : NULL;
	struct hr_err err = {0};

	if (f == NULL) {
		hr_log(HR_LOG_WARNING, "too many follow the output, or no memory is left");
		hr_fd_close(&fd);
		return;
	}
	f->keeper = k;
	f->fd = fd;
	f->stays = r->stays;
	f->command = r->command;
	f->at = r->offset < k->kept->outlog.end ? r->offset : k->kept->outlog.end;
	hr_buf_init(&f->out, PIECE_MAX + 1024);
	TAILQ_INSERT_TAIL(&k->followers, f, link);
	k->nfollowers++;
	f->readable = hr_loop_readable(k->loop, fd, on_follower_readable, f, &err);
	if (f->readable == NULL) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		follower_free(f);
		return;
	}
	(void)follower_pump(f);
}

/* ---- input and signals from outside of an action ---- */

static const char *
press_keys(struct hr_keeper *k, const struct hr_press_request *r)
{
	const char *name = r->text.p, *end = name + r->text.len;
	char bytes[HR_KEY_MAX];
	HR_BUF(all, HR_KEY_MAX * (r->text.len + 1));
	size_t len;
	bool app, busy;

	app = hr_core_application_cursor(k->core);
	for (; name < end; name += strlen(name) + 1) {
		if (hr_key_bytes(name, strlen(name), app, bytes, sizeof(bytes), &len, NULL) < 0 ||
		    len == 0)
			return "no key of that name";
		hr_buf_add(&all, bytes, len);
	}
	/* C-c alone, before the shell has taken the command */
	if (all.len == 1 && all.p[0] == '\003' && hr_core_withdraw(k->core, 128 + SIGINT, &busy) &&
	    !busy)
		hr_buf_reset(&all);
	if (all.fail == HR_OK && all.len > 0)
		shell_ops.type(k, all.p, all.len, false);
	return all.fail != HR_OK ? "out of memory" : NULL;
}

static const char *
press_signal(struct hr_keeper *k, int signo)
{
	bool ends = signo == SIGINT || signo == SIGHUP || signo == SIGTERM || signo == SIGQUIT ||
		    signo == SIGKILL;
	bool busy = false, back = ends && hr_core_withdraw(k->core, 128 + signo, &busy);
	pid_t group = 0;

	if (back && !busy)
		return NULL;
	if (ioctl(k->shell.master, TIOCGPGRP, &group) < 0 || group <= 1)
		return "no command is running in the foreground";
	/* the shell itself runs it: the others bash ignores, or would die of for nothing */
	if (group == k->shell.pid && signo != SIGINT && signo != SIGHUP && signo != SIGKILL)
		return back ? NULL : "no command but the shell is running in the foreground";
	return kill(-group, signo) < 0 ? strerror(errno) : NULL;
}

const char *
follow_press(struct hr_keeper *k, const struct hr_press_request *r)
{
	hr_shellproc_flow(&k->shell);
	if (r->what == HR_PRESS_END) {
		shell_end(k);
		return NULL;
	}
	if (!k->hold.holds)
		shell_drain(k); /* the program may just have begun, or said how it wants its keys */
	/* at a prompt this would be a command that nobody asked for as one */
	if (!hr_core_running(k->core) && !hr_core_busy(k->core))
		return "no command is running";
	if (r->command != 0 && (!k->kept->commands.runs || k->kept->commands.begun != r->command))
		return "that command has ended";
	switch (r->what) {
	case HR_PRESS_KEYS: return press_keys(k, r);
	case HR_PRESS_SIGNAL: return press_signal(k, (int)r->signal);
	case HR_PRESS_SIZE:
		/* while readline has the terminal it would draw the command anew */
		if (!hr_core_running(k->core) || hr_core_edits(k->core))
			return "the command has not begun yet";
		k->resized = true;
		hr_shellproc_resize(&k->shell, (unsigned)r->rows, (unsigned)r->columns);
		return NULL;
	default: shell_ops.type(k, r->text.p, r->text.len, false); return NULL;
	}
}

/* ---- the record of commands ---- */

static bool
is_followed(const struct hr_keeper *k, int64_t command)
{
	const struct follower *f;

	TAILQ_FOREACH(f, &k->followers, link)
	{
		if (f->command == command)
			return true;
	}
	return false;
}

void
follow_began(struct hr_keeper *k, const char *p, size_t len)
{
	const struct client *c = k->active;

	if (c == NULL) /* one of our own */
		return;
	hr_commands_begin(&k->kept->commands, (struct hr_span){c->key, c->key_len},
	    (struct hr_span){p, k->hidden ? 0 : len}, hr_now_ms(), k->kept->outlog.end);
	/* a follower of the last command may still read; else nobody would clear this */
	if (k->hold.command != 0 && !is_followed(k, k->hold.command))
		hold_drop(k);
	/* less than twice one read would be lost all the same */
	if (k->hold.command == 0 && k->hold.asked && k->kept->outlog.cap / 2 >= HR_KEPT_READ) {
		k->hold.command = k->kept->commands.begun;
		k->hold.at = k->kept->outlog.end;
	}
	k->hold.asked = false;
}

void
follow_over(void *arg, int exit_code, bool shell_ended)
{
	struct hr_keeper *k = arg;
	struct follower *f;

	hr_commands_end(&k->kept->commands,
	    shell_ended ? HR_COMMAND_SHELL_ENDED : HR_COMMAND_COMPLETED, exit_code, hr_now_ms(),
	    k->kept->outlog.end);
	/* it printed nothing, or all of that has been passed on */
	if (k->hold.command == k->kept->commands.begun && k->hold.at == k->kept->outlog.end)
		hold_drop(k);
	/* a watcher asks for the state when a frame comes, and an end need print nothing */
	TAILQ_FOREACH(f, &k->followers, link)
	{
		if (f->stays && f->command == 0)
			f->told = false;
	}
	follow_wake(k);
}
