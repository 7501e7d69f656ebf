/* Lists the tools for clients and checks the arguments of a call. */
#include "config.h"

#include "mcp/call.h"

#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

static const char *const type_schemas[] = {
    [HR_MCP_STR] = "\"type\":\"string\"",
    [HR_MCP_INT] = "\"type\":\"integer\"",
    [HR_MCP_NUM] = "\"type\":\"number\"",
    [HR_MCP_BOOL] = "\"type\":\"boolean\"",
    [HR_MCP_MAP] = "\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}",
    [HR_MCP_LIST] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
};
static const char *const type_names[] = {
    [HR_MCP_STR] = "a string",
    [HR_MCP_INT] = "an integer",
    [HR_MCP_NUM] = "a number",
    [HR_MCP_BOOL] = "true or false",
    [HR_MCP_MAP] = "an object of strings",
    [HR_MCP_LIST] = "a list of strings",
};

/* Returns true if the plugin's socket exists: workers find the plugin by it (PROTOCOL). */
static bool
is_there(const char *run_dir, const struct hr_mcp_tool *t)
{
	HR_BUF(path, 4096);

	if (t->plugin == NULL)
		return true;
	hr_buf_addf(&path, "%s/action/%s", run_dir, t->plugin);
	return path.fail == HR_OK && access(hr_buf_str(&path), F_OK) == 0;
}

static const char *
yes(bool b)
{
	return b ? "true" : "false";
}

static void
put_tool(struct hr_buf *b, const struct hr_mcp_tool *t)
{
	const struct hr_mcp_param *p;
	bool first = true;

	hr_buf_addc(b, '{');
	hr_json_put_named(b, "name", t->name);
	hr_json_put_named(b, "title", t->title);
	hr_json_put_named(b, "description", t->help);
	hr_buf_adds(b, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
	for (p = t->params; p->name != NULL; p++) {
		hr_buf_addf(
		    b, "%s\"%s\":{%s", p == t->params ? "" : ",", p->name, type_schemas[p->type]);
		hr_json_put_named(b, "description", p->help);
		hr_buf_addc(b, '}');
	}
	hr_buf_adds(b, "},\"required\":[");
	for (p = t->params; p->name != NULL; p++)
		if (p->required) {
			hr_buf_addf(b, "%s\"%s\"", first ? "" : ",", p->name);
			first = false;
		}
	hr_buf_adds(b, "],\"additionalProperties\":false}");
	if (t->output != NULL)
		hr_buf_addf(b, ",\"outputSchema\":%s", t->output);
	hr_buf_addf(b,
	    ",\"annotations\":{\"readOnlyHint\":%s,\"destructiveHint\":%s,\"idempotentHint\":%s,"
	    "\"openWorldHint\":%s}}",
	    yes(t->reads), yes(t->destroys), yes(t->idempotent), yes(t->open_world));
}

void
hr_mcp_put_tools(struct hr_buf *b, const char *run_dir)
{
	bool first = true;
	size_t i;

	hr_buf_adds(b, "\"tools\":[");
	for (i = 0; i < hr_mcp_tools_n; i++) {
		if (!is_there(run_dir, hr_mcp_tools[i]))
			continue;
		if (!first)
			hr_buf_addc(b, ',');
		first = false;
		put_tool(b, hr_mcp_tools[i]);
	}
	hr_buf_addc(b, ']');
}

const struct hr_mcp_tool *
hr_mcp_find(const char *run_dir, const char *name)
{
	size_t i;

	for (i = 0; i < hr_mcp_tools_n; i++)
		if (strcmp(hr_mcp_tools[i]->name, name) == 0)
			return is_there(run_dir, hr_mcp_tools[i]) ? hr_mcp_tools[i] : NULL;
	return NULL;
}

static bool
is_of(struct json_object *v, enum hr_mcp_type type)
{
	enum hr_py_type t = hr_json_type(v);

	switch (type) {
	case HR_MCP_STR: return t == HR_PY_STR;
	case HR_MCP_INT: return t == HR_PY_INT;
	case HR_MCP_NUM: return t == HR_PY_INT || t == HR_PY_FLOAT;
	case HR_MCP_BOOL: return t == HR_PY_BOOL;
	case HR_MCP_MAP: return t == HR_PY_DICT && hr_json_all_strings(v);
	case HR_MCP_LIST: return t == HR_PY_LIST && hr_json_all_strings(v);
	}
	return false;
}

static const struct hr_mcp_param *
param_of(const struct hr_mcp_tool *t, const char *name)
{
	const struct hr_mcp_param *p;

	for (p = t->params; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

static void
say_params(struct hr_mcp_call *c, const struct hr_mcp_tool *t)
{
	const struct hr_mcp_param *p;

	hr_mcp_say(c, " %s takes", t->name);
	for (p = t->params; p->name != NULL; p++)
		hr_mcp_say(c, "%s %s (%s%s)", p == t->params ? "" : ",", p->name,
		    type_names[p->type], p->required ? ", required" : "");
	hr_mcp_say(c, ".");
}

bool
hr_mcp_check_args(struct hr_mcp_call *c, const struct hr_mcp_tool *t)
{
	const struct hr_mcp_param *p;

	if (c->args != NULL) {
		json_object_object_foreach(c->args, key, value)
		{
			p = param_of(t, key);
			if (p != NULL && (value == NULL || is_of(value, p->type)))
				continue; /* null counts as a missing argument */
			if (p == NULL)
				hr_mcp_fail(c, "There is no argument \"%.100s\".", key);
			else
				hr_mcp_fail(c, "%s must be %s.", key, type_names[p->type]);
			say_params(c, t);
			return false;
		}
	}
	for (p = t->params; p->name != NULL; p++) {
		if (!p->required || hr_json_at(c->args, p->name) != NULL)
			continue;
		hr_mcp_fail(c, "%s is missing.", p->name);
		say_params(c, t);
		return false;
	}
	return true;
}
