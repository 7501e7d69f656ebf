/* Helpers of the tools: they read arguments, perform actions and build results. */
#include "config.h"

#include "mcp/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "actions/shell.h"
#include "proto/evclass.h"

#define SAY_MAX 4096

static void
put_line(struct hr_buf *b, const char *fmt, va_list ap)
{
	char text[SAY_MAX];

	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a longer text is cut short */
	hr_buf_adds(b, text);
}

void
hr_mcp_say(struct hr_mcp_call *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(&c->text, fmt, ap);
	va_end(ap);
}

bool
hr_mcp_fail(struct hr_mcp_call *c, const char *fmt, ...)
{
	va_list ap;

	c->is_error = true;
	c->waits = false;
	hr_buf_reset(&c->text);
	hr_buf_reset(&c->blocks);
	hr_buf_reset(&c->structured);
	va_start(ap, fmt);
	put_line(&c->text, fmt, ap);
	va_end(ap);
	return false;
}

struct hr_span
hr_mcp_arg(const struct hr_mcp_call *c, const char *name)
{
	return hr_json_span_or(c->args, name, NULL);
}

double
hr_mcp_wait_s(const struct hr_mcp_call *c, double least)
{
	double s =
	    hr_json_at(c->args, "wait_s") == NULL ? 25 : hr_json_number_at(c->args, "wait_s");

	return s < least ? least : s > 300 ? 300 : s;
}

int64_t
hr_mcp_arg_int(
    const struct hr_mcp_call *c, const char *name, int64_t otherwise, int64_t min, int64_t max)
{
	int64_t n = hr_json_at(c->args, name) == NULL ? otherwise : hr_json_int_at(c->args, name);

	return n < min ? min : n > max ? max : n;
}

bool
hr_mcp_arg_true(const struct hr_mcp_call *c, const char *name)
{
	return hr_json_true_at(c->args, name);
}

struct json_object *
hr_mcp_json_str(struct hr_span s)
{
	return json_object_new_string_len(s.p != NULL ? s.p : "", (int)s.len);
}

char *
hr_mcp_path(struct hr_mcp_call *c, const char *name)
{
	struct hr_span given = hr_mcp_arg(c, name);
	struct hr_session_state state = {.working_dir = {"", 0}};
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(path, HR_MCP_BODY_MAX * 2);
	struct hr_err err = {0};
	char *ret;

	if (given.p != NULL && memchr(given.p, '\0', given.len) != NULL) {
		hr_mcp_fail(c, "A path cannot hold a null character.");
		return NULL;
	}
	if (given.p == NULL || given.len == 0 || given.p[0] != '/') {
		if (hr_shell_state(&(const struct hr_shell_place){.run_dir = c->env->run_dir},
			&frame, &state, &err) == 0 &&
		    state.working_dir.len > 0)
			hr_buf_add(&path, state.working_dir.p, state.working_dir.len);
		else
			hr_buf_adds(&path, c->env->work_dir);
		if (given.p != NULL && given.len > 0)
			hr_buf_addc(&path, '/');
	}
	if (given.p != NULL)
		hr_buf_add(&path, given.p, given.len);
	ret = hr_buf_take(&path);
	if (ret == NULL)
		hr_mcp_fail(c, "Out of memory; nothing was done. Try again.");
	return ret;
}

void
hr_mcp_fail_status(struct hr_mcp_call *c, const struct hr_answer *a)
{
	HR_PUT struct json_object *body = NULL;
	const char *detail = NULL;

	if (hr_json_decode(hr_buf_str(&a->body), a->body.len, &body, NULL) == 0)
		detail = hr_json_text_at(body, "detail");
	if (a->status == 503 && a->retry_after_s > 0)
		hr_mcp_fail(c, "Not now, nothing was done: %s. Call again in a moment.",
		    detail != NULL ? detail : "the sandbox is busy");
	else
		hr_mcp_fail(c, "%s", detail != NULL ? detail : "The sandbox could not do that.");
}

