/* Handles a message: finds its protocol revision, dispatches the method and chooses the HTTP
 * status. */
#include "config.h"

#include "mcp/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "mcp/call.h"
#include "mcp/rpc.h"

#define MODERN "2026-07-28"
#define META "io.modelcontextprotocol/"
#define TEXT_MAX (256u << 20)

/* All but the last revision start with "initialize". */
static const char *const versions[] = {"2025-03-26", "2025-06-18", "2025-11-25", MODERN};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

static const char instructions[] =
    "A Linux sandbox with shells that last: directory, variables and background jobs stay from one "
    "run to the next. run never blocks for long: what takes longer than wait_s continues, and the "
    "answer has a handle; call wait with it, never run the same command again. Files are changed "
    "with edit and write, found with glob and grep.";

/* A request while it is handled. */
struct asked {
	const struct hr_mcp_env *env;
	const struct hr_mcp_request *q;
	struct hr_rpc m;
	bool modern;
};

static bool
is_known(const char *version)
{
	size_t i;

	for (i = 0; i < VERSIONS; i++)
		if (strcmp(versions[i], version) == 0)
			return true;
	return false;
}

static void
put_versions(struct hr_buf *b)
{
	size_t i;

	hr_buf_addc(b, '[');
	for (i = VERSIONS; i > 0; i--)
		hr_buf_addf(b, "%s\"%s\"", i < VERSIONS ? "," : "", versions[i - 1]);
	hr_buf_addc(b, ']');
}

/* Maps error codes to HTTP statuses. The newer revision has several; the older one answers 400 only
 * to a message that is not a valid request. */
static void
refuse(const struct asked *a, enum hr_rpc_code code, const char *why, struct hr_answer *ret)
{
	hr_buf_reset(&ret->body);
	hr_rpc_error(&ret->body, a->m.id, code, why);
	if (code == HR_RPC_METHOD)
		ret->status = a->modern ? 404 : 200;
	else if (code == HR_RPC_PARAMS)
		ret->status = a->modern ? 400 : 200;
	else
		ret->status = code == HR_RPC_INTERNAL ? 200 : 400;
}

static void
refuse_version(const struct asked *a, const char *asked, struct hr_answer *ret)
{
	ret->status = 400;
	hr_rpc_open(&ret->body, a->m.id);
	hr_buf_addf(&ret->body,
	    "\"error\":{\"code\":%d,\"message\":\"Unsupported protocol version\",\"data\":{"
	    "\"supported\":",
	    HR_RPC_VERSION);
	put_versions(&ret->body);
	hr_buf_adds(&ret->body, ",\"requested\":");
	(void)hr_json_put_str(&ret->body, asked, strlen(asked), HR_JSON_REPLACE);
	hr_buf_adds(&ret->body, "}}}");
}

/* ---- checks before a method runs ---- */

static struct json_object *
meta_of(const struct asked *a)
{
	return hr_json_typed_at(a->m.params, "_meta", HR_PY_DICT);
}

/* Compares a header, plain or encoded as =?base64?...?=, with the value in the body. */
static bool
header_is(const char *header, struct json_object *v)
{
	static const char head[] = "=?base64?", tail[] = "?=";
	size_t len = strlen(header), text_len;
	const char *text;
	HR_BUF(coded, HR_MCP_BODY_MAX * 2);

	if (hr_json_type(v) != HR_PY_STR)
		return false;
	if (strncmp(header, head, sizeof(head) - 1) != 0)
		return hr_json_str_is(v, header);
	text = hr_json_str(v, &text_len);
	hr_buf_adds(&coded, head);
	hr_quote_base64(&coded, text, text_len);
	hr_buf_adds(&coded, tail);
	return coded.fail == HR_OK && coded.len == len && memcmp(coded.p, header, len) == 0;
}

/* Checks a message of the newer revision, which makes each request repeat its version and method in
 * headers, for proxies. */
static bool
check_modern(struct asked *a, struct hr_answer *ret)
{
	struct json_object *meta = meta_of(a), *version = hr_json_at(meta, META "protocolVersion");

	if (version == NULL || hr_json_at(meta, META "clientCapabilities") == NULL) {
		refuse(a, HR_RPC_PARAMS,
		    "params._meta must have " META "protocolVersion and " META "clientCapabilities",
		    ret);
		return false;
	}
	if (!header_is(a->q->version, version)) {
		refuse(a, HR_RPC_HEADER,
		    "The header MCP-Protocol-Version is not the request's protocol version", ret);
		return false;
	}
	if (strcmp(a->q->method, a->m.method) != 0) {
		refuse(a, HR_RPC_HEADER, "The header Mcp-Method is not the request's method", ret);
		return false;
	}
	if (strcmp(a->m.method, "tools/call") == 0 && hr_json_at(a->m.params, "name") != NULL &&
	    !header_is(a->q->name, hr_json_at(a->m.params, "name"))) {
		refuse(a, HR_RPC_HEADER, "The header Mcp-Name is not the tool's name", ret);
		return false;
	}
	return true;
}

