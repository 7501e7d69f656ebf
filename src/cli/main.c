/* handrail: finds the subcommand, reads the configuration, and runs it. */
#include "config.h"

#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "base/err.h"
#include "base/strv.h"
#include "host/backends.h"
#include "host/config/settings.h"
#include "host/handle.h"
#include "host/kind.h"
#include "host/records/record.h"

/* ---- functions for subcommands ---- */

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
		/* the order matters, as jupyter uses agent_skills */
		hr_strv_add(ret, "agent_skills");
		hr_strv_add(ret, "jupyter");
	}
	while ((name = cli_next(a, 'p', &at)) != NULL)
		if (strcmp(name, "none") != 0)
			hr_strv_add(ret, name);
	return ret->failed ? cli_no_memory() : CLI_OK;
}

int
cli_environment(const struct cli_args *a, struct hr_strv *env)
{
	const char *text;
	size_t at = 0;

	while ((text = cli_next(a, 'e', &at)) != NULL) {
		if (strchr(text, '=') == NULL || *text == '=')
			return cli_usage("--env must be NAME=VALUE, not \"%s\"", text);
		hr_strv_set_env(env, text);
	}
	return env->failed ? cli_no_memory() : CLI_OK;
}

bool
cli_is_recorded(const struct cli *c, const char *name)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};

	return hr_sid_valid(name) && hr_record_load(c->state_dir, name, &rec, NULL) == 0 &&
	       rec.runtime != NULL;
}

/* Appends a hint for a sandbox that does not exist. */
static void
hint(const struct cli *c, struct hr_err *err)
{
	const bool other = strcmp(c->name, "default") != 0;
	size_t n = strlen(err->msg);

	n += (size_t)snprintf(err->msg + n, sizeof(err->msg) - n, "; \"handrail up%s%s\" starts it",
	    other ? " " : "", other ? c->name : "");
	if (c->word == NULL || c->word == c->name || n >= sizeof(err->msg))
		return;
	if (cli_is_recorded(c, c->word))
		(void)snprintf(err->msg + n, sizeof(err->msg) - n,
		    "; \"%s\" is a sandbox: \"handrail exec %s COMMAND\"", c->word, c->word);
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
	/* the table's name differs from its path */
	if (c->kind == NULL || strchr(c->kind, '/') != NULL || strcmp(c->kind, s->ops->name) == 0)
		return true;
	(void)hr_err_set(err, HR_E_RUNTIME, "\"%s\" is a sandbox of the back-end %s, not of %s",
	    s->sid, s->ops->name, c->kind);
	return false;
}

/* Returns false for a sandbox that is known to be paused, unless the command needs no answer of it:
 * a request would wait until another process continues the sandbox. */
static bool
answers(const struct cli *c, struct hr_sandbox *s, struct hr_err *err)
{
	if (c->paused || (s->ops->flags & HR_KIND_STATE_NEAR) == 0 ||
	    strcmp(hr_sandbox_state(s), "paused") != 0)
		return true;
	(void)hr_err_set(err, HR_E_DISCONNECTED,
	    "sandbox \"%s\" is paused; \"handrail resume %s\" continues it", s->sid, s->sid);
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
	if (s != NULL && cli_is_of_kind(c, s, &err) && hr_sandbox_connect(s, &err) == 0 &&
	    answers(c, s, &err))
		return s;
	if (err.code == HR_E_NO_SANDBOX)
		hint(c, &err);
	*ret_status = cli_fail(&err);
	hr_sandbox_free(s);
	if (c->word == c->name && !cli_is_recorded(c, c->name))
		cli_say(
		    "\"%s\" was read as the sandbox's name, which comes first; -n default chooses "
		    "the default sandbox",
		    c->name);
	return NULL;
}

/* ---- finding the subcommand ---- */

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

