/* Implements url: addresses for a browser. */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "host/life/urls.h"
#include "proto/json.h"

char *
cli_page(struct cli *c, struct hr_sandbox *s)
{
	HR_BUF(note, 1 << 16);
	char *page = NULL;
	struct hr_err err = {0};

	if (hr_sandbox_page(s, &page, &err) != 0) {
		hr_buf_addf(&note, "it is unknown whether the server has a page: %s", err.msg);
		cli_note(c, hr_buf_str(&note));
	}
	return page;
}

static int
show(struct cli *c, const char *server, const char *page, const char *key, const char *vscode,
    const char *hosts)
{
	HR_BUF(b, 1 << 20);
	HR_PUT struct json_object *o = NULL;

	if (hr_json_decode(hosts, strlen(hosts), &o, NULL) < 0)
		return cli_error("the list of addresses from the sandbox is invalid");
	if (c->json) {
		hr_buf_addc(&b, '{');
		hr_json_put_named(&b, "server", server);
		hr_json_put_named(&b, "page", page);
		hr_json_put_named(&b, "key", key);
		hr_json_put_named(&b, "vscode", vscode);
		hr_buf_addf(&b, ",\"web_hosts\":%s}\n", hosts);
	} else {
		hr_buf_addf(&b, "server %s\n", server);
		if (page != NULL)
			hr_buf_addf(&b, "page   %s\n", page);
		if (vscode != NULL)
			hr_buf_addf(&b, "vscode %s\n", vscode);
		json_object_object_foreach(o, address, port)
		{
			hr_buf_addf(&b, "%-6d %s\n", json_object_get_int(port), address);
		}
	}
	return cli_out_buf(&b);
}

static int
print_urls(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	struct hr_err err = {0};
	HR_FREE char *server = NULL;
	HR_FREE char *page = NULL;
	HR_FREE char *vscode = NULL;
	HR_FREE char *hosts = NULL;

	(void)a;
	if (hr_sandbox_web_url(s, &server, &err) != 0 ||
	    hr_sandbox_vscode_url(s, &vscode, &err) != 0 ||
	    hr_sandbox_web_hosts(s, &hosts, &err) != 0)
		return cli_fail(&err);
	page = cli_page(c, s);
	return show(
	    c, server != NULL ? server : "-", page, hr_sandbox_session_api_key(s), vscode, hosts);
}

const struct cli_command cli_url = {"url", NULL, "[NAME]",
    "Print the addresses of the server, its page, the editor and two ports for programs.", NULL, 0,
    0, CLI_NAME, NULL, print_urls};
