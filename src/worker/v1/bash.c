/* Runs commands of the OpenHands V1 API: each runs in a named shell of its own and can be
 * stopped. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text/utf8.h"
#include "shell/quote.h"
#include "shell/split.h"
#include "worker/live.h"
#include "worker/v1/command.h"

#define KEPT_MS 60000                    /* minimum time that a result is kept */
#define WHOLE_MAX ((uint64_t)16 << 20)   /* maximum bytes per stream of execute_bash_command */
#define TEXT_MAX (HR_JSON_BODY_MAX * 5u) /* maximum bytes of a quoted command */
#define SOON_S 0.001                     /* seconds; "start" does not wait for the command */

static const struct hr_rex_field bash_fields[] = {
    {"command", HR_REX_STR, true, false, NULL},
    {"cwd", HR_REX_STR, false, true, NULL},
    {"timeout", HR_REX_INT, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_v1_bash_model = {NULL, NULL, bash_fields, NULL};

/* ---- start ---- */

/* Makes room: ends the shells of commands that ended long ago, or of the one that ended first. */
static bool
tidy(struct hr_rex_call *c)
{
	struct hr_command_state s;
	HR_CLEAN(hr_answer_done) struct hr_answer inner;
	HR_CLEAN(hr_v1_walk_done) struct hr_v1_walk w;
	const char *p, *oldest = NULL;
	int64_t now = hr_wall_ms(), best = INT64_MAX, ended;
	bool room = false;

	hr_answer_init(&inner);
	hr_v1_walk_init(&w, c);
	while ((p = hr_v1_walk_next(&w, &s)) != NULL) {
		ended = s.started + s.elapsed;
		if (s.end == HR_COMMAND_RUNNING)
			continue;
		hr_answer_reset(&inner);
		if (ended + KEPT_MS < now && hr_live_end(c->w, p, &inner)) {
			room = true;
		} else if (ended < best) {
			best = ended;
			oldest = p;
		}
	}
	hr_answer_reset(&inner);
	return room || (oldest != NULL && hr_live_end(c->w, oldest, &inner));
}

static void
end(struct hr_rex_call *c, const struct hr_v1_command *m)
{
	HR_CLEAN(hr_answer_done) struct hr_answer inner;

	hr_answer_init(&inner);
	(void)hr_live_end(c->w, m->name, &inner); /* otherwise tidy() does it */
}

static bool
new_id(struct hr_v1_command *m)
{
	struct hr_err err = {0};

	if (hr_random_uuid(m->id, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		return false;
	}
	memcpy(m->id + HR_V1_ID - 5, "0000", 4);
	hr_v1_name(m);
	return true;
}

/* Creates a shell and its files. Returns false after sending an error. */
static bool
make(struct hr_rex_call *c, struct hr_v1_command *m, const struct hr_buf *request)
{
	HR_CLEAN(hr_answer_done) struct hr_answer inner;
	bool ok;

	hr_answer_init(&inner);
	if (!new_id(m))
		return hr_answer_generic(c->ret);
	ok = hr_live_make(c->w, m->name, &inner);
	if (!ok && inner.status == 409 && tidy(c)) {
		hr_answer_reset(&inner);
		ok = hr_live_make(c->w, m->name, &inner);
	}
	if (!ok && inner.status == 409)
		return hr_answer_later(c->ret,
		    "too many commands run at the same time: named_sessions_max is reached");
	if (!ok) {
		hr_rex_pass(c->ret, &inner);
		if (c->ret->status == 511)
			c->ret->status = 500;
	} else if (hr_v1_make_files(c, m->name, request) < 0) {
		hr_log(HR_LOG_ERROR, "no files for the output of a command: %s", strerror(errno));
		end(c, m);
		return hr_answer_generic(c->ret);
	}
	return ok;
}

static void
put_command(const struct hr_rex_call *c, const struct hr_v1_command *m, struct hr_span command,
    struct hr_span cwd, double timeout_s, struct hr_buf *text)
{
	HR_BUF(path, 4096);
	HR_BUF(plain, HR_JSON_BODY_MAX);

	hr_shell_add_unix(&plain, command.p, command.len);
	hr_buf_addf(&path, "%s/shell/%s/", c->w->run_dir, m->name);
	hr_buf_addf(text, HR_V1_LIMIT_HEAD, (long long)timeout_s);
	if (cwd.p != NULL) {
		hr_buf_adds(text, "cd -- ");
		hr_shell_quote(text, cwd.p, cwd.len);
		hr_buf_adds(text, " && ");
	}
	hr_buf_adds(text, "exec ");
	hr_shell_quote(text, c->w->libexec_dir, strlen(c->w->libexec_dir));
	hr_buf_adds(text, "/handrail-bound timeout -k 1 $limit bash -c ");
	hr_shell_quote(text, hr_buf_str(&plain), plain.len);
	hr_buf_adds(text, ") </dev/null >|");
	hr_shell_quote(text, path.p, path.len);
	hr_buf_adds(text, "out 2>|");
	hr_shell_quote(text, path.p, path.len);
	hr_buf_adds(text, "err");
	if (path.fail != HR_OK || plain.fail != HR_OK)
		text->fail = HR_E_NOMEM;
}

/* Returns false after sending an error. */
static bool
run_in(struct hr_rex_call *c, const struct hr_v1_command *m, struct hr_span text)
{
	const struct hr_shell_place place = hr_v1_place(c, m->name);
	const struct hr_run_request req = {.command = text,
	    .blocking = true,
	    .timeout = SOON_S,
	    .ready_s = HR_SHELL_READY_S,
	    .key = hr_span_of(m->id)};
	struct hr_run_result result;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX + HR_FRAME_HEADER + (64u << 10));
	HR_CLOSE int fd = hr_shell_connect(&place, &err);

	if (fd < 0)
		return hr_live_refuse(c->ret, &err);
	if (hr_shell_run(fd, false, &req, &frame, &result, &err) < 0)
		return hr_answer_detail(c->ret, 500,
		    "the shell was lost over it; it is unknown whether the command was started");
	return !result.is_error ||
	       hr_answer_detail(c->ret, 500, "the command was not run: its shell is not ready");
}

static bool
has_null(struct hr_span s)
{
	return s.p != NULL && memchr(s.p, '\0', s.len) != NULL;
}

/* Returns false after sending an error. */
static bool
begin(struct hr_rex_call *c, struct hr_v1_command *m, struct hr_span command, struct hr_span cwd,
    double timeout_s)
{
	HR_BUF(text, TEXT_MAX);
	HR_BUF(request, HR_ANSWER_MAX);

	hr_buf_addf(&request, "{\"timeout\":%.0f", timeout_s);
	hr_json_put_member(&request, "command", command);
	hr_json_put_member(&request, "cwd", cwd);
	hr_buf_addc(&request, '}');
	if (hr_buf_check(&request, NULL) < 0)
		return hr_answer_generic(c->ret);
	if (has_null(command) || has_null(cwd))
		return hr_answer_detail(c->ret, 422, "embedded null byte");
	if (!make(c, m, &request))
		return false;
	put_command(c, m, command, cwd, timeout_s, &text);
	if (hr_buf_check(&text, NULL) < 0)
		hr_answer_generic(c->ret);
	else if (run_in(c, m, hr_span_of_buf(&text)))
		return true;
	end(c, m);
	return false;
}

static double
wanted_limit(const struct hr_rex_call *c)
{
	double s = hr_rex_number(c, "timeout", 300);

	return s < 1 ? 1 : s > HR_EXEC_LIMIT_MAX ? HR_EXEC_LIMIT_MAX : s;
}

void
hr_v1_start(struct hr_rex_call *c)
{
	struct hr_span command = hr_rex_str(c, "command"), cwd = hr_rex_str(c, "cwd");
	double limit = wanted_limit(c);
	HR_BUF(frame, HR_FRAME_MAX);
	struct hr_command_state state;
	struct hr_v1_command m;

	if (!hr_rex_enter(c))
		return;
	if (begin(c, &m, command, cwd, limit))
		hr_v1_put_command(&c->ret->body, c, &m,
		    hr_v1_look(c, m.name, &frame, &state) > 0 ? state.started : hr_wall_ms());
	hr_rex_leave(c);
}

/* Runs the command to its end in a process outside the default shell. Returns false after sending
 * an error. */
static bool
run_beside(struct hr_rex_call *c, struct hr_span command, struct hr_span cwd, double limit_s,
    struct hr_buf *out, struct hr_buf *errors, int64_t *ret_code)
{
	const struct hr_shell_place place = {.run_dir = c->w->run_dir};
	const struct hr_exec_request req = {.command = command,
	    .working_dir = cwd.p != NULL ? cwd : (struct hr_span){"", 0},
	    .limit_s = (int64_t)limit_s};
	int64_t began = hr_now_ms();
	struct hr_err err = {0};
	bool begun;

	if (has_null(command) || has_null(cwd))
		return hr_answer_detail(c->ret, 422, "embedded null byte");
	if (hr_shell_exec(&place, &req, out, errors, ret_code, &begun, &err) == 0) {
		/* the limit ends it with 124, or 137 after SIGKILL */
		if (hr_now_ms() - began >= req.limit_s * 1000 &&
		    (*ret_code == 124 || *ret_code == 137))
			*ret_code = -1;
		return true;
	}
	if (!begun)
		return hr_live_refuse(c->ret, &err);
	if (err.code == HR_E_TOOLARGE)
		return hr_answer_detail(c->ret, 500,
		    "the command was ended, as more than 16 MiB of output are not answered at "
		    "once: use start_bash_command");
	/* the status is one that no client takes for a reason to retry */
	hr_log(HR_LOG_ERROR, "a command beside the shell: %s", err.msg);
	return hr_answer_detail(c->ret, 500,
	    "the shell's keeper was lost over it; it is not known how the command ended");
}

static void
execute(struct hr_rex_call *c)
{
	HR_BUF(out, WHOLE_MAX);
	HR_BUF(errors, WHOLE_MAX);
	HR_BUF(out_text, HR_ANSWER_MAX);
	HR_BUF(errors_text, HR_ANSWER_MAX);
	HR_BUF(plain, HR_JSON_BODY_MAX);
	struct hr_span command = hr_rex_str(c, "command");
	struct hr_v1_command m;
	struct hr_err err = {0};
	int64_t code = -1;

	hr_shell_add_unix(&plain, command.p, command.len);
	if (plain.fail != HR_OK || !new_id(&m)) {
		hr_answer_generic(c->ret);
	} else if (run_beside(c, hr_span_of_buf(&plain), hr_rex_str(c, "cwd"), wanted_limit(c),
		       &out, &errors, &code)) {
		hr_utf8_replace(&out_text, hr_buf_str(&out), out.len);
		hr_utf8_replace(&errors_text, hr_buf_str(&errors), errors.len);
		hr_v1_put_output(
		    &c->ret->body, &m, 0, &code, &out_text, &errors_text, hr_wall_ms());
		if (hr_buf_check(&c->ret->body, &err) < 0)
			hr_answer_generic(c->ret);
	}
}

void
hr_v1_execute(struct hr_rex_call *c)
{
	if (hr_rex_enter(c)) {
		execute(c);
		hr_rex_leave(c);
	}
}

bool
hr_v1_run(struct hr_rex_call *c, struct hr_span command, struct hr_span cwd, double timeout_s,
    struct hr_buf *out, int64_t *ret_code)
{
	HR_BUF(errors, WHOLE_MAX);

	return run_beside(c, command, cwd, timeout_s, out, &errors, ret_code);
}

/* ---- clear ---- */

void
hr_v1_clear(struct hr_rex_call *c)
{
	struct hr_command_state s;
	HR_CLEAN(hr_answer_done) struct hr_answer inner;
	HR_CLEAN(hr_v1_walk_done) struct hr_v1_walk w;
	uint64_t cleared = 0, events;
	const char *p;

	hr_answer_init(&inner);
	hr_v1_walk_init(&w, c);
	while ((p = hr_v1_walk_next(&w, &s)) != NULL) {
		if (s.end == HR_COMMAND_RUNNING)
			continue;
		hr_answer_reset(&inner);
		events = 1 + hr_v1_outputs(c, p); /* the command itself counts as one event */
		if (hr_live_end(c->w, p, &inner))
			cleared += events;
	}
	hr_buf_addf(&c->ret->body, "{\"cleared_count\":%" PRIu64 "}", cleared);
}

/* ---- stop ---- */

/* Stops the command: timeout(1) forwards the signal and kills the command a second later. */
void
hr_v1_stop(struct hr_rex_call *c, struct hr_span id)
{
	struct hr_press_request req = {.what = HR_PRESS_SIGNAL, .signal = SIGTERM, .text = {"", 0}};
	struct hr_session_state ignored;
	struct hr_command_state state;
	struct hr_shell_place place;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);
	struct hr_v1_command m;
	int found = 0;

	if (hr_v1_parse_id(&m, id))
		found = hr_v1_look(c, m.name, &frame, &state);
	if (found == 0) {
		hr_answer_detail(c->ret, 404, "Not Found");
		return;
	}
	if (found < 0) {
		hr_answer_later(c->ret, "the command's shell cannot be asked now");
		return;
	}
	place = hr_v1_place(c, m.name);
	req.command = state.id;
	hr_buf_reset(&frame); /* the frame must be empty */
	/* a command that has ended meanwhile counts as success, too */
	if (state.end == HR_COMMAND_RUNNING &&
	    hr_shell_press(&place, &req, &frame, &ignored, &err) < 0)
		hr_live_refuse(c->ret, &err);
	else
		hr_buf_adds(&c->ret->body, "{\"success\":true}");
}
