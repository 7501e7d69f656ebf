/* Uses envd, the daemon in E2B's sandboxes: commands over streams of the Connect protocol, files
 * over plain HTTP. A command is sent once: after a cut, the stream is joined again by the process
 * id. */
#include "config.h"

#include "host/e2b/e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "base/err.h"
#include "base/span.h"
#include "e2b/connect.h"
#include "proto/json.h"

#define WHO "E2B's daemon"
#define GRACE_MS 5000 /* ms for the server to end a late command */
#define SILENCE_S 150 /* seconds; the server sends a ping every 50 s */

/* ---- address ---- */

static bool
is_vendor(const char *domain)
{
	static const char *const names[] = {
	    "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev", NULL};

	return hr_is_one_of(domain, names);
}

char *
hr_e2b_url(struct hr_cloud *c, int port, struct hr_err *err)
{
	char *url = NULL;

	(void)hr_text_setf(&url, err, "https://%d-%s.%s", port, c->id,
	    c->address != NULL ? c->address : hr_cloud_env(c, "E2B_DOMAIN", "e2b.app"));
	return url;
}

/* Returns true if requests name the account; since 0.4.0 the template chooses it. */
bool
hr_e2b_names_users(const struct hr_cloud *c)
{
	int major, minor;

	return c->version == NULL || sscanf(c->version, "%d.%d", &major, &minor) < 2 ||
	       (major == 0 && minor < 4);
}

int
hr_e2b_plane(struct hr_cloud *c, struct hr_err *err)
{
	hr_api_done(&c->plane);
	return hr_e2b_at_port(c, HR_E2B_ENVD_PORT, &c->plane, err);
}

int
hr_e2b_at_port(struct hr_cloud *c, int port, struct hr_api *ret, struct hr_err *err)
{
	/* a 502 is not repeated: the proxy sends it if the sandbox is missing */
	static const struct hr_api_rule rule = {.again = {HR_E2B_AGAIN(HR_REST_LATE)}};
	const char *domain =
	    c->address != NULL ? c->address : hr_cloud_env(c, "E2B_DOMAIN", "e2b.app");
	const char *given = hr_cloud_env(c, "E2B_SANDBOX_URL", NULL);
	bool shared = given != NULL || (!c->old && is_vendor(domain));
	char number[16];
	HR_FREE char *url = NULL;
	int r;

	if (given != NULL)
		r = hr_text_set(&url, given, err);
	else if (shared)
		r = hr_text_setf(&url, err, "https://sandbox.%s", domain);
	else
		r = (url = hr_e2b_url(c, port, err)) != NULL ? 0 : -1;
	if (r == 0)
		r = hr_api_init(ret, WHO, &rule, url, err);
	if (r != 0)
		return -1;
	(void)snprintf(number, sizeof(number), "%d", port);
	if (c->token != NULL)
		r = hr_api_header(ret, "X-Access-Token", c->token, true, err);
	if (r == 0 && shared)
		r = hr_api_header(ret, "E2b-Sandbox-Id", c->id, false, err);
	if (r == 0 && shared)
		r = hr_api_header(ret, "E2b-Sandbox-Port", number, false, err);
	if (r != 0)
		hr_api_done(ret);
	return r;
}

/* Explains the proxy's answer for a missing sandbox. */
int
hr_e2b_explain(struct hr_cloud *c, const struct hr_api_answer *a, struct hr_err *err)
{
	if (a->status == 502 && err != NULL && hr_json_at(a->json, "sandboxId") != NULL)
		return hr_json_at(a->json, "port") != NULL
			   ? hr_err_set(err, HR_E_UNAVAILABLE,
				 "E2B: no program listens at the requested port of the sandbox %s",
				 c->id)
			   : hr_err_set(err, HR_E_DISCONNECTED,
				 "E2B: the sandbox %s is gone or paused: its time may be over",
				 c->id);
	return -1;
}

/* ---- unary procedures ---- */

/* Sets the user by basic authentication without a password. */
static const char *
user_header(const struct hr_cloud *c, const char *user, char text[200])
{
	char plain[100];
	HR_BUF(b, 160);

	if (user == NULL && !hr_e2b_names_users(c))
		return NULL;
	(void)snprintf(plain, sizeof(plain), "%s:", user != NULL ? user : HR_E2B_USER);
	hr_quote_base64(&b, plain, strlen(plain));
	(void)snprintf(text, 200, "Authorization: Basic %s", hr_buf_str(&b));
	return text;
}

