/* handrail mcp --print-config: five lines for each client. */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/mcp.h"
#include "proto/json.h"

static const struct {
	const char *name, *format; /* %s: the sandbox's name, as JSON */
} clients[] = {
    {"claude", "{\n  \"mcpServers\": {\n    \"sandbox\": {\"command\": \"handrail\", \"args\": "
	       "[\"mcp\", \"--up\", \"-n\", %s]}\n  }\n}\n"},
    {"cursor", "{\n  \"mcpServers\": {\n    \"sandbox\": {\"command\": \"handrail\", \"args\": "
	       "[\"mcp\", \"--up\", \"-n\", %s]}\n  }\n}\n"},
    {"vscode", "{\n  \"servers\": {\n    \"sandbox\": {\"type\": \"stdio\", \"command\": "
	       "\"handrail\", \"args\": [\"mcp\", \"--up\", \"-n\", %s]}\n  }\n}\n"},
    {"codex", "[mcp_servers.sandbox]\ncommand = \"handrail\"\nargs = [\"mcp\", \"--up\", \"-n\", "
	      "%s]\nstartup_timeout_sec = 60\ntool_timeout_sec = 320\n"},
    {"goose", "extensions:\n  sandbox:\n    {type: stdio, enabled: true, name: sandbox, cmd: "
	      "handrail,\n     args: [mcp, --up, -n, %s],\n     timeout: 320}\n"},
};

int
cli_mcp_config(const struct cli *c, const char *client)
{
	HR_BUF(name, 65536);
	HR_BUF(out, 65536);
	const char *rest;
	size_t i;

	for (i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
		if (strcmp(clients[i].name, client) == 0)
			break;
	if (i == sizeof(clients) / sizeof(clients[0]))
		return cli_usage(
		    "--print-config knows claude, codex, cursor, goose and vscode, not \"%s\"",
		    client);
	(void)hr_json_put_str(&name, c->name, strlen(c->name), HR_JSON_REPLACE);
	rest = strstr(clients[i].format, "%s");
	hr_buf_add(&out, clients[i].format, (size_t)(rest - clients[i].format));
	hr_buf_add(&out, hr_buf_str(&name), name.len);
	hr_buf_adds(&out, rest + 2);
	return out.fail == HR_OK && name.fail == HR_OK ? cli_out_buf(&out)
						       : cli_usage("out of memory");
}
