/* Implements mcp: connects a client of the Model Context Protocol on standard input and output with
 * a sandbox's /handrail/mcp. Messages are passed on unchanged; the sandbox implements the protocol.
 * If a response is cut, the request is repeated under the same name, so that nothing is done
 * twice. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/mcp.h"
#include "cli/mcp_branches.h"
#include "base/strv.h"
#include "host/config/settings.h"
#include "host/handle.h"
#include "mcp/env.h"
#include "mcp/rpc.h"
#include "proto/json.h"

#define AT_ONCE 64 /* maximum concurrent requests; more are queued */
#define TRIES 10
#define PAUSE_MS 1000
#define ANSWER_MAX (512u << 20)
#define META_VERSION "io.modelcontextprotocol/protocolVersion"

enum { UP = 1, END, PRINT };

struct bridge {
	struct cli_branches branches;
	char run[33];         /* identifies this process to the sandbox */
	uint64_t n;           /* number of requests so far */
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t fewer; /* signalled when a job ends */
	struct job *jobs;
	unsigned njobs;
	bool deaf; /* the client has closed the output */
};

struct job {
	struct job *next;
	struct bridge *b;
	const struct hr_client *to;
	struct hr_rpc m;
	struct hr_buf line, event, id; /* id as JSON */
	int cancel[2];                 /* a pipe; a byte in it means cancelled */
	uint64_t number;
	bool answered;
};

static void
job_free(struct job *j)
{
	hr_rpc_done(&j->m);
	hr_buf_done(&j->line);
	hr_buf_done(&j->event);
	hr_buf_done(&j->id);
	hr_fd_close(&j->cancel[0]);
	hr_fd_close(&j->cancel[1]);
	free(j);
}

/* ---- messages to the client ---- */

static void
say(struct bridge *b, const char *p, size_t len)
{
	(void)pthread_mutex_lock(&b->lock);
	if (!b->deaf &&
	    (hr_fd_write_full(1, p, len, NULL) < 0 || hr_fd_write_full(1, "\n", 1, NULL) < 0))
		b->deaf = true;
	(void)pthread_mutex_unlock(&b->lock);
}

static void
say_error(struct bridge *b, struct json_object *id, enum hr_rpc_code code, const char *text)
{
	HR_BUF(m, HR_MCP_BODY_MAX);

	hr_rpc_error(&m, id, code, text);
	if (m.fail == HR_OK)
		say(b, m.p, m.len);
}

static bool
is_cancelled(const struct job *j, int wait_ms)
{
	struct pollfd p = {.fd = j->cancel[0], .events = POLLIN};

	return poll(&p, 1, wait_ms) > 0;
}

/* Returns true for a list of tools, to which this process adds its own. */
static bool
lists(const struct job *j)
{
	return strcmp(j->m.method, "tools/list") == 0 && cli_branches_can(&j->b->branches);
}

static void
pass_list(const struct job *j, const char *p, size_t len)
{
	HR_PUT struct json_object *o = NULL;
	HR_BUF(b, ANSWER_MAX);

	if (hr_json_decode(p, len, &o, NULL) < 0 ||
	    cli_branches_list(hr_json_at(o, "result")) < 0) {
		say(j->b, p, len);
		return;
	}
	hr_json_put_whole(&b, o);
	say(j->b, hr_buf_str(&b), b.len);
}

/* Passes on a whole message of the sandbox. The last one is the reply to the request. */
static void
pass(struct job *j, const char *p, size_t len)
{
	static const char note[] = "{\"jsonrpc\":\"2.0\",\"method\":";
	bool is_note = len >= sizeof(note) - 1 && memcmp(p, note, sizeof(note) - 1) == 0;

	if (!is_note)
		j->answered = true;
	if (is_cancelled(j, 0))
		return;
	if (!is_note && lists(j))
		pass_list(j, p, len);
	else
		say(j->b, p, len);
}