static enum hr_errc
code_of(const char *word)
{
	size_t i;

	static const struct {
		const char *word;
		enum hr_errc code;
	} codes[] = {{"not_found", HR_E_NO_SANDBOX}, {"unauthenticated", HR_E_PERMISSION},
	    {"permission_denied", HR_E_PERMISSION}, {"invalid_argument", HR_E_INVAL},
	    {"deadline_exceeded", HR_E_TIMEOUT}, {"canceled", HR_E_TIMEOUT},
	    {"unavailable", HR_E_UNAVAILABLE}, {"resource_exhausted", HR_E_UNAVAILABLE}};

	for (i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (strcmp(codes[i].word, word) == 0)
			return codes[i].code;
	return HR_E_RUNTIME;
}

int
hr_e2b_unary(struct hr_cloud *c, const char *procedure, struct json_object *body,
    struct json_object **ret, struct hr_err *err)
{
	char user[200], path[200];
	const char *headers[3] = {"Connect-Protocol-Version: 1", user_header(c, NULL, user), NULL};
	const struct hr_api_call call = {
	    .method = "POST", .path = path, .body = body, .headers = headers, .once = true};
	struct hr_err mine = {0};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	int r;

	(void)snprintf(path, sizeof(path), "/%s", procedure);
	r = hr_api_do(&c->plane, &call, &a, &mine);
	if (r != 0 && *a.code != '\0')
		mine.code = code_of(a.code);
	if (r != 0)
		(void)hr_e2b_explain(c, &a, &mine);
	if (r == 0 && !json_object_is_type(a.json, json_type_object))
		r = hr_err_set(
		    &mine, HR_E_PROTO, WHO ": the answer to %s is not a JSON object", procedure);
	if (ret != NULL)
		*ret = r == 0 ? json_object_get(a.json) : NULL;
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

/* Makes {"process": {"pid": N}}. */
static struct json_object *
selector(int64_t pid, struct hr_err *err)
{
	return hr_json_object(
	    err, "process", hr_json_object(err, "pid", json_object_new_int64(pid), NULL), NULL);
}

int
hr_e2b_signal(struct hr_cloud *c, int64_t pid, const char *name, struct hr_err *err)
{
	HR_PUT struct json_object *o = selector(pid, err);
	struct hr_err mine = {0};
	int r = o != NULL ? hr_json_set(o, "signal", json_object_new_string(name), err) : -1;

	if (r == 0)
		r = hr_e2b_unary(c, "process.Process/SendSignal", o, NULL, &mine);
	if (r == 0)
		return 1;
	if (mine.code == HR_E_NO_SANDBOX)
		return 0;
	if (err != NULL && mine.code != HR_OK)
		*err = mine;
	return -1;
}

/* ---- commands ---- */

/* The stream of one command, over several connections if needed. */
struct stream {
	struct hr_cloud *c;
	struct hr_e2b_process *p;
	struct hr_cloud_end *ret;
	struct hr_connect frames;
	struct hr_buf bytes; /* the current piece */
	bool begun, ended, stopped;
	bool came;         /* the connection has delivered output */
	char code[64];     /* code of an error at the end; "": none */
	struct hr_err err; /* the error with that code, or a parse error */
	struct hr_err broken;
};

static int
wrong(struct stream *s, int r)
{
	s->stopped = r != 0;
	return r != 0 ? 1 : 0;
}

static int
on_data(struct stream *s, struct json_object *o)
{
	static const char *const names[] = {"stdout", "stderr", "pty"};
	const struct hr_cloud_command *q = s->p->q;
	const char *text;
	int i;

	for (i = 0; i < 3; i++) {
		if (hr_json_at(o, names[i]) == NULL)
			continue;
		if (hr_field_text(WHO, "an event", o, names[i], &text, &s->err) != 0)
			return wrong(s, -1);
		hr_buf_reset(&s->bytes);
		if (!hr_quote_unbase64(&s->bytes, text, strlen(text)))
			return wrong(s, hr_err_set(&s->err, HR_E_PROTO,
					    WHO ": \"%s\" of an event is not base64", names[i]));
		if (hr_buf_check(&s->bytes, NULL) != 0)
			return wrong(s, hr_err_nomem(&s->err));
		s->came |= s->bytes.len > 0;
		if (q->output != NULL && s->bytes.len > 0)
			q->output(q->arg, i == 1 ? 2 : 1, s->bytes.p, s->bytes.len);
	}
	return 0;
}

static int
signal_number(const char *text)
{
	long number;
	size_t i;

	static const struct {
		const char *name;
		int number;
	} names[] = {{"hangup", 1}, {"interrupt", 2}, {"quit", 3}, {"illegal instruction", 4},
	    {"aborted", 6}, {"bus error", 7}, {"floating point exception", 8}, {"killed", 9},
	    {"segmentation fault", 11}, {"broken pipe", 13}, {"alarm clock", 14},
	    {"terminated", 15}};

	if (strncmp(text, "signal: ", 8) != 0)
		return 0;
	text += 8;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(names[i].name, text, strlen(names[i].name)) == 0)
			return names[i].number;
	number = strncmp(text, "signal ", 7) == 0 ? strtol(text + 7, NULL, 10) : 0;
	return number > 0 && number < 128 ? (int)number : 0;
}

/* Handles the end of a command; the server leaves out members that are 0 or false. */
static int
on_end(struct stream *s, struct json_object *o)
{
	const char *status;
	bool exited;
	int number, code = 0;

	if ((hr_json_at(o, "exitCode") != NULL &&
		hr_field_code(WHO, "the end of a command", o, "exitCode", &code, &s->err) != 0) ||
	    hr_field_maybe(WHO, "the end of a command", o, "status", &status, &s->err) != 0 ||
	    hr_field_flag(WHO, "the end of a command", o, "exited", &exited, &s->err) != 0)
		return wrong(s, -1);
	number = !exited && status != NULL ? signal_number(status) : 0;
	s->ret->code = number > 0 ? 128 + number : code;
	s->ended = true;
	return 0;
}

static int
on_last(struct stream *s, struct json_object *o)
{
	struct json_object *e = hr_json_at(o, "error");
	const char *code, *message;

	if (e == NULL)
		return 0;
	if (hr_field_of(WHO, "the last frame", o, "error", json_type_object, &e, &s->err) != 0 ||
	    hr_field_text(WHO, "an error", e, "code", &code, &s->err) != 0 ||
	    hr_field_maybe(WHO, "an error", e, "message", &message, &s->err) != 0)
		return wrong(s, -1);
	(void)snprintf(s->code, sizeof(s->code), "%s", code);
	(void)hr_err_set(&s->err, code_of(code), WHO ": %.60s%s%.300s", code,
	    message != NULL ? ": " : "", message != NULL ? message : "");
	return 0;
}

static int
on_start(struct stream *s, struct json_object *o)
{
	if (hr_field_int(WHO, "the event \"start\"", o, "pid", &s->p->pid, &s->err) != 0)
		return wrong(s, -1);
	s->begun = true;
	s->stopped = s->p->leave;
	return s->p->leave;
}

/* Ignores unknown events: later versions may add some. */
static int
on_event(struct stream *s, struct json_object *o)
{
	size_t i;

	static const struct {
		const char *name;
		int (*fn)(struct stream *s, struct json_object *o);
	} kinds[] = {{"start", on_start}, {"data", on_data}, {"end", on_end}};
	struct json_object *event, *part;

	if (hr_field_of(WHO, "a message", o, "event", json_type_object, &event, &s->err) != 0)
		return wrong(s, -1);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (hr_json_at(event, kinds[i].name) == NULL)
			continue;
		if (hr_field_of(WHO, "an event", event, kinds[i].name, json_type_object, &part,
			&s->err) != 0)
			return wrong(s, -1);
		return kinds[i].fn(s, part);
	}
	return 0;
}

