/* config, id, completion, version. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/commands.h"

static int
config(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	char *text;
	int rc;

	(void)a;
	text = hr_config_json(c->config, &err);
	if (text == NULL)
		return cli_fail(&err);
	rc = cli_outs(text);
	rc = rc == CLI_OK ? cli_outs("\n") : rc;
	free(text);
	return rc;
}

const struct cli_command cli_config = {
    "config", "", "Print the settings as JSON, secrets masked.", NULL, 0, 0, config};

static int
id(struct cli *c, const struct cli_args *a)
{
	const char *name = a->argc > 0 ? a->argv[0] : NULL;
	struct hr_err err = {0};
	char *sid = hr_session_id(c->config, name, &err);
	int rc;

	if (sid == NULL)
		return cli_fail(&err);
	if (c->json)
		rc = cli_done(c, "sid", sid, NULL);
	else if ((rc = cli_outs(sid)) == CLI_OK)
		rc = cli_outs("\n");
	free(sid);
	return rc;
}

const struct cli_command cli_id = {"id", "[NAME]",
    "Print a sandbox name made from NAME and jwt_secret; without NAME a new one.", NULL, 0, 1, id};

static int
version(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	int rc;

	(void)a;
	hr_buf_init(&b, 4096);
	hr_buf_addf(&b, c->json ? "{\"version\":\"%s\"}\n" : "handrail %s\n", hr_version());
	rc = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return rc;
}

const struct cli_command cli_version = {"version", "", "Print the version.", NULL, 0, 0, version};

static void
put_words(struct hr_buf *b, const struct cli_option *o)
{
	for (; o != NULL && o->name != NULL; o++)
		hr_buf_addf(b, " --%s", o->name);
}

/* A function for bash, made from the tables, so that it cannot forget a command. */
static int
completion(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	int rc;

	(void)c;
	(void)a;
	hr_buf_init(&b, 1 << 20);
	hr_buf_adds(&b, "# bash: source <(handrail completion)\n"
			"_handrail() {\n"
			"\tlocal words cur=${COMP_WORDS[COMP_CWORD]}\n"
			"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
			"\t\twords='");
	for (size_t i = 0; i < cli_commands_n; i++)
		hr_buf_addf(&b, "%s%s", i > 0 ? " " : "", cli_commands[i]->name);
	hr_buf_adds(&b, "'\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < cli_commands_n; i++) {
		hr_buf_addf(&b, "\t\t%s) words='", cli_commands[i]->name);
		put_words(&b, cli_commands[i]->options);
		put_words(&b, cli_common);
		hr_buf_adds(&b, "' ;;\n");
	}
	hr_buf_adds(&b, "\t\tesac\n\tfi\n"
			"\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
			"}\n"
			"complete -o default -F _handrail handrail\n");
	rc = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return rc;
}

const struct cli_command cli_completion = {
    "completion", "", "Print completion for bash.", NULL, 0, 0, completion};
