/* Implements run, exec, attach, py and write: actions in a sandbox. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/observation.h"
#include "cli/stdin.h"
#include "base/strv.h"
#include "host/common/envquote.h"
#include "host/life/action.h"
#include "host/handle.h"
#include "host/transfer/cp.h"
#include "shell/quote.h"
#include "shell/split.h"
#include "proto/json.h"

#define INPUT_MAX (32u << 20)
#define LOOK_TIMEOUT_S 30

/* Reads all of standard input. */
static int
read_input(struct hr_buf *b)
{
	struct hr_err err = {0};

	if (hr_path_read_fd(0, "standard input", b, &err) == 0)
		return CLI_OK;
	return cli_error("%s", err.code == HR_E_TOOLARGE ? "standard input is too long" : err.msg);
}

/* ---- run ---- */

static const struct cli_option run_options[] = {
    {'t', "timeout", "SECONDS", "how long to wait [sandbox.timeout]"},
    {'i', "input", NULL, "send the arguments as input to the running command"},
    {'w', "cwd", "DIR", "in this directory, in a new shell"},
    {'e', "env", "NAME=VALUE", "a variable for the command alone; may be repeated"},
    {0, NULL, NULL, NULL},
};

/* Appends "NAME='VALUE' ... eval 'LINE'": eval runs the line in the shell itself, with the
 * variables until its end. */
static int
add_environment(const struct cli_args *a, struct hr_buf *b)
{
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_BUF(line, INPUT_MAX);
	size_t i;
	int r = cli_environment(a, &env);

	if (r != CLI_OK || env.n == 0)
		return r;
	if (cli_value(a, 'i') != NULL)
		return cli_usage(
		    "--env must not be given with --input: it sets variables of a new command");
	hr_buf_adds(&line, hr_buf_str(b));
	hr_buf_reset(b);
	for (i = 0; i < env.n; i++) {
		const size_t n = hr_env_name(env.v[i]);

		if (n == 0)
			return cli_usage("--env: \"%.*s\" is not a valid name for a variable",
			    (int)strcspn(env.v[i], "="), env.v[i]);
		hr_buf_add(b, env.v[i], n + 1);
		/* a carriage return must not be taken for the end of a line */
		hr_env_quote(b, env.v[i] + n + 1);
		hr_buf_addc(b, ' ');
	}
	hr_buf_adds(b, "eval ");
	hr_shell_quote(b, hr_buf_str(&line), line.len);
	return CLI_OK;
}

/* Checks that the sandbox's user may enter a directory: otherwise a server would use another one
 * instead. */
static int
look_at_directory(struct hr_sandbox *s, const char *dir, struct hr_err *err)
{
	HR_BUF(b, INPUT_MAX);
	int status = -1, r;

	hr_buf_adds(&b, "[ -x ");
	hr_shell_quote(&b, dir, strlen(dir));
	hr_buf_adds(&b, "/ ] || ( ! [ -e ");
	hr_shell_quote(&b, dir, strlen(dir));
	hr_buf_adds(&b, " ] && exit 3 )");
	r = hr_buf_check(&b, err) == 0
		? hr_sandbox_run_static(s, b.p, LOOK_TIMEOUT_S, &status, NULL, err)
		: -1;
	if (r != 0 || status == 0)
		return r;
	if (status == 3)
		return hr_err_set(err, HR_E_NOTFOUND,
		    "there is no directory %s in the sandbox, so nothing was run; create it with "
		    "\"handrail run mkdir -p DIR\"",
		    dir);
	if (status == 1)
		return hr_err_set(err, HR_E_INVAL,
		    "%s is not a directory that the sandbox's user can enter, so nothing was run",
		    dir);
	return hr_err_set(err, HR_E_RUNTIME,
	    "the sandbox does not report whether %s is a directory, so nothing was run", dir);
}

/* Requests the whole output: agents get a long one without its middle. Returns 0 or -1. */
static int
add_whole(struct json_object *args)
{
	return json_object_object_add(args, "hidden", json_object_new_boolean(true));
}

