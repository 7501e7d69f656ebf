/* Serves contexts and executions. Invariant: a call with an execution in a context has an
 * unfinished request. */
#include "config.h"

#include "plugins/jupyter/code.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "e2b/setup.h"
#include "http/serve.h"
#include "plugins/jupyter/ask.h"
#include "plugins/jupyter/context.h"
#include "plugins/jupyter/line.h"
#include "plugins/jupyter/spec.h"
#include "proto/json.h"

#define BODY_MAX (16u << 20)
#define WAITING_MAX (256u << 20) /* maximum bytes of all bodies of unfinished calls */
#define CALLS_MAX 2000
#define CONTEXTS_MAX 64
/* unread bytes of a client above which its kernel is stopped */
#define PENDING_MAX (4u << 20)
/* unread bytes above which its stream is cut: a command continues the kernel all the time. One line
 * can have 384 MiB. */
#define PENDING_CUT (512u << 20)
#define SILENCE_MS 5000
#define ANSWER_MAX (1u << 20)
#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"

struct code {
	struct hr_context_host host;
	struct hr_serve *serve;
	TAILQ_HEAD(, hr_context) contexts;
	unsigned number;
	size_t ncontexts, ncalls, waiting;
	struct hr_watch *reaper, *term;
};

struct call {
	struct hr_exec exec; /* the first member */
	struct code *code;
	struct hr_context *context;
	struct hr_serve_request *q;
	enum { EXECUTE, CREATE, RESTART } what;
	struct json_object *body;
	size_t size;
	bool started; /* the stream */
	bool cut;     /* the client has too much unread; `silence` ends the call */
	struct hr_watch *silence;
};

static void
answer_text(struct hr_serve_request *q, int status, const char *text)
{
	hr_serve_answer(q, status, TEXT_TYPE, text, strlen(text));
}

static void
answer_json(struct hr_serve_request *q, int status, const char *text)
{
	hr_serve_answer(q, status, JSON_TYPE, text, strlen(text));
}

/* ---- contexts ---- */

static struct hr_context *
context_add(struct code *code, const char *language, const char *cwd, struct hr_err *err)
{
	HR_CLEAN(hr_e2b_setup_done) struct hr_e2b_setup setup = {0};
	HR_FREE char *run_dir = hr_path_join(code->host.state_dir, "../..");
	const char *home = getenv("HOME");
	struct hr_context *c;

	if (code->ncontexts >= CONTEXTS_MAX) {
		(void)hr_err_set(err, HR_E_BUSY,
		    "Failed to create context: there are %d contexts; remove one first",
		    CONTEXTS_MAX);
		return NULL;
	}
	if (cwd == NULL && run_dir != NULL && hr_e2b_setup_read(&setup, run_dir, NULL) == 0)
		cwd = setup.directory;
	if (cwd == NULL)
		cwd = home != NULL ? home : "/";
	c = hr_context_new(&code->host, ++code->number, language, cwd, err);
	if (c != NULL) {
		TAILQ_INSERT_TAIL(&code->contexts, c, entry);
		code->ncontexts++;
	}
	return c;
}

static void
context_remove(struct code *code, struct hr_context *c)
{
	TAILQ_REMOVE(&code->contexts, c, entry);
	code->ncontexts--;
	hr_context_free(c);
}

static void
reap(void *arg)
{
	struct code *code = arg;
	struct hr_context *c, *next;

	for (c = TAILQ_FIRST(&code->contexts); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->is_failed)
			context_remove(code, c);
	}
}

static struct hr_context *
context_find(const struct code *code, struct hr_span id)
{
	struct hr_context *c;

	TAILQ_FOREACH(c, &code->contexts, entry)
	{
		if (!c->is_failed && hr_span_equal(hr_span_of(c->id), id))
			return c;
	}
	return NULL;
}

static void
answer_missing(struct hr_serve_request *q, struct hr_span id)
{
	HR_BUF(text, ANSWER_MAX);

	hr_buf_adds(&text, "Context ");
	hr_buf_add(&text, id.p, id.len);
	hr_buf_adds(&text, " not found");
	hr_serve_answer(q, 404, TEXT_TYPE, hr_buf_str(&text), text.len);
}

/* Returns the default context of a language; makes it if there is none. */
static struct hr_context *
context_default(struct code *code, const char *language, struct hr_err *err)
{
	HR_CLEAN(hr_spec_done) struct hr_spec spec = {0};
	struct hr_context *c;

	TAILQ_FOREACH(c, &code->contexts, entry)
	{
		if (c->is_default && strcmp(c->language, language) == 0)
			return c;
	}
	if (hr_spec_find(&spec, language, code->host.python, err) < 0)
		return NULL;
	c = context_add(code, language, NULL, err);
	if (c != NULL)
		c->is_default = true;
	return c;
}

