/* Implements the state machine. Two questions are separate: the shell's activity (enum phase) and
 * the client's knowledge (running: the last answer said that the command still runs; ended: it has
 * ended since, and its completion waits to be collected). */
#include "config.h"

#include "session/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "session/core_int.h"
#include "session/view/view.h"
#include "shell/keys.h"
#include "shell/split.h"

/* A shell that shows a prompt reports first; only a lost hook makes this time out. */
#define SUSPECT_MS 60
#define START_MS 20000

/* only a parent learns a process's exit status */
#define HOW_EXITED_SOMEHOW                                                                         \
	"The shell, whose first keeper had been killed, exited, with an unknown status,"

struct hr_core *
hr_core_new(const struct hr_core_config *config, const struct hr_core_ops *ops, void *arg,
    struct hr_err *err)
{
	struct hr_core *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return hr_err_null(err);
	c->view = hr_view_new(err);
	if (c->view == NULL) {
		free(c);
		return NULL;
	}
	c->config = *config;
	c->ops = *ops;
	c->arg = arg;
	c->phase = PHASE_STARTING;
	c->s.phase_deadline = c->s.suspect_at = c->s.watch_at = INT64_MAX;
	c->s.job = -1;
	c->s.had_ms = -1;
	c->s.marked = true;
	hr_buf_init(&c->command, CORE_COMMAND_CAP);
	hr_buf_init(&c->cwd, CORE_FIELD_CAP);
	hr_buf_init(&c->username, CORE_FIELD_CAP);
	hr_buf_init(&c->py_path, CORE_FIELD_CAP);
	hr_buf_init(&c->notice, CORE_FIELD_CAP);
	return c;
}

void
hr_core_free(struct hr_core *c)
{
	if (c == NULL)
		return;
	hr_view_free(c->view);
	hr_buf_done(&c->command);
	hr_buf_done(&c->cwd);
	hr_buf_done(&c->username);
	hr_buf_done(&c->py_path);
	hr_buf_done(&c->notice);
	free(c);
}

bool
hr_core_busy(const struct hr_core *c)
{
	return c->s.active;
}

bool
hr_core_running(const struct hr_core *c)
{
	return (c->s.running && !c->s.ended) || c->phase == PHASE_TYPED || c->phase == PHASE_BUSY;
}

bool
hr_core_typed(const struct hr_core *c)
{
	return c->phase == PHASE_TYPED;
}

bool
hr_core_edits(const struct hr_core *c)
{
	return c->phase == PHASE_TYPED && !c->s.takes_lines;
}

bool
hr_core_sees_readline(const struct hr_core *c)
{
	return hr_view_readline(c->view) || (hr_core_edits(c) && !hr_view_echo_over(c->view));
}

const char *
hr_core_working_dir(const struct hr_core *c)
{
	return hr_buf_str(&c->cwd);
}

bool
hr_core_application_cursor(const struct hr_core *c)
{
	return hr_view_application_cursor(c->view);
}

static void
set_text(struct hr_core *c, struct hr_buf *b, const char *s)
{
	if (b->len == strlen(s) && memcmp(hr_buf_str(b), s, b->len) == 0)
		return;
	c->texts++;
	hr_buf_reset(b);
	hr_buf_adds(b, s);
}

void
core_set_phase(struct hr_core *c, enum phase phase, int64_t deadline)
{
	c->phase = phase;
	c->s.phase_deadline = deadline;
	c->s.had_ms = -1;
	c->s.suspect_at = INT64_MAX;
	c->interrupting = false;
}

/* ---- requests ---- */

static void
execute(struct hr_core *c, int64_t now)
{
	c->s.running = c->s.ended = false;
	c->s.observations = 0;
	c->s.again = 0;
	core_await_ready(c, now);
	if (c->phase == PHASE_READY && c->ops.strays != NULL && c->ops.strays(c->arg))
		core_type_nothing(c, now);
	else if (c->phase == PHASE_READY)
		core_type_command(c, now);
	else if (c->phase == PHASE_PREPARING && c->s.phase_deadline == INT64_MAX)
		core_look_again(c, now);
}

