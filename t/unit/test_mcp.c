/* The MCP proxy but for HTTP: what is asked for, put together and told. The servers are shell
 * scripts; what a client would be sent is collected here. */
#include "config.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <json-c/json.h>

#include "base/buf.h"
#include "base/loop.h"
#include "http/serve.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"
#include "proto/mcpserver.h"

#define SAID_MAX 64
#define STREAM ((struct hr_serve_request *)said)

/* Answers each request with its method, or does what the method's name says. */
#define SERVER                                                                                     \
	"while read -r line; do\n"                                                                 \
	"	id=${line#*'\"id\":'}; id=${id%%,*}\n"                                                   \
	"	case $line in\n"                                                                         \
	"	*'\"initialize\"'*) r='\"result\":{}' ;;\n"                                              \
	"	*'\"tools/list\"'*'\"cursor\"'*) "                                                       \
	"r='\"result\":{\"tools\":[{\"name\":\"'$2'\"}]}' ;;\n"                                    \
	"	*'\"tools/list\"'*) r='\"result\":{\"tools\":[{\"name\":\"'$1'\"}],"                     \
	"\"nextCursor\":\"2\"}' ;;\n"                                                              \
	"	*'\"resources/list\"'*) "                                                                \
	"r='\"result\":{\"resources\":[{\"uri\":\"file://x/y\"}]}' ;;\n"                           \
	"	*'\"prompts/list\"'*) r='\"error\":{\"code\":-32601,\"message\":\"no\"}' ;;\n"           \
	"	*'\"die\"'*) exit 3 ;;\n"                                                                \
	"	*'\"hang\"'*|*'\"notifications/'*) continue ;;\n"                                        \
	"	*'\"refuse\"'*) r='\"error\":{\"code\":-1,\"message\":\"refused\"}' ;;\n"                \
	"	*) name=${line#*'\"name\":\"'}; name=${name%%'\"'*}\n"                                   \
	"		r='\"result\":{\"was\":\"'$1' '$name'\"}' ;;\n"                                         \
	"	esac\n"                                                                                  \
	"	echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,$r}\"\n"                              \
	"done\n"

static struct mcp_hub hub;
static struct mcp_session *session;
static char *said[SAID_MAX];
static size_t nsaid, taken;
static int ended, cut;
static size_t unread; /* bytes that wait for the client */

/* ---- in the place of http.c and serve.c ---- */

void
mcp_http_event(struct hr_serve_request *q, const char *event, const char *data)
{
	(void)q;
	(void)event;
	ck_assert_uint_lt(nsaid, SAID_MAX);
	said[nsaid++] = strdup(data);
	hr_loop_stop(hub.loop);
}

void
mcp_http_message(struct hr_serve_request *q, struct json_object *message)
{
	char *text = mcp_text(message);

	mcp_http_event(q, "message", text);
	free(text);
}

void
hr_serve_end(struct hr_serve_request *q, bool whole)
{
	(void)q;
	ended++;
	cut += !whole;
	if (!whole)
		hr_loop_stop(hub.loop);
}

size_t
hr_serve_pending(const struct hr_serve_request *q)
{
	return q == STREAM ? unread : 0;
}

void
hr_serve_watch(
    struct hr_serve_request *q, hr_serve_event_fn *drained, hr_serve_event_fn *left, void *arg)
{
	(void)q;
	(void)drained;
	(void)left;
	(void)arg;
}

/* ---- ---- */

static void
assert_text(struct json_object *v, const char *want)
{
	char *text = mcp_text(v);

	ck_assert_str_eq(text, want);
	free(text);
}

static void
setup(void)
{
	memset(&hub, 0, sizeof(hub));
	(void)signal(SIGPIPE, SIG_IGN);
	hub.ping_s = 3600; /* no comment comes between the messages */
	TAILQ_INIT(&hub.children);
	TAILQ_INIT(&hub.sessions);
	LIST_INIT(&hub.updating);
	hub.loop = hr_loop_new(NULL);
	session = mcp_session_new(&hub, false);
	ck_assert_ptr_nonnull(session);
	session->stream = STREAM;
	nsaid = taken = 0;
	ended = cut = 0;
	unread = 0;
}

