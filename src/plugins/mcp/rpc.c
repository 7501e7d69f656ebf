/* JSON-RPC towards the clients: what they ask is asked of one server or of all of them, and what
 * these answer is put together. Names are prefixed by the server's when there are several. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/http.h>
#include <json-c/json.h>

#include "base/err.h"
#include "base/log.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"

#define LIST_LIMIT_S 30 /* for a page */
#define PAGES_MAX 256   /* of a list; a server may go on for ever */
#define METHOD_NOT_FOUND (-32601)
#define INVALID_PARAMS (-32602)

enum rpc_kind { RPC_LIST, RPC_TOOL, RPC_PROMPT, RPC_RESOURCE };

struct mcp_method {
	const char *name;
	enum rpc_kind kind;
	const char *items; /* of a list: the member of its result */
	const char *label; /* of an item: what is prefixed */
};

static const struct mcp_method methods[] = {
    {"tools/list", RPC_LIST, "tools", "name"},
    {"prompts/list", RPC_LIST, "prompts", "name"},
    {"resources/list", RPC_LIST, "resources", "uri"},
    {"resources/templates/list", RPC_LIST, "resourceTemplates", "uriTemplate"},
    {"tools/call", RPC_TOOL, NULL, "name"},
    {"prompts/get", RPC_PROMPT, NULL, "name"},
    {"resources/read", RPC_RESOURCE, NULL, "uri"},
};

/* ---- answers ---- */

/* {"jsonrpc": "2.0", "id": id, key: value}; takes the value. NULL: no memory, as for the value. */
static struct json_object *
answer_new(struct json_object *id, const char *key, struct json_object *value)
{
	return mcp_object(
	    "jsonrpc", json_object_new_string("2.0"), "id", json_object_get(id), key, value, NULL);
}

/* Takes m. Where there was no memory for it the response ends without an answer. */
static void
reply(struct mcp_session *s, struct evhttp_request *req, struct json_object *m)
{
	if (req != NULL) {
		mcp_http_message(req, m);
		mcp_http_end(req);
	} else {
		mcp_session_notify(s, m);
	}
	json_object_put(m);
}

static void
reply_result(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    struct json_object *result)
{
	reply(s, req, answer_new(id, "result", result));
}

static void
reply_error(struct mcp_session *s, struct evhttp_request *req, struct json_object *id, int code,
    const char *text)
{
	struct json_object *e = mcp_object(
	    "code", json_object_new_int(code), "message", json_object_new_string(text), NULL);

	if (code == INVALID_PARAMS && !mcp_put(e, "data", json_object_new_string(""))) {
		json_object_put(e);
		e = NULL;
	}
	reply(s, req, answer_new(id, "error", e));
}

/* What goes wrong with a tool is its result. */
static struct json_object *
tool_failure(const char *text)
{
	struct json_object *list = json_object_new_array();

	if (!mcp_append(list, mcp_object("type", json_object_new_string("text"), "text",
				  json_object_new_string(text), NULL))) {
		json_object_put(list);
		list = NULL;
	}
	return mcp_object("content", list, "isError", json_object_new_boolean(1), NULL);
}

/* ---- calls ---- */

static void
call_free(struct mcp_call *call)
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
		mcp_http_end(call->reply);
	call_free(call);
}

static struct mcp_call *
call_new(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    const struct mcp_method *method, size_t n)
{
	struct mcp_call *call = calloc(1, sizeof(*call));

	if (call != NULL)
		call->parts = calloc(n > 0 ? n : 1, sizeof(*call->parts));
	if (call == NULL || call->parts == NULL) {
		free(call);
		reply_error(s, req, id, 0, "out of memory");
		return NULL;
	}
	call->session = s;
	call->id = json_object_get(id);
	call->method = method;
	call->reply = req;
	call->n = n;
	TAILQ_INSERT_TAIL(&s->calls, call, entry);
	return call;
}

