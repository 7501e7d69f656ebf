/* Talks to a server on stdin and stdout: one JSON-RPC message per line. Its next use starts it,
 * also after its death. Invariant: pending requests of a child without a process are failing. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <json-c/json.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/process/spawn.h"
#include "base/strv.h"
#include "base/span.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"

#define PROTOCOL "2025-06-18"
#define START_S 30
#define END_MS 1000
#define AGAIN_MS 1000 /* ms to pause after a failed start */
#define LINE_MAX_BYTES (64u << 20)
/* maxima of what waits for one server: bytes that it has not read, and requests without a reply */
#define UNREAD_MAX (64u << 20)
#define REQUESTS_MAX 4096

struct mcp_pending {
	TAILQ_ENTRY(mcp_pending) entry;
	struct mcp_child *child;
	int64_t id;
	bool progress, sent;
	bool refused; /* too much waits for the server: the request fails in the next tick */
	char *text;   /* the message's text until it is sent */
	struct hr_watch *timer;
	mcp_pending_fn *fn;
	void *arg;
	int limit_s;
};

static void child_failed(struct mcp_child *c, const char *why);

static void
pending_free(struct mcp_pending *p)
{
	TAILQ_REMOVE(&p->child->pending, p, entry);
	p->child->requests--;
	if (p->text != NULL)
		p->child->unsent -= strlen(p->text);
	hr_watch_free(p->timer);
	free(p->text);
	free(p);
}

static void
pending_answer(struct mcp_pending *p, struct json_object *result, struct json_object *error,
    const char *failure)
{
	mcp_pending_fn *fn = p->fn;
	void *arg = p->arg;

	pending_free(p);
	fn(arg, result, error, failure);
}

/* Returns the number of bytes that the server has not read, or that wait for its start. */
static size_t
unread(const struct mcp_child *c)
{
	return c->unsent + (c->in != NULL ? evbuffer_get_length(bufferevent_get_output(c->in)) : 0);
}

static void
child_write(struct mcp_child *c, const char *text)
{
	if (c->in == NULL)
		return;
	(void)bufferevent_write(c->in, text, strlen(text));
	(void)bufferevent_write(c->in, "\n", 1);
}

static void
pending_late(void *arg)
{
	struct mcp_pending *p = arg;
	char why[200];

	if (p->refused)
		(void)snprintf(why, sizeof(why),
		    "MCP server %.64s has not read or answered too many earlier requests",
		    p->child->name);
	else
		(void)snprintf(why, sizeof(why),
		    "MCP server %.64s did not answer within %d seconds", p->child->name,
		    p->limit_s);
	pending_answer(p, NULL, NULL, why);
}

static void
pending_send(struct mcp_pending *p)
{
	child_write(p->child, p->text);
	p->child->unsent -= strlen(p->text);
	free(p->text);
	p->text = NULL;
	p->sent = true;
	if (p->timer != NULL)
		(void)hr_watch_arm(p->timer, (int64_t)p->limit_s * 1000, NULL);
}

void
mcp_pending_cancel(struct mcp_pending *p)
{
	char text[160];

	if (p->sent) {
		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		    "{\"requestId\":%lld}}",
		    (long long)p->id);
		child_write(p->child, text);
	}
	pending_free(p);
}

/* ---- the server's messages ---- */