/* Answers that there is no context, in the words of the original for an unknown language. */
static void
answer_failed(struct hr_serve_request *q, const char *language, const struct hr_err *err)
{
	HR_BUF(text, ANSWER_MAX);

	hr_buf_adds(&text, "Failed to create context: ");
	if (err->code == HR_E_NOTFOUND) {
		hr_buf_adds(&text, "{\"message\": \"The '");
		(void)hr_json_put_text(&text, language, strlen(language), HR_JSON_REPLACE);
		hr_buf_adds(&text, "' kernel is not available. Please pick another suitable kernel "
				   "instead, or install that kernel.\", \"short_message\": \"");
		(void)hr_json_put_text(&text, language, strlen(language), HR_JSON_REPLACE);
		hr_buf_adds(&text, " not found\"}");
	} else {
		hr_buf_adds(&text, err->msg);
	}
	hr_serve_answer(q, 500, TEXT_TYPE, hr_buf_str(&text), text.len);
}

static void
put_context(struct hr_buf *b, const struct hr_context *c)
{
	hr_buf_addc(b, '{');
	hr_json_put_named(b, "id", c->id);
	hr_json_put_named(b, "language", c->language);
	hr_json_put_named(b, "cwd", c->cwd);
	hr_buf_addc(b, '}');
}

static void
list_contexts(struct code *code, struct hr_serve_request *q)
{
	const struct hr_context *c;
	HR_BUF(text, HR_LINE_MAX);

	hr_buf_addc(&text, '[');
	TAILQ_FOREACH(c, &code->contexts, entry)
	{
		if (c->is_failed)
			continue;
		hr_buf_adds(&text, text.len > 1 ? "," : "");
		put_context(&text, c);
	}
	hr_buf_addc(&text, ']');
	hr_serve_answer(q, 200, JSON_TYPE, hr_buf_str(&text), text.len);
}

/* ---- calls ---- */

static void
call_free(struct call *c)
{
	c->code->ncalls--;
	c->code->waiting -= c->size;
	hr_watch_free(c->silence);
	json_object_put(c->body);
	free(c);
}

static void
call_start(struct call *c)
{
	if (!c->started)
		hr_serve_start(c->q, NULL);
	c->started = true;
}

static void
call_line(struct hr_exec *e, const char *p, size_t len)
{
	struct call *c = (struct call *)e;

	if (c->what != EXECUTE)
		return;
	call_start(c);
	c->cut = c->cut || hr_serve_pending(c->q) > PENDING_CUT;
	if (!c->cut)
		hr_serve_send(c->q, p, len);
	(void)hr_watch_arm(c->silence, c->cut ? 0 : SILENCE_MS, NULL);
	if (hr_serve_pending(c->q) > PENDING_MAX)
		hr_context_hold(c->context, e, true);
}

static void
on_left(void *arg)
{
	struct call *c = arg;

	hr_context_leave(c->context, &c->exec);
	hr_serve_end(c->q, false);
	call_free(c);
}

static void
on_silence(void *arg)
{
	static const char line[] = "{\"type\":\"keepalive\"}\n";
	struct call *c = arg;

	if (c->cut) {
		hr_log(HR_LOG_WARNING, "an execution ends: its client left %u MiB unread",
		    PENDING_CUT >> 20);
		on_left(c);
		return;
	}
	/* a client that reads nothing needs no further lines */
	if (c->started && hr_serve_pending(c->q) > 0)
		(void)hr_watch_arm(c->silence, SILENCE_MS, NULL);
	else
		call_line(&c->exec, line, strlen(line));
}

static void
on_drained(void *arg)
{
	struct call *c = arg;

	hr_context_hold(c->context, &c->exec, false);
}

static void
end_execution(struct call *c, const char *failure)
{
	static const char last[] = "{\"type\":\"end_of_execution\"}\n";
	HR_BUF(line, HR_LINE_MAX);

	if (failure != NULL && !c->started) {
		answer_text(c->q, 500, failure);
		return;
	}
	if (failure != NULL) {
		hr_line_put_error(&line, "ContextError", failure);
		call_line(&c->exec, hr_buf_str(&line), line.len);
	}
	call_line(&c->exec, last, strlen(last));
	hr_serve_end(c->q, !c->cut);
}