static int
on_frame(void *arg, unsigned flags, const char *p, size_t len)
{
	HR_PUT struct json_object *o = NULL;
	struct stream *s = arg;
	struct hr_json_error why = {0};
	int r;

	if (hr_json_decode_foreign(p, len, &o, &why) != 0 ||
	    !json_object_is_type(o, json_type_object))
		r = wrong(s, hr_json_err(&s->err, HR_E_PROTO, &why,
				 WHO ": a frame of the stream is not a JSON object"));
	else
		r = (flags & HR_CONNECT_END) != 0 ? on_last(s, o) : on_event(s, o);
	return r;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct stream *s = arg;

	return hr_connect_feed(&s->frames, p, len, &s->broken) == 0 ? 0 : -1;
}

static struct json_object *
start_body(const struct hr_e2b_process *p, struct hr_err *err)
{
	const char *const words[] = {"-l", "-c", p->q->line, NULL};
	bool has_env = p->q->env != NULL && *p->q->env != NULL;

	/* the server leaves the input open without "stdin", and a reading command waits for ever */
	return hr_json_object(err, "process",
	    hr_json_object(err, "cmd", json_object_new_string("/bin/bash"), "args",
		hr_json_list(err, words), "envs",
		has_env ? hr_cloud_env_object(p->q->env, err) : HR_JSON_NONE, "cwd",
		hr_json_maybe(p->q->cwd), NULL),
	    "stdin", json_object_new_boolean(p->stdin_open), NULL);
}

