/* url: what a person's browser can open. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "proto/json.h"

static void
put_text(struct hr_buf *b, const char *name, const char *text)
{
	hr_buf_addf(b, "\"%s\":", name);
	if (text != NULL)
		(void)hr_json_put_str(b, text, strlen(text), HR_JSON_REPLACE);
	else
		hr_buf_adds(b, "null");
	hr_buf_addc(b, ',');
}

static int
show(struct cli *c, const char *server, const char *key, const char *vscode, const char *hosts)
{
	struct json_object *o = NULL;
	struct hr_json_error why;
	struct hr_buf b;
	int r;

	if (hr_json_decode(hosts, strlen(hosts), &o, &why) < 0)
		return cli_usage("the list of addresses cannot be read");
	hr_buf_init(&b, 1 << 20);
	if (c->json) {
		hr_buf_addc(&b, '{');
		put_text(&b, "server", server);
		put_text(&b, "key", key);
		put_text(&b, "vscode", vscode);
		hr_buf_addf(&b, "\"web_hosts\":%s}\n", hosts);
	} else {
		hr_buf_addf(&b, "server %s\n", server);
		if (vscode != NULL)
			hr_buf_addf(&b, "vscode %s\n", vscode);
		json_object_object_foreach(o, address, port)
		{
			hr_buf_addf(&b, "%-6d %s\n", json_object_get_int(port), address);
		}
	}
	r = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	json_object_put(o);
	return r;
}

static int
print_urls(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	struct hr_sandbox *s;
	char *vscode = NULL, *hosts = NULL;
	int r = CLI_ERROR;

	(void)a;
	s = cli_attach(c, &r);
	if (s == NULL)
		return r;
	if (hr_sandbox_vscode_url(s, &vscode, &err) != 0 ||
	    hr_sandbox_web_hosts(s, &hosts, &err) != 0)
		r = cli_fail(&err);
	else
		r = show(c, hr_sandbox_url(s) != NULL ? hr_sandbox_url(s) : "-",
		    hr_sandbox_session_api_key(s), vscode, hosts);
	free(vscode);
	free(hosts);
	hr_sandbox_free(s);
	return r;
}

const struct cli_command cli_url = {"url", "",
    "Print the addresses of the server, the editor and two ports for programs.", NULL, 0, 0,
    print_urls};
