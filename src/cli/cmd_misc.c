/* Implements config, id and version. */
#include "config.h"

#include "base/buf.h"
#include "cli/commands.h"

static int
config(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	HR_FREE char *text = NULL;

	(void)a;
	text = hr_config_json(c->config, &err);
	if (text == NULL)
		return cli_fail(&err);
	return cli_out_line(text);
}

const struct cli_command cli_config = {
    .name = "config", .help = "Print the settings as JSON, secrets masked.", .run = config};

static int
id(struct cli *c, const struct cli_args *a)
{
	const char *name = a->argc > 0 ? a->argv[0] : NULL;
	struct hr_err err = {0};
	HR_FREE char *sid = hr_session_id(c->config, name, &err);
	int r;

	if (sid == NULL)
		return cli_fail(&err);
	if (c->json)
		r = cli_done(c, "sid", sid, NULL);
	else
		r = cli_out_line(sid);
	return r;
}

const struct cli_command cli_id = {"id", NULL, "[NAME]",
    "Print a sandbox name made from NAME and jwt_secret; without NAME a new one.", NULL, 0, 1,
    CLI_PLAIN, id, NULL};

static int
version(struct cli *c, const struct cli_args *a)
{
	HR_BUF(b, 4096);

	(void)a;
	hr_buf_addf(&b, c->json ? "{\"version\":\"%s\"}\n" : "handrail %s\n", hr_version());
	return cli_out_buf(&b);
}

const struct cli_command cli_version = {
    .name = "version", .help = "Print the version.", .run = version};
