/* Dispatches /handrail/e2b/: the paths of E2B's envd. The fleet checks tokens and signatures before
 * it passes a request on with the server's key. */
#include "config.h"

#include "worker/e2b/e2b.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/text/percent.h"
#include "base/text/quote.h"
#include "proto/json.h"

#define PREFIX "/handrail/e2b/"
#define RPC "filesystem.Filesystem/"
#define INIT_MAX (1u << 20)
#define NAME_CAP 4096
#define JSON_UTF8 "application/json; charset=utf-8"

const char *
hr_e2b_header(const struct hr_e2b_call *c, const char *name)
{
	size_t len = strlen(name);
	char *const *p;

	for (p = c->r->params; p != NULL && *p != NULL; p++)
		if (strncmp(*p, "HTTP_", 5) == 0 && strncmp(*p + 5, name, len) == 0 &&
		    (*p)[5 + len] == '=')
			return *p + 5 + len + 1;
	return "";
}

bool
hr_e2b_refuse(struct hr_e2b_call *c, int status, const char *fmt, ...)
{
	HR_FREE char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		return hr_answer_generic(c->ret);
	}
	hr_answer_reset(c->ret);
	c->ret->status = status;
	c->ret->content_type = JSON_UTF8;
	hr_answer_header(c->ret, "X-Content-Type-Options", "nosniff");
	hr_buf_addf(&c->ret->body, "{\"code\":%d,\"message\":", status);
	hr_quote_json(&c->ret->body, text, strlen(text));
	hr_buf_addc(&c->ret->body, '}');
	return false;
}

bool
hr_e2b_plain(struct hr_e2b_call *c, int status, const char *text)
{
	hr_answer_reset(c->ret);
	c->ret->status = status;
	c->ret->content_type = "text/plain; charset=utf-8";
	hr_answer_header(c->ret, "X-Content-Type-Options", "nosniff");
	hr_buf_adds(&c->ret->body, text);
	hr_buf_addc(&c->ret->body, '\n');
	return false;
}

bool
hr_e2b_not_allowed(struct hr_e2b_call *c, const char *methods)
{
	c->ret->status = 405;
	c->ret->content_type = NULL;
	hr_answer_header(c->ret, "Allow", methods);
	return false;
}

bool
hr_e2b_find_user(struct hr_e2b_call *c)
{
	HR_BUF(name, NAME_CAP);
	const char *text;

	(void)hr_request_query(c->r, "username", &name);
	text = name.len > 0 ? hr_buf_str(&name) : NULL;
	if (name.fail == HR_OK && hr_e2b_who_find(&c->who, text, c->setup, c->w->user_id))
		return true;
	if (text == NULL)
		text = c->setup->user != NULL ? c->setup->user : "";
	return hr_e2b_refuse(
	    c, 401, "error looking up user '%s': user: unknown user %s", text, text);
}

bool
hr_e2b_check_query(struct hr_e2b_call *c)
{
	static const char *const names[] = {
	    "path", "username", "signature", "signature_expiration", NULL};
	const char *p;
	size_t len, i;
	unsigned seen[4] = {0};
	HR_BUF(name, NAME_CAP);
	HR_BUF(value, 64);
	HR_BUF(text, 512);

	for (p = c->r->query; *p != '\0'; p += len + (p[len] == '&')) {
		len = strcspn(p, "&");
		hr_buf_reset(&name);
		hr_percent_decode(&name, p, strcspn(p, "=&"), true);
		for (i = 0; names[i] != NULL; i++)
			if (strcmp(hr_buf_str(&name), names[i]) == 0)
				seen[i]++;
	}
	for (i = 0; names[i] != NULL; i++)
		if (seen[i] > 1) {
			hr_buf_addf(&text,
			    "Invalid format for parameter %s: multiple values for single value "
			    "parameter '%s'",
			    names[i], names[i]);
			return hr_e2b_plain(c, 400, hr_buf_str(&text));
		}
	if (hr_request_query(c->r, "signature_expiration", &value) &&
	    (value.fail != HR_OK || value.len == 0 || value.len > 18 ||
		strspn(value.p, "0123456789") != value.len)) {
		hr_buf_adds(&text,
		    "Invalid format for parameter signature_expiration: error binding string "
		    "parameter: strconv.ParseInt: parsing ");
		hr_quote_json(&text, hr_buf_str(&value), value.len);
		hr_buf_adds(&text, ": invalid syntax");
		return hr_e2b_plain(c, 400, hr_buf_str(&text));
	}
	return true;
}

