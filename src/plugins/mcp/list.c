/* Makes lists: requested from every server, page by page, and concatenated. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "plugins/mcp/rpc_int.h"
#include "proto/json.h"

#define LIST_LIMIT_S 30 /* seconds per page */
#define PAGES_MAX 256   /* pages per list; a server may continue for ever */

bool
mcp_has_several(const struct mcp_hub *hub)
{
	const struct mcp_child *first = TAILQ_FIRST(&hub->children);

	return first != NULL && TAILQ_NEXT(first, entry) != NULL;
}

/* Prefixes a name ("files_read") or a URI ("file://files/path"). */
static struct json_object *
prefixed(const char *server, const char *label, const char *value)
{
	const char *path = strstr(value, "://");
	HR_FREE char *text = NULL;
	int n;

	if (strncmp(label, "uri", 3) != 0)
		n = asprintf(&text, "%s_%s", server, value);
	else if (path != NULL)
		n = asprintf(&text, "%.*s%s/%s", (int)(path + 3 - value), value, server, path + 3);
	else
		n = asprintf(&text, "%s", value);
	return n >= 0 ? json_object_new_string(text) : NULL;
}

/* Appends an item, which may be null: a server's list is passed on to the client as it is. */
static bool
list_add(struct json_object *list, struct json_object *item)
{
	if (item != NULL)
		return hr_json_append(list, json_object_get(item), NULL) == 0;
	return list != NULL && json_object_array_add(list, NULL) == 0;
}

static void
list_finish(struct mcp_call *call)
{
	struct json_object *all;
	bool prefix = call->n > 1, whole = true;
	size_t i, k;

	/* one server's failure becomes the reply only if there are no other servers */
	if (call->n == 1 && call->parts[0].failure[0] != '\0') {
		mcp_reply_error(call->session, call->reply, call->id, 0, call->parts[0].failure);
		mcp_call_free(call);
		return;
	}
	all = json_object_new_array();
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
				whole = hr_json_set(item, label,
					    prefixed(part->child->name, label,
						hr_json_text_or(item, label, "")),
					    NULL) == 0 &&
					whole;
			whole = list_add(all, item) && whole;
		}
	}
	if (!whole)
		hr_json_drop(&all);
	mcp_reply_result(call->session, call->reply, call->id,
	    hr_json_object(NULL, call->method->items, all, NULL));
	mcp_call_free(call);
}

static void
list_page(void *arg, struct json_object *result, struct json_object *error, const char *failure);

static void
list_ask(struct mcp_part *part, struct json_object *cursor)
{
	HR_PUT struct json_object *params = NULL;

	if (cursor != NULL) {
		params = hr_json_object(NULL, "cursor", json_object_get(cursor), NULL);
		if (params == NULL)
			return;
	}
	part->pending = mcp_child_request(
	    part->child, part->call->method->name, params, false, LIST_LIMIT_S, list_page, part);
}

/* Records a server's tool names, to find the owner of a call. */
static void
remember_tools(struct mcp_part *part)
{
	struct json_object *names = json_object_new_object();
	size_t i;

	/* a failure is harmless: the owner of an unrecorded name is found by its prefix */
	for (i = 0; i < json_object_array_length(part->items); i++)
		(void)hr_json_set(names,
		    hr_json_text_or(json_object_array_get_idx(part->items, i), "name", ""),
		    json_object_new_boolean(1), NULL);
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
	else if (error != NULL && json_object_get_int(code) != MCP_METHOD_NOT_FOUND)
		(void)snprintf(part->failure, sizeof(part->failure), "%s",
		    hr_json_text_or(error, "message", ""));
	if (strcmp(call->method->items, "tools") == 0 && part->failure[0] == '\0')
		remember_tools(part);
	if (--call->left == 0)
		list_finish(call);
}

void
mcp_list(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    const struct mcp_method *method)
{
	struct mcp_child *c;
	struct mcp_call *call;
	size_t n = 0;

	TAILQ_FOREACH(c, &s->hub->children, entry)
	{
		n++;
	}
	call = mcp_call_new(s, req, id, method, n);
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
