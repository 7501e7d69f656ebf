/* handrail: finds the subcommand, reads options and configuration, runs it. */
#include "config.h"

#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text/nearest.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "base/err.h"
#include "base/strv.h"
#include "host/handle.h"
#include "host/records/record.h"

#define OPTIONS_MAX 40

const struct cli_option cli_common[] = {
    {'n', "name", "NAME", "the sandbox [default]"},
    {'r', "runtime", "KIND", "local, docker, ... [core.runtime]"},
    {'c', "config-file", "FILE", "settings [config.toml]"},
    {'s', "set", "KEY=VALUE", "one setting, as sandbox.timeout=60"},
    {'j', "json", NULL, "answer in JSON"},
    {'q', "quiet", NULL, "no notes on stderr"},
    {CLI_ANY_OWNER, "any-owner", NULL, "also a sandbox of that name that others have made"},
    {'h', "help", NULL, "this text"},
    {0, NULL, NULL, NULL},
};

/* ---- what subcommands use ---- */

const char *
cli_value(const struct cli_args *a, char letter)
{
	const char *found = NULL;
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->given[i].letter == letter)
			found = a->given[i].value;
	return found;
}

const char *
cli_next(const struct cli_args *a, char letter, size_t *at)
{
	for (; *at < a->n; (*at)++)
		if (a->given[*at].letter == letter)
			return a->given[(*at)++].value;
	return NULL;
}

int
cli_plugins(const struct cli_args *a, struct hr_strv *ret)
{
	const char *name = cli_value(a, 'p');
	size_t at = 0;

	if (name == NULL) {
		/* in this order: the second uses the first */
		hr_strv_add(ret, "agent_skills");
		hr_strv_add(ret, "jupyter");
	}
	while ((name = cli_next(a, 'p', &at)) != NULL)
		if (strcmp(name, "none") != 0)
			hr_strv_add(ret, name);
	return ret->failed ? cli_usage("out of memory") : CLI_OK;
}

/* Appends how a sandbox that is not there is started. */
static void
hint(const struct cli *c, struct hr_err *err)
{
	const bool other = strcmp(c->name, "default") != 0;
	size_t n = strlen(err->msg);

	(void)snprintf(err->msg + n, sizeof(err->msg) - n, "; \"handrail up%s%s\" starts it",
	    other ? " -n " : "", other ? c->name : "");
}

struct hr_sandbox_options
cli_sandbox(struct cli *c, const char *sid)
{
	return (struct hr_sandbox_options){.sid = sid,
	    .environ = c->env,
	    .headless = true,
	    .state_dir = c->state_dir,
	    .any_owner = c->any_owner,
	    .log = cli_note,
	    .log_arg = c};
}

bool
cli_is_of_kind(const struct cli *c, const struct hr_sandbox *s, struct hr_err *err)
{
	/* a path has a name of its own */
	if (c->kind == NULL || strchr(c->kind, '/') != NULL || strcmp(c->kind, s->ops->name) == 0)
		return true;
	(void)hr_err_set(err, HR_E_RUNTIME, "\"%s\" is a sandbox of the back-end %s, not of %s",
	    s->sid, s->ops->name, c->kind);
	return false;
}

struct hr_sandbox *
cli_attach(struct cli *c, int *ret_status)
{
	struct hr_sandbox_options o = cli_sandbox(c, c->name);
	struct hr_err err = {0};
	struct hr_sandbox *s;

	o.attach = true;
	o.progress = cli_progress;
	o.progress_arg = c;
	s = hr_sandbox_open(c->config, &o, &err);
	if (s != NULL && cli_is_of_kind(c, s, &err) && hr_sandbox_connect(s, &err) == 0)
		return s;
	if (err.code == HR_E_NO_SANDBOX)
		hint(c, &err);
	*ret_status = cli_fail(&err);
	hr_sandbox_free(s);
	return NULL;
}

/* ---- options ---- */

static int
add_given(struct cli_args *a, char letter, const char *value)
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

/* An option that there is not, and what may be meant by it. */
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

