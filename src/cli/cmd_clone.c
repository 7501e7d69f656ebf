/* clone: a repository for a sandbox. */
#include "config.h"

#include <stdlib.h>

#include "cli/commands.h"

static const struct cli_option clone_options[] = {
    {'b', "branch", "NAME", "this one [a fresh one]"},
    {0, NULL, NULL, NULL},
};

static int
clone_it(struct cli *c, const struct cli_args *a)
{
	struct hr_error err = {0};
	struct hr_sandbox *s;
	char *dir = NULL;
	int rc = CLI_ERROR;

	if (a->argc == 0 && hr_config_text(c->config, "sandbox.selected_repo") == NULL)
		return cli_usage(
		    "clone: which repository? sandbox.selected_repo is not set either");
	s = cli_attach(c, &rc);
	if (s == NULL)
		return rc;
	if (hr_sandbox_clone(
		s, a->argc > 0 ? a->argv[0] : NULL, cli_value(a, 'b'), true, &dir, &err) != 0)
		rc = cli_fail(&err);
	else if (c->json)
		rc = cli_done(c, "sid", c->name, "directory", dir, NULL);
	else if ((rc = cli_outs(dir)) == CLI_OK)
		rc = cli_outs("\n");
	free(dir);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_clone = {"clone", "[REPOSITORY]",
    "Clone a repository into the sandbox; the shell goes there.", clone_options, 0, 1, clone_it};
