/* logs, top, sh: what a sandbox says and uses, and a terminal in it. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/quote.h"
#include "cli/commands.h"

static const struct cli_option logs_options[] = {
    {'f', "follow", NULL, "and what comes"},
    {0, NULL, NULL, NULL},
};

static int
on_line(void *arg, const char *line, size_t len)
{
	struct hr_buf b;
	int rc;

	(void)arg;
	hr_buf_init(&b, 8u << 20);
	hr_quote_text(&b, line, len);
	hr_buf_addc(&b, '\n');
	rc = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return rc;
}

static int
logs(struct cli *c, const struct cli_args *a)
{
	struct hr_error err = {0};
	struct hr_sandbox *s;
	int rc = CLI_ERROR;

	s = cli_attach(c, &rc);
	if (s != NULL)
		rc = hr_sandbox_logs(s, cli_value(a, 'f') != NULL, on_line, NULL, &err) == 0
			 ? CLI_OK
			 : cli_fail(&err);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_logs = {
    "logs", "", "Print the log of the sandbox's server.", logs_options, 0, 0, logs};

static int
top(struct cli *c, const struct cli_args *a)
{
	struct hr_error err = {0};
	struct hr_sandbox *s;
	char *text = NULL;
	int rc = CLI_ERROR;

	(void)a;
	s = cli_attach(c, &rc);
	if (s == NULL)
		return rc;
	if (hr_sandbox_stats(s, &text, &err) != 0)
		rc = cli_fail(&err);
	else if ((rc = cli_outs(text)) == CLI_OK)
		rc = cli_outs("\n");
	free(text);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_top = {
    "top", "", "Print what the sandbox uses, as JSON.", NULL, 0, 0, top};

static int
sh(struct cli *c, const struct cli_args *a)
{
	static const char *const shell[] = {"bash", NULL};
	struct hr_error err = {0};
	struct hr_sandbox *s;
	int rc = CLI_ERROR, status = 0;

	s = cli_attach(c, &rc);
	if (s == NULL)
		return rc;
	/* they are for the program at the terminal */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	rc = hr_sandbox_exec(
		 s, a->argc > 0 ? (const char *const *)a->argv : shell, &status, &err) == 0
		 ? status
		 : cli_fail(&err);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_sh = {"sh", "[COMMAND [ARGUMENT]...]",
    "A shell in the sandbox on this terminal, or another program.", NULL, 0, -1, sh};