static void
call_end(struct hr_exec *e, const char *failure)
{
	struct call *c = (struct call *)e;
	HR_BUF(text, ANSWER_MAX);

	if (c->what == EXECUTE) {
		end_execution(c, failure);
	} else if (failure != NULL) {
		answer_text(c->q, 500, failure);
	} else if (c->what == CREATE) {
		put_context(&text, c->context);
		hr_serve_answer(c->q, 200, JSON_TYPE, hr_buf_str(&text), text.len);
	} else {
		answer_json(c->q, 200, "null");
	}
	/* the context is in use: it calls this function */
	if (failure != NULL && c->what == CREATE) {
		c->context->is_failed = true;
		(void)hr_watch_arm(c->code->reaper, 0, NULL);
	}
	call_free(c);
}

/* Returns a call, which takes q and body over, or NULL after an answer. */
static struct call *
call_new(struct code *code, struct hr_serve_request *q, struct json_object *body)
{
	struct call *c = calloc(1, sizeof(*c));
	size_t size = hr_serve_body(q).len;

	if (c != NULL)
		c->silence = hr_loop_timer(code->host.loop, on_silence, c, NULL);
	if (c == NULL || c->silence == NULL || code->ncalls >= CALLS_MAX ||
	    code->waiting + size > WAITING_MAX) {
		json_object_put(body);
		hr_watch_free(c != NULL ? c->silence : NULL);
		free(c);
		answer_text(q, 503, "Too many executions are waiting");
		return NULL;
	}
	c->code = code;
	c->q = q;
	c->body = body;
	c->size = size;
	c->exec.line = call_line;
	c->exec.end = call_end;
	code->ncalls++;
	code->waiting += size;
	hr_serve_watch(q, on_drained, on_left, c);
	return c;
}

static struct json_object *
read_body(struct hr_serve_request *q, const struct hr_ask_field *fields)
{
	struct json_object *body = NULL;
	HR_BUF(why, 2 * BODY_MAX);
	int status = hr_ask_read(hr_serve_body(q), fields, &body, &why);

	if (status != 0)
		hr_serve_answer(q, status, JSON_TYPE, hr_buf_str(&why), why.len);
	return body;
}

static struct json_object *
string_at(struct json_object *body, const char *name)
{
	struct json_object *v = hr_json_typed_at(body, name, HR_PY_STR);

	return v != NULL && json_object_get_string_len(v) > 0 ? v : NULL;
}

/* Returns the context of an execution, or NULL after an answer. */
static struct hr_context *
context_of(struct code *code, struct hr_serve_request *q, struct json_object *body)
{
	struct json_object *id = string_at(body, "context_id"),
			   *language = string_at(body, "language");
	HR_FREE char *name = hr_ask_language(language);
	struct hr_context *c = NULL;
	struct hr_err err = {0};
	struct hr_span text;

	if (id != NULL && language != NULL) {
		answer_text(q, 400, "Only one of context_id or language can be provided");
	} else if (id != NULL) {
		text.p = hr_json_str(id, &text.len);
		c = context_find(code, text);
		if (c == NULL)
			answer_missing(q, text);
	} else if (name == NULL) {
		(void)hr_err_nomem(&err);
		answer_failed(q, "", &err);
	} else {
		c = context_default(code, name, &err);
		if (c == NULL)
			answer_failed(q, name, &err);
	}
	return c;
}

static void
execute(struct code *code, struct hr_serve_request *q)
{
	struct json_object *body = read_body(q, hr_ask_execute), *vars;
	struct hr_context *context = body != NULL ? context_of(code, q, body) : NULL;
	struct call *c;

	if (context == NULL) {
		json_object_put(body);
		return;
	}
	c = call_new(code, q, body);
	if (c == NULL)
		return;
	c->what = EXECUTE;
	c->context = context;
	c->exec.code = hr_json_str(hr_json_at(body, "code"), &c->exec.code_len);
	vars = hr_json_typed_at(body, "env_vars", HR_PY_DICT);
	c->exec.vars = vars != NULL && json_object_object_length(vars) > 0 ? vars : NULL;
	(void)hr_watch_arm(c->silence, SILENCE_MS, NULL);
	/* libevent notices that a client leaves only once its answer has started */
	if (context->stage >= HR_CONTEXT_IDLE)
		call_start(c);
	hr_context_run(context, &c->exec);
}