static void
child_ready(struct mcp_child *c)
{
	struct mcp_pending *p;

	if (!c->ends)
		hr_watch_disarm(c->timer);
	c->state = MCP_CHILD_READY;
	c->reason[0] = '\0';
	hr_log(HR_LOG_INFO, "MCP server %s is ready (process %ld)", c->name, (long)c->pid);
	child_write(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	TAILQ_FOREACH(p, &c->pending, entry)
	{
		if (!p->sent && !p->refused)
			pending_send(p);
	}
	mcp_update_changed(c->hub);
}

static void
initialized(void *arg, struct json_object *result, struct json_object *error, const char *failure)
{
	/* the server chooses one of these; handrail's messages are the same in all versions */
	static const char *const versions[] = {
	    "2025-11-25", PROTOCOL, "2025-03-26", "2024-11-05", NULL};
	struct mcp_child *c = arg;
	char why[sizeof(c->reason)];
	const char *version;

	if (failure != NULL) /* the failure was reported elsewhere */
		return;
	version = hr_json_text_or(result, "protocolVersion", PROTOCOL);
	if (error == NULL && hr_is_one_of(version, versions)) {
		child_ready(c);
		return;
	}
	if (error == NULL)
		(void)snprintf(why, sizeof(why),
		    "it speaks version \"%.60s\" of the protocol, which is not supported", version);
	else
		(void)snprintf(why, sizeof(why), "it refuses to start: %.120s",
		    hr_json_text_or(error, "message", ""));
	c->refused = true;
	child_failed(c, why);
}

static struct mcp_pending *
pending_find(struct mcp_child *c, struct json_object *id)
{
	struct mcp_pending *p;

	if (!json_object_is_type(id, json_type_int))
		return NULL;
	TAILQ_FOREACH(p, &c->pending, entry)
	{
		if (p->sent && p->id == json_object_get_int64(id))
			return p;
	}
	return NULL;
}

/* Answers a request of the server; handrail offers only ping and empty roots. */
static void
answer_request(struct mcp_child *c, struct json_object *id, const char *method)
{
	HR_PUT struct json_object *answer = NULL;
	struct json_object *what =
	    strcmp(method, "ping") == 0 ? json_tokener_parse("{}")
	    : strcmp(method, "roots/list") == 0
		? json_tokener_parse("{\"roots\":[]}")
		: json_tokener_parse("{\"code\":-32601,\"message\":\"Method not found\"}");
	const char *key = what != NULL && json_object_object_length(what) == 2 ? "error" : "result";
	HR_FREE char *text = NULL;

	answer = hr_json_object(NULL, "jsonrpc", json_object_new_string("2.0"), "id",
	    json_object_get(id), key, what, NULL);
	text = answer != NULL ? mcp_text(answer) : NULL;
	if (unread(c) == c->unsent)
		c->answered = 0;
	c->answered += text != NULL ? strlen(text) : 0;
	/* the server may ask for ever: without a bound its answers would pile up */
	if (c->answered > UNREAD_MAX)
		child_failed(c, "it sends requests, and does not read its input");
	else if (text != NULL)
		child_write(c, text);
	else
		hr_log(HR_LOG_ERROR, "out of memory: MCP server %s is not answered", c->name);
}

static void
take_notification(struct mcp_child *c, const char *method, struct json_object *params)
{
	struct mcp_pending *p;

	if (strcmp(method, "notifications/progress") == 0) {
		p = pending_find(c, hr_json_at(params, "progressToken"));
		if (p != NULL && p->progress)
			mcp_call_progress(p->arg, params);
	} else if (strcmp(method, "notifications/message") == 0 ||
		   strcmp(method, "notifications/tools/list_changed") == 0 ||
		   strcmp(method, "notifications/prompts/list_changed") == 0 ||
		   strcmp(method, "notifications/resources/list_changed") == 0) {
		mcp_hub_notify(c->hub, method, params);
	}
}

static void
take_message(struct mcp_child *c, struct json_object *m)
{
	struct json_object *id = mcp_rpc_id(m), *result = hr_json_at(m, "result"),
			   *error = hr_json_at(m, "error");
	const char *method = hr_json_text_or(m, "method", "");
	struct mcp_pending *p;

	if (method[0] != '\0' && id != NULL) {
		answer_request(c, id, method);
	} else if (method[0] != '\0') {
		take_notification(c, method, hr_json_at(m, "params"));
	} else {
		p = pending_find(c, id);
		if (p != NULL && (result != NULL || error != NULL))
			pending_answer(p, error == NULL ? result : NULL, error, NULL);
	}
}

void
mcp_child_line(struct mcp_child *c, const char *line, size_t len)
{
	HR_PUT struct json_object *m = NULL;

	if (hr_json_decode_foreign(line, len, &m, NULL) < 0 || hr_json_type(m) != HR_PY_DICT)
		hr_log(HR_LOG_WARNING, "MCP server %s wrote a line that is not a JSON-RPC message",
		    c->name);
	else
		take_message(c, m);
}

/* Handles one line. The server may end meanwhile, and with it what has arrived of the next line. */
static void
take_line(struct mcp_child *c)
{
	HR_CLEAN(hr_buf_done) struct hr_buf line = c->line;

	hr_buf_init(&c->line, LINE_MAX_BYTES);
	if (line.len > 0)
		mcp_child_line(c, line.p, line.len);
}

/* Moves the output into the line: a long one arrives in many pieces, of which none is searched
 * twice. */
static void
child_readable(struct bufferevent *b, void *arg)
{
	struct mcp_child *c = arg;
	struct evbuffer *in = bufferevent_get_input(b);
	const char *p, *eol;
	size_t len;

	/* a message may end the server */
	while (c->out == b && (len = evbuffer_get_contiguous_space(in)) > 0) {
		p = (const char *)evbuffer_pullup(in, (ssize_t)len);
		eol = memchr(p, '\n', len);
		if (eol != NULL)
			len = (size_t)(eol - p);
		hr_buf_add(&c->line, p, len);
		(void)evbuffer_drain(in, len + (eol != NULL));
		if (c->line.fail != HR_OK)
			child_failed(c, c->line.fail == HR_E_NOMEM
					    ? "its line needs more memory than there is"
					    : "it wrote a line without end");
		else if (eol != NULL)
			take_line(c);
	}
}

/* ---- the server's process ---- */

static void
end_process(struct mcp_child *c)
{
	hr_watch_drop(&c->ended);
	c->ends = false;
	hr_fd_close(&c->pidfd);
	if (c->in != NULL)
		bufferevent_free(c->in);
	c->in = NULL;
	if (c->pid > 1)
		mcp_end_process(c->hub, c->name, c->pid, c->out);
	else if (c->out != NULL)
		bufferevent_free(c->out);
	c->out = NULL;
	hr_buf_done(&c->line);
	hr_buf_init(&c->line, LINE_MAX_BYTES);
	c->pid = 0;
	c->state = MCP_CHILD_OFF;
}

static void
child_failed(struct mcp_child *c, const char *why)
{
	char text[sizeof(c->reason) + 100];
	int64_t end = c->next_id;
	struct mcp_pending *p;

	if (why != c->reason)
		(void)snprintf(c->reason, sizeof(c->reason), "%s", why);
	hr_log(HR_LOG_WARNING, "MCP server %s: %s", c->name, c->reason);
	if (c->state != MCP_CHILD_READY)
		c->failed_ms = hr_now_ms();
	hr_watch_disarm(c->timer);
	end_process(c);
	(void)snprintf(
	    text, sizeof(text), "MCP server %.64s is not available: %s", c->name, c->reason);
	/* fn may send a new request: fail only the present ones */
	while ((p = TAILQ_FIRST(&c->pending)) != NULL && p->id < end)
		pending_answer(p, NULL, NULL, text);
	mcp_update_changed(c->hub);
}

static void
child_ended(void *arg)
{
	struct mcp_child *c = arg;
	char why[100];
	int status = 0;

	if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
		(void)kill(-c->pid, SIGKILL);
		c->pid = 0;
		(void)snprintf(why, sizeof(why), "it ended (%s)", hr_exit_words(status));
		child_failed(c, why);
	} else {
		child_failed(c, "it closed its output");
	}
}

