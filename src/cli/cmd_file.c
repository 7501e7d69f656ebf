/* ls, put, get: files of a sandbox. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "host/life/action.h"
#include "host/handle.h"
#include "host/transfer/cp.h"
#include "proto/json.h"

#define LIST_MAX (64u << 20)

/* The list of a path in *text, which is taken: of one that is not there it is empty, as of a
 * directory. Of a file it becomes its path, as it was given, as ls(1) has it. */
static int
look_at_empty(
    struct hr_sandbox *s, const char *whole, const char *path, char **text, struct hr_err *err)
{
	enum hr_cp_what there = HR_CP_UNKNOWN;
	HR_BUF(b, LIST_MAX);

	if (hr_cp_look(s, whole, &there, err) != 0)
		return -1;
	if (there == HR_CP_NOTHING)
		return hr_err_set(
		    err, HR_E_NOTFOUND, "there is no file or directory %s in the sandbox", whole);
	if (there != HR_CP_FILE)
		return 0;
	hr_buf_addc(&b, '[');
	(void)hr_json_put_str(&b, path, strlen(path), HR_JSON_REPLACE);
	hr_buf_addc(&b, ']');
	free(*text);
	*text = hr_buf_end(&b, err);
	return *text != NULL ? 0 : -1;
}

static int
ls(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	const char *path = a->argc > 0 ? a->argv[0] : ".";
	HR_PUT struct json_object *list = NULL;
	struct hr_err err = {0};
	HR_BUF(b, LIST_MAX);
	HR_FREE char *text = NULL;
	HR_FREE char *whole = hr_cp_path(s, path);
	int r = whole != NULL ? hr_sandbox_list_files(s, whole, &text, &err) : hr_err_nomem(&err);
	size_t i;

	if (r == 0 && strcmp(text, "[]") == 0)
		r = look_at_empty(s, whole, path, &text, &err);
	if (r != 0)
		return cli_fail(&err);
	if (c->json)
		return cli_out_line(text);
	if (hr_json_decode_foreign(text, strlen(text), &list, NULL) != 0) {
		cli_say("the server's list of files is no JSON");
		return CLI_ERROR;
	}
	for (i = 0; i < hr_json_count(list); i++) {
		const char *name = hr_json_text(hr_json_entry(list, i));

		if (name == NULL)
			continue;
		hr_quote_text(&b, name, strlen(name));
		hr_buf_addc(&b, '\n');
	}
	return cli_out_buf(&b);
}

const struct cli_command cli_ls = {
    "ls", "[PATH]", "List a directory of the sandbox.", NULL, 0, 1, NULL, ls};

/* ---- put and get ---- */

static const struct cli_option copy_options[] = {
    {'o', "owner", NULL, "keep owners and groups, as numbers"},
    {0, NULL, NULL, NULL},
};

/* One copy of a sandbox's file or directory, one way. */
static int
copy(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, const char *from,
    const char *to,
    int (*way)(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err))
{
	struct hr_err err = {0};
	const char *inside = way == hr_cp_in ? to : from;
	size_t n = strlen(c->name);
	int r;

	/* as "docker cp" has it; nobody means a file of that name */
	if (strncmp(inside, c->name, n) == 0 && inside[n] == ':')
		return cli_usage("\"%s\": leave out \"%.*s\", as -n chooses the sandbox", inside,
		    (int)n + 1, inside);
	s->keep_owner = cli_value(a, 'o') != NULL;
	r = way(s, from, to, &err);
	cli_progress_end(c);
	return r == 0 ? cli_done(c, "from", from, "to", to, NULL) : cli_fail(&err);
}

static int
put(struct cli *c, const struct cli_args *a)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	struct stat st;
	int r;

	/* before a sandbox is asked for */
	if (lstat(a->argv[0], &st) != 0) {
		cli_say("%s: %s", a->argv[0], strerror(errno));
		return CLI_NOT_FOUND;
	}
	s = cli_attach(c, &r);
	return s != NULL ? copy(c, s, a, a->argv[0], a->argc > 1 ? a->argv[1] : ".", hr_cp_in) : r;
}

const struct cli_command cli_put = {"put", "FILE|DIR [PATH]",
    "Copy a file or a directory into the sandbox, as cp -R has it, with modes and times.",
    copy_options, 1, 2, put, NULL};

static int
to_stdout(struct cli *c, struct hr_sandbox *s, const char *path)
{
	struct hr_err err = {0};

	(void)c;
	if (!hr_cp_is_direct(s))
		return hr_cp_read(s, path, 1, &err) == 0 ? CLI_OK : cli_fail(&err);
	return cli_usage("\"-\": a sandbox of the back-end %s has no server to send the file; "
			 "\"handrail run cat FILE\" prints it",
	    s->ops->name);
}

static int
get(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	if (a->argc > 1 && strcmp(a->argv[1], "-") == 0)
		return to_stdout(c, s, a->argv[0]);
	return copy(c, s, a, a->argv[0], a->argc > 1 ? a->argv[1] : ".", hr_cp_out);
}

const struct cli_command cli_get = {"get", "PATH [FILE|DIR|-]",
    "Copy a file or a directory out of the sandbox, as cp -R has it; \"-\" is standard output.",
    copy_options, 1, 2, NULL, get};