/* Finds the revision. Returns false after sending the error. */
static bool
check_version(struct asked *a, struct hr_answer *ret)
{
	const char *said = hr_json_text_at(meta_of(a), META "protocolVersion");

	/* Mcp-Method alone does not prove the newer revision: clients of both revisions send it */
	a->modern =
	    a->m.kind == HR_RPC_CALL &&
	    (said != NULL || strcmp(a->q->version, MODERN) == 0 ||
		strcmp(a->m.method, "server/discover") == 0 ||
		(a->q->version[0] != '\0' && a->q->method[0] != '\0' && !is_known(a->q->version)));
	if (a->modern && !check_modern(a, ret))
		return false;
	if (said == NULL)
		said = a->q->version;
	if (said[0] != '\0' && !is_known(said)) {
		refuse_version(a, said, ret);
		return false;
	}
	if (a->modern && strcmp(said, MODERN) != 0) {
		refuse_version(a, said, ret);
		return false;
	}
	return true;
}

/* ---- methods ---- */

static void
put_us(struct hr_buf *b)
{
	hr_buf_adds(b,
	    "{\"name\":\"handrail\",\"title\":\"handrail sandbox\",\"version\":\"" PACKAGE_VERSION
	    "\"}");
}

static void
open_result(const struct asked *a, struct hr_buf *b)
{
	hr_rpc_open(b, a->m.id);
	hr_buf_adds(b, "\"result\":{");
	if (a->modern)
		hr_buf_adds(b, "\"resultType\":\"complete\",");
}

static void
put_instructions(struct hr_buf *b)
{
	hr_buf_adds(b, "\"instructions\":");
	(void)hr_json_put_str(b, instructions, sizeof(instructions) - 1, HR_JSON_REFUSE);
}

