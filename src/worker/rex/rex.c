/* Serves /swerex/: access, routes and the encoding of failures. */
#include "config.h"

#include "worker/rex/rex.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/place/oserror.h"
#include "worker/once.h"

#define PREFIX "/swerex"
#define WHY_MAX (64u << 20)

/* ---- answers ---- */

bool
hr_rex_raise(
    struct hr_answer *ret, const char *class, const struct hr_buf *message, const char *extra)
{
	HR_BUF(text, HR_ANSWER_MAX);
	bool failed = message->fail != HR_OK;

	/* the message may be part of the answer's own body */
	hr_buf_adds(&text, "{\"swerexception\":{\"message\":");
	(void)hr_json_put_str(&text, hr_buf_str(message), message->len, HR_JSON_REPLACE);
	hr_buf_addf(&text, ",\"class_path\":\"%s\",\"traceback\":\"\",\"extra_info\":{", class);
	hr_buf_adds(&text, extra);
	hr_buf_adds(&text, "}}}");
	hr_buf_reset(&ret->body); /* keeps the note for the log */
	ret->status = 511;
	hr_buf_add(&ret->body, hr_buf_str(&text), text.len);
	if (failed || text.fail != HR_OK)
		hr_answer_generic(ret);
	return false;
}

bool
hr_rex_raisef(struct hr_answer *ret, const char *class, const char *fmt, ...)
{
	char text[4096];
	HR_BUF(message, sizeof(text));
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a longer text is cut short */
	va_end(ap);
	hr_buf_adds(&message, text);
	return hr_rex_raise(ret, class, &message, "");
}

static const struct {
	int sys;
	const char *class;
} classes[] = {{ENOENT, "builtins.FileNotFoundError"}, {EEXIST, "builtins.FileExistsError"},
    {EISDIR, "builtins.IsADirectoryError"}, {ENOTDIR, "builtins.NotADirectoryError"},
    {EACCES, "builtins.PermissionError"}, {EPERM, "builtins.PermissionError"}};

static const char *
class_of(int sys)
{
	size_t i;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].sys == sys)
			return classes[i].class;
	return "builtins.OSError";
}

bool
hr_rex_raise_os(struct hr_answer *ret, int sys, const char *path)
{
	HR_BUF(text, WHY_MAX);

	(void)hr_oserror_put(&text, sys, path);
	return hr_rex_raise(ret, class_of(sys), &text, "");
}

bool
hr_rex_raise_os_text(struct hr_answer *ret, struct hr_buf *text)
{
	static const char head[] = "[Errno ";
	const char *p = hr_buf_str(text);
	int sys = strncmp(p, head, sizeof(head) - 1) == 0
		      ? (int)strtol(p + sizeof(head) - 1, NULL, 10)
		      : 0;

	return hr_rex_raise(ret, class_of(sys), text, "");
}

bool
hr_rex_pass(struct hr_answer *ret, const struct hr_answer *inner)
{
	HR_PUT struct json_object *body = NULL;
	HR_BUF(text, WHY_MAX);
	const char *detail = NULL;

	if (hr_json_decode(hr_buf_str(&inner->body), inner->body.len, &body, NULL) == 0)
		detail = hr_json_text_at(body, "detail");
	if (detail == NULL)
		detail = "the sandbox could not do that";
	hr_buf_adds(&text, detail);
	if (inner->status != 503)
		return hr_rex_raise(ret, "builtins.RuntimeError", &text, "");
	hr_answer_detail(ret, 503, detail); /* the action was not done */
	ret->retry_after_s = inner->retry_after_s;
	return false;
}

/* ---- at most once ---- */

bool
hr_rex_enter(struct hr_rex_call *c)
{
	return hr_once_begin(c->w, c->r, hr_buf_str(c->r->path), c->ret);
}

void
hr_rex_leave(struct hr_rex_call *c)
{
	hr_answer_settle(c->ret);
	if (c->ret->status == 503 && c->ret->retry_after_s > 0)
		hr_journal_undo(&c->w->journal, &c->w->once); /* the action was not done */
	else
		hr_once_leave(c->w, c->ret);
}

/* ---- routes ---- */

