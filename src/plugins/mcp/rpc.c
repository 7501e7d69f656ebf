/* Handles JSON-RPC with clients: requests for one server are here, those for all in list.c. */
#include "config.h"

#include "plugins/mcp/rpc_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "http/serve.h"
#include "proto/json.h"

#define INVALID_PARAMS (-32602)

static const struct mcp_method methods[] = {
    {"tools/list", MCP_RPC_LIST, "tools", "name"},
    {"prompts/list", MCP_RPC_LIST, "prompts", "name"},
    {"resources/list", MCP_RPC_LIST, "resources", "uri"},
    {"resources/templates/list", MCP_RPC_LIST, "resourceTemplates", "uriTemplate"},
    {"tools/call", MCP_RPC_TOOL, NULL, "name"},
    {"prompts/get", MCP_RPC_PROMPT, NULL, "name"},
    {"resources/read", MCP_RPC_RESOURCE, NULL, "uri"},
};

/* ---- replies ---- */

/* Makes {"jsonrpc": "2.0", "id": id, key: value}; takes value. Returns NULL without memory, or if
 * value is NULL. */
static struct json_object *
answer_new(struct json_object *id, const char *key, struct json_object *value)
{
	return hr_json_object(NULL, "jsonrpc", json_object_new_string("2.0"), "id",
	    json_object_get(id), key, value, NULL);
}

/* Sends m, and takes ownership of it. m NULL (no memory): the response ends without a reply. */
static void
reply(struct mcp_session *s, struct hr_serve_request *req, struct json_object *m)
{
	if (req != NULL) {
		mcp_http_message(req, m);
		hr_serve_end(req, true);
	} else {
		mcp_session_notify(s, m);
	}
	json_object_put(m);
}

void
mcp_reply_result(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    struct json_object *result)
{
	reply(s, req, answer_new(id, "result", result));
}

void
mcp_reply_error(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    int code, const char *text)
{
	struct json_object *e = hr_json_object(
	    NULL, "code", json_object_new_int(code), "message", json_object_new_string(text), NULL);

	if (code == INVALID_PARAMS && hr_json_set(e, "data", json_object_new_string(""), NULL) != 0)
		hr_json_drop(&e);
	reply(s, req, answer_new(id, "error", e));
}

/* Reports a failed tool as its result. */
static struct json_object *
tool_failure(const char *text)
{
	struct json_object *list = json_object_new_array();

	if (hr_json_append(list,
		hr_json_object(NULL, "type", json_object_new_string("text"), "text",
		    json_object_new_string(text), NULL),
		NULL) != 0)
		hr_json_drop(&list);
	return hr_json_object(NULL, "content", list, "isError", json_object_new_boolean(1), NULL);
}

/* ---- calls ---- */

void
mcp_call_free(struct mcp_call *call)
{
	size_t i;

	TAILQ_REMOVE(&call->session->calls, call, entry);
	for (i = 0; i < call->n; i++)
		json_object_put(call->parts[i].items);
	json_object_put(call->id);
	json_object_put(call->token);
	free(call->parts);
	free(call);
}

void
mcp_call_cancel(struct mcp_call *call)
{
	size_t i;

	for (i = 0; i < call->n; i++)
		if (call->parts[i].pending != NULL)
			mcp_pending_cancel(call->parts[i].pending);
	if (call->reply != NULL)
		hr_serve_end(call->reply, true);
	mcp_call_free(call);
}

static void
reply_left(void *arg)
{
	mcp_call_cancel(arg);
}

struct mcp_call *
mcp_call_new(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    const struct mcp_method *method, size_t n)
{
	struct mcp_call *call = calloc(1, sizeof(*call));

	if (call != NULL)
		call->parts = calloc(n > 0 ? n : 1, sizeof(*call->parts));
	if (call == NULL || call->parts == NULL) {
		free(call);
		mcp_reply_error(s, req, id, 0, "out of memory");
		return NULL;
	}
	call->session = s;
	call->id = json_object_get(id);
	call->method = method;
	call->reply = req;
	if (req != NULL)
		hr_serve_watch(req, NULL, reply_left, call);
	call->n = n;
	TAILQ_INSERT_TAIL(&s->calls, call, entry);
	return call;
}