static void
do_initialize(struct asked *a, struct hr_answer *ret)
{
	const char *wanted = hr_json_text_at(a->m.params, "protocolVersion");

	if (wanted == NULL) {
		refuse(a, HR_RPC_PARAMS, "initialize takes protocolVersion, a string", ret);
		return;
	}
	if (!is_known(wanted) || strcmp(wanted, MODERN) == 0)
		wanted =
		    versions[VERSIONS - 2]; /* the protocol leaves the decision to the client */
	open_result(a, &ret->body);
	hr_buf_addf(&ret->body,
	    "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":", wanted);
	put_us(&ret->body);
	hr_buf_addc(&ret->body, ',');
	put_instructions(&ret->body);
	hr_buf_adds(&ret->body, "}}");
}

static void
do_discover(struct asked *a, struct hr_answer *ret)
{
	open_result(a, &ret->body);
	hr_buf_adds(&ret->body, "\"supportedVersions\":");
	put_versions(&ret->body);
	hr_buf_adds(
	    &ret->body, ",\"capabilities\":{\"tools\":{}},\"_meta\":{\"" META "serverInfo\":");
	put_us(&ret->body);
	hr_buf_adds(&ret->body, "},\"serverInfo\":");
	put_us(&ret->body);
	hr_buf_addc(&ret->body, ',');
	put_instructions(&ret->body);
	hr_buf_adds(&ret->body, ",\"ttlMs\":60000,\"cacheScope\":\"private\"}}");
}

static void
do_ping(struct asked *a, struct hr_answer *ret)
{
	hr_rpc_open(&ret->body, a->m.id);
	hr_buf_adds(&ret->body, "\"result\":{}}");
}

static void
do_list(struct asked *a, struct hr_answer *ret)
{
	open_result(a, &ret->body);
	hr_mcp_put_tools(&ret->body, a->env->run_dir);
	hr_buf_adds(&ret->body, a->modern ? ",\"ttlMs\":60000,\"cacheScope\":\"private\"}}" : "}}");
}

/* ---- tools/call ---- */

static void
call_free(void *arg)
{
	struct hr_mcp_call *c = arg;

	hr_rpc_done(&c->rpc);
	hr_buf_done(&c->text);
	hr_buf_done(&c->blocks);
	hr_buf_done(&c->structured);
	hr_buf_done(&c->key);
	free(c);
}

static void
put_result(struct hr_mcp_call *c, struct hr_buf *b)
{
	hr_rpc_open(b, c->rpc.id);
	hr_buf_addf(b, "\"result\":{%s\"content\":[{\"type\":\"text\",\"text\":",
	    c->modern ? "\"resultType\":\"complete\"," : "");
	(void)hr_json_put_str(b, hr_buf_str(&c->text), c->text.len, HR_JSON_REPLACE);
	hr_buf_addc(b, '}');
	hr_buf_add(b, hr_buf_str(&c->blocks), c->blocks.len);
	hr_buf_addc(b, ']');
	if (c->structured.len > 0) {
		hr_buf_adds(b, ",\"structuredContent\":");
		hr_buf_add(b, hr_buf_str(&c->structured), c->structured.len);
	}
	hr_buf_addf(b, ",\"isError\":%s}}", c->is_error ? "true" : "false");
	if (c->text.fail != HR_OK || c->blocks.fail != HR_OK || c->structured.fail != HR_OK)
		b->fail = HR_E_NOMEM;
}

/* Sends the rest of a streamed answer. */
static int
send_rest(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct hr_mcp_call *c = arg;
	HR_BUF(b, TEXT_MAX);
	int r;

	hr_mcp_wait_now(c, sink);
	hr_buf_adds(&b, c->events ? "event: message\ndata: " : "");
	put_result(c, &b);
	hr_buf_adds(&b, c->events ? "\n\n" : "");
	r = hr_buf_check(&b, err);
	if (r == 0)
		r = sink->write(sink, b.p, b.len);
	return r;
}

static void
stream(struct hr_mcp_call *c, struct hr_answer *ret)
{
	c->own = *c->env;
	c->own.arg = NULL;
	c->env = &c->own;
	if (c->events)
		ret->content_type = "text/event-stream";
	hr_answer_header(ret, "Cache-Control", "no-store");
	hr_answer_stream(ret, &(const struct hr_stream){
				  .send = send_rest, .done = call_free, .arg = c, .length = -1});
}

static void
do_call(struct asked *a, struct hr_answer *ret)
{
	const char *name = hr_json_text_at(a->m.params, "name");
	struct json_object *args = hr_json_at(a->m.params, "arguments"), *token;
	const struct hr_mcp_tool *tool = name != NULL ? hr_mcp_find(a->env->run_dir, name) : NULL;
	struct hr_mcp_call *c;

	if (tool == NULL || (args != NULL && hr_json_type(args) != HR_PY_DICT)) {
		refuse(a, HR_RPC_PARAMS,
		    tool == NULL ? "There is no tool of that name" : "arguments must be an object",
		    ret);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		refuse(a, HR_RPC_INTERNAL, "Out of memory", ret);
		return;
	}
	hr_buf_init(&c->text, TEXT_MAX);
	hr_buf_init(&c->blocks, TEXT_MAX);
	hr_buf_init(&c->structured, TEXT_MAX);
	hr_buf_init(&c->key, 4096);
	c->env = a->env;
	c->modern = a->modern;
	c->events = a->q->events;
	c->rpc = a->m;
	memset(&a->m, 0, sizeof(a->m));
	c->args = args;
	token = hr_json_at(hr_json_typed_at(c->rpc.params, "_meta", HR_PY_DICT), "progressToken");
	if (hr_json_type(token) == HR_PY_STR || hr_json_type(token) == HR_PY_INT)
		c->token = token;
	if (hr_mcp_check_args(c, tool))
		tool->call(c);
	if (c->note.cls != NULL) {
		ret->note = c->note;
		hr_buf_add(&ret->key, hr_buf_str(&c->key), c->key.len);
	}
	if (c->waits) { /* answer with a stream, which ends when the client disconnects */
		stream(c, ret);
		return;
	}
	put_result(c, &ret->body);
	call_free(c);
}

static const struct {
	const char *name;
	void (*call)(struct asked *a, struct hr_answer *ret);
	bool old, modern;
} methods[] = {
    {"initialize", do_initialize, true, false},
    {"ping", do_ping, true, false},
    {"server/discover", do_discover, false, true},
    {"tools/list", do_list, true, true},
    {"tools/call", do_call, true, true},
};

static void
dispatch(struct asked *a, struct hr_answer *ret)
{
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].name, a->m.method) == 0 &&
		    (a->modern ? methods[i].modern : methods[i].old)) {
			methods[i].call(a, ret);
			return;
		}
	refuse(a, HR_RPC_METHOD, "There is no such method", ret);
}

void
hr_mcp_handle(const struct hr_mcp_env *env, const struct hr_mcp_request *q, struct hr_answer *ret)
{
	struct asked a = {.env = env, .q = q};
	enum hr_rpc_code code;
	const char *why;

	code = hr_rpc_read(q->body, &a.m, &why);
	if (code != HR_RPC_OK) {
		a.modern = strcmp(q->version, MODERN) == 0;
		refuse(&a, code, why, ret);
	} else if (check_version(&a, ret)) {
		if (a.m.kind == HR_RPC_CALL) {
			dispatch(&a, ret);
		} else {
			/* no notification needs work: a client cancels by closing the stream */
			ret->status = 202;
			ret->content_type = NULL;
		}
	}
	hr_rpc_done(&a.m);
}