/* Finds the key named by the text, if any. Returns false after it has answered. */
static bool
find_key(struct hr_core *c, bool is_input)
{
	struct hr_err err = {0};
	int found;

	c->key_len = 0;
	c->s.special = hr_key_is_special(hr_buf_str(&c->command), c->command.len);
	if (!c->s.special && !is_input)
		return true;
	found = hr_key_bytes(hr_buf_str(&c->command), c->command.len,
	    hr_view_application_cursor(c->view), c->key, sizeof(c->key), &c->key_len, &err);
	return found == 0 || core_answer_error(c, err.msg, strlen(err.msg));
}

/* Refuses more than one command. Returns false after it has answered. */
static bool
is_one_command(struct hr_core *c)
{
	HR_CLEAN(hr_shell_pieces_done) struct hr_shell_pieces pieces = {0};
	struct hr_err err = {0};
	HR_FREE char *refusal = NULL;
	size_t len = 0;

	if (hr_shell_split(hr_buf_str(&c->command), c->command.len, &pieces, &err) < 0)
		return core_answer_error(c, err.msg, strlen(err.msg));
	c->s.whole = pieces.verdict == HR_SHELL_PARSED;
	if (!hr_shell_pieces_refused(&pieces))
		return true;
	refusal = hr_shell_refusal_text(&pieces, &len, &err);
	if (refusal == NULL)
		return core_answer_error(c, err.msg, strlen(err.msg));
	return core_answer_error(c, refusal, len);
}

static void
request_idle(struct hr_core *c, const struct hr_run_request *r, int64_t now)
{
	if (c->command.len == 0)
		core_answer_nothing(c, "ERROR: No previous running command to retrieve logs from.");
	else if (r->is_input)
		core_answer_nothing(c, "ERROR: No previous running command to interact with.");
	else
		execute(c, now);
}

static void
request_running(struct hr_core *c, const struct hr_run_request *r, int64_t now)
{
	core_watch(c, now);
	if (c->command.len > 0 && !r->is_input) {
		if (c->s.ended)
			execute(c, now);
		else
			core_answer_refused(c);
		return;
	}
	if (c->s.ended) {
		/* the text was meant for the program that has ended */
		c->s.special = false;
		core_answer_completed(c);
	} else if (c->command.len > 0) {
		core_type_input(c, now);
	}
}

void
hr_core_request(struct hr_core *c, const struct hr_run_request *r, int64_t now)
{
	const char *p = r->command.p;
	size_t len = r->command.len;

	hr_assert(!c->s.active);
	c->s.active = true;
	c->requests++;
	c->s.hidden = r->hidden;
	c->s.exact = r->exact;
	c->s.echoed = c->retyped = false;
	if (r->exact)
		hr_shell_trim(&p, &len);
	else
		hr_utf8_strip(&p, &len);
	hr_buf_reset(&c->command);
	hr_buf_add(&c->command, p, len);
	if (c->command.fail != HR_OK) {
		core_answer_error(c, "the command is too long", 23);
		return;
	}
	core_start_clocks(c, r, now);
	if (c->phase == PHASE_DEAD) {
		core_restart(c, now);
		if (!c->s.active)
			return;
	}
	if (!find_key(c, r->is_input))
		return;
	if (!r->is_input && !c->s.special && c->command.len > 0 && !is_one_command(c))
		return;
	/* bash keeps no line that starts with a blank in its history (hr_hook_rcfile()). */
	if (c->s.hidden && !r->is_input && !c->s.special && c->command.len > 0) {
		hr_buf_reset(&c->command);
		hr_buf_addc(&c->command, ' ');
		hr_buf_add(&c->command, p, len);
	}
	if (c->s.running)
		request_running(c, r, now);
	else
		request_idle(c, r, now);
}

/* ---- the shell ---- */

void
hr_core_started(struct hr_core *c, const char *dir, int64_t now)
{
	set_text(c, &c->cwd, dir);
	core_set_phase(c, PHASE_STARTING, now + START_MS);
}

