/* Runs a command in a session. It is a `run` action, in the journal under the request's name; its
 * output is read from the shell's log, which has every printed byte. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "actions/action.h"
#include "actions/command.h"
#include "base/text/utf8.h"
#include "proto/python/repr.h"
#include "shell/split.h"
#include "worker/rex/rex.h"

#define TEXT_MAX (HR_JSON_BODY_MAX + 64)

/* ---- text ---- */

void
hr_rex_decode(struct hr_buf *out, const char *p, size_t len)
{
	const char *end = p + len;
	size_t n, i;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp >= 0 && !hr_utf8_is_surrogate(cp))
			hr_buf_add(out, p, n);
		else
			for (i = 0; i < n; i++)
				hr_buf_addf(out, "\\x%02x", (unsigned char)p[i]);
	}
}

/* Returns the length of the escape sequence at p; 0 if there is none, or an incomplete one. */
static size_t
escape_length(const char *p, size_t len)
{
	static const char pasted[] = "\033[?2004l\r"; /* readline prints this after a command */
	size_t i = 2;

	if (len >= sizeof(pasted) - 1 && memcmp(p, pasted, sizeof(pasted) - 1) == 0)
		return sizeof(pasted) - 1;
	if (len < 2 || p[0] != '\033' || p[1] < '@' || p[1] > '_')
		return 0;
	if (p[1] == ']') {
		for (; i < len; i++) {
			if (p[i] == '\a')
				return i + 1;
			if (p[i] == '\033')
				return i + 1 < len && p[i + 1] == '\\' ? i + 2 : 0;
		}
		return 0;
	}
	if (p[1] != '[')
		return 2;
	while (i < len && p[i] >= '0' && p[i] <= '?')
		i++;
	while (i < len && p[i] >= ' ' && p[i] <= '/')
		i++;
	return i < len && p[i] >= '@' && p[i] <= '~' ? i + 1 : 0;
}

void
hr_rex_clean(struct hr_buf *out, const char *p, size_t len)
{
	const char *end = p + len;
	HR_BUF(plain, len + 1);
	size_t n;

	for (; p < end; p += n) {
		n = escape_length(p, (size_t)(end - p));
		if (n > 0)
			continue;
		n = 1;
		if (*p == '\r' && p + 1 < end && p[1] == '\n')
			continue;
		hr_buf_addc(&plain, *p);
	}
	if (plain.fail != HR_OK)
		out->fail = plain.fail;
	hr_rex_decode(out, hr_buf_str(&plain), plain.len);
}

int
hr_rex_output(const struct hr_shell_place *place, uint64_t from, uint64_t end, struct hr_buf *out,
    struct hr_err *err)
{
	HR_BUF(raw, HR_REX_OUTPUT_MAX + 1);

	if (from < end && hr_command_output(place, &from, end, HR_REX_OUTPUT_MAX, &raw, err) < 0)
		return -1;
	hr_rex_clean(out, hr_buf_str(&raw), raw.len);
	return hr_buf_check(out, err);
}

/* ---- the action ---- */

static struct json_object *
action_of(const char *dir, bool is_static, struct hr_span text, double timeout_s, double ready_s)
{
	struct json_object *args =
	    hr_json_object(NULL, "command", json_object_new_string_len(text.p, (int)text.len),
		"blocking", json_object_new_boolean(true), "is_static",
		is_static ? json_object_new_boolean(true) : HR_JSON_NONE, "cwd", hr_json_maybe(dir),
		NULL);

	return hr_json_object(NULL, "args", args, "action", json_object_new_string("run"),
	    "timeout", timeout_s > 0 ? json_object_new_double(timeout_s) : HR_JSON_NONE, "ready_s",
	    ready_s > 0 ? json_object_new_double(ready_s) : HR_JSON_NONE, NULL);
}

/* Bypasses the journal: the caller holds the request's entry. */
static void
perform(struct hr_rex_call *c, const char *session, struct json_object *action, struct hr_span key,
    struct hr_answer *inner)
{
	const struct hr_action_env env = {.run_dir = c->w->run_dir,
	    .work_dir = c->w->work_dir,
	    .channel = c->w->channel,
	    .session = session,
	    .key = key,
	    .rules = HR_RULES_OWN,
	    .user_id = c->w->user_id};
	struct hr_event ev;
	HR_BUF(why, TEXT_MAX);