static void
teardown(void)
{
	struct mcp_child *c;
	size_t i;

	while (!TAILQ_EMPTY(&hub.sessions))
		mcp_session_free(TAILQ_FIRST(&hub.sessions));
	while ((c = TAILQ_FIRST(&hub.children)) != NULL) {
		TAILQ_REMOVE(&hub.children, c, entry);
		mcp_child_free(c);
	}
	mcp_end_wait(&hub);
	hr_loop_free(hub.loop);
	for (i = 0; i < nsaid; i++)
		free(said[i]);
}

static struct mcp_child *
add_server(const char *name, const char *tool, const char *second)
{
	struct json_object *config = json_object_new_object(), *args = json_object_new_array();
	const char *const words[] = {"-c", SERVER, "sh", tool, second};
	struct mcp_child *c;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		(void)json_object_array_add(args, json_object_new_string(words[i]));
	(void)json_object_object_add(config, "name", json_object_new_string(name));
	(void)json_object_object_add(config, "command", json_object_new_string("/bin/sh"));
	(void)json_object_object_add(config, "args", args);
	(void)json_object_object_add(config, "env", json_object_new_object());
	c = mcp_child_new(&hub, config);
	ck_assert_ptr_nonnull(c);
	TAILQ_INSERT_TAIL(&hub.children, c, entry);
	return c;
}

static void
tell(const char *text)
{
	struct json_object *m = mcp_rpc_parse(text, strlen(text));

	ck_assert_ptr_nonnull(m);
	(void)mcp_rpc_message(session, m, NULL);
	json_object_put(m);
}

/* The next message to the client; Check's own limit ends a wait for one that does not come. */
static const char *
next(void)
{
	while (taken == nsaid)
		ck_assert_int_eq(hr_loop_run(hub.loop, NULL), 0);
	return said[taken++];
}

static const char *
ask(const char *text)
{
	tell(text);
	return next();
}

#define REQUEST(method, params)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":" params "}"
#define CALL(name) REQUEST("tools/call", "{\"name\":\"" name "\",\"arguments\":{}}")
#define RESULT(r) "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":" r "}"
#define ERROR(e) "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":" e "}"
#define FAILED(text)                                                                               \
	RESULT("{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}],\"isError\":true}")
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

/* ---- what is sent to /update_mcp_server ---- */

static const struct {
	const char *text, *words; /* NULL: refused */
} splits[] = {
    {"", "[]"},
    {" \t\n", "[]"},
    {"a b\tc", "[\"a\",\"b\",\"c\"]"},
    {"'a b' \"c d\"e", "[\"a b\",\"c de\"]"},
    {"a\\ b \\'c", "[\"a b\",\"'c\"]"},
    {"\"a\\\"b\\\\c\\d\"", "[\"a\\\"b\\\\c\\\\d\"]"},
    {"'a\\b'", "[\"a\\\\b\"]"},
    {"'' \"\"", "[\"\",\"\"]"},
    {"'a", NULL},
    {"\"a", NULL},
    {"a\\", NULL},
};

START_TEST(words)
{
	struct json_object *entry =
	    hr_json_object(NULL, "name", json_object_new_string("a"), "command",
		json_object_new_string("c"), "args", json_object_new_string(splits[_i].text), NULL);
	struct json_object *server = hr_mcpserver(entry, NULL);

	if (splits[_i].words == NULL)
		ck_assert_ptr_null(server);
	else
		assert_text(hr_json_at(server, "args"), splits[_i].words);
	json_object_put(server);
	json_object_put(entry);
}
END_TEST

#define SERVER_OF(more) "{\"name\":\" a \",\"command\":\"\\tc\"" more "}"
#define NORMAL(args, env) "{\"name\":\"a\",\"command\":\"c\",\"args\":" args ",\"env\":" env "}"

