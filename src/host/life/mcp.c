/* Passes the configuration's MCP servers to the server of a sandbox, which starts them
 * (doc/host.md, "MCP servers"). */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "host/report.h"
#include "proto/json.h"

#define BODY_MAX (16u << 20)
#define UPDATE_TIMEOUT_S 60

/* Compares name, command, arguments in order, and variables in any order. */
static bool
same(struct json_object *a, struct json_object *b)
{
	static const char *const members[] = {"name", "command", "args", "env"};
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (!json_object_equal(hr_json_at(a, members[i]), hr_json_at(b, members[i])))
			return false;
	return true;
}

static bool
among(struct json_object *list, struct json_object *server)
{
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++)
		if (same(json_object_array_get_idx(list, i), server))
			return true;
	return false;
}

/* Appends the entries of `more` that list lacks. Returns their number, or -1 without memory. */
static int
add_missing(struct json_object *list, struct json_object *more)
{
	size_t n = hr_json_count(more);
	int added = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		struct json_object *server = json_object_array_get_idx(more, i);

		if (among(list, server))
			continue;
		if (json_object_array_add(list, json_object_get(server)) != 0) {
			json_object_put(server);
			return -1;
		}
		added++;
	}
	return added;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(hr_json_text_or(*(struct json_object *const *)a, "name", ""),
	    hr_json_text_or(*(struct json_object *const *)b, "name", ""));
}

static void
put_servers(struct hr_buf *b, struct json_object *list)
{
	static const char *const members[] = {"name", "command", "args", "env"};
	static const char *const missing[] = {"\"\"", "\"\"", "[]", "{}"};
	size_t i;

	hr_buf_addc(b, '[');
	for (i = 0; i < json_object_array_length(list); i++) {
		size_t k;

		hr_buf_adds(b, i > 0 ? ",{" : "{");
		for (k = 0; k < 4; k++) {
			struct json_object *v =
			    hr_json_at(json_object_array_get_idx(list, i), members[k]);

			hr_buf_addf(b, "%s\"%s\":", k > 0 ? "," : "", members[k]);
			if (v == NULL)
				hr_buf_adds(b, missing[k]);
			else
				(void)hr_json_put(b, v);
		}
		hr_buf_addc(b, '}');
	}
	hr_buf_addc(b, ']');
}

static int
post(struct hr_sandbox *s, struct json_object *list, struct hr_err *err)
{
	const char *const headers[] = {"Content-Type: application/json", NULL};
	struct hr_http_request req = {.method = "POST",
	    .url = "/update_mcp_server",
	    .headers = headers,
	    .timeout_s = UPDATE_TIMEOUT_S,
	    .watch_fd = -1};
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	const char *log;
	HR_BUF(b, BODY_MAX);

	put_servers(&b, list);
	req.body = hr_buf_str(&b);
	req.body_len = b.len;
	if (hr_buf_check(&b, NULL) != 0)
		return hr_err_nomem(err);
	if (hr_client_send(&s->client, &req, &a, err) != 0)
		return -1;
	if (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, &o, NULL) == 0 &&
	    (log = hr_json_text_at(o, "router_error_log")) != NULL && *log != '\0')
		hr_sandbox_log(s, "Some MCP servers failed to be added: %.1500s", log);
	return 0;
}

int
hr_sandbox_add_mcp(struct hr_sandbox *s, const char *extra, struct hr_err *err)
{
	HR_PUT struct json_object *list = json_object_new_array();
	HR_PUT struct json_object *more = NULL;
	int first, added;

	if (!s->connected || s->endpoint.url == NULL)
		return hr_err_set(
		    err, HR_E_RUNTIME, "%s runtime does not support MCP servers", s->ops->name);
	if (extra != NULL && (hr_json_decode(extra, strlen(extra), &more, NULL) < 0 ||
				 !json_object_is_type(more, json_type_array)))
		return hr_err_set(err, HR_E_INVAL, "the MCP servers must be a JSON array");
	if (s->mcp == NULL)
		s->mcp = json_object_new_array();
	if (list == NULL || s->mcp == NULL || add_missing(list, s->mcp) < 0)
		return hr_err_nomem(err);
	first = add_missing(list, hr_config_value(s->config, "mcp.stdio_servers"));
	added = first < 0 ? -1 : add_missing(list, more);
	if (added < 0)
		return hr_err_nomem(err);
	/* nothing is new, so avoid a restart of the servers */
	if (first + added == 0)
		return 0;
	json_object_array_sort(list, by_name);
	if (post(s, list, err) != 0)
		return -1;
	json_object_put(s->mcp);
	s->mcp = json_object_get(list);
	return 0;
}
