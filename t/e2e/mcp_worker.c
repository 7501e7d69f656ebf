/* The tools of which the MCP project's conformance runner knows the names, in a worker that is ours
 * in all else: what is tried is how tools are listed, called and answered. For mcp_conformance.py,
 * by hand. */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "mcp/call.h"

#define PNG "data:image/png;base64,iVBORw0KGgo="
#define DOCUMENT "data:application/pdf;base64,JVBERi0="

static const struct hr_mcp_param none[] = {{NULL, HR_MCP_STR, false, NULL}};

static struct hr_span
span(const char *text)
{
	return (struct hr_span){text, strlen(text)};
}

static void
text(struct hr_mcp_call *c)
{
	hr_mcp_say(c, "This is a simple text response for testing.");
}

static void
image(struct hr_mcp_call *c)
{
	(void)hr_mcp_put_data(c, span(PNG), span("/x.png"));
}

static void
resource(struct hr_mcp_call *c)
{
	(void)hr_mcp_put_data(c, span(DOCUMENT), span("/x.pdf"));
}

static void
several(struct hr_mcp_call *c)
{
	text(c);
	image(c);
	resource(c);
}

static void
error(struct hr_mcp_call *c)
{
	hr_mcp_fail(c, "This tool intentionally returns an error for testing");
}

/* As a command that prints from time to time. */
static void
progress(struct hr_mcp_call *c)
{
	c->args = json_object_new_object();
	(void)json_object_object_add(c->args, "command",
	    json_object_new_string("sleep 1.2; for i in 1 2 3 4; do echo $i; sleep 0.5; done"));
	/* which is freed with the message */
	(void)json_object_object_add(c->rpc.whole, "fixture", c->args);
	hr_mcp_run.call(c);
}

#define TOOL(id, tool_name, function)                                                              \
	static const struct hr_mcp_tool id = {.name = (tool_name),                                 \
	    .title = (tool_name),                                                                  \
	    .help = "For a conformance runner.",                                                   \
	    .params = none,                                                                        \
	    .call = (function)}
TOOL(simple_text, "test_simple_text", text);
TOOL(image_content, "test_image_content", image);
TOOL(embedded_resource, "test_embedded_resource", resource);
TOOL(multiple_content_types, "test_multiple_content_types", several);
TOOL(error_handling, "test_error_handling", error);
TOOL(tool_with_progress, "test_tool_with_progress", progress);

const struct hr_mcp_tool *const hr_mcp_tools[] = {&simple_text, &image_content, &embedded_resource,
    &multiple_content_types, &error_handling, &tool_with_progress, &hr_mcp_run};
const size_t hr_mcp_tools_n = sizeof(hr_mcp_tools) / sizeof(hr_mcp_tools[0]);