	if (hr_event_decode(action, &ev, &why) < 0) {
		hr_answer_internal(inner, &why);
	} else {
		hr_action_perform(&env, &ev, inner);
		inner->note.cls = ev.cls;
	}
}

/* Returns true if s starts with that string. */
static bool
begins(struct hr_span s, const char *with)
{
	size_t n = strlen(with);

	return s.len >= n && memcmp(s.p, with, n) == 0;
}

void
hr_rex_result_done(struct hr_rex_result *r)
{
	json_object_put(r->o);
	*r = (struct hr_rex_result){.exit_code = -1};
}

/* Reads the observation of an answer with status 200. Returns false after raising an exception. */
static bool
take(struct hr_rex_call *c, const struct hr_answer *inner, struct hr_rex_result *ret)
{
	struct json_object *meta;
	HR_BUF(text, HR_ANSWER_MAX);

	if (hr_json_decode(hr_buf_str(&inner->body), inner->body.len, &ret->o, NULL) < 0 ||
	    hr_json_type(ret->o) != HR_PY_DICT)
		return hr_rex_raisef(
		    c->ret, "builtins.RuntimeError", "the shell's answer cannot be read");
	ret->content = hr_json_span_or(ret->o, "content", "");
	if (hr_json_str_is(hr_json_at(ret->o, "observation"), "error")) {
		hr_buf_add(&text, ret->content.p, ret->content.len);
		return hr_rex_raise(c->ret, "builtins.RuntimeError", &text, "");
	}
	meta = hr_json_at(hr_json_at(ret->o, "extras"), "metadata");
	ret->exit_code = meta != NULL ? hr_json_int_at(meta, "exit_code") : -1;
	ret->refused =
	    ret->exit_code < 0 && begins(hr_json_span_or(meta, "suffix", ""), "\n[Your command \"");
	return true;
}

bool
hr_rex_run(struct hr_rex_call *c, const char *session, const char *dir, struct hr_span text,
    double timeout_s, double ready_s, struct hr_span key, struct hr_rex_result *ret)
{
	HR_PUT struct json_object *action =
	    action_of(dir, session == NULL, text, timeout_s, ready_s);
	HR_CLEAN(hr_answer_done) struct hr_answer inner;

	hr_answer_init(&inner);
	hr_rex_result_done(ret);
	/* the answer's note points to the name after the call was freed */
	hr_buf_reset(&c->w->session);
	hr_buf_adds(&c->w->session, session != NULL ? session : "");
	if (action == NULL || hr_buf_check(&c->w->session, NULL) < 0)
		return hr_answer_generic(c->ret);
	if (session != NULL)
		session = hr_buf_str(&c->w->session);
	if (key.len > 0)
		perform(c, session, action, key, &inner);
	else
		hr_execute_action(c->w, c->r, session, action, key, HR_RULES_OWN, &inner);
	c->ret->note = inner.note;
	hr_buf_reset(&c->ret->key);
	hr_buf_add(&c->ret->key, hr_buf_str(&inner.key), inner.key.len);
	if (inner.status == 503 && key.len > 0 &&
	    session != NULL) /* a second keeper may have answered */
		return hr_rex_raisef(c->ret, "builtins.RuntimeError",
		    "the shell cannot be reached; it is unknown whether the command was started");
	return inner.status == 200 ? take(c, &inner, ret) : hr_rex_pass(c->ret, &inner);
}

/* ---- the observation ---- */

void
hr_rex_observe(
    struct hr_rex_call *c, struct hr_span output, const int64_t *exit_code, struct hr_span expect)
{
	struct hr_buf *b = &c->ret->body;

	hr_buf_adds(b, "{\"output\":");
	(void)hr_json_put_str(b, output.p, output.len, HR_JSON_REPLACE);
	if (exit_code != NULL)
		hr_buf_addf(b, ",\"exit_code\":%lld", (long long)*exit_code);
	else
		hr_buf_adds(b, ",\"exit_code\":null");
	hr_buf_adds(b, ",\"failure_reason\":\"\",\"expect_string\":");
	(void)hr_json_put_str(b, expect.p, expect.len, HR_JSON_REPLACE);
	hr_buf_adds(b, ",\"session_type\":\"bash\"}");
}