static void
root(struct hr_rex_call *c)
{
	hr_buf_adds(&c->ret->body, "{\"message\":\"hello world\"}");
}

static void
is_alive(struct hr_rex_call *c)
{
	hr_buf_adds(&c->ret->body, "{\"is_alive\":true,\"message\":\"\"}");
}

static const struct {
	const char *path, *method;
	const struct hr_rex_model *model; /* NULL: the route has no JSON body */
	void (*handle)(struct hr_rex_call *c);
} routes[] = {
    {"/", "GET", NULL, root},
    {"/is_alive", "GET", NULL, is_alive},
    {"/create_session", "POST", &hr_rex_create_model, hr_rex_create},
    {"/run_in_session", "POST", &hr_rex_run_model, hr_rex_run_in_session},
    {"/close_session", "POST", &hr_rex_close_model, hr_rex_close_one},
    {"/execute", "POST", &hr_rex_execute_model, hr_rex_execute},
    {"/read_file", "POST", &hr_rex_read_model, hr_rex_read_file},
    {"/write_file", "POST", &hr_rex_write_model, hr_rex_write_file},
    {"/upload", "POST", NULL, hr_rex_upload},
    {"/close", "POST", NULL, hr_rex_close_all},
};

static bool
has_key(const struct hr_worker *w, const struct hr_request *r)
{
	return hr_auth_passes(&w->auth, r->session_key) || hr_auth_passes(&w->auth, r->rex_key);
}

void
hr_handle_rex_key(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	ret->content_type = NULL;
	ret->status = has_key(w, r) ? 204 : 403;
}

/* Reads and decodes the body. Returns false after sending an error. */
static bool
decode_body(struct hr_rex_call *c)
{
	struct hr_json_error e;
	HR_BUF(where, 64);
	HR_BUF(ctx, 1024);

	if (!hr_worker_body(c->w, c->r, HR_JSON_BODY_MAX, c->ret))
		return false;
	if (c->w->body.len == 0 ||
	    hr_json_decode(hr_buf_str(&c->w->body), c->w->body.len, &c->body, &e) == 0)
		return true;
	if (e.verdict == HR_JSON_NOMEM)
		return hr_answer_generic(c->ret);
	if (e.verdict != HR_JSON_SYNTAX)
		return hr_answer_detail(c->ret, 400, "There was an error parsing the body");
	hr_buf_addf(&where, ",%zu", e.pos);
	hr_buf_adds(&ctx, "\"error\":");
	(void)hr_json_put_str(&ctx, e.text, strlen(e.text), HR_JSON_REPLACE);
	return hr_rex_refuse(c->ret, "json_invalid", hr_buf_str(&where), "JSON decode error", "{}",
	    hr_buf_str(&ctx));
}

bool
hr_rex_take_body(struct hr_rex_call *c, const struct hr_rex_model *m)
{
	return decode_body(c) && hr_rex_check(m, c->body, c->ret);
}

bool
hr_rex_take_list(struct hr_rex_call *c)
{
	return decode_body(c) && hr_rex_check_list(c->w->body.len > 0, c->body, c->ret);
}

void
hr_handle_rex(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_rex_call c = {.w = w, .r = r, .ret = ret};
	const char *path = hr_buf_str(r->path) + sizeof(PREFIX) - 1;
	size_t i = 0, n = sizeof(routes) / sizeof(routes[0]);

	while (i < n && (strlen(path) != r->path->len - (sizeof(PREFIX) - 1) ||
			    strcmp(routes[i].path, path) != 0))
		i++;
	if (!has_key(w, r))
		hr_answer_detail(ret, r->rex_key[0] == '\0' ? 403 : 401,
		    r->rex_key[0] == '\0' ? "Not authenticated" : "Invalid API Key");
	else if (!hr_request_from_here(r))
		hr_answer_detail(ret, 403, "This origin is not allowed");
	else if (i == n)
		hr_answer_detail(ret, 404, "Not Found");
	else if (strcmp(routes[i].method, r->method) != 0)
		hr_answer_detail(ret, 405, "Method Not Allowed");
	else if (routes[i].model == NULL || hr_rex_take_body(&c, routes[i].model))
		routes[i].handle(&c);
	json_object_put(c.body);
}