/* Up to the first argument, or with permute all of them; the others are behind optind then. */
static int
take_options(const struct cli_command *cmd, bool permute, int argc, char **argv, struct cli_args *a)
{
	char shorts[3 * OPTIONS_MAX] = "+:";
	struct option longs[OPTIONS_MAX] = {0};
	size_t n = add_options(cli_common, longs, 0, shorts);
	int c;

	n = add_options(cmd->options, longs, n, shorts);
	opterr = 0;
	optind = 0; /* from the start, also of a second list */
	while ((c = getopt_long(argc, argv, shorts + permute, longs, NULL)) != -1) {
		if (c == ':')
			return cli_usage(
			    "%s: option \"%s\" needs a value", cmd->name, argv[optind - 1]);
		if (c == '?') {
			const char *word = argv[optind - 1];
			const char one[] = {'-', (char)optopt, '\0'};

			return no_option(
			    cmd, optopt > 32 && strncmp(word, "--", 2) != 0 ? one : word, longs, n);
		}
		if (add_given(a, (char)c, optarg != NULL ? optarg : "") != 0)
			return cli_usage("out of memory");
	}
	return CLI_OK;
}

/* The words of fleet are no command of the sandbox; those of its doctor are handrail-fleetd's. */
static bool
takes_options_behind(const struct cli_command *cmd, const char *first)
{
	return cmd == &cli_fleet && strcmp(first, "doctor") != 0;
}

/* Options stand before the first argument, so that a command's own are its own. */
static int
read_options(const struct cli_command *cmd, int argc, char **argv, struct cli_args *a)
{
	int r = take_options(cmd, false, argc, argv, a);
	char *first;

	a->argc = argc - optind;
	a->argv = argv + optind;
	if (r == CLI_OK && a->argc > 1 && takes_options_behind(cmd, a->argv[0])) {
		first = a->argv[0];
		r = take_options(cmd, true, a->argc, a->argv, a);
		a->argc -= optind - 1;
		a->argv += optind - 1;
		a->argv[0] = first;
	}
	return r;
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

/* c: with a configuration, where a kind was named; NULL. */
static int
help_of(const struct cli_command *cmd, const struct cli *c)
{
	HR_BUF(b, 1 << 20);
	HR_BUF(own, 1 << 20);

	hr_buf_addf(&b, "usage: handrail %s [OPTION]...%s%s\n\n%s\n\n", cmd->name,
	    *cmd->args != '\0' ? " " : "", cmd->args, cmd->help);
	put_options(&b, cmd->options);
	put_options(&b, cli_common);
	if (c != NULL && hr_config_options(c->config, c->env, put_setting, &own, NULL) == 0 &&
	    own.len > 0)
		hr_buf_addf(&b, "\nSettings of this kind (--set KEY=VALUE):\n%s", hr_buf_str(&own));
	return cli_out_buf(&b);
}

static int
help(void)
{
	HR_BUF(b, 1 << 20);
	size_t i;

	hr_buf_adds(&b, "usage: handrail [OPTION]... COMMAND [OPTION]... [ARGUMENT]...\n\n");
	for (i = 0; i < cli_commands_n; i++)
		hr_buf_addf(&b, "  %-12s%s\n", cli_commands[i]->name, cli_commands[i]->help);
	hr_buf_adds(&b, "\nOptions of every command:\n");
	put_options(&b, cli_common);
	hr_buf_adds(&b, "\nSee handrail(1).\n");
	return cli_out_buf(&b);
}

/* ---- the way to a subcommand ---- */

static char *
state_directory(void)
{
	static const char *const places[][2] = {{"HANDRAIL_STATE_DIR", ""},
	    {"XDG_STATE_HOME", "/handrail"}, {"HOME", "/.local/state/handrail"}};
	const char *base;
	char *dir = NULL;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		base = getenv(places[i][0]);
		if (base != NULL && *base != '\0')
			return asprintf(&dir, "%s%s", base, places[i][1]) < 0 ? NULL : dir;
	}
	return asprintf(&dir, "/tmp/handrail-%ld", (long)getuid()) < 0 ? NULL : dir;
}

/* Before loading, so that the file may have a section of it, and after that, which has less to say.
 */
static int
set_kind(struct cli *c, const struct cli_args *a, struct hr_err *err)
{
	const char *kind = cli_value(a, 'r');

	return kind != NULL ? hr_config_set(c->config, "core.runtime", kind, err) : 0;
}