/* Applies --runtime: before loading, so that the file may have its section, and after it, to
 * override the file. */
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
	int r;

	if (cli_value(a, 'c') != NULL && access(cli_value(a, 'c'), R_OK) != 0)
		return cli_usage("--config-file %s: %s", cli_value(a, 'c'), strerror(errno));
	c->config = hr_config_new(&err);
	if (c->config == NULL || set_kind(c, a, &err) != 0 ||
	    hr_config_load(c->config, cli_value(a, 'c'), c->env, cli_note, c, &err) != 0 ||
	    set_kind(c, a, &err) != 0)
		return cli_fail(&err);
	r = c->kind != NULL ? cli_kind_exists(c) : CLI_OK;
	while (r == CLI_OK && (pair = cli_next(a, 's', &at)) != NULL) {
		eq = strchr(pair, '=');
		if (eq == NULL || eq == pair || (size_t)(eq - pair) >= sizeof(key))
			return cli_usage("--set must be KEY=VALUE, not \"%s\"", pair);
		memcpy(key, pair, (size_t)(eq - pair));
		key[eq - pair] = '\0';
		if (hr_config_set(c->config, key, eq + 1, &err) != 0)
			return cli_usage("%s", err.msg);
		if (strcmp(key, "core.runtime") == 0)
			r = cli_kind_exists(c);
	}
	return r;
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
	return cli_usage("invalid sandbox name \"%.200s\": " HR_SID_RULE, name);
}

static void
shift(struct cli_args *a)
{
	a->argc--;
	a->argv++;
}

/* Takes the sandbox's name from the front of the arguments, as docker has it. */
static int
take_name(struct cli *c, const struct cli_command *cmd, struct cli_args *a)
{
	const char *word = a->argc > 0 ? a->argv[0] : "";
	int i;

	c->name = cli_value(a, 'n') != NULL ? cli_value(a, 'n') : "default";
	if (!hr_sid_valid(c->name))
		return cli_no_name(c->name);
	if (a->argc > 0 && cmd->form == CLI_NAMES) {
		if (cli_value(a, 'n') != NULL)
			return cli_usage("give either names or --name, not both");
		for (i = 0; i < a->argc; i++)
			if (!hr_sid_valid(a->argv[i]))
				return cli_no_name(a->argv[i]);
	}
	if (a->argc == 0 || cli_value(a, 'n') != NULL)
		return CLI_OK;
	if (cmd->form == CLI_NAME) {
		if (a->argc > 1 || strcmp(word, "help") == 0 ||
		    (cmd == &cli_up && strpbrk(word, "./:~") != NULL && !hr_sid_valid(word)))
			return cli_surplus(cmd, a->argv[a->argc > 1]);
		if (!hr_sid_valid(word))
			return cli_no_name(word);
		c->name = word;
		shift(a);
	} else if (cmd->form == CLI_EXEC || cmd->form == CLI_FIRST ||
		   (cmd->form == CLI_SH && cli_is_recorded(c, word))) {
		if (!hr_sid_valid(word))
			return cli_no_name(word);
		c->name = c->word = word;
		shift(a);
	} else if (cmd->form >= CLI_VERBATIM && strcmp(word, c->name) != 0) {
		c->word = word;
	}
	return CLI_OK;
}

int
cli_each(struct cli *c, const struct cli_command *cmd, const struct cli_args *a)
{
	int r = CLI_OK, one, i;

	if (cmd->form != CLI_NAMES || a->argc == 0)
		return run_attached(c, cmd, a);
	for (i = 0; i < a->argc; i++) {
		c->name = a->argv[i];
		one = run_attached(c, cmd, a);
		r = r != CLI_OK ? r : one;
	}
	return r;
}

int
cli_kind_exists(const struct cli *c)
{
	const char *name = hr_config_text(c->config, "core.runtime");
	struct hr_err err = {0};
	struct hr_module m;

	if (hr_backend_find(name != NULL ? name : HR_KIND_DEFAULT, c->config->runtime_named, c->env,
		&m, NULL, NULL, &err) != NULL) {
		hr_module_close(&m);
		return CLI_OK;
	}
	return err.code == HR_E_INVAL ? cli_usage("%s", err.msg) : cli_fail(&err);
}

