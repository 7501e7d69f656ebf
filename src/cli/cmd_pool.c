/* Implements pool: sandboxes made in advance. */
#include "config.h"

#include "base/buf.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "base/strv.h"

#define POOL_MAX 64

static const struct cli_option pool_options[] = {
    {'p', "plugin", "NAME", "vscode, none, ...; repeatable [agent_skills, jupyter]"},
    {'w', "while-used", NULL, "make more only while there is a sandbox"},
    {0, NULL, NULL, NULL},
};

static int
show(struct cli *c, const char *what, unsigned n)
{
	HR_BUF(b, 256);

	hr_buf_addf(&b, c->json ? "{\"%s\":%u}\n" : "%s: %u\n", what, n);
	return cli_out_buf(&b);
}

static int
pool(struct cli *c, const struct cli_args *a)
{
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	struct hr_sandbox_options o = cli_sandbox(c, NULL);
	struct hr_err err = {0};
	unsigned done = 0;
	long n;
	int r;

	if (!cli_number(a->argv[0], 0, POOL_MAX, &n))
		return cli_usage(
		    "pool: the number must be from 0 to %d, not \"%s\"", POOL_MAX, a->argv[0]);
	r = cli_choose_kind(c, NULL);
	if (r == CLI_OK)
		r = cli_plugins(a, &plugins);
	if (r != CLI_OK)
		return r;
	o.plugins = hr_strv_list(&plugins);
	o.while_used = cli_value(a, 'w') != NULL;
	o.progress = cli_progress;
	o.progress_arg = c;
	if (n == 0)
		r = hr_pool_drain(c->config, &o, &done, &err) == 0 ? show(c, "ended", done)
								   : cli_fail(&err);
	else
		r = hr_pool_fill(c->config, &o, (unsigned)n, &done, &err) == 0
			? show(c, "waiting", done)
			: cli_fail(&err);
	cli_progress_end(c);
	return r;
}

const struct cli_command cli_pool = {"pool", NULL, "NUMBER",
    "Keep NUMBER sandboxes waiting for the next \"up\"; 0 ends all that wait.", pool_options, 1, 1,
    CLI_PLAIN, pool, NULL};
