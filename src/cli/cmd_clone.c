/* Implements clone and microagents: a repository for a sandbox, and its instructions for agents. */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "base/text/quote.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "host/handle.h"
#include "proto/json.h"

static const struct cli_option clone_options[] = {
    {'b', "branch", "NAME", "this branch [a new one]"},
    {0, NULL, NULL, NULL},
};

static int
clone_it(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	HR_FREE char *dir = NULL;
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	int r;

	if (a->argc == 0 && hr_config_text(c->config, "sandbox.selected_repo") == NULL &&
	    !hr_config_bool(c->config, "core.init_git_in_empty_workspace"))
		return cli_usage("repo clone: name the repository, or set sandbox.selected_repo");
	s = cli_attach(c, &r);
	if (s == NULL)
		return r;
	if (hr_sandbox_clone(
		s, a->argc > 0 ? a->argv[0] : NULL, cli_value(a, 'b'), true, &dir, &err) != 0)
		return cli_fail(&err);
	if (c->json)
		return cli_done(c, "sid", c->name, "directory", dir, NULL);
	return *dir != '\0' ? cli_out_line(dir) : CLI_OK;
}

const struct cli_command cli_clone = {"repo clone", NULL, "[REPOSITORY]",
    "Clone a repository into the sandbox and change the shell's directory to it.", clone_options, 0,
    1, CLI_PLAIN, clone_it, NULL};

static void
put_microagent(struct hr_buf *b, struct json_object *o)
{
	const char *name = hr_json_text_or(o, "name", ""),
		   *source = hr_json_text_or(o, "source", "");

	hr_quote_text(b, source, strlen(source));
	hr_buf_addf(b, "%*s ", strlen(source) < 12 ? (int)(12 - strlen(source)) : 0, "");
	hr_quote_text(b, name, strlen(name));
}

static int
microagents(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	return cli_answer(
	    c, s, a, hr_sandbox_microagents, "the list of microagents", put_microagent);
}

const struct cli_command cli_microagents = {"repo microagents", NULL, "[REPOSITORY]",
    "List the microagents of the workspace and its organisation.", NULL, 0, 1, CLI_PLAIN, NULL,
    microagents};