void
hr_mcp_count_as(struct hr_mcp_call *c, const char *type)
{
	c->note =
	    (struct hr_note){.cls = hr_action_class(type, strlen(type)), .error = c->is_error};
	c->env->active(c->env->arg);
}

struct json_object *
hr_mcp_perform(struct hr_mcp_call *c, const char *session, const char *type,
    struct json_object *args, double timeout_s, double ready_s, struct hr_span key)
{
	struct json_object *action = hr_json_object(NULL, "action", json_object_new_string(type),
	    "timeout", timeout_s > 0 ? json_object_new_double(timeout_s) : HR_JSON_NONE, "ready_s",
	    ready_s > 0 ? json_object_new_double(ready_s) : HR_JSON_NONE, "args", args, NULL);
	struct json_object *observation = NULL;
	struct hr_answer answer;

	if (action == NULL) {
		hr_mcp_fail(c, "Out of memory; nothing was done. Try again.");
		return NULL;
	}
	hr_answer_init(&answer);
	c->env->perform(c->env->arg, session, action, key, &answer);
	json_object_put(action);
	c->note = answer.note;
	hr_buf_reset(&c->key);
	hr_buf_add(&c->key, hr_buf_str(&answer.key), answer.key.len);
	if (answer.status != 200)
		hr_mcp_fail_status(c, &answer);
	else if (hr_json_decode(hr_buf_str(&answer.body), answer.body.len, &observation, NULL) <
		     0 ||
		 hr_json_type(observation) != HR_PY_DICT) {
		hr_mcp_fail(c, "The sandbox's answer cannot be read.");
		hr_json_drop(&observation);
	}
	hr_answer_done(&answer);
	return observation;
}

bool
hr_mcp_is_error(struct hr_mcp_call *c, struct json_object *observation)
{
	struct hr_span content = hr_json_span_or(observation, "content", "");

	if (!hr_json_str_is(hr_json_at(observation, "observation"), "error"))
		return false;
	hr_mcp_fail(c, "%s", "");
	hr_buf_add(&c->text, content.p, content.len);
	return true;
}

bool
hr_mcp_put_data(struct hr_mcp_call *c, struct hr_span url, struct hr_span path)
{
	static const char scheme[] = "data:", coding[] = ";base64,";
	const size_t scheme_len = sizeof(scheme) - 1, coding_len = sizeof(coding) - 1;
	const char *mime, *data, *end = url.p + url.len;

	if (url.len < scheme_len || memcmp(url.p, scheme, scheme_len) != 0)
		return false;
	mime = url.p + scheme_len;
	data = memmem(mime, (size_t)(end - mime), coding, coding_len);
	if (data == NULL)
		return false;
	hr_buf_adds(&c->blocks, ",{\"type\":");
	if ((size_t)(data - mime) > 6 && memcmp(mime, "image/", 6) == 0) {
		hr_buf_adds(&c->blocks, "\"image\",\"mimeType\":");
		(void)hr_json_put_str(&c->blocks, mime, (size_t)(data - mime), HR_JSON_REPLACE);
		hr_buf_adds(&c->blocks, ",\"data\":");
	} else {
		hr_buf_adds(&c->blocks, "\"resource\",\"resource\":{\"uri\":\"file://");
		(void)hr_json_put_text(&c->blocks, path.p, path.len, HR_JSON_REPLACE);
		hr_buf_adds(&c->blocks, "\",\"mimeType\":");
		(void)hr_json_put_str(&c->blocks, mime, (size_t)(data - mime), HR_JSON_REPLACE);
		hr_buf_adds(&c->blocks, ",\"blob\":");
	}
	data += coding_len;
	(void)hr_json_put_str(&c->blocks, data, (size_t)(end - data), HR_JSON_REPLACE);
	hr_buf_adds(
	    &c->blocks, (size_t)(data - mime) > 6 && memcmp(mime, "image/", 6) == 0 ? "}" : "}}");
	return true;
}