static int
run_command(struct cli *c, const struct cli_command *cmd, struct cli_args *a)
{
	int r;

	if (cli_value(a, 'h') != NULL && cli_value(a, 'r') == NULL)
		return cli_help_of(cmd, NULL);
	c->json = cli_value(a, 'j') != NULL;
	c->quiet = cli_value(a, 'q') != NULL;
	c->kind = cli_value(a, 'r');
	c->any_owner = cli_value(a, CLI_ANY_OWNER) != NULL;
	c->state_dir = state_directory();
	if (c->state_dir == NULL)
		return cli_no_memory();
	c->paused = cli_takes_paused(cmd);
	r = take_name(c, cmd, a);
	if (r == CLI_OK && a->argc < cmd->min && cli_value(a, 'h') == NULL)
		return cli_usage("usage: handrail %s [OPTION]... %s", cmd->name, cmd->args);
	if (r == CLI_OK && cmd->max >= 0 && a->argc > cmd->max)
		return cli_surplus(cmd, a->argv[cmd->max]);
	if (r == CLI_OK)
		r = load_config(c, a);
	if (r == CLI_OK && cli_value(a, 'h') != NULL)
		return cli_help_of(cmd, c);
	if (r == CLI_OK)
		r = cmd->run != NULL ? cmd->run(c, a) : cli_each(c, cmd, a);
	return r;
}

/* the form of the options before the command */
static const struct cli_command before = {
    "handrail", NULL, NULL, "", NULL, 0, 0, CLI_VERBATIM, NULL, NULL};

/* Parses the options before the next word, and "help", an option in the place of a word. */
static int
next_word(int argc, char **argv, struct cli_args *a)
{
	int r = cli_read_options(&before, argc, argv, a);

	if (r == CLI_OK && a->argc > 0 && strcmp(a->argv[0], "help") == 0) {
		r = cli_add_given(a, 'h', "") == 0 ? CLI_OK : cli_no_memory();
		shift(a);
	}
	return r;
}

/* Returns true if the first word is a group. One that is a command as well is a group only before
 * the name of another command of the group. */
static bool
is_group(int argc, char **argv)
{
	const char *group = cli_group(argv[0]);

	return group != NULL && (cli_command_of(NULL, group) == NULL ||
				    (argc > 1 && cli_command_of(group, argv[1]) != NULL));
}

/* Finds the subcommand. argv holds the program or a group, and the rest; group NULL: the
 * program. */
static int
with_command(struct cli *c, const char *group, int argc, char **argv, struct cli_args *a)
{
	const struct cli_command *cmd;
	int r = next_word(argc, argv, a);

	if (r == CLI_OK && a->argc == 0)
		return cli_value(a, 'h') != NULL ? cli_help(group) : (cli_help(group), CLI_USAGE);
	if (r == CLI_OK && group == NULL && is_group(a->argc, a->argv))
		return with_command(c, cli_group(a->argv[0]), a->argc, a->argv, a);
	cmd = r == CLI_OK ? cli_find_command(group, a->argv[0]) : NULL;
	if (cmd == NULL)
		return CLI_USAGE;
	r = cli_read_options(cmd, a->argc, a->argv, a);
	return r == CLI_OK ? run_command(c, cmd, a) : r;
}

int
main(int argc, char **argv)
{
	struct cli c = {.env = (const char *const *)environ};
	struct cli_args a = {0};
	int r;

	if (hr_fd_open_stdio(NULL) != 0)
		return CLI_ERROR;
	(void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an ordinary error */
	if (argc < 2) {
		(void)cli_help(NULL);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0)
		argv[1] = (char *)"version";
	r = with_command(&c, NULL, argc, argv, &a);
	hr_config_free(c.config);
	free(c.state_dir);
	free(a.given);
	return r;
}