void
mcp_call_progress(void *arg, struct json_object *params)
{
	struct mcp_part *part = arg;
	struct mcp_call *call = part->call;
	struct json_object *copy = NULL;
	HR_PUT struct json_object *m = NULL;

	/* reports are optional: a client that does not read misses some, and gets its result */
	if (call->reply != NULL && hr_serve_pending(call->reply) > MCP_UNREAD_MAX)
		return;
	if (call->token == NULL || json_object_deep_copy(params, &copy, NULL) != 0)
		return;
	if (hr_json_set(copy, "progressToken", json_object_get(call->token), NULL) != 0)
		hr_json_drop(&copy);
	m = hr_json_object(NULL, "jsonrpc", json_object_new_string("2.0"), "method",
	    json_object_new_string("notifications/progress"), "params", copy, NULL);
	if (call->reply != NULL)
		mcp_http_message(call->reply, m);
	else
		mcp_session_notify(call->session, m);
}

void
mcp_rpc_child_gone(struct mcp_hub *hub, struct mcp_child *c)
{
	struct mcp_session *s;
	struct mcp_call *call;
	size_t i;

	TAILQ_FOREACH(s, &hub->sessions, entry)
	{
		TAILQ_FOREACH(call, &s->calls, entry)
		{
			for (i = 0; i < call->n; i++)
				if (call->parts[i].child == c)
					call->parts[i].child = NULL;
		}
	}
}

/* ---- one server ---- */

static void
answered(void *arg, struct json_object *result, struct json_object *error, const char *failure)
{
	struct mcp_part *part = arg;
	struct mcp_call *call = part->call;

	part->pending = NULL;
	if (result != NULL) {
		mcp_reply_result(call->session, call->reply, call->id, json_object_get(result));
	} else if (call->method->kind == MCP_RPC_TOOL) {
		mcp_reply_result(call->session, call->reply, call->id,
		    tool_failure(
			failure != NULL ? failure : hr_json_text_or(error, "message", "")));
	} else if (failure != NULL) {
		mcp_reply_error(call->session, call->reply, call->id, 0, failure);
	} else {
		reply(call->session, call->reply,
		    answer_new(call->id, "error", json_object_get(error)));
	}
	mcp_call_free(call);
}

/* Finds the server whose name a value begins with, the last match first, and the rest of the value;
 * *ret_value is NULL without memory. A server known to have the rest is preferred. */
static struct mcp_child *
owner(struct mcp_hub *hub, const struct mcp_method *method, const char *value,
    struct json_object **ret_value)
{
	const char *path = strstr(value, "://"), *from = value;
	bool uri = method->kind == MCP_RPC_RESOURCE;
	struct mcp_child *c, *best = NULL;
	size_t len;

	if (!mcp_has_several(hub)) {
		*ret_value = json_object_new_string(value);
		return TAILQ_FIRST(&hub->children);
	}
	if (uri && path == NULL)
		return NULL;
	if (uri)
		from = path + 3;
	TAILQ_FOREACH_REVERSE(c, &hub->children, mcp_child_list, entry)
	{
		len = strlen(c->name);
		if (strncmp(from, c->name, len) != 0 || from[len] != (uri ? '/' : '_'))
			continue;
		if (best == NULL)
			best = c;
		if (method->kind == MCP_RPC_TOOL && hr_json_at(c->tools, from + len + 1) != NULL) {
			best = c;
			break;
		}
	}
	if (best == NULL)
		return NULL;
	len = strlen(best->name) + 1;
	if (uri) {
		HR_FREE char *text = NULL;

		if (asprintf(&text, "%.*s%s", (int)(from - value), value, from + len) < 0)
			text = NULL;
		*ret_value = text != NULL ? json_object_new_string(text) : NULL;
	} else {
		*ret_value = json_object_new_string(from + len);
	}
	return best;
}

static void
ask_one(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    const struct mcp_method *method, struct json_object *params)
{
	const char *value = hr_json_text_or(params, method->label, "");
	struct json_object *rest = NULL, *meta;
	HR_PUT struct json_object *mine = NULL;
	struct mcp_child *c = owner(s->hub, method, value, &rest);
	struct mcp_call *call;
	bool whole;
	char text[300];

	if (c == NULL) {
		json_object_put(rest);
		(void)snprintf(text, sizeof(text), "Unknown %s: %.200s",
		    method->kind == MCP_RPC_TOOL     ? "tool"
		    : method->kind == MCP_RPC_PROMPT ? "prompt"
						     : "resource",
		    value);
		if (method->kind == MCP_RPC_TOOL)
			mcp_reply_result(s, req, id, tool_failure(text));
		else
			mcp_reply_error(s, req, id, 0, text);
		return;
	}
	call = mcp_call_new(s, req, id, method, 1);
	if (params == NULL)
		mine = json_object_new_object();
	else if (json_object_deep_copy(params, &mine, NULL) != 0)
		mine = NULL;
	whole = hr_json_set(mine, method->label, rest, NULL) == 0;
	if (call == NULL)
		return;
	meta = hr_json_at(mine, "_meta");
	call->token = json_object_get(hr_json_at(meta, "progressToken"));
	call->parts[0].call = call;
	call->parts[0].child = c;
	if (whole)
		call->parts[0].pending = mcp_child_request(
		    c, method->name, mine, call->token != NULL, 0, answered, &call->parts[0]);
	if (call->parts[0].pending == NULL)
		answered(&call->parts[0], NULL, NULL, "out of memory");
}