void
core_restart(struct hr_core *c, int64_t now)
{
	struct hr_err err = {0};
	const char *dir = c->ops.restart(c->arg, &err);

	if (dir == NULL) {
		core_set_phase(c, PHASE_DEAD, INT64_MAX);
		if (c->s.active)
			core_answer_error(c, err.msg, strlen(err.msg));
		return;
	}
	hr_core_started(c, dir, now);
}

void
core_begun(struct hr_core *c, const char *p, size_t len)
{
	bool again = c->retyped;

	c->retyped = false;
	if (again)
		return;
	c->s.begun = true;
	if (c->ops.began != NULL)
		c->ops.began(c->arg, p, len);
}

void
core_notice(struct hr_core *c, const char *how)
{
	c->texts++;
	hr_buf_reset(&c->notice);
	hr_buf_addf(&c->notice,
	    "\n[%s and has been restarted in %s. Exported variables were kept; shell variables, "
	    "functions and jobs were lost.]",
	    how, hr_buf_str(&c->cwd));
}

static void
tell_over(struct hr_core *c, int exit_code, bool shell_ended)
{
	if (c->s.begun && c->ops.over != NULL)
		c->ops.over(c->arg, exit_code, shell_ended);
	c->s.begun = false;
}

/* Ends the current command, or the one that the client knows about. */
static void
command_over(struct hr_core *c)
{
	if (c->s.active)
		core_answer_completed(c);
	else if (c->s.running) /* otherwise a signal came while no command ran */
		c->s.ended = true;
}

bool
hr_core_withdraw(struct hr_core *c, int exit_code, bool *ret_busy)
{
	if (c->phase != PHASE_TYPED || !c->s.takes_lines || !c->ops.take_back(c->arg))
		return false;
	*ret_busy = (c->ops.away != NULL && c->ops.away(c->arg)) || core_works(c);
	core_set_phase(c, PHASE_READY, INT64_MAX);
	tell_over(c, exit_code, false);
	c->s.exit_code = exit_code;
	command_over(c);
	return true;
}

static void
accept_prompt(struct hr_core *c, const struct hr_core_prompt *p)
{
	if (!c->s.ended) { /* otherwise the end of the last command is not reported yet */
		c->s.exit_code = p->exit_code;
		c->s.job = p->job;
	}
	c->s.is_session = p->is_session && !p->is_past;
	c->s.takes_lines = false;
	c->s.traced = strchr(p->flags, 'v') != NULL;
	c->s.tracing = strchr(p->flags, 'x') != NULL;
	set_text(c, &c->username, p->username);
	set_text(c, &c->py_path, p->py_path);
	if (p->working_dir[0] != '\0')
		set_text(c, &c->cwd, p->working_dir);
}

void
core_become_ready(struct hr_core *c, bool marked, int64_t now)
{
	core_set_phase(c, PHASE_READY, INT64_MAX);
	c->s.marked = marked;
	if (c->to_type)
		core_type_command(c, now);
}

static void
notice_output(struct hr_core *c, int64_t now)
{
	bool readline = hr_view_readline(c->view);

	if (c->phase == PHASE_PREPARING && readline) {
		core_become_ready(c, true, now);
		return;
	}
	if (c->s.takes_lines && readline) {
		if (core_stop_giving(c, now))
			return;
		if (c->phase == PHASE_TYPED && !hr_view_more(c->view))
			core_set_phase(c, PHASE_BUSY, INT64_MAX);
	}
	if (c->phase == PHASE_TYPED && hr_view_echo_over(c->view)) {
		if (!c->s.takes_lines)
			c->s.phase_deadline = INT64_MAX;
		if (hr_view_started(c->view))
			core_set_phase(c, PHASE_BUSY, INT64_MAX);
	}
	if (c->phase != PHASE_BUSY && c->phase != PHASE_HEALING)
		return;
	if (!readline)
		c->s.suspect_at = INT64_MAX;
	else if (c->s.suspect_at == INT64_MAX)
		c->s.suspect_at = now + SUSPECT_MS;
}