/* Takes lines of events, or one JSON text without a final line feed. */
static int
on_bytes(void *arg, const char *p, size_t len)
{
	static const char data[] = "data: ";
	struct job *j = arg;
	const char *nl;
	size_t n, used = 0;

	hr_buf_add(&j->event, p, len);
	if (j->event.fail != HR_OK)
		return -1;
	while ((nl = memchr(j->event.p + used, '\n', j->event.len - used)) != NULL) {
		n = (size_t)(nl - j->event.p) - used;
		if (n > sizeof(data) - 1 && memcmp(j->event.p + used, data, sizeof(data) - 1) == 0)
			pass(j, j->event.p + used + sizeof(data) - 1, n - (sizeof(data) - 1));
		used += n + 1;
	}
	hr_buf_drop_front(&j->event, used);
	return 0;
}

/* ---- requests to the sandbox ---- */

static int
headers_of(const struct job *j, struct hr_strv *h)
{
	struct json_object *meta = hr_json_at(j->m.params, "_meta");
	const char *version = hr_json_text_at(meta, META_VERSION),
		   *name = hr_json_text_at(j->m.params, "name");
	size_t i;

	for (i = 0; j->to->headers[i] != NULL; i++)
		hr_strv_add(h, j->to->headers[i]);
	hr_strv_add(h, "Content-Type: application/json");
	hr_strv_add(h, "Accept: application/json, text/event-stream");
	hr_strv_addf(h, "X-Request-ID: mcp-%s-%" PRIu64, j->b->run, j->number);
	/* a value with a line feed would inject a header; the sandbox refuses its absence */
	if (version != NULL && strpbrk(version, "\r\n") == NULL) {
		hr_strv_addf(h, "MCP-Protocol-Version: %s", version);
		if (strpbrk(j->m.method, "\r\n") == NULL)
			hr_strv_addf(h, "Mcp-Method: %s", j->m.method);
		if (name != NULL && strpbrk(name, "\r\n") == NULL)
			hr_strv_addf(h, "Mcp-Name: %s", name);
	}
	return h->failed ? -1 : 0;
}

/* Makes one attempt. Returns true if no retry is needed; *ret_why is the reason of the last
 * failure. */
static bool
ask(struct job *j, struct hr_http *http, const struct hr_strv *headers, char *url,
    char ret_why[256])
{
	struct hr_http_request r = {.method = "POST",
	    .url = url,
	    .unix_socket = j->to->unix_socket,
	    .headers = (const char *const *)headers->v,
	    .body = hr_buf_str(&j->line),
	    .body_len = j->line.len,
	    .sink = on_bytes,
	    .sink_arg = j,
	    .watch_fd = j->cancel[0]};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_err err = {0};
	bool over = true;

	hr_buf_reset(&j->event);
	if (hr_http_do(http, &r, &a, &err) < 0) {
		over = a.fault == HR_HTTP_CANCELLED || j->answered;
		(void)snprintf(ret_why, 256, "The sandbox does not answer: %.200s", err.msg);
	} else if (a.status / 100 == 2) {
		if (j->event.len > 0)
			pass(j, j->event.p, j->event.len);
		over = j->answered;
		(void)snprintf(ret_why, 256, "The sandbox's answer was cut");
	} else if (a.body.len > 0 && strncmp(a.body.p, "{\"jsonrpc\"", 10) == 0) {
		pass(j, a.body.p, a.body.len);
	} else {
		over = a.status != 503 && a.status != 429;
		(void)snprintf(ret_why, 256,
		    a.status == 404 ? "The sandbox has no MCP endpoint: start it with "
				      "\"handrail mcp --up\", or "
				      "set mcp to true (handrail.conf(5))"
				    : "The sandbox answers with HTTP status %ld",
		    a.status);
	}
	return over;
}

/* Answers a call of this process's own tools, or finds the sandbox that the call names. Returns
 * false after it has answered. */