/* ---- the service's own ---- */

static void
health(struct hr_e2b_call *c)
{
	c->ret->status = 204;
	c->ret->content_type = NULL;
	hr_answer_header(c->ret, "Cache-Control", "no-store");
}

static void
variables(struct hr_e2b_call *c)
{
	HR_PUT struct json_object *v = hr_e2b_setup_variables(c->setup, NULL);

	hr_answer_header(c->ret, "Cache-Control", "no-store");
	if (v == NULL) {
		hr_answer_generic(c->ret);
	} else {
		hr_json_put_whole(&c->ret->body, v);
		hr_buf_addc(&c->ret->body, '\n'); /* as the original */
	}
}

static void
init(struct hr_e2b_call *c)
{
	HR_PUT struct json_object *doc = NULL;
	struct hr_err err = {0};

	if (!hr_worker_body(c->w, c->r, INIT_MAX, c->ret))
		return;
	if (hr_json_decode(hr_buf_str(&c->w->body), c->w->body.len, &doc, NULL) < 0)
		hr_e2b_refuse(c, 400, "the setup is not JSON");
	else if (hr_e2b_setup_check(doc, &err) < 0)
		hr_e2b_refuse(c, 400, "%s", err.msg);
	else if (hr_e2b_setup_write(c->w->run_dir, doc, c->w->user_id, &err) < 0)
		hr_e2b_refuse(c, 500, "%s", err.msg);
	else
		health(c);
	/* the variables have the ids, too */
	if (c->ret->status == 204 && hr_e2b_setup_show(doc, &err) < 0)
		hr_log(HR_LOG_WARNING, "the ids of the sandbox are in no file: %s", err.msg);
}

static void
files(struct hr_e2b_call *c)
{
	(strcmp(c->r->method, "GET") == 0 ? hr_e2b_download : hr_e2b_upload)(c);
}

static const struct {
	const char *path, *methods[2];
	void (*handle)(struct hr_e2b_call *c);
} routes[] = {
    {"health", {"GET"}, health},
    {"envs", {"GET"}, variables},
    {"metrics", {"GET"}, hr_e2b_metrics},
    {"init", {"POST"}, init},
    {"files", {"GET", "POST"}, files},
    {"files/compose", {"POST"}, hr_e2b_compose},
};

static void
route(struct hr_e2b_call *c, const char *path)
{
	size_t i, n = sizeof(routes) / sizeof(*routes);
	const char *const *methods;

	for (i = 0; i < n && strcmp(routes[i].path, path) != 0; i++)
		;
	if (strncmp(path, RPC, sizeof(RPC) - 1) == 0) {
		hr_e2b_filesystem(c, path + sizeof(RPC) - 1);
		return;
	}
	if (i == n) {
		hr_e2b_plain(c, 404, "404 page not found");
		return;
	}
	methods = routes[i].methods;
	if (strcmp(methods[0], c->r->method) == 0 ||
	    (methods[1] != NULL && strcmp(methods[1], c->r->method) == 0))
		routes[i].handle(c);
	else
		hr_e2b_not_allowed(c, methods[1] != NULL ? "GET, POST" : methods[0]);
}

bool
hr_e2b_is(const struct hr_request *r)
{
	return r->path->len >= sizeof(PREFIX) - 1 &&
	       memcmp(r->path->p, PREFIX, sizeof(PREFIX) - 1) == 0;
}

void
hr_handle_e2b(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	static struct hr_e2b_setup setup;
	struct hr_e2b_call c = {.w = w, .r = r, .ret = ret, .setup = &setup};
	struct hr_err err = {0};

	if (!hr_auth_passes(&w->auth, r->session_key))
		hr_answer_detail(ret, 403, "Invalid API Key");
	else if (w->auth.head.count == 0 && !hr_request_from_here(r))
		hr_answer_detail(ret, 403, "This origin is not allowed");
	else if (strlen(hr_buf_str(r->path)) != r->path->len)
		hr_e2b_plain(&c, 404, "404 page not found");
	else if (hr_e2b_setup_read(&setup, w->run_dir, &err) < 0)
		hr_e2b_refuse(&c, 500, "%s", err.msg);
	else
		route(&c, hr_buf_str(r->path) + sizeof(PREFIX) - 1);
	hr_e2b_who_done(&c.who);
}