void
hr_rex_put_failed(struct hr_buf *b, const struct hr_rex_call *c, int64_t exit_code)
{
	struct hr_span said = hr_rex_str(c, "error_msg");

	if (said.len > 0) {
		hr_buf_add(b, said.p, said.len);
		hr_buf_adds(b, ": ");
	}
	hr_buf_adds(b, "Command ");
	hr_pyrepr(b, hr_json_at(c->body, "command"));
	hr_buf_addf(b, " failed with exit code %lld. ", (long long)exit_code);
}

void
hr_rex_completed(struct hr_rex_call *c, struct hr_span output, int64_t exit_code)
{
	struct json_object *check = hr_json_at(c->body, "check");
	HR_BUF(text, HR_ANSWER_MAX);

	if (exit_code == 0 || hr_json_str_is(check, "silent") || hr_json_str_is(check, "ignore")) {
		hr_rex_observe(c, output, hr_json_str_is(check, "ignore") ? NULL : &exit_code,
		    hr_span_of(HR_REX_PROMPT));
		return;
	}
	hr_rex_put_failed(&text, c, exit_code);
	hr_buf_adds(&text, "Here is the output:\n");
	hr_pyrepr_str(&text, output.p, output.len);
	hr_rex_raise(c->ret, "swerex.exceptions.NonZeroExitCodeError", &text, "");
}

void
hr_rex_late(struct hr_rex_call *c, struct hr_span output)
{
	struct hr_span command = hr_rex_str(c, "command");
	struct json_object *limit = hr_json_at(c->body, "timeout");
	HR_BUF(text, HR_ANSWER_MAX);
	HR_BUF(extra, HR_ANSWER_MAX);

	hr_buf_adds(&text, "timeout after ");
	hr_pyrepr(&text, limit);
	hr_buf_adds(&text, " seconds while running command ");
	hr_pyrepr_str(&text, command.p, command.len);
	/* the original omits the output */
	hr_buf_adds(&extra, "\"output\":");
	(void)hr_json_put_str(&extra, output.p, output.len, HR_JSON_REPLACE);
	if (extra.fail != HR_OK)
		text.fail = extra.fail;
	hr_rex_raise(c->ret, "swerex.exceptions.CommandTimeoutError", &text, hr_buf_str(&extra));
}

/* ---- a command ---- */

/* Makes one command of several, as a shell takes one at a time. Returns false after sending an
 * error. */
static bool
compose(struct hr_rex_call *c, struct hr_span command, struct hr_buf *text)
{
	if (memchr(command.p, '\0', command.len) != NULL)
		return hr_rex_raisef(c->ret, "builtins.ValueError", "embedded null byte");
	if (hr_shell_add_one(text, command.p, command.len, false) < 0)
		return hr_answer_generic(c->ret);
	return hr_rex_syntax(c, command);
}

/* Returns true if the text has only blanks and comments. */
static bool
is_nothing(struct hr_span s)
{
	const char *p = s.p, *end = s.p + s.len, *eol;

	for (; p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (eol == NULL)
			eol = end;
		while (p < eol && memchr(" \t\r\v\f", *p, 5) != NULL)
			p++;
		if (p < eol && *p != '#')
			return false;
	}
	return true;
}

/* Adds bash's message about a program that an interrupt killed to the next command's output. */
static void
put_killed(const struct hr_shell_place *place, int64_t id, struct hr_buf *out)
{
	const struct hr_span text = hr_span_of(hr_rex_kill_text);
	struct hr_command_state list[HR_COMMANDS_MAX];
	HR_BUF(frame, HR_FRAME_MAX);
	size_t n = 0, i;

	if (hr_shell_commands(place, &frame, list, &n, NULL) < 0)
		n = 0;
	for (i = 0; i < n; i++)
		if (list[i].id == id - 1 && hr_span_equal(list[i].text, text))
			(void)hr_rex_output(place, list[i].log_start, list[i].log_end, out, NULL);
}

