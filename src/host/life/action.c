/* Performs actions: those that the client decides itself, and those that it sends to the server
 * (doc/host.md, "Actions that the host answers"). */
#include "config.h"

#include "host/life/action.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "host/client/rest.h"
#include "host/life/tasks.h"
#include "host/life/tokens.h"
#include "proto/evclass.h"
#include "proto/json.h"

#define ACTION_MAX (64u << 20)
#define FILE_TIMEOUT_S 120
#define BUSY_TRIES 5 /* further attempts, a second apart, if the server asks for one */

static struct json_object *
new_observation(const char *type, const char *content, struct hr_err *err)
{
	return hr_json_object(err, "observation", json_object_new_string(type), "content",
	    json_object_new_string(content), "extras",
	    hr_json_texts(err, "error_id", strcmp(type, "error") == 0 ? "" : NULL, NULL), NULL);
}

static bool
has_operation(const struct hr_sandbox *s)
{
	return s->ops->action != NULL || s->endpoint.url != NULL;
}

/* Decides whether the client itself answers the action. Returns 1 with the answer in *ret, 0 if the
 * action must be executed. */
static int
decide(struct hr_sandbox *s, struct json_object *a, const char *type, struct json_object **ret,
    struct hr_err *err)
{
	const char *state = hr_json_text_at(hr_json_at(a, "args"), "confirmation_state");
	const struct hr_event_class *class = hr_action_class(type, strlen(type));
	char text[200];

	if (strcmp(type, "think") == 0) {
		*ret = new_observation("think", "Your thought has been logged.", err);
	} else if (strcmp(type, "task_tracking") == 0) {
		*ret = hr_tasks_act(s, hr_json_at(a, "args"), err);
	} else if (class != NULL && !class->runnable) {
		*ret = new_observation("null", "", err);
	} else if (state != NULL && strcmp(state, "awaiting_confirmation") == 0) {
		*ret = new_observation("null", "", err);
	} else if (class == NULL) {
		(void)snprintf(text, sizeof(text), "Action %.100s does not exist.", type);
		*ret = new_observation("error", text, err);
	} else if (!has_operation(s)) {
		(void)snprintf(
		    text, sizeof(text), "Action %s is not supported in the current runtime.", type);
		*ret = new_observation("error", text, err);
	} else if (state != NULL && strcmp(state, "rejected") == 0) {
		*ret = new_observation("user_rejected",
		    "Action has been rejected by the user! Waiting for further user input.", err);
	} else {
		return 0;
	}
	return *ret != NULL ? 1 : -1;
}

/* Sets the configured time limit if the action has none and is not blocking. */
static int
give_timeout(struct hr_sandbox *s, struct json_object *a, double *ret_s, struct hr_err *err)
{
	struct json_object *t = hr_json_at(a, "timeout"), *args = hr_json_at(a, "args");
	int bad = 0;

	if (json_object_is_type(t, json_type_int) || json_object_is_type(t, json_type_double)) {
		*ret_s = json_object_get_double(t);
		return 0;
	}
	*ret_s = (double)hr_config_int(s->config, "sandbox.timeout");
	bad |= json_object_object_add(a, "timeout", json_object_new_double(*ret_s));
	if (json_object_is_type(args, json_type_object) && hr_json_at(args, "blocking") != NULL)
		bad |= json_object_object_add(args, "blocking", json_object_new_boolean(false));
	return bad != 0 ? hr_err_nomem(err) : 0;
}

static void
request_id(char *out, size_t cap)
{
	char hex[33] = "";

	/* hr_random_hex() cannot fail for so few bytes; equal ids would be one action */
	(void)hr_random_hex(hex, sizeof(hex) - 1, NULL);
	(void)snprintf(out, cap, "X-Request-ID: %s", hex);
}

static void
on_header(void *arg, const char *line, size_t len)
{
	static const char name[] = "Idempotent-Replayed:";
	bool *replayed = arg;

	if (len >= sizeof(name) - 1 && strncasecmp(line, name, sizeof(name) - 1) == 0)
		*replayed = true;
}