static bool
choose(struct job *j)
{
	struct cli_branches *all = &j->b->branches;
	struct json_object *args = hr_json_typed_at(j->m.params, "arguments", HR_PY_DICT);
	HR_BUF(result, ANSWER_MAX);
	HR_BUF(b, ANSWER_MAX);

	j->to = &all->parent->client;
	if (!cli_branches_can(all) || strcmp(j->m.method, "tools/call") != 0)
		return true;
	if (!cli_branches_call(all, j->m.params, &result)) {
		if (hr_json_at(args, "sandbox") == NULL)
			return true;
		j->to = cli_branches_choose(all, j->m.params, &result);
		hr_buf_reset(&j->line);
		hr_json_put_whole(&j->line, j->m.whole);
		if (j->to != NULL)
			return true;
	}
	hr_rpc_open(&b, j->m.id);
	hr_buf_addf(&b, "\"result\":{%s%s}}",
	    hr_json_at(hr_json_at(j->m.params, "_meta"), META_VERSION) != NULL
		? "\"resultType\":\"complete\","
		: "",
	    hr_buf_str(&result));
	if (!is_cancelled(j, 0))
		say(j->b, hr_buf_str(&b), b.len);
	return false;
}

static void
job_do(struct job *j)
{
	HR_CLEAN(hr_strv_done) struct hr_strv headers = {0};
	char why[256] = "Out of memory";
	HR_FREE char *url = NULL;
	struct hr_http *http;
	int tries = TRIES;

	if (!choose(j))
		return;
	http = hr_http_new(NULL);
	if (headers_of(j, &headers) == 0 && http != NULL &&
	    asprintf(&url, "%s/handrail/mcp", j->to->url) >= 0) {
		/* pauses as the sandbox requested, or briefly while it is being replaced */
		while (!ask(j, http, &headers, url, why) && --tries > 0 &&
		       !is_cancelled(j, tries == TRIES - 1 ? 0 : PAUSE_MS))
			;
	}
	if (!j->answered && !is_cancelled(j, 0))
		say_error(j->b, j->m.id, HR_RPC_INTERNAL, why);
	hr_http_free(http);
}

static void *
job_main(void *arg)
{
	struct job *j = arg, **at;
	struct bridge *b = j->b;

	job_do(j);
	(void)pthread_mutex_lock(&b->lock);
	for (at = &b->jobs; *at != j; at = &(*at)->next)
		;
	*at = j->next;
	b->njobs--;
	(void)pthread_cond_signal(&b->fewer);
	(void)pthread_mutex_unlock(&b->lock);
	job_free(j);
	return NULL;
}

/* ---- messages of the client ---- */

static void
wait_fewer(struct bridge *b, unsigned than)
{
	(void)pthread_mutex_lock(&b->lock);
	while (b->njobs >= than)
		(void)pthread_cond_wait(&b->fewer, &b->lock);
	(void)pthread_mutex_unlock(&b->lock);
}

static void
put_id(struct hr_buf *b, struct json_object *id)
{
	hr_buf_reset(b);
	(void)hr_json_put(b, id); /* fails for a surrogate, and then the id matches no request */
}

/* Cancels the wait; the command continues. */
static void
cancel(struct bridge *b, const struct hr_rpc *m)
{
	HR_BUF(id, HR_MCP_BODY_MAX);
	struct job *j;

	put_id(&id, hr_json_at(m->params, "requestId"));
	(void)pthread_mutex_lock(&b->lock);
	for (j = b->jobs; j != NULL; j = j->next)
		if (j->id.len == id.len && memcmp(hr_buf_str(&j->id), hr_buf_str(&id), id.len) == 0)
			/* the byte is never read */
			(void)hr_fd_write_full(j->cancel[1], "", 1, NULL);
	(void)pthread_mutex_unlock(&b->lock);
}

