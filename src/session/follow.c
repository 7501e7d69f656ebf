/* Sends followers the output from an offset as fast as they read, and delays no other process. A
 * follower that falls behind by more than the log misses bytes, and notices that by the offsets.
 * The client of a command may require that none of its output is lost (hr_run_request, `whole`).
 * Then the terminal is not read while more than half a log of it is unsent, so that the command
 * waits, as for a pipe's reader; but at most HOLD_MS for each step, so that a stopped client does
 * not stop the shell. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/flush.h"
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
	bool stays;      /* the follower waits for more at the end */
	bool told;       /* the start, and the end of its command, were sent */
	int64_t command; /* the follower ends with that command; 0: none */
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

/* Returns true if the follower's command runs, or it has none. */
static bool
follower_unbound(const struct follower *f)
{
	const struct hr_commands *c = &f->keeper->kept->commands;

	return f->command == 0 || (c->runs && c->begun == f->command);
}

/* Returns the follower's end offset: output after its command belongs to another command, as does
 * all output if the command is no longer known. */
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

/* Stops holding output for a command. */
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

	hr_log(HR_LOG_NOTICE, "the client reads a command's output too slowly: output may be lost");
	hold_drop(k);
	keeper_arm(k);
}

/* Returns true if too much of the output is unsent. */
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

/* Notes the follower's progress. */
static void
hold_move(struct follower *f)
{
	struct hr_keeper *k = f->keeper;
	struct hr_err err = {0};

	if (f->command == 0 || f->command != k->hold.command || f->at < k->hold.at)
		return;
	/* Each step restarts the time limit. */
	if (k->hold.holds && f->at > k->hold.at && hr_watch_arm(k->hold.late, HOLD_MS, &err) < 0)
		hr_log(HR_LOG_ERROR, "cannot set a timer: %s", err.msg);
	k->hold.at = f->at;
	if (!follower_unbound(f) && f->at >= follower_end(f))
		k->hold.command = 0;
	if (!hold_due(k))
		hold_release(k);
}

/* Builds the next frame, if there is one. */
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

/* Returns false if the follower has gone. */
static bool
follower_pump(struct follower *f)
{
	int r;

	do {
		r = f->out.fail == HR_OK ? hr_flush(f->fd, &f->out, &f->sent) : -1;
	} while (r > 0 && follower_fill(f));
	if (r == 0 && f->writable == NULL)
		f->writable =
		    hr_loop_writable(f->keeper->loop, f->fd, on_follower_writable, f, NULL);
	if (r == 0 && f->writable != NULL)
		return true;
	if (r > 0 && f->stays && follower_unbound(f)) {
		hr_watch_drop(&f->writable);
		return true;
	}
	follower_free(f);
	return false;
}

static void
on_follower_writable(void *arg)
{
	(void)follower_pump(arg);
}

/* Frees the follower when its connection is readable: a follower sends nothing more, so this is its
 * end. */
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

	/* A client that asks for what is beyond the end reads no more of the command. */
	if (r->command != 0 && r->command == k->hold.command && r->offset > k->kept->outlog.end)
		hold_drop(k);
	if (f == NULL) {
		hr_log(HR_LOG_WARNING, "too many clients follow the output, or out of memory");
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
	/* This is a lone C-c, before the shell has taken the command. */
	if (all.len == 1 && all.p[0] == '\003' && hr_core_withdraw(k->core, 128 + SIGINT, &busy) &&
	    !busy)
		hr_buf_reset(&all);
	if (all.fail == HR_OK && all.len > 0)
		shell_ops.type(k, all.p, all.len, false);
	return all.fail != HR_OK ? "out of memory" : NULL;
}

static const char *
press_signal(struct hr_keeper *k, int signo, bool spares)
{
	bool ends = signo == SIGINT || signo == SIGHUP || signo == SIGTERM || signo == SIGQUIT ||
		    signo == SIGKILL;
	bool busy = false, back = ends && hr_core_withdraw(k->core, 128 + signo, &busy);
	pid_t group = 0;

	if (back && !busy)
		return NULL;
	if (ioctl(k->shell.master, TIOCGPGRP, &group) < 0 || group <= 1)
		return "no command is running in the foreground";
	/* The shell itself is in the foreground: bash ignores other signals, or would die of them
	 * without effect. */
	if (group == k->shell.pid &&
	    (spares || (signo != SIGINT && signo != SIGHUP && signo != SIGKILL)))
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
	shell_look(k); /* the program may just have started, or changed its key mode */
	/* Text at a prompt would become a command outside the API. */
	if (!hr_core_running(k->core) && !hr_core_busy(k->core))
		return "no command is running";
	if (r->command != 0 && (!k->kept->commands.runs || k->kept->commands.begun != r->command))
		return "that command has ended";
	switch (r->what) {
	case HR_PRESS_KEYS: return press_keys(k, r);
	case HR_PRESS_SIGNAL: return press_signal(k, (int)r->signal, r->spares);
	case HR_PRESS_SIZE:
		/* readline, while it has the terminal, would redraw the command. */
		if (!hr_core_running(k->core) || hr_core_edits(k->core))
			return "the command has not started yet";
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

	if (c == NULL) /* this is an internal command */
		return;
	hr_commands_begin(&k->kept->commands, (struct hr_span){c->key, c->key_len},
	    (struct hr_span){p, k->hidden ? 0 : len}, hr_now_ms(), k->kept->outlog.end);
	/* A follower of the last command may still read; otherwise nothing would clear the hold. */
	if (k->hold.command != 0 && !is_followed(k, k->hold.command))
		hold_drop(k);
	/* A log of less than twice one read would lose bytes all the same. */
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
	/* The command printed nothing, or all its output was sent. */
	if (k->hold.command == k->kept->commands.begun && k->hold.at == k->kept->outlog.end)
		hold_drop(k);
	/* Watchers fetch the state when a frame comes: the command itself may print nothing at its
	 * end. */
	TAILQ_FOREACH(f, &k->followers, link)
	{
		if (f->stays && f->command == 0)
			f->told = false;
	}
	follow_wake(k);
}
