/* Answers POST /update_mcp_server (doc/http.md, "POST /update_mcp_server"): checks the whole body
 * and passes it to the proxy plugin. */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "actions/plugin.h"
#include "base/fd.h"
#include "proto/json.h"
#include "proto/mcpserver.h"
#include "worker/worker.h"

#define UPDATE_LIMIT_S 30

/* Makes {"action": TYPE, "args": {"servers": body}}. */
static struct json_object *
action_of(const char *type, struct json_object *body)
{
	return hr_json_object(NULL, "args",
	    hr_json_object(NULL, "servers", json_object_get(body), NULL), "action",
	    json_object_new_string(type), NULL);
}

/* Returns false if there is no such plugin. */
static bool
forward(const struct hr_worker *w, struct json_object *body, struct hr_answer *ret)
{
	static const char type[] = "update_mcp_server";
	const struct hr_action_env env = {
	    .run_dir = w->run_dir, .work_dir = w->work_dir, .channel = w->channel, .key = {"", 0}};
	HR_PUT struct json_object *action = NULL;
	HR_CLOSE int fd = -1;
	int r = hr_plugin_reach(w->run_dir, type, sizeof(type) - 1, &fd, ret);

	if (r <= 0)
		return r < 0;
	action = action_of(type, body);
	if (action == NULL)
		hr_answer_generic(ret);
	else
		hr_plugin_perform(&env, fd, type, action, UPDATE_LIMIT_S, ret);
	/* an interrupted plugin gives an error observation, which this endpoint's clients do not
	 * expect */
	if (ret->status == 200 && strstr(hr_buf_str(&ret->body), "router_error_log") == NULL)
		hr_answer_generic(ret);
	return true;
}

static void
update(const struct hr_worker *w, struct json_object *body, struct hr_answer *ret)
{
	size_t i;

	if (hr_json_type(body) != HR_PY_LIST) {
		hr_answer_detail(ret, 400, "Request must be a list of MCP tools to sync");
		return;
	}
	for (i = 0; i < json_object_array_length(body); i++) {
		HR_PUT struct json_object *server =
		    hr_mcpserver(json_object_array_get_idx(body, i), NULL);

		if (server == NULL) {
			hr_answer_generic(ret);
			return;
		}
	}
	if (forward(w, body, ret))
		return;
	if (i > 0)
		hr_answer_detail(ret, 501, "update_mcp_server is not available in this build");
	else
		hr_buf_adds(&ret->body,
		    "{\"detail\":\"MCP server updated successfully\",\"router_error_log\":\"\"}");
}

void
hr_handle_mcp(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = NULL;

	if (!hr_worker_body(w, r, HR_JSON_BODY_MAX, ret))
		return;
	if (hr_json_decode(hr_buf_str(&w->body), w->body.len, &body, NULL) < 0)
		hr_answer_generic(ret);
	else
		update(w, body, ret);
}
