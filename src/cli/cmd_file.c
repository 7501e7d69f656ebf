/* Implements ls, put and get: files of a sandbox. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/strv.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "host/records/record.h"
#include "host/handle.h"
#include "host/transfer/cp.h"
#include "host/transfer/list.h"

#define LIST_MAX (64u << 20)

/* Appends a JSON string. JSON has no bytes that are not UTF-8: those become \xHH. */
static void
put_json(struct hr_buf *b, const char *name)
{
	HR_BUF(text, LIST_MAX);

	if (hr_utf8_strict(name, strlen(name))) {
		hr_quote_json(b, name, strlen(name));
		return;
	}
	hr_quote_text(&text, name, strlen(name));
	hr_quote_json(b, hr_buf_str(&text), text.len);
}

static int
ls(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	struct hr_err err = {0};
	HR_BUF(b, LIST_MAX);
	size_t i;

	if (hr_cp_list(s, a->argc > 0 ? a->argv[0] : ".", &names, &err) != 0)
		return cli_fail(&err);
	hr_buf_adds(&b, c->json ? "[" : "");
	for (i = 0; i < names.n; i++) {
		if (c->json) {
			hr_buf_adds(&b, i > 0 ? "," : "");
			put_json(&b, names.v[i]);
		} else {
			hr_quote_text(&b, names.v[i], strlen(names.v[i]));
			hr_buf_addc(&b, '\n');
		}
	}
	hr_buf_adds(&b, c->json ? "]\n" : "");
	return cli_out_buf(&b);
}

const struct cli_command cli_ls = {
    "ls", NULL, "[PATH]", "List a directory of the sandbox.", NULL, 0, 1, CLI_PLAIN, NULL, ls};

/* ---- put and get ---- */

static const struct cli_option copy_options[] = {
    {'o', "owner", NULL, "keep owners and groups, as numbers"},
    {0, NULL, NULL, NULL},
};

/* Copies a sandbox's file or directory in one direction. */
static int
copy(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, const char *from,
    const char *to,
    int (*way)(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err))
{
	struct hr_err err = {0};
	int r;

	s->keep_owner = cli_value(a, 'o') != NULL;
	r = way(s, from, to, &err);
	cli_progress_end(c);
	return r == 0 ? cli_done(c, "from", from, "to", to, NULL) : cli_fail(&err);
}

/* Returns false after it has reported that a path of "put" or "get" has the form of "cp". */
static bool
not_named(const struct cli *c, const char *path)
{
	size_t n = strlen(c->name);

	if (strncmp(path, c->name, n) != 0 || path[n] != ':')
		return true;
	(void)cli_usage("\"%s\": leave out \"%.*s\", as -n chooses the sandbox, or use "
			"\"handrail cp\"",
	    path, (int)n + 1, path);
	return false;
}

static int
put_in(struct cli *c, const struct cli_args *a, const char *from, const char *to)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	struct hr_err err = {0};
	struct stat st;
	int r;

	/* this check comes before a sandbox is contacted */
	if (lstat(from, &st) != 0) {
		(void)hr_err_sys(&err, errno, "%s", from);
		return cli_fail(&err);
	}
	s = cli_attach(c, &r);
	return s != NULL ? copy(c, s, a, from, to, hr_cp_in) : r;
}

static int
put(struct cli *c, const struct cli_args *a)
{
	return not_named(c, a->argc > 1 ? a->argv[1] : ".")
		   ? put_in(c, a, a->argv[0], a->argc > 1 ? a->argv[1] : ".")
		   : CLI_USAGE;
}

const struct cli_command cli_put = {"put", NULL, "FILE|DIR [PATH]",
    "Copy a file or a directory into the sandbox, as cp -R, with modes and times.", copy_options, 1,
    2, CLI_PLAIN, put, NULL};

static int
to_stdout(struct cli *c, struct hr_sandbox *s, const char *path)
{
	struct hr_err err = {0};

	(void)c;
	if (!hr_cp_is_direct(s)) {
		if (hr_cp_read(s, path, 1, &err) == 0)
			return CLI_OK;
		return err.sys == EPIPE ? CLI_ERROR : cli_fail(&err); /* as cli_out() does */
	}
	return cli_usage("\"-\": a sandbox of the back-end %s has no server to send the file; "
			 "\"handrail run cat FILE\" prints it",
	    s->ops->name);
}

static int
get(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	if (a->argc > 1 && strcmp(a->argv[1], "-") == 0)
		return to_stdout(c, s, a->argv[0]);
	if (!not_named(c, a->argv[0]))
		return CLI_USAGE;
	return copy(c, s, a, a->argv[0], a->argc > 1 ? a->argv[1] : ".", hr_cp_out);
}

const struct cli_command cli_get = {"get", NULL, "PATH [FILE|DIR|-]",
    "Copy a file or a directory out of the sandbox, as cp -R; \"-\" is standard output.",
    copy_options, 1, 2, CLI_PLAIN, NULL, get};

/* Splits "NAME:PATH", as docker does, and sets c->name; ":PATH" is in the sandbox of --name.
 * Returns NULL for a path on this machine. */
static const char *
split(struct cli *c, char *arg)
{
	char *colon = strpbrk(arg, ":/");

	if (colon == NULL || *colon != ':' || *arg == '.')
		return NULL;
	*colon = '\0';
	if (colon > arg)
		c->name = arg;
	return colon + 1;
}

static int
cp(struct cli *c, const struct cli_args *a)
{
	const char *named = c->name, *from = split(c, a->argv[0]), *to = split(c, a->argv[1]);
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	int r = CLI_OK;

	if ((from == NULL) == (to == NULL))
		return cli_usage(
		    "cp: one of the two paths must be NAME:PATH, in a sandbox; :PATH is in \"%s\"",
		    named);
	if (!hr_sid_valid(c->name))
		return cli_no_name(c->name);
	if (cli_value(a, 'n') != NULL && strcmp(c->name, named) != 0)
		return cli_usage("cp: --name and \"%s:\" name two sandboxes", c->name);
	if (to != NULL)
		return put_in(c, a, a->argv[0], *to != '\0' ? to : ".");
	if (strcmp(a->argv[1], "-") == 0)
		return cli_usage("cp: \"handrail get PATH -\" prints a file");
	s = cli_attach(c, &r);
	return s != NULL ? copy(c, s, a, *from != '\0' ? from : ".", a->argv[1], hr_cp_out) : r;
}

const struct cli_command cli_cp = {"cp", NULL, "NAME:PATH PATH | PATH NAME:PATH",
    "Copy out of or into a sandbox, as \"get\" and \"put\" do.", copy_options, 2, 2, CLI_PLAIN, cp,
    NULL};
