/* Implements the tools ipython and browse, which need a plugin, and ports, which lists listening
 * sockets. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/peer.h"
#include "mcp/call.h"

static const struct hr_span no_key = {"", 0};

static void
put_content(struct hr_mcp_call *c, struct json_object *o)
{
	struct hr_span content = hr_json_span_or(o, "content", "");

	hr_buf_add(&c->text, content.p, content.len);
}

static void
put_url(struct hr_mcp_call *c, struct json_object *v)
{
	struct hr_span url, none = {"", 0};

	if (hr_json_type(v) != HR_PY_STR)
		return;
	url.p = hr_json_str(v, &url.len);
	(void)hr_mcp_put_data(c, url, none); /* a URL that is not an image is left out */
}

static const struct hr_mcp_param ipython_params[] = {
    {"code", HR_MCP_STR, true, "Python, with the magics of IPython."},
    {"wait_s", HR_MCP_NUM, false, "Seconds it may take; 25 if left out, then it is interrupted."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_ipython(struct hr_mcp_call *c)
{
	HR_PUT struct json_object *o = hr_mcp_perform(c, NULL, "run_ipython",
	    hr_json_object(NULL, "code", hr_mcp_json_str(hr_mcp_arg(c, "code")), NULL),
	    hr_mcp_wait_s(c, 1), 0, no_key);
	struct json_object *images = hr_json_at(hr_json_at(o, "extras"), "image_urls");
	size_t i;

	if (o == NULL || hr_mcp_is_error(c, o))
		return;
	put_content(c, o);
	for (i = 0; i < hr_json_count(images); i++)
		put_url(c, hr_json_entry(images, i));
}

const struct hr_mcp_tool hr_mcp_ipython = {.name = "ipython",
    .title = "Run Python",
    .help = "Runs Python in a kernel that lasts: variables and imports stay from call to call. "
	    "Returns what is printed, and plots as images.",
    .destroys = true,
    .open_world = true,
    .plugin = "run_ipython",
    .params = ipython_params,
    .call = call_ipython};

static const struct hr_mcp_param browse_params[] = {
    {"actions", HR_MCP_STR, true,
	"One call a line: goto('http://...'), click('12'), fill('12', 'text'), press('12', "
	"'Enter'), "
	"scroll(0, 300), go_back(), noop(1000). Numbers are those of the elements in the last "
	"answer."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_browse(struct hr_mcp_call *c)
{
	HR_PUT struct json_object *o = hr_mcp_perform(c, NULL, "browse_interactive",
	    hr_json_object(
		NULL, "browser_actions", hr_mcp_json_str(hr_mcp_arg(c, "actions")), NULL),
	    0, 0, no_key);

	if (o == NULL || hr_mcp_is_error(c, o))
		return;
	put_content(c, o);
	put_url(c, hr_json_at(hr_json_at(o, "extras"), "screenshot"));
}

const struct hr_mcp_tool hr_mcp_browse = {.name = "browse",
    .title = "Use the browser",
    .help = "Does things in a browser within the sandbox, and returns the page as text with "
	    "numbered elements, and a picture of it.",
    .destroys = true,
    .open_world = true,
    .plugin = "browse_interactive",
    .params = browse_params,
    .call = call_browse};

/* ---- ports ---- */

#define PORTS_MAX 512

struct port {
	unsigned number;
	bool local; /* the socket listens on loopback only */
};

struct ports {
	struct port v[PORTS_MAX];
	size_t n;
};

static void
note_port(void *arg, const char *address, unsigned port)
{
	struct ports *p = arg;
	const bool local = strlen(address) == 8
			       ? strcmp(address + 6, "7F") == 0
			       : strcmp(address, "00000000000000000000000001000000") == 0;
	size_t i;

	for (i = 0; i < p->n && p->v[i].number != port; i++)
		;
	if (i < p->n)
		p->v[i].local = p->v[i].local && local;
	else if (p->n < PORTS_MAX)
		p->v[p->n++] = (struct port){.number = port, .local = local};
}

static int
by_number(const void *a, const void *b)
{
	const struct port *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static void
call_ports(struct hr_mcp_call *c)
{
	struct ports p = {.n = 0};
	struct hr_err err = {0};
	size_t i;

	if (hr_peer_listeners(note_port, &p, &err) < 0) {
		hr_mcp_fail(c, "The list of sockets cannot be read: %s", err.msg);
		return;
	}
	qsort(p.v, p.n, sizeof(p.v[0]), by_number);
	hr_buf_adds(&c->structured, "{\"ports\":[");
	for (i = 0; i < p.n; i++) {
		hr_buf_addf(&c->structured, "%s{\"port\":%u,\"loopback_only\":%s}",
		    i > 0 ? "," : "", p.v[i].number, p.v[i].local ? "true" : "false");
		hr_mcp_say(
		    c, "%u%s\n", p.v[i].number, p.v[i].local ? " (on 127.0.0.1 or ::1 alone)" : "");
	}
	hr_buf_adds(&c->structured, "]}");
	if (p.n == 0)
		hr_mcp_say(c, "Nothing listens.");
}

static const struct hr_mcp_param no_params[] = {{NULL, HR_MCP_STR, false, NULL}};

const struct hr_mcp_tool hr_mcp_ports = {.name = "ports",
    .title = "List ports",
    .help = "The TCP ports on which programs in the sandbox listen, those of the sandbox's own "
	    "server among them.",
    .reads = true,
    .idempotent = true,
    .params = no_params,
    .output = "{\"type\":\"object\",\"properties\":{\"ports\":{\"type\":\"array\",\"items\":{"
	      "\"type\":\"object\",\"properties\":{\"port\":{\"type\":\"integer\"},"
	      "\"loopback_only\":{\"type\":\"boolean\"}},\"required\":[\"port\"]}}},\"required\":["
	      "\"ports\"]}",
    .call = call_ports};