/* Handles the end of the output: an exiting process closes its pipes shortly before it can be
 * waited for. */
static void
child_event(struct bufferevent *b, short what, void *arg)
{
	struct mcp_child *c = arg;

	if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0 || c->ends)
		return;
	(void)bufferevent_disable(b, EV_READ | EV_WRITE);
	c->ends = true;
	/* the whole time passes where there is no pidfd, as under valgrind */
	c->pidfd = hr_pidfd_open(c->pid);
	if (c->pidfd >= 0)
		c->ended = hr_loop_readable(c->hub->loop, c->pidfd, child_ended, c, NULL);
	if (hr_watch_arm(c->timer, END_MS, NULL) != 0)
		child_ended(c);
}

static void
child_late(void *arg)
{
	struct mcp_child *c = arg;
	char why[100];

	(void)snprintf(
	    why, sizeof(why), "it did not answer within %d seconds after its start", START_S);
	if (c->ends)
		child_ended(c);
	else if (c->state == MCP_CHILD_STARTING)
		child_failed(c, why);
	else if (c->state == MCP_CHILD_OFF) /* report a refused start now */
		child_failed(c, c->reason);
}

static void
environment_of(const struct mcp_child *c, struct hr_strv *ret)
{
	static const char *const passed[] = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"};
	struct json_object *env = hr_json_at(c->config, "env");
	size_t i;

	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (getenv(passed[i]) != NULL && hr_json_at(env, passed[i]) == NULL)
			hr_strv_addf(ret, "%s=%s", passed[i], getenv(passed[i]));
	if (env == NULL)
		return;
	json_object_object_foreach(env, key, value)
	{
		hr_strv_addf(ret, "%s=%s", key, json_object_get_string(value));
	}
}

