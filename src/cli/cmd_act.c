/* run, attach, py, read, write, edit: actions in a sandbox. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/observation.h"
#include "host/transfer/cp.h"
#include "shell/quote.h"
#include "proto/json.h"

#define INPUT_MAX (32u << 20)

/* All of standard input. */
static int
read_input(struct hr_buf *b)
{
	ssize_t n;
	char *room;

	do {
		room = hr_buf_reserve(b, 65536);
		if (room == NULL)
			return cli_usage("standard input is too long");
		n = hr_fd_read(0, room, 65536);
		if (n < 0)
			return cli_usage("standard input: %s", strerror(errno));
		hr_buf_grew(b, (size_t)n);
	} while (n > 0);
	return CLI_OK;
}

/* ---- run ---- */

static const struct cli_option run_options[] = {
    {'t', "timeout", "SECONDS", "give up waiting then [sandbox.timeout]"},
    {'i', "input", NULL, "it is input for the command that runs"},
    {1, "cwd", "DIR", "in this directory, in a shell of its own"},
    {0, NULL, NULL, NULL},
};

static int
run(struct cli *c, const struct cli_args *a)
{
	struct json_object *args;
	struct hr_sandbox *s;
	struct hr_buf b;
	double timeout;
	char *action;
	int r = cli_seconds(a, &timeout), bad = 0;
	int i;

	if (r != CLI_OK)
		return r;
	hr_buf_init(&b, INPUT_MAX);
	/* one word is a line for the shell, several are a command and its arguments */
	for (i = 0; i < a->argc; i++) {
		if (i > 0)
			hr_buf_addc(&b, ' ');
		if (a->argc == 1)
			hr_buf_adds(&b, a->argv[i]);
		else
			hr_shell_quote(&b, a->argv[i], strlen(a->argv[i]));
	}
	args = cli_run_args(hr_buf_str(&b), timeout);
	hr_buf_done(&b);
	if (args != NULL && cli_value(a, 'i') != NULL)
		bad |= json_object_object_add(args, "is_input", json_object_new_string("true"));
	if (args != NULL && cli_value(a, 1) != NULL) {
		bad |= json_object_object_add(args, "cwd", json_object_new_string(cli_value(a, 1)));
		bad |= json_object_object_add(args, "is_static", json_object_new_boolean(true));
	}
	if (args == NULL || bad != 0) {
		json_object_put(args);
		return cli_usage("out of memory");
	}
	/* a shell of its own is not to be looked at, and input has a command that is */
	if (cli_value(a, 'i') != NULL || cli_value(a, 1) != NULL)
		return cli_act(c, "run", args, timeout);
	action = cli_action_text("run", args, timeout);
	if (action == NULL)
		return CLI_USAGE;
	s = cli_attach(c, &r);
	if (s != NULL)
		r = cli_live_run(c, s, action, timeout > 0);
	hr_sandbox_free(s);
	free(action);
	return r;
}

const struct cli_command cli_run = {"run", "COMMAND [ARGUMENT]...",
    "Run a command in the sandbox's shell, with its exit status.", run_options, 1, -1, run, NULL};

/* ---- attach ---- */

static int
attach(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	(void)a;
	return cli_live_attach(c, s);
}

const struct cli_command cli_come_back = {"attach", "",
    "Come back to the shell's last command: its output and exit status.", NULL, 0, 0, NULL, attach};

/* ---- py ---- */

static const struct cli_option py_options[] = {
    {'t', "timeout", "SECONDS", "give up waiting then [sandbox.timeout]"},
    {0, NULL, NULL, NULL},
};

static int
py(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	double timeout;
	int r = cli_seconds(a, &timeout);

	if (r != CLI_OK)
		return r;
	hr_buf_init(&b, INPUT_MAX);
	if (a->argc == 1 && strcmp(a->argv[0], "-") != 0)
		hr_buf_adds(&b, a->argv[0]);
	else
		r = read_input(&b);
	if (r == CLI_OK)
		r = cli_act(
		    c, "run_ipython", hr_json_texts(NULL, "code", hr_buf_str(&b), NULL), timeout);
	hr_buf_done(&b);
	return r;
}

const struct cli_command cli_py = {"py", "[CODE|-]",
    "Run Python in the sandbox's notebook; from standard input without CODE.", py_options, 0, 1, py,
    NULL};

/* ---- files ---- */

static int
read_file(struct cli *c, const struct cli_args *a)
{
	return cli_act(c, "read", hr_json_texts(NULL, "path", a->argv[0], NULL), 0);
}

const struct cli_command cli_read = {
    "read", "PATH", "Print a file of the sandbox.", NULL, 1, 1, read_file, NULL};

static int
write_file(struct cli *c, const struct cli_args *a)
{
	struct hr_buf b;
	int r;

	hr_buf_init(&b, INPUT_MAX);
	r = read_input(&b);
	if (r == CLI_OK && b.len > 0 && memchr(b.p, '\0', b.len) != NULL)
		r = cli_usage("standard input is not text; \"handrail put\" copies any file");
	if (r == CLI_OK)
		r = cli_act(c, "write",
		    hr_json_texts(NULL, "path", a->argv[0], "content", hr_buf_str(&b), NULL), 0);
	hr_buf_done(&b);
	return r;
}

const struct cli_command cli_write = {"write", "PATH <FILE",
    "Write standard input to a file of the sandbox.", NULL, 1, 1, write_file, NULL};

static int
edit_file(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	char *path = NULL, *action = NULL, *text = NULL;
	struct json_object *args;
	struct hr_err err = {0};
	int r;

	path = hr_cp_path(s, a->argv[0]);
	args = path != NULL ? hr_json_texts(NULL, "path", path, "command", "str_replace", "old_str",
				  a->argv[1], "new_str", a->argv[2], "impl_source", "oh_aci", NULL)
			    : NULL;
	action = cli_action_text("edit", args, 0);
	if (action == NULL)
		r = CLI_USAGE;
	else if (hr_sandbox_action(s, action, &text, &err) == 0)
		r = cli_observed(c, text, true);
	else
		r = cli_fail(&err);
	free(text);
	free(action);
	free(path);
	return r;
}

const struct cli_command cli_edit = {"edit", "PATH OLD NEW",
    "Replace a text that occurs once in a file of the sandbox.", NULL, 3, 3, NULL, edit_file};