void
mcp_call_progress(void *arg, struct json_object *params)
{
	struct mcp_part *part = arg;
	struct mcp_call *call = part->call;
	struct json_object *m, *copy = NULL;

	if (call->token == NULL || json_object_deep_copy(params, &copy, NULL) != 0)
		return;
	if (!mcp_put(copy, "progressToken", json_object_get(call->token))) {
		json_object_put(copy);
		copy = NULL;
	}
	m = mcp_object("jsonrpc", json_object_new_string("2.0"), "method",
	    json_object_new_string("notifications/progress"), "params", copy, NULL);
	if (call->reply != NULL)
		mcp_http_message(call->reply, m);
	else
		mcp_session_notify(call->session, m);
	json_object_put(m);
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

/* ---- lists ---- */

static bool
several(const struct mcp_hub *hub)
{
	const struct mcp_child *first = TAILQ_FIRST(&hub->children);

	return first != NULL && TAILQ_NEXT(first, entry) != NULL;
}

/* "files_read"; of a URI "file://files/path". */
static struct json_object *
prefixed(const char *server, const char *label, const char *value)
{
	const char *path = strstr(value, "://");
	struct json_object *v = NULL;
	char *text = NULL;
	int n;

	if (strncmp(label, "uri", 3) != 0)
		n = asprintf(&text, "%s_%s", server, value);
	else if (path != NULL)
		n = asprintf(&text, "%.*s%s/%s", (int)(path + 3 - value), value, server, path + 3);
	else
		n = asprintf(&text, "%s", value);
	if (n >= 0)
		v = json_object_new_string(text);
	free(n >= 0 ? text : NULL);
	return v;
}

/* An item may be null: what a server sent goes on to the client. */
static bool
list_add(struct json_object *list, struct json_object *item)
{
	if (item != NULL)
		return mcp_append(list, json_object_get(item));
	return list != NULL && json_object_array_add(list, NULL) == 0;
}

static void
list_finish(struct mcp_call *call)
{
	struct json_object *all = json_object_new_array();
	bool prefix = call->n > 1, whole = true;
	size_t i, k;

	/* one server's failure is the answer only if it is the only one */
	if (call->n == 1 && call->parts[0].failure[0] != '\0') {
		reply_error(call->session, call->reply, call->id, 0, call->parts[0].failure);
		json_object_put(all);
		call_free(call);
		return;
	}
	for (i = 0; i < call->n; i++) {
		struct mcp_part *part = &call->parts[i];

		if (part->failure[0] != '\0')
			hr_log(HR_LOG_WARNING, "%s: %s", call->method->name, part->failure);
		if (part->child == NULL)
			continue;
		for (k = 0; k < hr_json_count(part->items); k++) {
			struct json_object *item = json_object_array_get_idx(part->items, k);
			const char *label = call->method->label;

			if (prefix && json_object_is_type(item, json_type_object))
				whole = mcp_put(item, label,
					    prefixed(part->child->name, label,
						hr_json_text_or(item, label, ""))) &&
					whole;
			whole = list_add(all, item) && whole;
		}
	}
	if (!whole) {
		json_object_put(all);
		all = NULL;
	}
	reply_result(
	    call->session, call->reply, call->id, mcp_object(call->method->items, all, NULL));
	call_free(call);
}

static void
list_page(void *arg, struct json_object *result, struct json_object *error, const char *failure);

static void
list_ask(struct mcp_part *part, struct json_object *cursor)
{
	struct json_object *params = NULL;

	if (cursor != NULL) {
		params = mcp_object("cursor", json_object_get(cursor), NULL);
		if (params == NULL)
			return;
	}
	part->pending = mcp_child_request(
	    part->child, part->call->method->name, params, false, LIST_LIMIT_S, list_page, part);
	json_object_put(params);
}

/* The names it has, to know whose a call is. */
static void
remember_tools(struct mcp_part *part)
{
	struct json_object *names = json_object_new_object();
	size_t i;

	/* without memory for one its calls go to the server whose name they begin with */
	for (i = 0; i < json_object_array_length(part->items); i++)
		(void)mcp_put(names,
		    hr_json_text_or(json_object_array_get_idx(part->items, i), "name", ""),
		    json_object_new_boolean(1));
	json_object_put(part->child->tools);
	part->child->tools = names;
}

static void
list_page(void *arg, struct json_object *result, struct json_object *error, const char *failure)
{
	struct mcp_part *part = arg;
	struct mcp_call *call = part->call;
	struct json_object *items = hr_json_at(result, call->method->items), *cursor;
	struct json_object *code = hr_json_at(error, "code");
	bool whole = true, endless;
	size_t i;

	part->pending = NULL;
	for (i = 0; whole && i < hr_json_count(items); i++)
		whole = list_add(part->items, hr_json_entry(items, i));
	cursor = hr_json_at(result, "nextCursor");
	endless = cursor != NULL && ++part->pages >= PAGES_MAX;
	if (whole && cursor != NULL && !endless)
		list_ask(part, cursor);
	if (part->pending != NULL)
		return;
	if (endless)
		failure = "the list has no end";
	else if (!whole || cursor != NULL)
		failure = "out of memory";
	if (failure != NULL)
		(void)snprintf(part->failure, sizeof(part->failure), "%s", failure);
	else if (error != NULL && json_object_get_int(code) != METHOD_NOT_FOUND)
		(void)snprintf(part->failure, sizeof(part->failure), "%s",
		    hr_json_text_or(error, "message", ""));
	if (call->method == &methods[0] && part->failure[0] == '\0')
		remember_tools(part);
	if (--call->left == 0)
		list_finish(call);
}

static void
list(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    const struct mcp_method *method)
{
	struct mcp_child *c;
	struct mcp_call *call;
	size_t n = 0;

	TAILQ_FOREACH(c, &s->hub->children, entry)
	{
		n++;
	}
	call = call_new(s, req, id, method, n);
	if (call == NULL)
		return;
	n = 0;
	TAILQ_FOREACH(c, &s->hub->children, entry)
	{
		struct mcp_part *part = &call->parts[n++];

		part->call = call;
		part->child = c;
		part->items = json_object_new_array();
		if (part->items != NULL)
			list_ask(part, NULL);
		if (part->pending != NULL)
			call->left++;
		else
			(void)snprintf(part->failure, sizeof(part->failure), "out of memory");
	}
	if (call->left == 0)
		list_finish(call);
}

/* ---- one server ---- */

static void
answered(void *arg, struct json_object *result, struct json_object *error, const char *failure)
{
	struct mcp_part *part = arg;
	struct mcp_call *call = part->call;

	part->pending = NULL;
	if (result != NULL) {
		reply_result(call->session, call->reply, call->id, json_object_get(result));
	} else if (call->method->kind == RPC_TOOL) {
		reply_result(call->session, call->reply, call->id,
		    tool_failure(
			failure != NULL ? failure : hr_json_text_or(error, "message", "")));
	} else if (failure != NULL) {
		reply_error(call->session, call->reply, call->id, 0, failure);
	} else {
		reply(call->session, call->reply,
		    answer_new(call->id, "error", json_object_get(error)));
	}
	call_free(call);
}

/* The server whose name a value begins with, the last one first, and what is left of the value;
 * NULL in that: no memory. Of several, one that is known to have the rest comes first. */
static struct mcp_child *
owner(struct mcp_hub *hub, const struct mcp_method *method, const char *value,
    struct json_object **ret_value)
{
	const char *path = strstr(value, "://"), *from = value;
	bool uri = method->kind == RPC_RESOURCE;
	struct mcp_child *c, *best = NULL;
	size_t len;

	if (!several(hub)) {
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
		if (method->kind == RPC_TOOL && hr_json_at(c->tools, from + len + 1) != NULL) {
			best = c;
			break;
		}
	}
	if (best == NULL)
		return NULL;
	len = strlen(best->name) + 1;
	if (uri) {
		char *text = NULL;

		if (asprintf(&text, "%.*s%s", (int)(from - value), value, from + len) < 0)
			text = NULL;
		*ret_value = text != NULL ? json_object_new_string(text) : NULL;
		free(text);
	} else {
		*ret_value = json_object_new_string(from + len);
	}
	return best;
}

static void
ask_one(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    const struct mcp_method *method, struct json_object *params)
{
	const char *value = hr_json_text_or(params, method->label, "");
	struct json_object *mine = NULL, *rest = NULL, *meta;
	struct mcp_child *c = owner(s->hub, method, value, &rest);
	struct mcp_call *call;
	bool whole;
	char text[300];

	if (c == NULL) {
		json_object_put(rest);
		(void)snprintf(text, sizeof(text), "Unknown %s: %.200s",
		    method->kind == RPC_TOOL     ? "tool"
		    : method->kind == RPC_PROMPT ? "prompt"
						 : "resource",
		    value);
		if (method->kind == RPC_TOOL)
			reply_result(s, req, id, tool_failure(text));
		else
			reply_error(s, req, id, 0, text);
		return;
	}
	call = call_new(s, req, id, method, 1);
	if (params == NULL)
		mine = json_object_new_object();
	else if (json_object_deep_copy(params, &mine, NULL) != 0)
		mine = NULL;
	whole = mcp_put(mine, method->label, rest);
	if (call != NULL) {
		meta = hr_json_at(mine, "_meta");
		call->token = json_object_get(hr_json_at(meta, "progressToken"));
		call->parts[0].call = call;
		call->parts[0].child = c;
		if (whole)
			call->parts[0].pending = mcp_child_request(c, method->name, mine,
			    call->token != NULL, 0, answered, &call->parts[0]);
		if (call->parts[0].pending == NULL)
			answered(&call->parts[0], NULL, NULL, "out of memory");
	}
	json_object_put(mine);
}

/* ---- what comes ---- */

static void
initialize(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
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
	if (!mcp_put(result, "protocolVersion", json_object_new_string(version)) ||
	    !mcp_put(result, "serverInfo",
		mcp_object("name", json_object_new_string(name), "version",
		    json_object_new_string(PACKAGE_VERSION), NULL))) {
		json_object_put(result);
		result = NULL;
	}
	reply_result(s, req, id, result);
}

static void
take_request(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    const char *method, struct json_object *params)
{
	size_t i;

	if (strcmp(method, "initialize") == 0) {
		initialize(s, req, id, params);
		return;
	}
	if (strcmp(method, "ping") == 0) {
		reply_result(s, req, id, json_object_new_object());
		return;
	}
	if (!s->initialized) {
		reply_error(s, req, id, INVALID_PARAMS, "Invalid request parameters");
		return;
	}
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(method, methods[i].name) != 0)
			continue;
		if (methods[i].kind == RPC_LIST)
			list(s, req, id, &methods[i]);
		else
			ask_one(s, req, id, &methods[i], params);
		return;
	}
	reply_error(s, req, id, METHOD_NOT_FOUND, "Method not found");
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
	struct hr_json_error e;

	if (hr_json_decode(p, len, &m, &e) < 0)
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
mcp_rpc_message(struct mcp_session *s, struct json_object *message, struct evhttp_request *req)
{
	const char *method = hr_json_text_or(message, "method", "");
	struct json_object *id = mcp_rpc_id(message), *params = hr_json_at(message, "params");

	if (method[0] == '\0')
		return false; /* an answer to nothing that we asked */
	if (id == NULL) {
		take_notification(s, method, params);
		return false;
	}
	take_request(s, req, id, method, params);
	return true;
}