/* Runs the action in a new shell; takes ownership of args. */
static int
run_in(struct cli *c, const char *dir, struct json_object *args, double timeout)
{
	struct hr_err err = {0};
	int r;
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = cli_attach(c, &r);
	HR_FREE char *path = NULL;
	HR_FREE char *whole = NULL;

	if (s == NULL) {
		json_object_put(args);
		return r;
	}
	if (!cli_is_direct(s) && cli_stdin_has_data()) {
		json_object_put(args);
		return cli_stdin_refuse();
	}
	path = hr_cp_path(s, dir);
	/* the path stays relative if there is no server */
	whole = path != NULL ? hr_path_join(hr_sandbox_workspace(s), path) : NULL;
	if (whole == NULL ||
	    json_object_object_add(args, "cwd", json_object_new_string(whole)) != 0 ||
	    json_object_object_add(args, "is_static", json_object_new_boolean(true)) != 0 ||
	    (!c->json && add_whole(args) != 0))
		r = hr_err_nomem(&err);
	else
		r = look_at_directory(s, whole, &err);
	if (r == 0)
		return cli_act_in(c, s, "run", args, timeout);
	json_object_put(args);
	return cli_fail(&err);
}

static int
run(struct cli *c, const struct cli_args *a)
{
	struct json_object *args;
	HR_BUF(b, INPUT_MAX);
	HR_BUF(unix_lines, INPUT_MAX);
	double timeout;
	HR_FREE char *action = NULL;
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	int r = cli_seconds(a, &timeout), bad = 0;
	int i;

	if (r != CLI_OK)
		return r;
	/* a single argument is a line for the shell, several are a command and its arguments */
	for (i = 0; i < a->argc; i++) {
		if (i > 0)
			hr_buf_addc(&b, ' ');
		if (a->argc == 1)
			hr_buf_adds(&b, a->argv[i]);
		else
			hr_shell_quote(&b, a->argv[i], strlen(a->argv[i]));
	}
	r = add_environment(a, &b);
	if (r != CLI_OK)
		return r;
	if (cli_value(a, 'i') == NULL) { /* a script may have Windows line ends */
		hr_shell_add_unix(&unix_lines, hr_buf_str(&b), b.len);
		args = cli_run_args(hr_buf_str(&unix_lines), timeout);
	} else {
		args = cli_run_args(hr_buf_str(&b), timeout);
	}
	if (args != NULL && cli_value(a, 'i') != NULL)
		bad |= json_object_object_add(args, "is_input", json_object_new_string("true"));
	if (args != NULL && cli_value(a, 'i') != NULL && !c->json)
		bad |= add_whole(args);
	if (args == NULL || bad != 0) {
		json_object_put(args);
		return cli_no_memory();
	}
	/* a new shell cannot be watched, and input belongs to a command that is watched already */
	if (cli_value(a, 'w') != NULL)
		return run_in(c, cli_value(a, 'w'), args, timeout);
	if (cli_value(a, 'i') != NULL)
		return cli_act(c, "run", args, timeout);
	r = cli_action_text("run", args, timeout, &action);
	if (r != CLI_OK)
		return r;
	s = cli_attach(c, &r);
	r = s != NULL ? cli_live_run(c, s, action, timeout > 0) : r;
	if (r == CLI_NO_PROGRAM && a->argc > 1 && cli_is_recorded(c, a->argv[0]))
		cli_say(
		    "\"%s\" is a sandbox: \"handrail exec %s COMMAND\"", a->argv[0], a->argv[0]);
	return r;
}

const struct cli_command cli_run = {"run", NULL, "COMMAND [ARGUMENT]...",
    "Run a command in the sandbox's shell, with its exit status.", run_options, 1, -1, CLI_VERBATIM,
    run, NULL};

/* ---- exec ---- */

static const struct cli_option exec_options[] = {
    {'i', "interactive", NULL, "with this standard input, as \"handrail sh\""},
    {'t', "tty", NULL, "on this terminal, as \"handrail sh\""},
    {'w', "workdir", "DIR", "in this directory, in a new shell"},
    {'e', "env", "NAME=VALUE", "a variable for the command alone; may be repeated"},
    {0, NULL, NULL, NULL},
};

