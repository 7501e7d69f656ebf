/* config, id, completion, version. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "proto/json.h"

static int
config(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	char *text;
	int rc;

	(void)a;
	text = hr_config_json(c->config, &err);
	if (text == NULL)
		return cli_fail(&err);
	rc = cli_outs(text);
	rc = rc == CLI_OK ? cli_outs("\n") : rc;
	free(text);
	return rc;
}

const struct cli_command cli_config = {
    "config", "", "Print the settings as JSON, secrets masked.", NULL, 0, 0, config};

static int
id(struct cli *c, const struct cli_args *a)
{
	const char *name = a->argc > 0 ? a->argv[0] : NULL;
	struct hr_err err = {0};
	char *sid = hr_session_id(c->config, name, &err);
	int rc;

	if (sid == NULL)
		return cli_fail(&err);
	if (c->json)
		rc = cli_done(c, "sid", sid, NULL);
	else if ((rc = cli_outs(sid)) == CLI_OK)
		rc = cli_outs("\n");
	free(sid);
	return rc;
}

const struct cli_command cli_id = {"id", "[NAME]",
    "Print a sandbox name made from NAME and jwt_secret; without NAME a new one.", NULL, 0, 1, id};

static int
version(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	int rc;

	(void)a;
	hr_buf_init(&b, 4096);
	hr_buf_addf(&b, c->json ? "{\"version\":\"%s\"}\n" : "handrail %s\n", hr_version());
	rc = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return rc;
}

const struct cli_command cli_version = {"version", "", "Print the version.", NULL, 0, 0, version};

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

static int
put_names(struct cli *c, struct hr_buf *b)
{
	struct json_object *list = NULL;
	struct hr_err err = {0};
	struct hr_json_error why;
	char *text = hr_sandbox_list(c->state_dir, &err);

	if (text == NULL || hr_json_decode(text, strlen(text), &list, &why) < 0) {
		free(text);
		return cli_fail(&err);
	}
	for (size_t i = 0; i < hr_json_count(list); i++)
		hr_buf_addf(b, "%s\n", hr_json_text_or(hr_json_entry(list, i), "sid", ""));
	json_object_put(list);
	free(text);
	return CLI_OK;
}

/* Functions for bash, made from the tables, so that they cannot forget a command. */
static void
put_functions(struct hr_buf *b)
{
	hr_buf_adds(b, "# bash: source <(handrail completion)\n"
		       "_handrail_commands() {\n\tprintf '%s\\n'");
	for (size_t i = 0; i < cli_commands_n; i++)
		hr_buf_addf(b, " %s", cli_commands[i]->name);
	hr_buf_adds(b, "\n}\n_handrail_options() {\n\tcase $1 in\n");
	for (size_t i = 0; i < cli_commands_n; i++)
		if (cli_commands[i]->options != NULL) {
			hr_buf_addf(b, "\t%s) printf '%%s\\n'", cli_commands[i]->name);
			put_words(b, cli_commands[i]->options);
			hr_buf_adds(b, " ;;\n");
		}
	hr_buf_adds(b, "\tesac\n\tprintf '%s\\n'");
	put_words(b, cli_common);
	hr_buf_adds(b, "\n}\n");
	hr_buf_adds(b, completer);
}

static int
completion(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	int rc = CLI_OK;

	if (a->argc > 0 && strcmp(a->argv[0], "bash") != 0 && strcmp(a->argv[0], "names") != 0)
		return cli_usage(
		    "completion: there is none for \"%s\"; there is one for bash", a->argv[0]);
	hr_buf_init(&b, 1 << 20);
	if (a->argc > 0 && strcmp(a->argv[0], "names") == 0)
		rc = put_names(c, &b);
	else
		put_functions(&b);
	if (rc == CLI_OK)
		rc = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return rc;
}

const struct cli_command cli_completion = {"completion", "[bash | names]",
    "Print completion for bash, or the names of the sandboxes.", NULL, 0, 1, completion};
