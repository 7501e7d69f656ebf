/* Parses the options of commands, and prints the help. */
#include "config.h"

#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "base/text/nearest.h"
#include "cli/commands.h"
#include "host/config/settings.h"

#define OPTIONS_MAX 40

const struct cli_option cli_common[] = {
    {'n', "name", "NAME", "the sandbox [default]"},
    {'r', "runtime", "BACKEND", "local, docker, ... [core.runtime]"},
    {'c', "config-file", "FILE", "file of settings [config.toml]"},
    {'s', "set", "KEY=VALUE", "one setting, such as sandbox.timeout=60"},
    {'j', "json", NULL, "print JSON"},
    {'q', "quiet", NULL, "print no notes on stderr"},
    {CLI_ANY_OWNER, "any-owner", NULL, "accept a sandbox that another user created"},
    {'h', "help", NULL, "print this help"},
    {0, NULL, NULL, NULL},
};

int
cli_add_given(struct cli_args *a, char letter, const char *value)
{
	struct cli_given *g = reallocarray(a->given, a->n + 1, sizeof(*g));

	if (g == NULL)
		return -1;
	a->given = g;
	a->given[a->n++] = (struct cli_given){letter, value};
	return 0;
}

static size_t
add_options(const struct cli_option *o, struct option *longs, size_t n, char *shorts)
{
	size_t at = strlen(shorts);

	for (; o != NULL && o->name != NULL; o++) {
		hr_assert(n < OPTIONS_MAX - 1);
		longs[n++] = (struct option){
		    o->name, o->arg != NULL ? required_argument : no_argument, NULL, o->letter};
		if (o->letter < 32)
			continue;
		shorts[at++] = o->letter;
		if (o->arg != NULL)
			shorts[at++] = ':';
	}
	shorts[at] = '\0';
	return n;
}

/* Reports an unknown option, with a suggestion. */
static int
no_option(const struct cli_command *cmd, const char *word, const struct option *longs, size_t n)
{
	const char *names[OPTIONS_MAX + 1], *near, *at = *cmd->help != '\0' ? cmd->name : "";
	bool is_long = strncmp(word, "--", 2) == 0;
	size_t i;

	cli_say("%s%sthere is no option \"%s\"%s; see \"handrail %s%s--help\"", at,
	    *at != '\0' ? ": " : "", word, is_long ? ", or it takes no value" : "", at,
	    *at != '\0' ? " " : "");
	for (i = 0; i < n; i++)
		names[i] = longs[i].name;
	if (*at == '\0')
		names[n++] = "version";
	near = is_long ? hr_nearest(word + 2, names, n) : NULL;
	if (cli_guess_option(cmd->name, word) != NULL)
		cli_say("%s: %s", word, cli_guess_option(cmd->name, word));
	else if (near != NULL)
		cli_say("did you mean \"--%s\"?", near);
	return CLI_USAGE;
}

int
cli_read_options(const struct cli_command *cmd, int argc, char **argv, struct cli_args *a)
{
	static const char *const for_help[] = {"-h", "--help", NULL};
	char shorts[3 * OPTIONS_MAX] = "+:";
	struct option longs[OPTIONS_MAX] = {0};
	size_t n = add_options(cli_common, longs, 0, shorts);
	int c;

	n = add_options(cmd->options, longs, n, shorts);
	*a = (struct cli_args){a->given, a->n, argc - 1, argv + 1};
	if (cmd->form == CLI_RAW && (argc < 2 || !hr_is_one_of(argv[1], for_help)))
		return CLI_OK;
	opterr = 0;
	optind = 0; /* restarts getopt, also for a second list */
	while (
	    (c = getopt_long(argc, argv, shorts + (cmd->form < CLI_VERBATIM), longs, NULL)) != -1) {
		if (c == ':')
			return cli_usage(
			    "%s: option \"%s\" needs a value", cmd->name, argv[optind - 1]);
		if (c == '?') {
			const char *word = argv[optind - 1];
			const char one[] = {'-', (char)optopt, '\0'};

			return no_option(
			    cmd, optopt > 32 && strncmp(word, "--", 2) != 0 ? one : word, longs, n);
		}
		if (cli_add_given(a, (char)c, optarg != NULL ? optarg : "") != 0)
			return cli_no_memory();
	}
	a->argc = argc - optind;
	a->argv = argv + optind;
	return CLI_OK;
}

static void
put_options(struct hr_buf *b, const struct cli_option *o)
{
	char left[64];

	for (; o != NULL && o->name != NULL; o++) {
		(void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter < 32 ? ' ' : '-',
		    o->letter < 32 ? ' ' : o->letter, o->letter < 32 ? " " : ",", o->name,
		    o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
		hr_buf_addf(b, "  %-30s %s\n", left, o->help);
	}
}

static void
put_setting(void *arg, const char *key, const char *help)
{
	struct hr_buf *b = arg;

	hr_buf_addf(b, "  %-30s %s\n", key, help);
}

int
cli_help_of(const struct cli_command *cmd, const struct cli *c)
{
	HR_BUF(b, 1 << 20);
	HR_BUF(own, 1 << 20);

	hr_buf_addf(&b, "usage: handrail %s [OPTION]...%s%s\n\n%s\n", cmd->name,
	    cmd->args != NULL ? " " : "", cmd->args != NULL ? cmd->args : "", cmd->help);
	if (cmd->alias != NULL)
		hr_buf_addf(&b, "\"handrail %s\" is the same.\n", cmd->alias);
	hr_buf_addc(&b, '\n');
	put_options(&b, cmd->options);
	put_options(&b, cli_common);
	if (c != NULL && hr_config_options(c->config, c->env, put_setting, &own, NULL) == 0 &&
	    own.len > 0)
		hr_buf_addf(&b, "\nBack-end settings (--set KEY=VALUE):\n%s", hr_buf_str(&own));
	return cli_out_buf(&b);
}

int
cli_help(const char *group)
{
	HR_BUF(b, 1 << 20);
	HR_BUF(names, 1 << 10);
	const struct cli_section *s = NULL;
	size_t i, next = 0;

	hr_buf_addf(&b, "usage: handrail %s%s[ARGUMENT]...\n",
	    group != NULL ? group : "[OPTION]... COMMAND",
	    group != NULL ? " COMMAND [OPTION]... " : " [OPTION]... ");
	for (i = 0; i < cli_commands_n; i++) {
		const struct cli_command *cmd = cli_commands[i];
		const bool first = next < cli_sections_n && cli_sections[next].first == cmd;

		if (first)
			s = &cli_sections[next++];
		if (group != NULL && (s->group == NULL || strcmp(s->group, group) != 0))
			continue;
		if (first)
			hr_buf_addf(&b, "\n%s:\n", s->title);
		hr_buf_reset(&names);
		hr_buf_addf(&names, "%s%s%s", cmd->name, cmd->alias != NULL ? ", " : "",
		    cmd->alias != NULL ? cmd->alias : "");
		hr_buf_addf(&b, "  %-17s %s\n", hr_buf_str(&names), cmd->help);
	}
	hr_buf_adds(&b, "\nOptions of every command:\n");
	put_options(&b, cli_common);
	hr_buf_adds(&b,
	    "\nLimits default to none, and \"local\" and \"cli\" isolate nothing: see WARNING in "
	    "handrail(1).\n");
	return cli_out_buf(&b);
}
