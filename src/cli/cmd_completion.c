/* completion: what shells ask for while a command is typed, made from the tables of commands. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "proto/json.h"
#include "shell/quote.h"

static void
put_words(struct hr_buf *b, const struct cli_option *o)
{
	for (; o != NULL && o->name != NULL; o++)
		hr_buf_addf(b, " --%s", o->name);
}

/* Behind the table of options. What a sandbox has been called, and what its files are called, is
 * only compared and quoted: bash would expand the words of compgen. */
static const char completer[] =
    "# what begins with $cur, a line each\n"
    "_handrail_lines() {\n"
    "\tlocal line\n"
    "\twhile IFS= read -r line; do\n"
    "\t\t[[ $line == \"$cur\"* ]] || continue\n"
    "\t\tprintf -v line %q \"$line\"\n"
    "\t\tCOMPREPLY+=(\"$line\")\n"
    "\tdone\n"
    "}\n"
    "_handrail() {\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "\tlocal name=default command= i dir\n"
    "\tCOMPREPLY=()\n"
    "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
    "\t\tcase ${COMP_WORDS[i]} in\n"
    "\t\t-n | --name) name=${COMP_WORDS[++i]} ;;\n"
    "\t\t-[rcs] | --runtime | --config-file | --set) ((++i)) ;;\n"
    "\t\t-*) ;;\n"
    "\t\t*) [ -n \"$command\" ] || command=${COMP_WORDS[i]} ;;\n"
    "\t\tesac\n"
    "\tdone\n"
    "\tcase $prev:$cur:$command in\n"
    "\t-n:* | --name:* | *:down) _handrail_lines < <(handrail completion names 2>/dev/null) ;;\n"
    "\t*:-*) _handrail_lines < <(_handrail_options \"$command\") ;;\n"
    "\t*:) _handrail_lines < <(_handrail_commands) ;;\n"
    "\t*:edit | *:get | *:ls | *:read | *:write)\n"
    "\t\tdir=${cur%\"${cur##*/}\"}\n"
    "\t\t_handrail_lines < <(handrail ls -q -n \"$name\" -- \"${dir:-.}\" 2>/dev/null |\n"
    "\t\t\twhile IFS= read -r i; do printf '%s%s\\n' \"$dir\" \"$i\"; done)\n"
    "\t\t[[ ${COMPREPLY[0]-} != */ ]] || compopt -o nospace 2>/dev/null\n"
    "\t\t;;\n"
    "\tesac\n"
    "}\n"
    "complete -o default -F _handrail handrail\n";

/* What compadd is given it compares and quotes, and expands nothing of it. */
static const char zsh_completer[] =
    "_handrail_paths() {\n"
    "\tlocal cur=${(Q)words[CURRENT]} dir line\n"
    "\tlocal -a files dirs\n"
    "\tdir=${cur%\"${cur##*/}\"}\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tif [[ $line == */ ]]; then dirs+=(\"$dir$line\"); else files+=(\"$dir$line\"); fi\n"
    "\tdone < <(handrail ls -q -n \"$1\" -- \"${dir:-.}\" 2>/dev/null)\n"
    "\tcompadd -a files\n"
    "\tcompadd -S '' -a dirs\n"
    "}\n"
    "_handrail() {\n"
    "\tlocal name=default command= prev=${words[CURRENT-1]}\n"
    "\tlocal -a names\n"
    "\tlocal -i i\n"
    "\tfor ((i = 2; i < CURRENT; i++)); do\n"
    "\t\tcase ${words[i]} in\n"
    "\t\t(-n|--name) ((++i)); name=${(Q)words[i]} ;;\n"
    "\t\t(-[rcs]|--runtime|--config-file|--set) ((++i)) ;;\n"
    "\t\t(-*) ;;\n"
    "\t\t(*) [[ -n $command ]] || command=${words[i]} ;;\n"
    "\t\tesac\n"
    "\tdone\n"
    "\tif [[ $prev == -n || $prev == --name || ( $command == down && ${words[CURRENT]} != -* ) ]]; "
    "then\n"
    "\t\tnames=(\"${(@f)$(handrail completion names 2>/dev/null)}\")\n"
    "\t\tcompadd -a names\n"
    "\telif [[ ${words[CURRENT]} == -* ]]; then\n"
    "\t\t_handrail_options \"$command\"\n"
    "\telse\n"
    "\t\tcase $command in\n"
    "\t\t('') _handrail_commands ;;\n"
    "\t\t(edit|get|ls|read|write) _handrail_paths \"$name\" ;;\n"
    "\t\t(*) _files ;;\n"
    "\t\tesac\n"
    "\tfi\n"
    "}\n"
    "(( ! $+functions[compdef] )) || compdef _handrail handrail\n";

