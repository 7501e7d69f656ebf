/* Implements the tools ipython and browse, which need a plugin, and ports, which lists listening
 * sockets. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/path.h"
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

#define LISTENING 0x0A
#define PORTS_MAX 512

struct port {
	unsigned number;
	bool local; /* the socket listens on loopback only */
};

/* Parses one line of /proc/net/tcp or tcp6. Returns false unless the socket listens. */
static bool
parse_line(const char *line, struct port *ret)
{
	char address[33];
	unsigned port, state;

	if (sscanf(line, " %*u: %32[0-9A-F]:%4X %*32[0-9A-F]:%*4X %2X", address, &port, &state) !=
		3 ||
	    state != LISTENING)
		return false;
	ret->number = port;
	ret->local = strlen(address) == 8
			 ? strcmp(address + 6, "7F") == 0
			 : strcmp(address, "00000000000000000000000001000000") == 0;
	return true;
}

static void
read_ports(const char *file, struct port *v, size_t *n)
{
	HR_BUF(text, 16u << 20);
	struct port one;
	const char *line, *nl;
	size_t i;

	(void)hr_path_read(file, &text, NULL); /* a missing file means no listening sockets */
	for (line = hr_buf_str(&text); (nl = strchr(line, '\n')) != NULL; line = nl + 1) {
		if (!parse_line(line, &one))
			continue;
		for (i = 0; i < *n && v[i].number != one.number; i++)
			;
		if (i < *n)
			v[i].local = v[i].local && one.local;
		else if (*n < PORTS_MAX)
			v[(*n)++] = one;
	}
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
	struct port v[PORTS_MAX];
	size_t n = 0, i;

	read_ports("/proc/net/tcp", v, &n);
	read_ports("/proc/net/tcp6", v, &n);
	qsort(v, n, sizeof(v[0]), by_number);
	hr_buf_adds(&c->structured, "{\"ports\":[");
	for (i = 0; i < n; i++) {
		hr_buf_addf(&c->structured, "%s{\"port\":%u,\"loopback_only\":%s}",
		    i > 0 ? "," : "", v[i].number, v[i].local ? "true" : "false");
		hr_mcp_say(
		    c, "%u%s\n", v[i].number, v[i].local ? " (on 127.0.0.1 or ::1 alone)" : "");
	}
	hr_buf_adds(&c->structured, "]}");
	if (n == 0)
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