static void
create(struct code *code, struct hr_serve_request *q)
{
	HR_CLEAN(hr_spec_done) struct hr_spec spec = {0};
	HR_PUT struct json_object *body = read_body(q, hr_ask_create);
	HR_FREE char *name = NULL;
	const char *cwd;
	struct call *c;
	struct hr_context *context = NULL;
	struct hr_err err = {0};

	if (body == NULL)
		return;
	cwd = hr_json_text_at(body, "cwd");
	name = hr_ask_language(hr_json_typed_at(body, "language", HR_PY_STR));
	if (name == NULL)
		(void)hr_err_nomem(&err);
	else if (hr_spec_find(&spec, name, code->host.python, &err) == 0)
		context = context_add(code, name, cwd != NULL && cwd[0] != '\0' ? cwd : NULL, &err);
	if (context == NULL) {
		answer_failed(q, name != NULL ? name : "", &err);
		return;
	}
	c = call_new(code, q, NULL);
	if (c == NULL) {
		context_remove(code, context);
		return;
	}
	c->what = CREATE;
	c->context = context;
	hr_context_run(context, &c->exec);
}

static void
restart(struct code *code, struct hr_serve_request *q, struct hr_context *context)
{
	struct call *c = call_new(code, q, NULL);

	if (c == NULL)
		return;
	c->what = RESTART;
	c->context = context;
	hr_context_restart(context, &c->exec);
}

/* ---- routes ---- */

static void
on_context(struct code *code, struct hr_serve_request *q, const char *rest)
{
	const char *method = hr_serve_method(q);
	struct hr_span id = {rest, strcspn(rest, "/")};
	bool deletes = rest[id.len] == '\0', restarts = strcmp(rest + id.len, "/restart") == 0;
	struct hr_context *c = context_find(code, id);

	if (id.len == 0 || (!deletes && !restarts)) {
		answer_json(q, 404, "{\"detail\":\"Not Found\"}");
	} else if (strcmp(method, deletes ? "DELETE" : "POST") != 0) {
		answer_json(q, 405, "{\"detail\":\"Method Not Allowed\"}");
	} else if (c == NULL) {
		answer_missing(q, id);
	} else if (restarts) {
		restart(code, q, c);
	} else {
		context_remove(code, c);
		answer_json(q, 200, "null");
	}
}

static void
on_request(void *arg, struct hr_serve_request *q)
{
	struct code *code = arg;
	const char *method = hr_serve_method(q), *path = hr_serve_path(q);
	bool is_get = strcmp(method, "GET") == 0, is_post = strcmp(method, "POST") == 0;
	bool is_health = strcmp(path, "/health") == 0, is_list = strcmp(path, "/contexts") == 0;
	bool is_execute = strcmp(path, "/execute") == 0;

	if (strncmp(path, "/contexts/", 10) == 0)
		on_context(code, q, path + 10);
	else if (is_health && is_get)
		answer_json(q, 200, "\"OK\"");
	else if (is_execute && is_post)
		execute(code, q);
	else if (is_list && is_get)
		list_contexts(code, q);
	else if (is_list && is_post)
		create(code, q);
	else if (is_health || is_execute || is_list)
		answer_json(q, 405, "{\"detail\":\"Method Not Allowed\"}");
	else
		answer_json(q, 404, "{\"detail\":\"Not Found\"}");
}

static void
on_term(void *arg)
{
	struct code *code = arg;

	hr_loop_stop(code->host.loop);
}

int
hr_code_serve(
    int listener, const char *state_dir, const char *python, char *const *envp, struct hr_err *err)
{
	struct code code = {.host = {.python = python, .state_dir = state_dir, .envp = envp}};
	struct hr_context *c;
	int r = -1;

	TAILQ_INIT(&code.contexts);
	code.host.loop = hr_loop_new(err);
	if (code.host.loop != NULL &&
	    (code.term = hr_loop_signal(code.host.loop, SIGTERM, on_term, &code, err)) != NULL &&
	    (code.reaper = hr_loop_timer(code.host.loop, reap, &code, err)) != NULL &&
	    (code.serve = hr_serve_open(
		 code.host.loop, listener, BODY_MAX, on_request, &code, err)) != NULL &&
	    context_default(&code, "python", err) != NULL) {
		(void)context_default(&code, "javascript", NULL);
		r = hr_loop_run(code.host.loop, err);
	}
	while ((c = TAILQ_FIRST(&code.contexts)) != NULL)
		context_remove(&code, c);
	if (code.serve != NULL)
		hr_serve_close(code.serve);
	hr_watch_free(code.reaper);
	hr_watch_free(code.term);
	hr_loop_free(code.host.loop);
	return r;
}