static int
load_config(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	const char *pair, *eq;
	char key[128];
	size_t at = 0;

	if (cli_value(a, 'c') != NULL && access(cli_value(a, 'c'), R_OK) != 0)
		return cli_usage("--config-file %s: %s", cli_value(a, 'c'), strerror(errno));
	c->config = hr_config_new(&err);
	if (c->config == NULL || set_kind(c, a, &err) != 0 ||
	    hr_config_load(c->config, cli_value(a, 'c'), c->env, cli_note, c, &err) != 0 ||
	    set_kind(c, a, &err) != 0)
		return cli_fail(&err);
	while ((pair = cli_next(a, 's', &at)) != NULL) {
		eq = strchr(pair, '=');
		if (eq == NULL || eq == pair || (size_t)(eq - pair) >= sizeof(key))
			return cli_usage("--set takes KEY=VALUE, not \"%s\"", pair);
		memcpy(key, pair, (size_t)(eq - pair));
		key[eq - pair] = '\0';
		if (hr_config_set(c->config, key, eq + 1, &err) != 0)
			return cli_usage("%s", err.msg);
	}
	return CLI_OK;
}

static int
run_attached(struct cli *c, const struct cli_command *cmd, const struct cli_args *a)
{
	int r = CLI_ERROR;
	struct hr_sandbox *s = cli_attach(c, &r);

	if (s != NULL)
		r = cmd->attached(c, s, a);
	hr_sandbox_free(s);
	return r;
}

int
cli_no_name(const char *name)
{
	return cli_usage(
	    "\"%.200s\" is no name for a sandbox: letters, digits, '_', '.', '-'", name);
}

static int
run_command(struct cli *c, const struct cli_command *cmd, struct cli_args *a)
{
	int r;

	if (cli_value(a, 'h') != NULL && cli_value(a, 'r') == NULL)
		return help_of(cmd, NULL);
	if (a->argc < cmd->min && cli_value(a, 'h') == NULL)
		return cli_usage("usage: handrail %s [OPTION]...%s%s", cmd->name,
		    *cmd->args != '\0' ? " " : "", cmd->args);
	if (cmd->max >= 0 && a->argc > cmd->max)
		return cli_surplus(cmd, a->argv[cmd->max]);
	c->name = cli_value(a, 'n') != NULL ? cli_value(a, 'n') : "default";
	if (!hr_sid_valid(c->name))
		return cli_no_name(c->name);
	c->json = cli_value(a, 'j') != NULL;
	c->quiet = cli_value(a, 'q') != NULL;
	c->kind = cli_value(a, 'r');
	c->any_owner = cli_value(a, CLI_ANY_OWNER) != NULL;
	c->state_dir = state_directory();
	if (c->state_dir == NULL)
		return cli_usage("out of memory");
	r = load_config(c, a);
	if (r == CLI_OK && cli_value(a, 'h') != NULL)
		return help_of(cmd, c);
	if (r == CLI_OK)
		r = cmd->run != NULL ? cmd->run(c, a) : run_attached(c, cmd, a);
	return r;
}

/* What stands in front of the command. */
static const struct cli_command before = {"handrail", "COMMAND", "", NULL, 0, -1, NULL, NULL};

/* a: with the options before the command and what follows them. */
static int
with_command(struct cli *c, struct cli_args *a)
{
	const struct cli_command *cmd = cli_find_command(a->argv[0]);
	int r;

	if (cmd == NULL)
		return CLI_USAGE;
	r = read_options(cmd, a->argc, a->argv, a);
	return r == CLI_OK ? run_command(c, cmd, a) : r;
}

int
main(int argc, char **argv)
{
	struct cli c = {.env = (const char *const *)environ};
	struct cli_args a = {0};
	const struct cli_command *cmd;
	int r;

	if (hr_fd_open_stdio(NULL) != 0)
		return CLI_ERROR;
	(void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error like others */
	if (argc < 2) {
		(void)help();
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0)
		argv[1] = (char *)"version";
	r = read_options(&before, argc, argv, &a);
	if (r == CLI_OK && a.argc > 1 && strcmp(a.argv[0], "help") == 0)
		r = (cmd = cli_find_command(a.argv[1])) != NULL ? help_of(cmd, NULL) : CLI_USAGE;
	else if (r == CLI_OK && (a.argc == 0 || strcmp(a.argv[0], "help") == 0))
		r = cli_value(&a, 'h') != NULL || a.argc > 0 ? help() : (help(), CLI_USAGE);
	else if (r == CLI_OK)
		r = with_command(&c, &a);
	hr_config_free(c.config);
	free(c.state_dir);
	free(a.given);
	return r;
}