/* Starts a job. Takes ownership of m. */
static void
begin(struct bridge *b, struct hr_rpc *m, const char *p, size_t len)
{
	struct job *j = calloc(1, sizeof(*j));
	pthread_attr_t attr;
	pthread_t thread;
	int r = -1;

	if (j == NULL) {
		say_error(b, m->id, HR_RPC_INTERNAL, "Out of memory");
		hr_rpc_done(m);
		return;
	}
	*j = (struct job){.b = b, .m = *m, .cancel = {-1, -1}, .number = ++b->n};
	hr_buf_init(&j->line, HR_MCP_BODY_MAX);
	hr_buf_init(&j->event, ANSWER_MAX);
	hr_buf_init(&j->id, HR_MCP_BODY_MAX);
	hr_buf_add(&j->line, p, len);
	put_id(&j->id, j->m.id);
	wait_fewer(b, AT_ONCE);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (hr_buf_check(&j->line, NULL) == 0 && pipe2(j->cancel, O_CLOEXEC) == 0) {
		(void)pthread_mutex_lock(&b->lock);
		r = pthread_create(&thread, &attr, job_main, j);
		if (r == 0) { /* the job takes the lock before it leaves the list */
			j->next = b->jobs;
			b->jobs = j;
			b->njobs++;
		}
		(void)pthread_mutex_unlock(&b->lock);
	}
	(void)pthread_attr_destroy(&attr);
	if (r != 0) {
		say_error(b, j->m.id, HR_RPC_INTERNAL, "There is no memory for another request");
		job_free(j);
	}
}

static void
on_message(struct bridge *b, const char *p, size_t len)
{
	enum hr_rpc_code code;
	struct hr_rpc m;
	const char *why;

	code = hr_rpc_read((struct hr_span){p, len}, &m, &why);
	if (code != HR_RPC_OK)
		say_error(b, m.id, code, why);
	else if (m.kind == HR_RPC_CALL) {
		begin(b, &m, p, len);
		return;
	} else if (m.kind == HR_RPC_NOTE && strcmp(m.method, "notifications/cancelled") == 0)
		cancel(b, &m);
	hr_rpc_done(&m);
}

static bool
is_deaf(struct bridge *b)
{
	bool deaf;

	(void)pthread_mutex_lock(&b->lock);
	deaf = b->deaf;
	(void)pthread_mutex_unlock(&b->lock);
	return deaf;
}

/* Handles lines of standard input until its end. */
static int
serve(struct bridge *b)
{
	HR_BUF(in, HR_MCP_BODY_MAX + 65536);
	const char *nl;
	ssize_t n = 1;
	size_t len;
	char *room;
	bool skip = false; /* skips the rest of a line that is too long */

	while (n > 0 && !is_deaf(b)) {
		room = hr_buf_reserve(&in, 16384);
		if (room == NULL) {
			wait_fewer(b, 1); /* the jobs use b */
			return cli_no_memory();
		}
		n = hr_fd_read(0, room, 16384);
		if (n <= 0)
			break;
		hr_buf_grew(&in, (size_t)n);
		while ((nl = memchr(in.p, '\n', in.len)) != NULL) {
			len = (size_t)(nl - in.p);
			if (!skip && len > 0 && !(len == 1 && in.p[0] == '\r'))
				on_message(b, in.p, len);
			hr_buf_drop_front(&in, len + 1);
			skip = false;
		}
		if (in.len > HR_MCP_BODY_MAX || skip) {
			if (!skip)
				say_error(b, NULL, HR_RPC_REQUEST, "The message is too long");
			skip = true;
			hr_buf_reset(&in);
		}
	}
	if (n == 0 && in.len > 0 && !skip)
		on_message(b, in.p, in.len);
	wait_fewer(b, 1);
	return n < 0 ? cli_error("standard input: %s", strerror(errno)) : CLI_OK;
}

/* ---- the sandbox ---- */