static int
child_spawn(struct mcp_child *c, int in, int out, struct hr_err *err)
{
	static char *none[] = {NULL}; /* hides this process's environment from the server */
	struct json_object *args = hr_json_at(c->config, "args");
	const struct hr_spawn_fd fds[] = {
	    {in, STDIN_FILENO}, {out, STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	size_t i;
	pid_t pid;

	hr_strv_add(&argv, hr_json_text_or(c->config, "command", ""));
	for (i = 0; i < hr_json_count(args); i++)
		hr_strv_add(&argv, json_object_get_string(hr_json_entry(args, i)));
	environment_of(c, &env);
	if (argv.failed || env.failed)
		return hr_err_nomem(err);
	pid = hr_spawn(&(const struct hr_spawn){.path = argv.v[0],
			   .argv = hr_strv_list(&argv),
			   .envp = env.v != NULL ? env.v : none,
			   .fds = fds,
			   .nfds = 3,
			   .setsid = true,
			   .pdeathsig = SIGKILL,
			   .umask = -1},
	    err);
	if (pid < 0)
		return -1;
	c->pid = pid;
	return 0;
}

static int
child_pipes(struct mcp_child *c, int in, int out)
{
	struct event_base *base = hr_loop_base(c->hub->loop);

	if (hr_fd_nonblock(in, true, NULL) != 0 || hr_fd_nonblock(out, true, NULL) != 0)
		return -1;
	c->in = bufferevent_socket_new(base, in, BEV_OPT_CLOSE_ON_FREE);
	c->out = bufferevent_socket_new(base, out, BEV_OPT_CLOSE_ON_FREE);
	if (c->in == NULL)
		hr_fd_close(&in);
	if (c->out == NULL)
		hr_fd_close(&out);
	if (c->in == NULL || c->out == NULL)
		return -1;
	bufferevent_setcb(c->in, NULL, NULL, child_event, c);
	bufferevent_setcb(c->out, child_readable, NULL, child_event, c);
	return bufferevent_enable(c->in, EV_WRITE) == 0 ? bufferevent_enable(c->out, EV_READ) : -1;
}

static void
send_initialize(struct mcp_child *c)
{
	HR_PUT struct json_object *params = json_tokener_parse(
	    "{\"protocolVersion\":\"" PROTOCOL "\",\"capabilities\":{},"
	    "\"clientInfo\":{\"name\":\"handrail\",\"version\":\"" PACKAGE_VERSION "\"}}");
	struct mcp_pending *p;

	c->state = MCP_CHILD_STARTING;
	(void)hr_watch_arm(c->timer, START_S * 1000, NULL);
	p = mcp_child_request(c, "initialize", params, false, 0, initialized, c);
	if (p != NULL)
		pending_send(p);
}

void
mcp_child_start(struct mcp_child *c)
{
	struct hr_err err = {0};
	int in[2] = {-1, -1}, out[2] = {-1, -1};

	if (c->state != MCP_CHILD_OFF || hr_watch_is_armed(c->timer))
		return;
	/* both processes would write to the same files */
	c->due = mcp_ends(c->hub, c->name);
	if (c->due)
		return;
	/* report the refusal from the loop, not inside the caller */
	if (c->failed_ms != 0 && hr_now_ms() - c->failed_ms < AGAIN_MS) {
		(void)hr_watch_arm(c->timer, 0, NULL);
		return;
	}
	c->refused = false;
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		(void)hr_err_sys(&err, errno, "pipe");
	else
		(void)child_spawn(c, in[0], out[1], &err);
	hr_fd_close(&in[0]);
	hr_fd_close(&out[1]);
	if (c->pid == 0) {
		hr_fd_close(&in[1]);
		hr_fd_close(&out[0]);
		(void)snprintf(c->reason, sizeof(c->reason), "%.190s", err.msg);
		(void)hr_watch_arm(c->timer, 0, NULL);
	} else if (child_pipes(c, in[1], out[0]) != 0) {
		end_process(c);
		(void)snprintf(c->reason, sizeof(c->reason), "out of memory");
		(void)hr_watch_arm(c->timer, 0, NULL);
	} else {
		send_initialize(c);
	}
}

/* Returns the message of a request, owned by the caller. Returns NULL without memory. */
static char *
request_text(const struct mcp_pending *p, const char *method, struct json_object *params)
{
	HR_PUT struct json_object *m = NULL;
	struct json_object *copy = NULL;

	m = hr_json_object(NULL, "jsonrpc", json_object_new_string("2.0"), "id",
	    json_object_new_int64(p->id), "method", json_object_new_string(method), NULL);
	if (params != NULL) {
		bool whole = json_object_deep_copy(params, &copy, NULL) == 0;

		/* two clients may use the same token: the server gets the request's number */
		if (whole && p->progress)
			whole = hr_json_set(hr_json_at(copy, "_meta"), "progressToken",
				    json_object_new_int64(p->id), NULL) == 0;
		if (hr_json_set(m, "params", copy, NULL) != 0 || !whole)
			return NULL;
	}
	return m != NULL ? mcp_text(m) : NULL;
}

struct mcp_pending *
mcp_child_request(struct mcp_child *c, const char *method, struct json_object *params,
    bool progress, int limit_s, mcp_pending_fn *fn, void *arg)
{
	struct mcp_pending *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	*p = (struct mcp_pending){.child = c,
	    .id = c->next_id++,
	    .progress = progress,
	    .fn = fn,
	    .arg = arg,
	    .limit_s = limit_s};
	/* the first message leaves before those that wait for it */
	p->refused = fn != initialized && (c->requests >= REQUESTS_MAX || unread(c) > UNREAD_MAX);
	if (limit_s > 0 || p->refused)
		p->timer = hr_loop_timer(c->hub->loop, pending_late, p, NULL);
	if (!p->refused)
		p->text = request_text(p, method, params);
	TAILQ_INSERT_TAIL(&c->pending, p, entry);
	c->requests++;
	c->unsent += p->text != NULL ? strlen(p->text) : 0;
	if ((p->text == NULL && !p->refused) || ((limit_s > 0 || p->refused) && p->timer == NULL) ||
	    (p->refused && hr_watch_arm(p->timer, 0, NULL) != 0)) {
		pending_free(p);
		return NULL;
	}
	if (p->refused)
		return p;
	if (c->state == MCP_CHILD_READY)
		pending_send(p);
	else
		mcp_child_start(c);
	return p;
}

struct mcp_child *
mcp_child_new(struct mcp_hub *hub, struct json_object *config)
{
	struct mcp_child *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	TAILQ_INIT(&c->pending);
	hr_buf_init(&c->line, LINE_MAX_BYTES);
	c->hub = hub;
	c->pidfd = -1;
	c->config = config;
	c->name = hr_json_text_or(config, "name", "");
	c->timer = hr_loop_timer(hub->loop, child_late, c, NULL);
	if (c->timer == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

void
mcp_child_free(struct mcp_child *c)
{
	while (!TAILQ_EMPTY(&c->pending))
		pending_answer(TAILQ_FIRST(&c->pending), NULL, NULL, "the MCP server was removed");
	mcp_rpc_child_gone(c->hub, c);
	end_process(c);
	hr_watch_free(c->timer);
	json_object_put(c->config);
	json_object_put(c->tools);
	free(c);
}