/* ---- requests ---- */

static void
initialize(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    struct json_object *params)
{
	static const char *const known[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
	const char *wanted = hr_json_text_or(params, "protocolVersion", ""), *version = known[0];
	struct json_object *result;
	char name[40];
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(wanted, known[i]) == 0)
			version = known[i];
	result = json_tokener_parse(
	    "{\"capabilities\":{\"experimental\":{},\"prompts\":{\"listChanged\":true},"
	    "\"resources\":{\"subscribe\":false,\"listChanged\":true},"
	    "\"tools\":{\"listChanged\":true}}}");
	(void)snprintf(name, sizeof(name), "handrail-mcp-%.4s", s->id);
	if (hr_json_set(result, "protocolVersion", json_object_new_string(version), NULL) != 0 ||
	    hr_json_set(result, "serverInfo",
		hr_json_object(NULL, "name", json_object_new_string(name), "version",
		    json_object_new_string(PACKAGE_VERSION), NULL),
		NULL) != 0)
		hr_json_drop(&result);
	mcp_reply_result(s, req, id, result);
}

static void
take_request(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    const char *method, struct json_object *params)
{
	size_t i;

	if (strcmp(method, "initialize") == 0) {
		initialize(s, req, id, params);
		return;
	}
	if (strcmp(method, "ping") == 0) {
		mcp_reply_result(s, req, id, json_object_new_object());
		return;
	}
	if (!s->initialized) {
		mcp_reply_error(s, req, id, INVALID_PARAMS, "Invalid request parameters");
		return;
	}
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(method, methods[i].name) != 0)
			continue;
		if (methods[i].kind == MCP_RPC_LIST)
			mcp_list(s, req, id, &methods[i]);
		else
			ask_one(s, req, id, &methods[i], params);
		return;
	}
	mcp_reply_error(s, req, id, MCP_METHOD_NOT_FOUND, "Method not found");
}

static void
take_notification(struct mcp_session *s, const char *method, struct json_object *params)
{
	struct json_object *id = hr_json_at(params, "requestId");
	struct mcp_call *call;

	if (strcmp(method, "notifications/initialized") == 0)
		s->initialized = true;
	if (strcmp(method, "notifications/cancelled") != 0 || id == NULL)
		return;
	TAILQ_FOREACH(call, &s->calls, entry)
	{
		if (json_object_equal(call->id, id)) {
			mcp_call_cancel(call);
			return;
		}
	}
}

struct json_object *
mcp_rpc_id(struct json_object *message)
{
	struct json_object *id = hr_json_at(message, "id");
	enum hr_py_type type = hr_json_type(id);

	return type == HR_PY_STR || type == HR_PY_INT ? id : NULL;
}

struct json_object *
mcp_rpc_parse(const void *p, size_t len)
{
	struct json_object *m = NULL, *params;

	if (hr_json_decode(p, len, &m, NULL) < 0)
		return NULL;
	params = hr_json_at(m, "params");
	if (hr_json_type(m) == HR_PY_DICT &&
	    (params == NULL || hr_json_type(params) == HR_PY_DICT) &&
	    strcmp(hr_json_text_or(m, "jsonrpc", ""), "2.0") == 0 &&
	    (hr_json_text_or(m, "method", "")[0] != '\0' || mcp_rpc_id(m) != NULL))
		return m;
	json_object_put(m);
	return NULL;
}

bool
mcp_rpc_message(struct mcp_session *s, struct json_object *message, struct hr_serve_request *req)
{
	const char *method = hr_json_text_or(message, "method", "");
	struct json_object *id = mcp_rpc_id(message), *params = hr_json_at(message, "params");

	if (method[0] == '\0')
		return false; /* this is a reply to no request of handrail's */
	if (id == NULL) {
		take_notification(s, method, params);
		return false;
	}
	take_request(s, req, id, method, params);
	return true;
}