static const struct {
	const char *entry, *normal;
} configs[] = {
    {SERVER_OF(""), NORMAL("[]", "{}")},
    {SERVER_OF(",\"args\":null,\"env\":null,\"other\":1"), NORMAL("[]", "{}")},
    {SERVER_OF(",\"args\":\"-x 'y z'\""), NORMAL("[\"-x\",\"y z\"]", "{}")},
    {SERVER_OF(",\"args\":[\"-x 'y\"]"), NORMAL("[\"-x 'y\"]", "{}")},
    {SERVER_OF(",\"env\":{\"A\":\"1\"}"), NORMAL("[]", "{\"A\":\"1\"}")},
    {SERVER_OF(",\"env\":\"A=1, B_2 =x=y ,,\""), NORMAL("[]", "{\"A\":\"1\",\"B_2\":\"x=y\"}")},
    {SERVER_OF(",\"args\":\"'\""), NULL},
    {SERVER_OF(",\"args\":\"-x\\u0000 -y\""), NULL},
    {SERVER_OF(",\"env\":\"A=1\\u0000,B=2\""), NULL},
    {SERVER_OF(",\"args\":[1]"), NULL},
    {SERVER_OF(",\"args\":{}"), NULL},
    {SERVER_OF(",\"env\":\"A\""), NULL},
    {SERVER_OF(",\"env\":\"2A=1\""), NULL},
    {SERVER_OF(",\"env\":{\"A\":1}"), NULL},
    {SERVER_OF(",\"env\":[]"), NULL},
    {"{\"name\":\"a\"}", NULL},
    {"{\"command\":\"c\",\"name\":\"\"}", NULL},
    {"{\"command\":\"c d\",\"name\":\"a\"}", NULL},
    {"{\"command\":\"c\",\"name\":\"a.b\"}", NULL},
    {"{\"command\":\"c\",\"name\":\"a\\u0000b\"}", NULL},
    {"[]", NULL},
};

START_TEST(one_entry)
{
	struct json_object *entry = json_tokener_parse(configs[_i].entry);
	struct json_object *normal = hr_mcpserver(entry, NULL);

	if (configs[_i].normal == NULL)
		ck_assert_ptr_null(normal);
	else
		assert_text(normal, configs[_i].normal);
	json_object_put(normal);
	json_object_put(entry);
}
END_TEST

/* ---- a client without servers ---- */

START_TEST(the_handshake)
{
	static const char *const versions[][2] = {{"2024-11-05", "2024-11-05"},
	    {"2025-03-26", "2025-03-26"}, {"2025-06-18", "2025-06-18"},
	    {"2099-01-01", "2025-06-18"}};
	char text[200], want[60], many[400], told[400];
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		(void)snprintf(text, sizeof(text),
		    REQUEST("initialize", "{\"protocolVersion\":\"%s\"}"), versions[i][0]);
		(void)snprintf(want, sizeof(want), "\"protocolVersion\":\"%s\"", versions[i][1]);
		ck_assert_ptr_nonnull(strstr(ask(text), want));
	}
	ck_assert_str_eq(ask(REQUEST("ping", "{}")), RESULT("{}"));
	ck_assert_str_eq(ask(REQUEST("tools/list", "{}")),
	    ERROR("{\"code\":-32602,\"message\":\"Invalid request parameters\",\"data\":\"\"}"));
	tell(INITIALIZED);
	ck_assert_str_eq(ask(REQUEST("tools/list", "{}")), RESULT("{\"tools\":[]}"));
	ck_assert_str_eq(ask(REQUEST("logging/setLevel", "{}")),
	    ERROR("{\"code\":-32601,\"message\":\"Method not found\"}"));
	ck_assert_str_eq(ask(CALL("x")), FAILED("Unknown tool: x"));
	ck_assert_str_eq(ask(REQUEST("prompts/get", "{\"name\":\"x\"}")),
	    ERROR("{\"code\":0,\"message\":\"Unknown prompt: x\"}"));
	/* an id is given back as it came, a text is text wherever it is cut */
	ck_assert_str_eq(
	    ask("{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"ping\"}"),
	    "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"result\":{}}");
	(void)memset(text, 'x', sizeof(text));
	(void)snprintf(
	    many, sizeof(many), REQUEST("prompts/get", "{\"name\":\"%.199s\xC3\xA4\"}"), text);
	(void)snprintf(told, sizeof(told),
	    ERROR("{\"code\":0,\"message\":\"Unknown prompt: %.199s\xEF\xBF\xBD\"}"), text);
	ck_assert_str_eq(ask(many), told);
	ck_assert_ptr_null(mcp_rpc_parse(REQUEST("ping", "\"\""), strlen(REQUEST("ping", "\"\""))));
	ck_assert_ptr_null(mcp_rpc_parse(REQUEST("ping", "[]"), strlen(REQUEST("ping", "[]"))));
	/* an answer to nothing, and a notification of no meaning */
	tell("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	tell("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}");
	tell("{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}");
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}");
	ck_assert_uint_eq(taken, nsaid);
}
END_TEST

