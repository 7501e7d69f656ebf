/* Reads and writes messages of JSON-RPC 2.0. Pure. */
#include "config.h"

#include "mcp/rpc.h"

#include <string.h>

#include <json-c/json_object.h>

#include "mcp/env.h"
#include "proto/json.h"
#include "base/text/utf8.h"

static bool
is_id(struct json_object *id)
{
	return hr_json_type(id) == HR_PY_STR || hr_json_type(id) == HR_PY_INT;
}

/* Returns a string, or NULL if it contains a null character. */
static const char *
whole_text(struct json_object *v)
{
	size_t len;

	if (hr_json_type(v) != HR_PY_STR)
		return NULL;
	return strlen(hr_json_str(v, &len)) == len ? hr_json_str(v, &len) : NULL;
}

static enum hr_rpc_code
take(struct hr_rpc *m, const char **ret_why)
{
	struct json_object *id = NULL;
	bool has_id;

	*ret_why = "The body must be one JSON-RPC 2.0 message, an object";
	if (hr_json_type(m->whole) != HR_PY_DICT)
		return HR_RPC_REQUEST;
	has_id = json_object_object_get_ex(m->whole, "id", &id);
	if (has_id && is_id(id))
		m->id = id;
	if (!hr_json_str_is(hr_json_at(m->whole, "jsonrpc"), "2.0"))
		return HR_RPC_REQUEST;
	if (hr_json_at(m->whole, "method") == NULL &&
	    (json_object_object_get_ex(m->whole, "result", NULL) ||
		json_object_object_get_ex(m->whole, "error", NULL))) {
		m->kind = HR_RPC_ANSWER;
		return HR_RPC_OK;
	}
	m->method = whole_text(hr_json_at(m->whole, "method"));
	*ret_why = "\"method\" must be a string";
	if (m->method == NULL)
		return HR_RPC_REQUEST;
	*ret_why = "\"id\" must be a string or an integer";
	if (has_id && m->id == NULL)
		return HR_RPC_REQUEST;
	m->kind = has_id ? HR_RPC_CALL : HR_RPC_NOTE;
	m->params = hr_json_at(m->whole, "params");
	*ret_why = "\"params\" must be an object";
	return m->params == NULL || hr_json_type(m->params) == HR_PY_DICT ? HR_RPC_OK
									  : HR_RPC_PARAMS;
}

enum hr_rpc_code
hr_rpc_read(struct hr_span text, struct hr_rpc *ret, const char **ret_why)
{
	struct hr_json_facts facts = {0};
	struct hr_json_error e;

	memset(ret, 0, sizeof(*ret));
	/* only UTF-8 is accepted, unlike in bodies elsewhere */
	*ret_why = "The body is not JSON";
	if (text.len == 0 || !hr_utf8_valid(text.p, text.len) ||
	    hr_json_scan(text.p, text.len, &facts, &e) < 0)
		return HR_RPC_PARSE;
	/* json-c and handrail's writer recurse once per level */
	*ret_why = "The message is nested too deeply";
	if (facts.depth > HR_MCP_DEPTH)
		return HR_RPC_REQUEST;
	*ret_why = "The body is not JSON";
	if (hr_json_decode(text.p, text.len, &ret->whole, &e) < 0)
		return HR_RPC_PARSE;
	return take(ret, ret_why);
}

void
hr_rpc_done(struct hr_rpc *m)
{
	json_object_put(m->whole);
	memset(m, 0, sizeof(*m));
}

void
hr_rpc_open(struct hr_buf *b, struct json_object *id)
{
	size_t len;

	hr_buf_adds(b, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (hr_json_type(id) == HR_PY_STR) {
		const char *p = hr_json_str(id, &len);

		/* HR_JSON_REPLACE never refuses */
		(void)hr_json_put_str(b, p, len, HR_JSON_REPLACE);
	} else if (hr_json_type(id) == HR_PY_INT) {
		hr_json_put_int(b, id);
	} else {
		hr_buf_adds(b, "null");
	}
	hr_buf_addc(b, ',');
}

void
hr_rpc_error(struct hr_buf *b, struct json_object *id, enum hr_rpc_code code, const char *text)
{
	hr_rpc_open(b, id);
	hr_buf_addf(b, "\"error\":{\"code\":%d,\"message\":", (int)code);
	(void)hr_json_put_str(b, text, strlen(text), HR_JSON_REPLACE);
	hr_buf_adds(b, "}}");
}