static int
post_action(struct hr_sandbox *s, const struct hr_buf *body, double timeout_s,
    const struct hr_action_way *way, struct json_object **ret, struct hr_err *err)
{
	char id[80];
	const char *const headers[] = {"Content-Type: application/json", id, NULL};
	struct json_object *extras;
	bool replayed = false;
	struct hr_http_request req = {
	    .method = "POST",
	    .url = "/execute_action",
	    .headers = headers,
	    .body = body->p,
	    .body_len = body->len,
	    .timeout_s = (unsigned)timeout_s + 5,
	    .watch_fd = way != NULL ? way->cancel_fd : -1,
	    .header = "Retry-After",
	    .on_header = on_header,
	    .header_arg = &replayed,
	};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	const int64_t end_ms = hr_now_ms() + (int64_t)req.timeout_s * 1000;
	struct hr_json_error why = {0};
	struct hr_err mine = {0};
	int r, tries = BUSY_TRIES;

	/* the key is the same for every attempt: the server joins a retry to the running action */
	if (way != NULL)
		(void)snprintf(id, sizeof(id), "X-Request-ID: %.60s", way->id);
	else
		request_id(id, sizeof(id));
	/* workers that were killed are replaced within a second */
	while ((r = hr_client_send(&s->client, &req, &a, &mine)) != 0 && a.status == 503 &&
	       *a.header != '\0' && tries-- > 0 && hr_now_ms() + 2000 < end_ms &&
	       !hr_rest_wait(req.watch_fd, 1000)) {
		req.timeout_s = (unsigned)((end_ms - hr_now_ms()) / 1000);
		hr_http_answer_done(&a);
		mine = (struct hr_err){0};
	}
	if (r == 0 && (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, ret, &why) < 0 ||
			  hr_json_text_at(*ret, "observation") == NULL)) {
		hr_json_drop(ret);
		r = hr_json_err(
		    &mine, HR_E_INVAL, &why, "the server's answer is not an observation");
	}
	extras = r == 0 && replayed ? hr_json_at(*ret, "extras") : NULL;
	/* a keeper that has come since counts its commands from 1 again */
	if (json_object_is_type(extras, json_type_object))
		json_object_object_del(extras, "output");
	if (r != 0 && mine.code == HR_E_HTTP_TIMEOUT)
		(void)hr_err_set(&mine, HR_E_RUNTIME_TIMEOUT,
		    "Runtime failed to return execute_action before the requested timeout of %.*fs",
		    timeout_s == (double)(int64_t)timeout_s ? 1 : 3, timeout_s);
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

static int
by_backend(
    struct hr_sandbox *s, struct json_object *action, struct json_object **ret, struct hr_err *err)
{
	HR_BUF(b, ACTION_MAX);
	HR_FREE char *text = NULL;
	int r;

	if (hr_json_put(&b, action) != 0 || hr_buf_check(&b, NULL) != 0)
		return hr_err_set(err, HR_E_INVAL, "the action cannot be written as JSON");
	r = s->ops->action(s->self, b.p, &text, err);
	if (r == 0 && (text == NULL || hr_json_decode(text, strlen(text), ret, NULL) < 0 ||
			  !json_object_is_type(*ret, json_type_object))) {
		hr_json_drop(ret);
		r = hr_err_set(err, HR_E_INVAL, "the back-end's answer is not an observation");
	}
	return r;
}

/* Executes an action by the server, or by the back-end itself. */
static int
execute(struct hr_sandbox *s, struct json_object *action, double timeout_s,
    const struct hr_action_way *way, struct json_object **ret, struct hr_err *err)
{
	HR_BUF(b, ACTION_MAX);
	int r;

	if (!s->connected)
		return hr_err_set(err, HR_E_RUNTIME, "the sandbox is not connected");
	if (s->ops->action != NULL && !s->endpoint.serves)
		return by_backend(s, action, ret, err);
	hr_buf_adds(&b, "{\"action\":");
	r = hr_json_put(&b, action);
	hr_buf_addc(&b, '}');
	if (r != 0 || hr_buf_check(&b, NULL) != 0)
		r = hr_err_set(err, HR_E_INVAL, "the action cannot be written as JSON");
	else
		r = post_action(s, &b, timeout_s, way, ret, err);
	return r;
}

/* Copies the action's fields into the observation. */
static int
complete(struct json_object *obs, struct json_object *a, struct hr_err *err)
{
	struct json_object *id = hr_json_at(a, "id"), *meta = hr_json_at(a, "tool_call_metadata");
	struct json_object *extras = hr_json_at(obs, "extras");
	int bad = 0;

	if (json_object_get_boolean(
		hr_json_at(hr_json_at(a, "args"), "hidden")) && /* as in Python */
	    json_object_is_type(extras, json_type_object))
		bad |= json_object_object_add(extras, "hidden", json_object_new_boolean(true));
	if (id != NULL)
		bad |= json_object_object_add(obs, "cause", json_object_get(id));
	if (meta != NULL)
		bad |= json_object_object_add(obs, "tool_call_metadata", json_object_get(meta));
	return bad != 0 ? hr_err_nomem(err) : 0;
}

static char *
text_of(struct json_object *o, struct hr_err *err)
{
	HR_BUF(b, ACTION_MAX * 2);
	char *text = NULL;

	if (hr_json_put(&b, o) != 0)
		(void)hr_err_set(err, HR_E_INVAL, "the observation cannot be written as JSON");
	else if ((text = hr_buf_take(&b)) == NULL)
		(void)hr_err_nomem(err);
	return text;
}

/* Refreshes the tokens, but not before input: the shell is busy with the command that reads it. */
static void
refresh_tokens(struct hr_sandbox *s, struct json_object *args)
{
	const char *command = hr_json_text_at(args, "command");
	struct json_object *input = hr_json_at(args, "is_input");
	const char *said = input != NULL ? json_object_get_string(input) : "false";

	if (command != NULL && strcmp(said, "true") != 0)
		hr_tokens_refresh(s, command);
}