/* Enables the endpoint in a new sandbox, wherever it listens. */
static int
open_door(struct hr_config *c, struct hr_err *err)
{
	static const char key[] = "sandbox.runtime_startup_env_vars";
	struct json_object *now = hr_config_value(c, key);
	HR_PUT struct json_object *map = NULL;
	int r = -1;

	if (now != NULL)
		(void)json_object_deep_copy(now, &map, NULL);
	else
		map = json_object_new_object();
	if (map != NULL &&
	    json_object_object_add(map, "HANDRAIL_MCP", json_object_new_string("true")) == 0) {
		HR_BUF(text, 1 << 20);

		if (hr_json_put(&text, map) == 0 && text.fail == HR_OK)
			r = hr_config_set(c, key, hr_buf_str(&text), err);
	}
	return r;
}

static struct hr_sandbox *
start(struct cli *c, const struct cli_args *a, int *ret_status)
{
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_sandbox_options o = cli_sandbox(c, c->name);
	struct hr_sandbox *s = NULL;
	struct hr_err err = {0};
	const char *text;
	size_t at = 0;

	*ret_status = cli_choose_kind(c, c->name);
	if (*ret_status == CLI_OK)
		*ret_status = cli_plugins(a, &plugins);
	while ((text = cli_next(a, 'e', &at)) != NULL)
		hr_strv_set_env(&env, text);
	if (*ret_status != CLI_OK)
		return NULL;
	o.detach = true;
	o.plugins = hr_strv_list(&plugins);
	o.env = hr_strv_list(&env);
	s = open_door(c->config, &err) == 0 ? hr_sandbox_open(c->config, &o, &err) : NULL;
	if (s != NULL && hr_sandbox_connect(s, &err) == 0) {
		/* clients restart their server with the same command */
		if (!s->made && (cli_value(a, 'e') != NULL || cli_value(a, 'p') != NULL))
			cli_note(
			    c, "--env and --plugin have no effect: the sandbox existed already");
		return s;
	}
	*ret_status = cli_fail(&err);
	hr_sandbox_free(s);
	return NULL;
}

static int
with_sandbox(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	struct bridge b = {.lock = PTHREAD_MUTEX_INITIALIZER, .fewer = PTHREAD_COND_INITIALIZER};
	struct hr_err err = {0};
	int r, end;

	if (s->client.url == NULL)
		return cli_error("sandboxes of this back-end have no server for MCP: use -r box, "
				 "docker or local");
	if (hr_random_hex(b.run, sizeof(b.run) - 1, &err) != 0)
		return cli_fail(&err);
	cli_branches_init(&b.branches, c, a, s);
	r = serve(&b);
	end = cli_branches_done(&b.branches, cli_value(a, END) != NULL);
	return r == CLI_OK ? end : r;
}

static const struct cli_option options[] = {
    {UP, "up", NULL, "start a sandbox of that name, or find it running"},
    {'e', "env", "NAME=VALUE", "with --up: a variable for the sandbox; may be repeated"},
    {'p', "plugin", "NAME", "with --up: vscode, none, ...; repeatable [agent_skills, jupyter]"},
    {END, "end", NULL, "end the sandbox, and branches, when the client closes standard input"},
    {PRINT, "print-config", "CLIENT", "print settings for claude, codex, cursor, goose or vscode"},
    {0, NULL, NULL, NULL},
};

static int
mcp(struct cli *c, const struct cli_args *a)
{
	static const char once[] = {UP, PRINT, 'n', 'h', 'j', '\0'};
	struct hr_err err = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	int r;

	if (cli_value(a, PRINT) != NULL)
		return cli_mcp_config(c, a, options, once, cli_value(a, PRINT));
	(void)signal(SIGPIPE, SIG_IGN);
	s = cli_value(a, UP) != NULL ? start(c, a, &r) : cli_attach(c, &r);
	if (s == NULL)
		return r;
	r = with_sandbox(c, s, a);
	if (cli_value(a, END) != NULL && hr_sandbox_delete(s, &err) != 0)
		r = cli_fail(&err);
	return r;
}

const struct cli_command cli_mcp = {"mcp", NULL, NULL,
    "Serve a client of the Model Context Protocol on standard input and output.", options, 0, 0,
    CLI_PLAIN, mcp, NULL};