/* Answers from the observation and the keeper's state. */
static void
finish(
    struct hr_rex_call *c, const struct hr_shell_place *place, const struct hr_rex_result *result)
{
	struct hr_command_state s = {.exit_code = -1};
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(out, HR_ANSWER_MAX);
	bool exact, found, over;

	found = c->ret->key.len > 0 &&
		hr_command_find(place, hr_span_of_buf(&c->ret->key), &frame, &s) > 0;
	over = result->exit_code >= 0 || (found && s.end != HR_COMMAND_RUNNING);
	if (found)
		put_killed(place, s.id, &out);
	exact = found && hr_rex_output(place, s.log_start, s.log_end, &out, &err) == 0;
	if (exact && !over)
		(void)hr_shell_returned(place, s.log_end);
	if (!exact) {
		hr_buf_reset(&out);
		hr_buf_add(&out, result->content.p, result->content.len);
	}
	if (out.fail != HR_OK)
		hr_answer_generic(c->ret);
	else if (over)
		hr_rex_completed(c, hr_span_of_buf(&out),
		    result->exit_code >= 0 ? result->exit_code : s.exit_code);
	else if (result->refused)
		hr_rex_busy(c);
	else /* the keeper may have forgotten the command, but it had timed out */
		hr_rex_late(c, hr_span_of_buf(&out));
}

void
hr_rex_busy(struct hr_rex_call *c)
{
	/* a timeout makes clients interrupt, which helps here */
	hr_rex_raisef(c->ret, "swerex.exceptions.CommandTimeoutError",
	    "the command was not run: another one still runs in this session; interrupt that one, "
	    "or use another session");
}

static void
run(struct hr_rex_call *c, const struct hr_shell_place *place, struct hr_span command)
{
	static const int64_t zero = 0;
	HR_CLEAN(hr_rex_result_done) struct hr_rex_result result = {0};
	HR_BUF(buf, TEXT_MAX);
	struct hr_span text;

	if (is_nothing(command)) {
		hr_rex_observe(c, (struct hr_span){"", 0},
		    hr_json_str_is(hr_json_at(c->body, "check"), "ignore") ? NULL : &zero,
		    hr_span_of(HR_REX_PROMPT));
		return;
	}
	hr_shell_trim(&command.p, &command.len); /* the keeper trims, too */
	if (!compose(c, command, &buf))
		return;
	text = hr_span_of_buf(&buf);
	if (hr_json_count(hr_json_at(c->body, "expect")) > 0)
		hr_rex_talk(c, place, text);
	else if (hr_rex_run(c, place->session, NULL, text, hr_rex_limit_s(c), 0,
		     (struct hr_span){"", 0}, &result))
		finish(c, place, &result);
}

double
hr_rex_limit_s(const struct hr_rex_call *c)
{
	double limit_s = hr_rex_number(c, "timeout", 0);

	if (hr_json_at(c->body, "timeout") == NULL)
		return 0;
	return limit_s > 0.001 ? limit_s : 0.001; /* a timeout of 0 would mean no limit */
}

void
hr_rex_run_in_session(struct hr_rex_call *c)
{
	struct hr_span command = hr_rex_str(c, "command");
	struct hr_shell_place place;
	char name[HR_REX_SESSION];
	HR_BUF(plain, TEXT_MAX);

	if (!hr_rex_place(c, name, &place))
		return;
	/* a terminal would read CR LF as two line ends */
	if (command.len > 0)
		hr_shell_add_unix(&plain, command.p, command.len);
	if (hr_buf_check(&plain, NULL) < 0) {
		hr_answer_generic(c->ret);
		return;
	}
	if (command.len > 0)
		command = hr_span_of_buf(&plain);
	if (hr_json_str_is(hr_json_at(c->body, "action_type"), "bash_interrupt"))
		hr_rex_interrupt(c, &place);
	else if (hr_rex_true(c, "is_interactive_command") || hr_rex_true(c, "is_interactive_quit"))
		hr_rex_talk(c, &place, command);
	else
		run(c, &place, command);
}