START_TEST(who_is_who)
{
	struct mcp_session *other = mcp_session_new(&hub, true);

	ck_assert_ptr_eq(mcp_session_find(&hub, session->id, false), session);
	ck_assert_ptr_null(mcp_session_find(&hub, session->id, true));
	ck_assert_ptr_eq(mcp_session_find(&hub, other->id, true), other);
	ck_assert_str_ne(other->id, session->id);
	ck_assert_uint_eq(strspn(session->id, "0123456789abcdef"), 32);
	/* who has not finished its handshake is told nothing, who has no stream neither */
	mcp_hub_notify(&hub, "notifications/tools/list_changed", NULL);
	ck_assert_uint_eq(nsaid, 0);
	session->initialized = other->initialized = true;
	mcp_hub_notify(&hub, "notifications/tools/list_changed", NULL);
	ck_assert_uint_eq(nsaid, 1);
	ck_assert_str_eq(
	    next(), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	mcp_session_free(session);
	ck_assert_int_eq(ended, 1);
	ck_assert_ptr_null(mcp_session_find(&hub, "x", false));
}
END_TEST

/* ---- servers ---- */

START_TEST(of_one_names_stay)
{
	session->initialized = true;
	(void)add_server("a", "t1", "t2");
	ck_assert_str_eq(ask(REQUEST("tools/list", "{}")),
	    RESULT("{\"tools\":[{\"name\":\"t1\"},{\"name\":\"t2\"}]}"));
	ck_assert_str_eq(ask(CALL("a_x")), RESULT("{\"was\":\"t1 a_x\"}"));
	ck_assert_str_eq(ask(REQUEST("resources/list", "{}")),
	    RESULT("{\"resources\":[{\"uri\":\"file://x/y\"}]}"));
	ck_assert_str_eq(ask(REQUEST("prompts/list", "{}")), RESULT("{\"prompts\":[]}"));
	ck_assert_str_eq(ask(REQUEST("prompts/get", "{\"name\":\"refuse\"}")),
	    ERROR("{\"code\":-1,\"message\":\"refused\"}"));
	ck_assert_str_eq(ask(CALL("refuse")), FAILED("refused"));
}
END_TEST

/* "a" is the beginning of "a_b": whose a_b_x is depends on who has it. */
START_TEST(of_several_they_are_prefixed)
{
	session->initialized = true;
	(void)add_server("a", "b_x", "y");
	(void)add_server("a_b", "z", "w");
	ck_assert_str_eq(ask(CALL("a_b_x")), RESULT("{\"was\":\"z x\"}"));
	ck_assert_str_eq(ask(REQUEST("tools/list", "{}")),
	    RESULT("{\"tools\":[{\"name\":\"a_b_x\"},{\"name\":\"a_y\"},{\"name\":\"a_b_z\"},"
		   "{\"name\":\"a_b_w\"}]}"));
	ck_assert_str_eq(ask(CALL("a_b_x")), RESULT("{\"was\":\"b_x b_x\"}"));
	ck_assert_str_eq(ask(CALL("a_b_w")), RESULT("{\"was\":\"z w\"}"));
	ck_assert_str_eq(ask(CALL("b_x")), FAILED("Unknown tool: b_x"));
	ck_assert_str_eq(ask(REQUEST("resources/list", "{}")),
	    RESULT("{\"resources\":[{\"uri\":\"file://a/x/y\"},{\"uri\":\"file://a_b/x/y\"}]}"));
	ck_assert_str_eq(ask(REQUEST("resources/read", "{\"uri\":\"x\"}")),
	    ERROR("{\"code\":0,\"message\":\"Unknown resource: x\"}"));
}
END_TEST

START_TEST(one_that_dies)
{
	struct mcp_child *c = add_server("a", "t", "u");
	pid_t first;

	session->initialized = true;
	ck_assert_str_eq(ask(CALL("x")), RESULT("{\"was\":\"t x\"}"));
	first = c->pid;
	ck_assert_str_eq(
	    ask(CALL("die")), FAILED("MCP server a is not available: it ended (exit 3)"));
	ck_assert_int_eq(c->state, MCP_CHILD_OFF);
	ck_assert_str_eq(ask(CALL("x")), RESULT("{\"was\":\"t x\"}"));
	ck_assert_int_ne(c->pid, first);
}
END_TEST

START_TEST(one_that_cannot_start)
{
	struct mcp_child *c = add_server("a", "t", "u");

	session->initialized = true;
	(void)json_object_object_add(
	    c->config, "command", json_object_new_string("/nonexistent/server"));
	ck_assert_ptr_nonnull(strstr(ask(CALL("x")), "MCP server a is not available: "));
	ck_assert_ptr_nonnull(strstr(ask(REQUEST("tools/list", "{}")), "\"error\":{\"code\":0,"));
	/* of several it is left out */
	(void)add_server("b", "t", "u");
	ck_assert_str_eq(ask(REQUEST("tools/list", "{}")),
	    RESULT("{\"tools\":[{\"name\":\"b_t\"},{\"name\":\"b_u\"}]}"));
}
END_TEST

START_TEST(cancelled_and_removed)
{
	struct mcp_child *c = add_server("a", "t", "u");

	session->initialized = true;
	tell(CALL("hang"));
	ck_assert_str_eq(ask("{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"ping\"}"),
	    "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{}}");
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	     "{\"requestId\":7}}");
	ck_assert(TAILQ_EMPTY(&session->calls));
	ck_assert_str_eq(ask(CALL("x")), RESULT("{\"was\":\"t x\"}"));
	tell(CALL("hang"));
	TAILQ_REMOVE(&hub.children, c, entry);
	mcp_child_free(c);
	ck_assert_str_eq(next(), FAILED("the MCP server was removed"));
	ck_assert_uint_eq(taken, nsaid);
}
END_TEST