/* So do words that fish completes. */
static const char fish_completer[] =
    "function __handrail_words -a what\n"
    "\tset -l words (commandline -opc)\n"
    "\tset -l name default\n"
    "\tset -l cmd\n"
    "\tset -l i 2\n"
    "\twhile test $i -le (count $words)\n"
    "\t\tswitch $words[$i]\n"
    "\t\t\tcase -n --name\n"
    "\t\t\t\tset i (math $i + 1)\n"
    "\t\t\t\ttest $i -gt (count $words); or set name $words[$i]\n"
    "\t\t\tcase -r --runtime -c --config-file -s --set\n"
    "\t\t\t\tset i (math $i + 1)\n"
    "\t\t\tcase '-*'\n"
    "\t\t\tcase '*'\n"
    "\t\t\t\ttest -n \"$cmd\"; or set cmd $words[$i]\n"
    "\t\tend\n"
    "\t\tset i (math $i + 1)\n"
    "\tend\n"
    "\ttest $what = name; and echo $name; or echo $cmd\n"
    "end\n"
    "function __handrail_is\n"
    "\tcontains -- \"$(__handrail_words command)\" $argv\n"
    "end\n"
    "function __handrail_paths\n"
    "\tset -l dir (string replace -r '[^/]*$' '' -- (commandline -ct))\n"
    "\tset -l at $dir\n"
    "\ttest -n \"$at\"; or set at .\n"
    "\thandrail ls -q -n (__handrail_words name) -- $at 2>/dev/null | while read -l line\n"
    "\t\techo $dir$line\n"
    "\tend\n"
    "end\n"
    "complete -c handrail -f\n"
    "complete -c handrail -s n -l name -x -a '(handrail completion names 2>/dev/null)'\n"
    "complete -c handrail -n '__handrail_is down' -a '(handrail completion names 2>/dev/null)'\n"
    "complete -c handrail -n '__handrail_is edit get ls read write' -a '(__handrail_paths)'\n"
    "complete -c handrail -n '__handrail_is put build' -F\n";

static int
put_names(struct cli *c, struct hr_buf *b)
{
	HR_PUT struct json_object *list = NULL;
	struct hr_err err = {0};
	HR_FREE char *text = hr_sandbox_list(c->state_dir, &err);
	size_t i;

	if (text == NULL || hr_json_decode(text, strlen(text), &list, NULL) < 0)
		return cli_fail(&err);
	for (i = 0; i < hr_json_count(list); i++)
		hr_buf_addf(b, "%s\n", hr_json_text_or(hr_json_entry(list, i), "sid", ""));
	return CLI_OK;
}

/* Functions for bash, made from the tables, so that they cannot forget a command. */
static int
put_bash(struct cli *c, struct hr_buf *b)
{
	size_t i;

	(void)c;
	hr_buf_adds(b, "# bash: source <(handrail completion)\n"
		       "_handrail_commands() {\n\tprintf '%s\\n'");
	for (i = 0; i < cli_commands_n; i++)
		hr_buf_addf(b, " %s", cli_commands[i]->name);
	hr_buf_adds(b, "\n}\n_handrail_options() {\n\tcase $1 in\n");
	for (i = 0; i < cli_commands_n; i++)
		if (cli_commands[i]->options != NULL) {
			hr_buf_addf(b, "\t%s) printf '%%s\\n'", cli_commands[i]->name);
			put_words(b, cli_commands[i]->options);
			hr_buf_adds(b, " ;;\n");
		}
	hr_buf_adds(b, "\tesac\n\tprintf '%s\\n'");
	put_words(b, cli_common);
	hr_buf_adds(b, "\n}\n");
	hr_buf_adds(b, completer);
	return CLI_OK;
}

