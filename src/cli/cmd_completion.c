/* Implements completion: short functions for shells, which query this program for candidates at the
 * cursor. */
#include "config.h"

#include <string.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/strv.h"
#include "base/text/utf8.h"
#include "cli/commands.h"
#include "host/box/snapshot.h"
#include "host/config/rules.h"
#include "host/handle.h"
#include "host/records/secret.h"
#include "host/transfer/list.h"
#include "proto/json.h"

/* Each line is a candidate, with a tab before its description. Names of sandboxes and files are
 * only compared and quoted: bash would expand the words of compgen. */
static const char bash[] =
    "# bash: source <(handrail completion)\n"
    "_handrail() {\n"
    "\tlocal line\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tprintf -v line %q \"${line%%$'\\t'*}\"\n"
    "\t\tCOMPREPLY+=(\"$line\")\n"
    "\tdone < <(handrail completion words \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "\t[[ ${COMPREPLY[0]-} != */ ]] || compopt -o nospace 2>/dev/null\n"
    "}\n"
    "complete -o default -F _handrail handrail\n";

static const char zsh[] =
    "# zsh: source <(handrail completion zsh)\n"
    "_handrail() {\n"
    "\tlocal line word\n"
    "\tlocal -a plain dirs told\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tword=${line%%$'\\t'*}\n"
    "\t\tif [[ $line == *$'\\t'* ]]; then told+=(\"$word:${line#*$'\\t'}\")\n"
    "\t\telif [[ $word == */ ]]; then dirs+=(\"$word\")\n"
    "\t\telse plain+=(\"$word\"); fi\n"
    "\tdone < <(handrail completion words \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)\n"
    "\t(( $#told )) && _describe word told\n"
    "\t(( $#plain )) && compadd -a plain\n"
    "\t(( $#dirs )) && compadd -S '' -a dirs\n"
    "\t(( $#told + $#plain + $#dirs )) || _files\n"
    "}\n"
    "(( ! $+functions[compdef] )) || compdef _handrail handrail\n";

static const char fish[] =
    "# fish: handrail completion fish | source\n"
    "function __handrail_words\n"
    "\tset -l words (commandline -opc)\n"
    "\thandrail completion words $words[2..] \"$(commandline -ct)\" 2>/dev/null\n"
    "end\n"
    "complete -c handrail -f -a '(__handrail_words)'\n"
    "complete -c handrail -n '__fish_seen_subcommand_from put cp build' -F\n";

/* ---- candidates at the cursor ---- */

static void
put(struct hr_buf *b, const char *current, const char *word, const char *text)
{
	if (strncmp(word, current, strlen(current)) == 0)
		hr_buf_addf(
		    b, "%s%s%s\n", word, text != NULL ? "\t" : "", text != NULL ? text : "");
}

static void
put_commands(struct hr_buf *b, const char *current, const char *group)
{
	const size_t skip = group != NULL ? strlen(group) + 1 : 0;
	size_t i;

	for (i = 0; i < cli_commands_n; i++) {
		const struct cli_command *cmd = cli_commands[i];

		if (!cli_is_in(cmd, group))
			continue;
		put(b, current, cmd->name + skip, cmd->help);
		if (group == NULL && cmd->alias != NULL)
			put(b, current, cmd->alias, cmd->help);
	}
	for (i = 0; group == NULL && i < cli_sections_n; i++)
		if (cli_sections[i].group != NULL)
			put(b, current, cli_sections[i].group, cli_sections[i].title);
}

static void
put_options(struct hr_buf *b, const char *current, const struct cli_option *o)
{
	char word[64];

	for (; o != NULL && o->name != NULL; o++) {
		(void)snprintf(word, sizeof(word), "--%s", o->name);
		put(b, current, word, o->help);
	}
}

static int
put_names(struct cli *c, struct hr_buf *b, const char *current)
{
	struct hr_err err = {0};
	HR_PUT struct json_object *list = cli_recorded(c, &err);
	size_t i;

	for (i = 0; i < hr_json_count(list); i++)
		put(b, current, hr_json_text_or(hr_json_entry(list, i), "sid", ""), NULL);
	return list != NULL ? CLI_OK : cli_fail(&err);
}