/* ---- peers that do not read ---- */

/* Adds a server in sh: `script` follows the handshake, whose number follows that of the first use.
 */
static struct mcp_child *
add_script(const char *name, const char *script)
{
	struct mcp_child *c = add_server(name, "t", "u");
	char text[600];

	(void)snprintf(text, sizeof(text),
	    "read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; read -r line; %s",
	    script);
	ck_assert_int_eq(json_object_array_put_idx(
			     hr_json_at(c->config, "args"), 1, json_object_new_string(text)),
	    0);
	return c;
}

START_TEST(a_client_that_reads_nothing)
{
	struct mcp_session *other = mcp_session_new(&hub, true);

	session->initialized = other->initialized = true;
	other->stream = (struct hr_serve_request *)&other;
	unread = MCP_UNREAD_MAX;
	(void)ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	unread = MCP_UNREAD_MAX + 1;
	mcp_hub_notify(&hub, "notifications/tools/list_changed", NULL);
	/* the other client has its message, and this one's session ends with its stream */
	ck_assert_uint_eq(nsaid, 2);
	ck_assert_int_eq(cut, 0);
	while (cut == 0)
		ck_assert_int_eq(hr_loop_run(hub.loop, NULL), 0);
	ck_assert_ptr_eq(TAILQ_FIRST(&hub.sessions), other);
	ck_assert_uint_eq(nsaid, 2);
	/* a session that does not end with its stream may open another one */
	other->stream = STREAM;
	mcp_hub_notify(&hub, "notifications/tools/list_changed", NULL);
	while (cut == 1)
		ck_assert_int_eq(hr_loop_run(hub.loop, NULL), 0);
	ck_assert_ptr_eq(TAILQ_FIRST(&hub.sessions), other);
	ck_assert_ptr_null(other->stream);
	ck_assert(!other->slow);
}
END_TEST