/* A word of zsh's: "NAME:HELP" as _describe takes it. */
static void
put_described(struct hr_buf *b, const char *before, const char *name, const char *help)
{
	HR_BUF(word, 4096);

	hr_buf_addf(&word, "%s%s:%s", before, name, help);
	hr_buf_adds(b, "\n\t\t");
	hr_shell_quote(b, hr_buf_str(&word), word.len);
}

static void
put_described_options(struct hr_buf *b, const struct cli_option *o)
{
	for (; o != NULL && o->name != NULL; o++)
		put_described(b, "--", o->name, o->help);
}

static int
put_zsh(struct cli *c, struct hr_buf *b)
{
	size_t i;

	(void)c;
	hr_buf_adds(b, "# zsh: source <(handrail completion zsh)\n"
		       "_handrail_commands() {\n\tlocal -a list=(");
	for (i = 0; i < cli_commands_n; i++)
		put_described(b, "", cli_commands[i]->name, cli_commands[i]->help);
	hr_buf_adds(b, "\n\t)\n\t_describe command list\n}\n"
		       "_handrail_options() {\n\tlocal -a list\n\tcase $1 in\n");
	for (i = 0; i < cli_commands_n; i++)
		if (cli_commands[i]->options != NULL) {
			hr_buf_addf(b, "\t(%s) list=(", cli_commands[i]->name);
			put_described_options(b, cli_commands[i]->options);
			hr_buf_adds(b, "\n\t) ;;\n");
		}
	hr_buf_adds(b, "\tesac\n\tlist+=(");
	put_described_options(b, cli_common);
	hr_buf_adds(b, "\n\t)\n\t_describe -o option list\n}\n");
	hr_buf_adds(b, zsh_completer);
	return CLI_OK;
}

static void
put_fish_quoted(struct hr_buf *b, const char *s)
{
	hr_buf_addc(b, '\'');
	for (; *s != '\0'; s++) {
		if (*s == '\'' || *s == '\\')
			hr_buf_addc(b, '\\');
		hr_buf_addc(b, *s);
	}
	hr_buf_adds(b, "'\n");
}

/* command: NULL: of all. */
static void
put_fish_options(struct hr_buf *b, const char *command, const struct cli_option *o)
{
	for (; o != NULL && o->name != NULL; o++) {
		hr_buf_adds(b, "complete -c handrail");
		if (command != NULL)
			hr_buf_addf(b, " -n '__handrail_is %s'", command);
		if (o->letter >= 32)
			hr_buf_addf(b, " -s %c", o->letter);
		hr_buf_addf(b, " -l %s%s -d ", o->name, o->arg != NULL ? " -r" : "");
		put_fish_quoted(b, o->help);
	}
}

static int
put_fish(struct cli *c, struct hr_buf *b)
{
	size_t i;

	(void)c;
	hr_buf_adds(b, "# fish: handrail completion fish | source\n");
	hr_buf_adds(b, fish_completer);
	for (i = 0; i < cli_commands_n; i++) {
		hr_buf_addf(b, "complete -c handrail -n '__handrail_is \"\"' -a %s -d ",
		    cli_commands[i]->name);
		put_fish_quoted(b, cli_commands[i]->help);
		put_fish_options(b, cli_commands[i]->name, cli_commands[i]->options);
	}
	put_fish_options(b, NULL, cli_common);
	return CLI_OK;
}

static const struct {
	const char *name;
	int (*put)(struct cli *c, struct hr_buf *b);
} kinds[] = {{"bash", put_bash}, {"fish", put_fish}, {"names", put_names}, {"zsh", put_zsh}};

static int
completion(struct cli *c, const struct cli_args *a)
{
	const char *name = a->argc > 0 ? a->argv[0] : "bash";
	const size_t n = sizeof(kinds) / sizeof(*kinds);
	HR_BUF(b, 1 << 20);
	size_t i = 0;
	int r;

	while (i < n && strcmp(kinds[i].name, name) != 0)
		i++;
	if (i == n)
		return cli_usage(
		    "completion: there is none for \"%s\"; there are bash, zsh and fish", name);
	r = kinds[i].put(c, &b);
	if (r == CLI_OK)
		return cli_out_buf(&b);
	return r;
}

const struct cli_command cli_completion = {"completion", "[bash | zsh | fish | names]",
    "Print completion for a shell, or the names of the sandboxes.", NULL, 0, 1, completion, NULL};
