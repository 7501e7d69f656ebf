/* config, id, version. */
#include "config.h"

#include <stdlib.h>

#include "base/buf.h"
#include "cli/commands.h"

static int
config(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	char *text;
	int r;

	(void)a;
	text = hr_config_json(c->config, &err);
	if (text == NULL)
		return cli_fail(&err);
	r = cli_outs(text);
	r = r == CLI_OK ? cli_outs("\n") : r;
	free(text);
	return r;
}

const struct cli_command cli_config = {
    "config", "", "Print the settings as JSON, secrets masked.", NULL, 0, 0, config};

static int
id(struct cli *c, const struct cli_args *a)
{
	const char *name = a->argc > 0 ? a->argv[0] : NULL;
	struct hr_err err = {0};
	char *sid = hr_session_id(c->config, name, &err);
	int r;

	if (sid == NULL)
		return cli_fail(&err);
	if (c->json)
		r = cli_done(c, "sid", sid, NULL);
	else if ((r = cli_outs(sid)) == CLI_OK)
		r = cli_outs("\n");
	free(sid);
	return r;
}

const struct cli_command cli_id = {"id", "[NAME]",
    "Print a sandbox name made from NAME and jwt_secret; without NAME a new one.", NULL, 0, 1, id};

static int
version(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	int r;

	(void)a;
	hr_buf_init(&b, 4096);
	hr_buf_addf(&b, c->json ? "{\"version\":\"%s\"}\n" : "handrail %s\n", hr_version());
	r = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return r;
}

const struct cli_command cli_version = {"version", "", "Print the version.", NULL, 0, 0, version};