int
hr_sandbox_action(
    struct hr_sandbox *s, const char *action, char **ret_observation, struct hr_err *err)
{
	return hr_sandbox_action_as(s, action, NULL, ret_observation, err);
}

int
hr_sandbox_action_as(struct hr_sandbox *s, const char *action, const struct hr_action_way *way,
    char **ret_observation, struct hr_err *err)
{
	HR_PUT struct json_object *a = NULL;
	HR_PUT struct json_object *obs = NULL;
	const char *type;
	double timeout_s;
	int r = -1;

	if (hr_json_decode(action, strlen(action), &a, NULL) < 0 ||
	    (type = hr_json_text_at(a, "action")) == NULL)
		return hr_err_set(
		    err, HR_E_INVAL, "an action must be a JSON object with the string \"action\"");
	if (give_timeout(s, a, &timeout_s, err) < 0)
		return -1;
	r = decide(s, a, type, &obs, err);
	if (r == 0 && strcmp(type, "run") == 0)
		refresh_tokens(s, hr_json_at(a, "args"));
	if (r == 0)
		r = execute(s, a, timeout_s, way, &obs, err);
	if (r >= 0)
		r = complete(obs, a, err);
	if (r == 0)
		r = (*ret_observation = text_of(obs, err)) != NULL ? 0 : -1;
	return r;
}

/* Appends why a command has no exit status, unless its output says so. */
static void
put_why(struct hr_buf *b, const char *suffix)
{
	static const char not_run[] = "\n[Your command \"";
	const char *p = suffix + strspn(suffix, "\n[");

	if (strncmp(suffix, not_run, sizeof(not_run) - 1) == 0)
		hr_buf_adds(b, "the shell is busy with another command, so it was not run");
	else
		hr_buf_add(b, p, strcspn(p, "]"));
}

/* Runs a command; own_shell: in a new shell for this command alone. */
static int
run(struct hr_sandbox *s, const char *command, bool own_shell, double timeout_s, int *ret_exit,
    struct hr_buf *b, struct hr_err *err)
{
	struct json_object *args = hr_json_object(err, "command", json_object_new_string(command),
	    "hidden", json_object_new_boolean(true), "blocking", json_object_new_boolean(true),
	    "is_static", own_shell ? json_object_new_boolean(true) : HR_JSON_NONE, NULL);
	HR_PUT struct json_object *a = hr_json_object(err, "action", json_object_new_string("run"),
	    "args", args, "timeout", json_object_new_double(timeout_s), NULL);
	struct json_object *metadata;
	HR_PUT struct json_object *obs = NULL;
	const char *content;

	if (a == NULL || execute(s, a, timeout_s, NULL, &obs, err) != 0)
		return -1;
	metadata = hr_json_at(hr_json_at(obs, "extras"), "metadata");
	*ret_exit = strcmp(hr_json_text_or(obs, "observation", ""), "run") == 0 &&
			    json_object_is_type(hr_json_at(metadata, "exit_code"), json_type_int)
			? json_object_get_int(hr_json_at(metadata, "exit_code"))
			: -1;
	content = hr_json_text_at(obs, "content");
	if (b != NULL && content != NULL)
		hr_buf_adds(b, content);
	if (b != NULL && b->len == 0 && *ret_exit < 0)
		put_why(b, hr_json_text_or(metadata, "suffix", ""));
	return 0;
}

int
hr_sandbox_run(struct hr_sandbox *s, const char *command, double timeout_s, int *ret_exit,
    struct hr_buf *b, struct hr_err *err)
{
	return run(s, command, false, timeout_s, ret_exit, b, err);
}

int
hr_sandbox_run_static(struct hr_sandbox *s, const char *command, double timeout_s, int *ret_exit,
    struct hr_buf *b, struct hr_err *err)
{
	return run(s, command, true, timeout_s, ret_exit, b, err);
}

int
hr_sandbox_file(struct hr_sandbox *s, const char *path, const char *content, struct hr_buf *b,
    struct hr_err *err)
{
	const char *type = content != NULL ? "write" : "read";
	HR_PUT struct json_object *a = hr_json_object(err, "action", json_object_new_string(type),
	    "args", hr_json_texts(err, "path", path, "content", content, NULL), NULL);
	HR_PUT struct json_object *obs = NULL;
	int r = -1;

	if (a != NULL && execute(s, a, FILE_TIMEOUT_S, NULL, &obs, err) == 0) {
		r = strcmp(hr_json_text_or(obs, "observation", ""), type) == 0 ? 1 : 0;
		if (r == 1 && b != NULL)
			hr_buf_adds(b, hr_json_text_or(obs, "content", ""));
	}
	return r;
}

const char *
hr_sandbox_workspace(const struct hr_sandbox *s)
{
	const char *given = s->endpoint.workspace;

	if (given == NULL)
		given = hr_config_text(s->config, "core.workspace_mount_path_in_sandbox");
	return given != NULL ? given : "/workspace";
}