START_TEST(a_server_that_reads_nothing)
{
	static char text[(1 << 20) + 200];
	size_t n;

	(void)add_script("a", "exec sleep 60");
	session->initialized = true;
	n = (size_t)snprintf(text, sizeof(text), "%s",
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"");
	memset(text + n, 'x', 1 << 20);
	(void)snprintf(text + n + (1 << 20), sizeof(text) - n - (1 << 20), "\"}}");
	/* 65 of 1 MiB wait for the server, before and after its start */
	for (n = 0; n < 65; n++)
		tell(text);
	ck_assert_str_eq(
	    ask(text), FAILED("MCP server a has not read or answered too many earlier requests"));
	ck_assert_uint_eq(nsaid, 1);
	ck_assert_int_eq(TAILQ_FIRST(&hub.children)->state, MCP_CHILD_STARTING);
	while (TAILQ_FIRST(&hub.children)->state == MCP_CHILD_STARTING)
		ck_assert_int_eq(event_base_loop(hr_loop_base(hub.loop), EVLOOP_ONCE), 0);
	ck_assert_str_eq(
	    ask(text), FAILED("MCP server a has not read or answered too many earlier requests"));
	ck_assert_uint_eq(nsaid, 2);
}
END_TEST

START_TEST(a_server_that_answers_nothing)
{
	size_t i;

	(void)add_script("a", "exec cat >/dev/null");
	session->initialized = true;
	for (i = 0; i < 4096; i++)
		tell(CALL("x"));
	ck_assert_str_eq(ask(CALL("x")),
	    FAILED("MCP server a has not read or answered too many earlier requests"));
	/* a cancelled one makes room */
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	     "{\"requestId\":7}}");
	tell(CALL("x"));
	ck_assert_str_eq(ask(CALL("x")),
	    FAILED("MCP server a has not read or answered too many earlier requests"));
	ck_assert_uint_eq(nsaid, 2);
}
END_TEST

START_TEST(a_server_that_asks_and_reads_nothing)
{
	(void)add_script("a",
	    "id=$(head -c 60000 /dev/zero | tr '\\0' x); while :; do "
	    "echo '{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"'$id'\"}'; done");
	session->initialized = true;
	ck_assert_str_eq(ask(CALL("x")),
	    FAILED(
		"MCP server a is not available: it sends requests, and does not read its input"));
}
END_TEST

/* Returns the seconds of the processor that this process has used. */
static double
used(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

START_TEST(a_long_line)
{
	double before = used();

	(void)add_script("a",
	    "head -c 60000000 /dev/zero | tr '\\0' ' '; read -r line; "
	    "echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"was\":1}}'; cat >/dev/null");
	session->initialized = true;
	ck_assert_str_eq(ask(CALL("x")), RESULT("{\"was\":1}"));
	/* searched from the beginning for each piece, it takes minutes */
	ck_assert(used() - before < 20);
}
END_TEST

START_TEST(a_line_without_end)
{
	(void)add_script("a", "exec tr '\\0' x </dev/zero");
	session->initialized = true;
	ck_assert_str_eq(
	    ask(CALL("x")), FAILED("MCP server a is not available: it wrote a line without end"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mcp");
	TCase *tc = tcase_create("mcp"), *slow = tcase_create("long lines");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, words, 0, sizeof(splits) / sizeof(splits[0]));
	tcase_add_loop_test(tc, one_entry, 0, sizeof(configs) / sizeof(configs[0]));
	tcase_add_test(tc, the_handshake);
	tcase_add_test(tc, who_is_who);
	tcase_add_test(tc, of_one_names_stay);
	tcase_add_test(tc, of_several_they_are_prefixed);
	tcase_add_test(tc, one_that_dies);
	tcase_add_test(tc, one_that_cannot_start);
	tcase_add_test(tc, cancelled_and_removed);
	tcase_add_test(tc, a_client_that_reads_nothing);
	tcase_add_test(tc, a_server_that_answers_nothing);
	tcase_add_test(tc, a_line_without_end);
	tcase_add_checked_fixture(slow, setup, teardown);
	tcase_set_timeout(slow, 60);
	tcase_set_tags(slow, "no-valgrind"); /* they move 60 MB and more */
	tcase_add_test(slow, a_server_that_reads_nothing);
	tcase_add_test(slow, a_server_that_asks_and_reads_nothing);
	tcase_add_test(slow, a_long_line);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, slow);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