/* Runs docker's "exec -it NAME COMMAND" as "sh" does, and everything else as "run". */
static int
exec(struct cli *c, const struct cli_args *a)
{
	static const char go[] = "cd \"$0\" && exec \"$@\"";
	const char *dir = cli_value(a, 'w');
	const char *const in_dir[] = {"sh", "-c", go, dir, NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	int i, r = cli_environment(a, &env);

	if (r != CLI_OK)
		return r;
	if (cli_value(a, 'i') == NULL && cli_value(a, 't') == NULL)
		return run(c, a);
	if (dir != NULL)
		hr_strv_add_all(&argv, in_dir);
	if (env.n > 0)
		hr_strv_add(&argv, "env");
	hr_strv_add_all(&argv, hr_strv_list(&env));
	for (i = 0; i < a->argc; i++)
		hr_strv_add(&argv, a->argv[i]);
	if (argv.failed)
		return cli_no_memory();
	s = cli_attach(c, &r);
	return s != NULL ? cli_on_terminal(s, hr_strv_list(&argv)) : r;
}

const struct cli_command cli_exec = {"exec", NULL, "NAME COMMAND [ARGUMENT]...",
    "The same as \"run\"; with -it as \"sh\".", exec_options, 1, -1, CLI_EXEC, exec, NULL};

/* ---- attach ---- */

static int
attach(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	(void)a;
	return cli_live_attach(c, s);
}

const struct cli_command cli_come_back = {"attach", NULL, "[NAME]",
    "Return to the shell's last command: its output and exit status.", NULL, 0, 0, CLI_NAME, NULL,
    attach};

/* ---- py ---- */

static const struct cli_option py_options[] = {
    {'t', "timeout", "SECONDS", "how long to wait [sandbox.timeout]"},
    {0, NULL, NULL, NULL},
};

static int
py(struct cli *c, const struct cli_args *a)
{
	HR_BUF(b, INPUT_MAX);
	double timeout;
	int r = cli_seconds(a, &timeout);

	if (r != CLI_OK)
		return r;
	if (a->argc == 1 && strcmp(a->argv[0], "-") != 0)
		hr_buf_adds(&b, a->argv[0]);
	else
		r = read_input(&b);
	if (r == CLI_OK)
		r = cli_act(
		    c, "run_ipython", hr_json_texts(NULL, "code", hr_buf_str(&b), NULL), timeout);
	return r;
}

const struct cli_command cli_py = {"py", NULL, "[CODE|-]",
    "Run Python in the sandbox's notebook; from standard input without CODE.", py_options, 0, 1,
    CLI_PLAIN, py, NULL};

/* ---- files ---- */

/* Copies standard input to a memory file, so that a request can be repeated. Returns -1 with
 * *err. */
static int
keep_input(struct hr_err *err)
{
	char piece[65536];
	int fd = memfd_create("handrail-input", MFD_CLOEXEC);
	ssize_t n = 0;
	int r = fd >= 0 ? 0 : hr_err_sys(err, errno, "memfd_create");

	while (r == 0 && (n = hr_fd_read(0, piece, sizeof(piece))) > 0)
		r = hr_fd_write_full(fd, piece, (size_t)n, err);
	if (r == 0 && n < 0)
		r = hr_err_sys(err, errno, "standard input");
	if (r != 0)
		hr_fd_close(&fd);
	return fd;
}

/* Prints the observation that a `write` action would have. */
static int
say_written(const char *path)
{
	HR_BUF(b, INPUT_MAX);
	HR_BUF(text, INPUT_MAX);

	hr_buf_adds(&b, "{\"observation\":\"write\",\"content\":\"\",\"message\":");
	hr_buf_addf(&text, "I wrote to the file %s.", path);
	hr_quote_json(&b, hr_buf_str(&text), text.len);
	hr_buf_adds(&b, ",\"extras\":{\"path\":");
	hr_quote_json(&b, path, strlen(path));
	hr_buf_adds(&b, "}}\n");
	return cli_out_buf(&b);
}

/* Writes without a server: the back-end's action takes only text. */
static int
write_directly(struct cli *c, struct hr_sandbox *s, const char *path)
{
	HR_BUF(b, INPUT_MAX);
	int r = read_input(&b);

	if (r == CLI_OK && b.len > 0 && memchr(b.p, '\0', b.len) != NULL)
		r = cli_error("standard input is not text; \"handrail put\" copies any file");
	if (r != CLI_OK)
		return r;
	return cli_act_in(
	    c, s, "write", hr_json_texts(NULL, "path", path, "content", hr_buf_str(&b), NULL), 0);
}

static int
write_file(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	struct hr_err err = {0};
	HR_CLOSE int fd = -1;

	if (hr_cp_is_direct(s))
		return write_directly(c, s, a->argv[0]);
	fd = keep_input(&err);
	if (fd < 0 || hr_cp_write(s, a->argv[0], fd, &err) != 0)
		return cli_fail(&err);
	return c->json ? say_written(a->argv[0]) : CLI_OK;
}

const struct cli_command cli_write = {"write", NULL, "PATH <FILE",
    "Write standard input to a file of the sandbox, byte for byte.", NULL, 1, 1, CLI_PLAIN, NULL,
    write_file};
