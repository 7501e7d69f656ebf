/* The MCP proxy: what it makes of a client's list of servers, and messages of several parts. A
 * value that could not be made is none, never one that lacks something. */
#include "config.h"

#include <json-c/json.h>

#include "fault.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"

/* HTTP, which nothing here comes to. */
void
mcp_http_message(struct evhttp_request *req, struct json_object *message)
{
	(void)req;
	(void)message;
}

void
mcp_http_event(struct evhttp_request *req, const char *event, const char *data)
{
	(void)req;
	(void)event;
	(void)data;
}

void
mcp_http_end(struct evhttp_request *req)
{
	(void)req;
}

/* Not by json-c, which loses parts of a text without saying so. */
static int
tell(struct json_object *v, struct hr_err *err)
{
	HR_BUF(b, 4096);
	int r;

	if (v == NULL)
		return hr_err_nomem(err);
	(void)hr_json_put(&b, v);
	r = hr_buf_check(&b, err);
	if (r == 0)
		fault_tell_bytes(b.p, b.len);
	json_object_put(v);
	return r;
}

static int
words(struct hr_err *err)
{
	return tell(mcp_split_words("-y 'a b' \"c\\\"d\" e\\ f"), err);
}

static struct json_object *
entry(void)
{
	return hr_json_object(NULL, "name", json_object_new_string(" files "), "command",
	    json_object_new_string("npx"), "args", json_object_new_string("-y server /w"), "env",
	    json_object_new_string("A=1, B=x=2"), NULL);
}

static int
configuration(struct hr_err *err)
{
	struct json_object *given = entry();
	int r = given != NULL ? tell(mcp_normal_config(given), err) : hr_err_nomem(err);

	json_object_put(given);
	return r;
}

const struct fault_scenario fault_scenarios[] = {
    {"words", words, 0}, {"configuration", configuration, 0}, {NULL, NULL, 0}};
