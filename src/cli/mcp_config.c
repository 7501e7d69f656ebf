/* Implements handrail mcp --print-config: a few lines for each client. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/process/pid.h"
#include "base/text/template.h"
#include "cli/cli.h"
#include "cli/mcp.h"
#include "proto/json.h"

static const struct {
	const char *name, *text; /* text is a template; both of its places are JSON */
} clients[] = {
    {"claude", "{\n  \"mcpServers\": {\n    \"sandbox\": {\"command\": @program@, \"args\": "
	       "[\"mcp\", \"--up\", @arguments@]}\n  }\n}\n"},
    {"cursor", "{\n  \"mcpServers\": {\n    \"sandbox\": {\"command\": @program@, \"args\": "
	       "[\"mcp\", \"--up\", @arguments@]}\n  }\n}\n"},
    {"vscode", "{\n  \"servers\": {\n    \"sandbox\": {\"type\": \"stdio\", \"command\": "
	       "@program@, \"args\": [\"mcp\", \"--up\", @arguments@]}\n  }\n}\n"},
    {"codex", "[mcp_servers.sandbox]\ncommand = @program@\nargs = [\"mcp\", \"--up\", "
	      "@arguments@]\nstartup_timeout_sec = 60\ntool_timeout_sec = 320\n"},
    {"goose", "extensions:\n  sandbox:\n    {type: stdio, enabled: true, name: sandbox, cmd: "
	      "@program@,\n     args: [mcp, --up, @arguments@],\n     timeout: 320}\n"},
};

static void
put_word(struct hr_buf *b, const char *word)
{
	if (b->len > 0)
		hr_buf_adds(b, ", ");
	(void)hr_json_put_str(b, word, strlen(word), HR_JSON_REPLACE);
}

/* Returns the option of that letter, the command's own or a common one. */
static const struct cli_option *
find_option(const struct cli_option *own, char letter)
{
	const struct cli_option *lists[] = {own, cli_common}, *o;
	size_t i;

	for (i = 0; i < 2; i++)
		for (o = lists[i]; o->name != NULL; o++)
			if (o->letter == letter)
				return o;
	return NULL;
}

/* Appends an option with an absolute path: the client starts the command in its own directory. */
static int
put_option(struct hr_buf *b, const struct cli_option *o, const char *value)
{
	HR_BUF(name, 128);
	HR_FREE char *whole = NULL;

	hr_buf_addf(&name, "--%s", o->name);
	put_word(b, hr_buf_str(&name));
	if (o->arg == NULL)
		return 0;
	if (o->letter == 'c') {
		whole = realpath(value, NULL);
		if (whole == NULL) {
			cli_say("--%s %s: %s", o->name, value, strerror(errno));
			return -1;
		}
		value = whole;
	}
	put_word(b, value);
	return 0;
}

/* Appends all given options except those that concern this call only. */
static int
put_options(
    struct hr_buf *b, const struct cli_args *a, const struct cli_option *own, const char *not_these)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		const struct cli_option *o = find_option(own, a->given[i].letter);

		if (o != NULL && strchr(not_these, o->letter) == NULL &&
		    put_option(b, o, a->given[i].value) != 0)
			return -1;
	}
	return 0;
}

int
cli_mcp_config(const struct cli *c, const struct cli_args *a, const struct cli_option *own,
    const char *not_these, const char *client)
{
	HR_BUF(name, 65536);
	HR_BUF(out, 131072);
	HR_BUF(program, 4 * PATH_MAX);
	struct hr_place places[] = {{"program", NULL, true}, {"arguments", NULL, true}};
	struct hr_err err = {0};
	char path[PATH_MAX] = "";
	size_t i;

	for (i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
		if (strcmp(clients[i].name, client) == 0)
			break;
	if (i == sizeof(clients) / sizeof(clients[0]))
		return cli_usage(
		    "--print-config must be claude, codex, cursor, goose or vscode, not \"%s\"",
		    client);
	put_word(&name, "-n");
	put_word(&name, c->name);
	if (put_options(&name, a, own, not_these) != 0)
		return CLI_USAGE;
	/* the client's PATH may lack this program */
	if (hr_pid_link(path, sizeof(path), "/proc/self/exe") < 0)
		return cli_error("/proc/self/exe: %s", strerror(errno));
	put_word(&program, path);
	places[0].value = hr_buf_str(&program);
	places[1].value = hr_buf_str(&name);
	if (hr_template_fill(&out, clients[i].text, strlen(clients[i].text), places, 2, &err) != 0)
		return cli_fail(&err);
	return out.fail == HR_OK && name.fail == HR_OK && program.fail == HR_OK ? cli_out_buf(&out)
										: cli_no_memory();
}