/* Puts the names of secrets, or of presets. */
static int
put_stored(struct cli *c, struct hr_buf *b, const char *current, bool secrets)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	struct hr_err err = {0};
	size_t i;

	if ((secrets ? hr_secret_list(c->state_dir, c->env, &names, &err)
		     : hr_rules_presets(c->env, &names, &err)) < 0)
		return cli_fail(&err);
	for (i = 0; i < names.n; i++)
		put(b, current, names.v[i], NULL);
	return CLI_OK;
}

static int
put_snapshots(struct cli *c, struct hr_buf *b, const char *current)
{
	HR_PUT struct json_object *list = NULL;
	HR_FREE char *json = NULL;
	struct hr_err err = {0};
	size_t i;

	if (hr_box_snapshots(c->state_dir, "", false, &json, &err) < 0 ||
	    hr_json_decode(json, strlen(json), &list, NULL) < 0)
		return cli_fail(&err);
	for (i = 0; i < hr_json_count(list); i++)
		put(b, current, hr_json_text_or(hr_json_entry(list, i), "tag", ""), NULL);
	return CLI_OK;
}

/* Puts the entries of a sandbox that "net deny" can take back. */
static int
put_allowed(struct cli *c, struct hr_buf *b, const char *current)
{
	static const char *const lists[] = {"allowOut", "presets"};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *json = NULL;
	struct hr_err err = {0};
	size_t i, k;
	int r = CLI_OK;

	s = cli_attach(c, &r);
	if (s == NULL)
		return r;
	if (hr_sandbox_network(s, &json, &err) < 0)
		return cli_fail(&err);
	o = json != NULL ? hr_rules_decode(json, strlen(json), &err) : NULL;
	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (k = 0; k < hr_json_count(hr_json_at(o, lists[i])); k++)
			put(b, current, hr_json_text(hr_json_entry(hr_json_at(o, lists[i]), k)),
			    NULL);
	return CLI_OK;
}

static int
put_paths(struct cli *c, struct hr_buf *b, const char *current)
{
	const char *slash = strrchr(current, '/');
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	struct hr_err err = {0};
	HR_FREE char *dir = strndup(current, slash != NULL ? (size_t)(slash + 1 - current) : 0);
	size_t i;
	int r = CLI_OK;

	s = dir != NULL ? cli_attach(c, &r) : NULL;
	if (s == NULL)
		return dir != NULL ? r : cli_no_memory();
	if (hr_cp_list(s, *dir != '\0' ? dir : ".", &names, &err) != 0)
		return err.code == HR_E_NOTFOUND ? CLI_OK : cli_fail(&err);
	for (i = 0; i < names.n; i++) {
		const char *name = names.v[i];
		HR_BUF(path, 1 << 16);

		if (strpbrk(name, "\t\n") != NULL || !hr_utf8_strict(name, strlen(name)))
			continue;
		hr_buf_addf(&path, "%s%s", dir, name);
		put(b, current, hr_buf_str(&path), NULL);
	}
	return CLI_OK;
}

static const struct cli_option *
find_option(const struct cli_option *o, const char *word)
{
	for (; o != NULL && o->name != NULL; o++)
		if (strncmp(word, "--", 2) == 0
			? strcmp(word + 2, o->name) == 0
			: *word == '-' && word[1] == o->letter && word[2] == '\0')
			return o;
	return NULL;
}

/* A command line up to the word at the cursor. */
struct line {
	const char *group;
	const struct cli_command *cmd;
	const struct cli_option *option; /* option whose value is at the cursor; NULL: none */
	int args;
};

/* Takes an option with a value, or the next word of the command. Returns the number of words
 * taken. */