/* Follows one connection to its end. Returns 0, or -1 with *err set if it started nothing. */
static int
follow(struct stream *s, const char *path, struct json_object *body, int timer, struct hr_err *err)
{
	unsigned ms = s->p->q->timeout_ms;
	char user[200], limit[60];
	const char *headers[6] = {"Connect-Protocol-Version: 1", "Keepalive-Ping-Interval: 50",
	    "Connect-Content-Encoding: identity", NULL};
	struct hr_api_call call = {.method = "POST",
	    .path = path,
	    .headers = headers,
	    .type = "application/connect+json",
	    .sink = on_bytes,
	    .sink_arg = s,
	    .timeout_s = SILENCE_S,
	    .watch_fd = timer,
	    .once = true};
	HR_BUF(json, HR_CLOUD_REPLY_MAX);
	HR_BUF(frame, HR_CLOUD_REPLY_MAX);
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	size_t n = 3;
	int r;

	(void)snprintf(limit, sizeof(limit), "Connect-Timeout-Ms: %u", ms);
	if (ms > 0)
		headers[n++] = limit;
	headers[n] = user_header(s->c, s->p->user, user);
	r = hr_json_put(&json, body);
	hr_connect_put(&frame, 0, hr_buf_str(&json), json.len);
	call.bytes = hr_buf_str(&frame);
	call.bytes_len = frame.len;
	hr_connect_done(&s->frames);
	hr_connect_init(&s->frames, on_frame, s);
	s->came = false;
	if (r != 0 || hr_buf_check(&frame, NULL) != 0) {
		r = hr_err_set(err, HR_E_INVAL, "the command is not UTF-8, or too long");
	} else {
		r = hr_api_do(&s->c->plane, &call, &a, err);
		if (r != 0)
			(void)hr_e2b_explain(s->c, &a, err);
		/* the data received so far counts */
		if (r != 0 && (s->begun || s->stopped || *s->code != '\0') && a.status < 300)
			r = 0;
	}
	return r;
}

/* Joins the process again after its stream was cut. Output printed in between is lost. */
static int
join(struct stream *s, int timer, struct hr_err *err)
{
	HR_PUT struct json_object *body = selector(s->p->pid, err);
	int r = -1;

	(void)snprintf(s->ret->note, sizeof(s->ret->note),
	    "[The connection to the command broke and was restored: output from between is "
	    "missing.]");
	if (body != NULL)
		r = follow(s, "/process.Process/Connect", body, timer, err);
	return r;
}

/* Determines the result after the last data. */
static int
conclude(struct stream *s, bool over, struct hr_err *err)
{
	if (s->p->leave && s->begun)
		return 0;
	if (s->ended)
		return 0;
	if (s->begun && (over || strcmp(s->code, "deadline_exceeded") == 0)) {
		s->ret->timed_out = true;
		s->ret->code = -1;
		/* kills a process that the server did not end */
		if (over)
			(void)hr_e2b_signal(s->c, s->p->pid, "SIGNAL_SIGKILL", NULL);
		return 0;
	}
	if (s->err.code != HR_OK)
		return hr_err_pass(err, &s->err);
	return hr_err_set(err, HR_E_PROTO,
	    WHO ": the stream of the command ended without the event \"end\"%s%s: how it ended is "
		"not known",
	    s->broken.msg[0] != '\0' ? ": " : "", s->broken.msg);
}

int
hr_e2b_run(
    struct hr_cloud *c, struct hr_e2b_process *p, struct hr_cloud_end *ret, struct hr_err *err)
{
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	struct stream s = {.c = c, .p = p, .ret = ret};
	HR_PUT struct json_object *body = NULL;
	struct hr_err mine = {0};
	int r;
	HR_CLOSE int timer = -1;
	bool over;

	*ret = (struct hr_cloud_end){.code = -1};
	p->pid = -1;
	if (p->q->timeout_ms > 0 && (timer = hr_cloud_timer(p->q->timeout_ms + GRACE_MS, err)) < 0)
		return -1;
	body = start_body(p, err);
	if (body == NULL)
		return -1;
	hr_buf_init(&s.bytes, HR_CONNECT_FRAME_MAX);
	r = follow(&s, "/process.Process/Start", body, timer, &mine);
	over = hr_fd_is_readable(timer);
	while (r == 0 && s.begun && !s.ended && !s.stopped && *s.code == '\0' && !over &&
	       s.broken.code == HR_OK && hr_cloud_goes_on(&cuts, s.came, hr_now_ms())) {
		r = join(&s, timer, &mine);
		over = hr_fd_is_readable(timer);
	}
	if (r == 0 || s.err.code != HR_OK || s.broken.code != HR_OK || (over && s.begun))
		r = conclude(&s, over, err);
	else if (s.begun)
		r = hr_err_set(err, HR_E_PROTO,
		    WHO ": the stream of the command was cut without the event \"end\", and it "
			"cannot be joined again (%.300s): how it ended is not known",
		    mine.msg);
	else if (err != NULL)
		*err = mine;
	hr_connect_done(&s.frames);
	hr_buf_done(&s.bytes);
	return r;
}