void
hr_core_prompt(struct hr_core *c, const struct hr_core_prompt *p, int64_t now)
{
	enum phase was = c->phase;
	bool careful = was == PHASE_STARTING || was == PHASE_HEALING;
	/* A shell that was not seen to read a command may be reading one elsewhere: exec <file. */
	bool takes = was == PHASE_TYPED || was == PHASE_BUSY;

	if (was == PHASE_DEAD)
		return;
	if (was == PHASE_TYPED && c->s.takes_lines && p->line_pending) {
		/* A signal arrived while the shell was idle: it reads the command now, or has
		 * already read it. */
		c->ops.ack(c->arg, false);
		return;
	}
	accept_prompt(c, p);
	if (was == PHASE_TYPED && p->is_past)
		return; /* readline still reads the command, which was typed after the report */
	core_set_phase(c, PHASE_PREPARING, INT64_MAX);
	core_look_again(c, now);
	if (was == PHASE_STARTING) {
		/* Output that an old shell left unread remains visible. */
		if (!c->s.ended)
			hr_view_reset(c->view, !c->s.is_session);
	} else if (was == PHASE_TYPED || was == PHASE_BUSY || was == PHASE_HEALING) {
		tell_over(c, p->exit_code, false);
		if (p->exit_code > 128)
			hr_view_leave_screen(c->view);
		command_over(c);
	}
	if (c->s.is_session) {
		/* The terminal drops unread output at a C-c, and readline's end with it. After a
		 * line that the keeper has typed the end is still to come. */
		if (was != PHASE_EDITING && was != PHASE_HEALING)
			hr_view_leave_readline(c->view);
		c->ops.ack(c->arg, careful);
	} else {
		notice_output(c, now); /* readline may be there already */
	}
	if (was == PHASE_STARTING)
		c->ops.ready(c->arg);
	if (c->phase != PHASE_PREPARING)
		return;
	if (!p->has_readline)
		core_type_editing(c, now);
	else if (takes && p->takes_lines && c->s.is_session && c->ops.give != NULL)
		core_await_command(c, now);
}

void
hr_core_exited(struct hr_core *c, int exit_code, int64_t now)
{
	bool answer, started = c->phase != PHASE_STARTING;

	if (c->phase == PHASE_DEAD)
		return;
	/* A command that the old shell has not read is for its successor. */
	if (c->s.active && c->phase == PHASE_TYPED && c->s.takes_lines &&
	    c->ops.take_back(c->arg)) {
		core_await_ready(c, now);
		c->retyped = true;
	} else {
		tell_over(c, exit_code, true);
	}
	answer = c->s.active && !c->to_type;
	hr_view_shell_ended(c->view);
	if (!c->s.ended) {
		c->s.exit_code = exit_code;
		c->s.job = -1;
	}
	c->s.traced = c->s.tracing = c->s.takes_lines = false;
	core_set_phase(c, PHASE_DEAD, INT64_MAX);
	core_restart(c, now);
	if (started)
		core_notice(c, exit_code < 0 ? HOW_EXITED_SOMEHOW : "The shell exited");
	if (answer && c->s.active)
		core_answer_completed(c);
	else if (c->s.running)
		c->s.ended = true;
}

size_t
hr_core_echo_bytes(const struct hr_core *c, const char *p, size_t len, bool *ret_over)
{
	*ret_over = false;
	return c->phase == PHASE_STARTING ? 0 : hr_view_echo_bytes(c->view, p, len, ret_over);
}

void
hr_core_place(struct hr_core *c, uint64_t at)
{
	hr_view_place(c->view, at);
}

void
hr_core_output(struct hr_core *c, const char *p, size_t len, int64_t now)
{
	if (c->phase == PHASE_STARTING)
		return; /* output of the start-up is hidden */
	core_feed(c, p, len, now);
	notice_output(c, now);
}

size_t
hr_core_replies(struct hr_core *c, char *buf, size_t cap)
{
	size_t n = hr_view_replies(c->view, buf, cap);

	/* The answers would be typed into the shell if no program is left to read them. */
	return c->phase == PHASE_BUSY || c->phase == PHASE_TYPED ? n : 0;
}