static int
take(struct line *l, struct cli *c, char **argv, bool last)
{
	const struct cli_option *o = find_option(cli_common, argv[0]);

	if (o == NULL && l->cmd != NULL)
		o = find_option(l->cmd->options, argv[0]);
	if (o != NULL && o->arg != NULL) {
		l->option = last ? o : NULL;
		if (o->letter == 'n' && !last)
			c->name = argv[1];
		return 2;
	}
	if (*argv[0] == '-')
		return 1;
	if (l->cmd != NULL && l->cmd->form == CLI_FIRST && l->args == 0)
		c->name = argv[0];
	if (l->cmd != NULL)
		l->args++;
	else if (l->group != NULL || (l->group = cli_group(argv[0])) == NULL)
		l->cmd = cli_command_of(l->group, argv[0]);
	return 1;
}

/* Prints candidates for an argument of a command. */
static int
put_arguments(struct cli *c, struct hr_buf *b, const char *current, const struct line *l)
{
	const struct cli_command *const with_paths[] = {
	    &cli_edit, &cli_get, &cli_ls, &cli_read, &cli_write};
	const bool first = l->args == 0;
	size_t p;

	if (l->cmd == &cli_snapshot_rm || (l->cmd == &cli_snapshot_export && first))
		return put_snapshots(c, b, current);
	if (l->cmd->form == CLI_NAMES ||
	    (first && (l->cmd->form == CLI_NAME || l->cmd->form == CLI_FIRST ||
			  l->cmd->form >= CLI_EXEC)))
		return put_names(c, b, current);
	if (l->cmd == &cli_net_deny)
		return put_allowed(c, b, current);
	if (l->cmd == &cli_net_allow ||
	    (first && (l->cmd == &cli_secret_rm || l->cmd == &cli_secret_set)))
		return put_stored(c, b, current, l->cmd != &cli_net_allow);
	for (p = 0; p < sizeof(with_paths) / sizeof(*with_paths); p++)
		if (l->cmd == with_paths[p])
			return put_paths(c, b, current);
	return CLI_OK;
}

/* Prints candidates; argv holds the words after the program's name, up to the one at the cursor. */
static int
put_words(struct cli *c, struct hr_buf *b, int argc, char **argv)
{
	const char *current = argc > 0 ? argv[argc - 1] : "";
	struct line l = {0};
	int i = 0;

	while (i < argc - 1)
		i += take(&l, c, argv + i, i == argc - 2);
	if (l.option != NULL && strcmp(l.option->name, "from") == 0)
		return put_snapshots(c, b, current);
	if (l.option != NULL)
		return l.option->letter == 'n' ? put_names(c, b, current) : CLI_OK;
	if (*current == '-') {
		put_options(b, current, l.cmd != NULL ? l.cmd->options : NULL);
		put_options(b, current, cli_common);
		return CLI_OK;
	}
	if (l.cmd != NULL)
		return put_arguments(c, b, current, &l);
	put_commands(b, current, l.group);
	/* a group that is a command as well takes names */
	return l.group != NULL && cli_command_of(NULL, l.group) != NULL ? put_names(c, b, current)
									: CLI_OK;
}

static int
completion(struct cli *c, const struct cli_args *a)
{
	static const struct {
		const char *name, *text;
	} shells[] = {{"bash", bash}, {"fish", fish}, {"zsh", zsh}};
	const char *name = a->argc > 0 ? a->argv[0] : "bash";
	HR_BUF(b, 64u << 20);
	size_t i;
	int r;

	if (strcmp(name, "words") == 0) {
		r = put_words(c, &b, a->argc - 1, a->argv + 1);
		return r == CLI_OK ? cli_out_buf(&b) : r;
	}
	for (i = 0; i < sizeof(shells) / sizeof(*shells) && a->argc < 2; i++)
		if (strcmp(shells[i].name, name) == 0)
			return cli_outs(shells[i].text);
	return cli_usage("completion: the shell must be bash, zsh or fish, not \"%s\"", name);
}

const struct cli_command cli_completion = {"completion", NULL,
    "[bash | zsh | fish | words WORD...]", "Print completion for a shell.", NULL, 0, -1,
    CLI_VERBATIM, completion, NULL};
