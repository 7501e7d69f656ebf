/* Implements read and edit: a text file of the sandbox. The server makes the changes, one at a
 * time. */
#include "config.h"

#include <stdlib.h>

#include "base/err.h"
#include "cli/commands.h"
#include "cli/observation.h"
#include "host/transfer/cp.h"
#include "proto/json.h"

/* Returns the path of an existing file, owned by the caller, or NULL with the exit status in
 * *ret. */
static char *
path_of(struct hr_sandbox *s, const char *path, int *ret)
{
	char *whole = hr_cp_path(s, path);
	enum hr_cp_what there = HR_CP_UNKNOWN;
	struct hr_err err = {0};

	if (whole == NULL)
		(void)hr_err_nomem(&err);
	else if (hr_cp_look(s, whole, &there, &err) == 0 && there == HR_CP_NOTHING)
		(void)hr_err_set(
		    &err, HR_E_NOTFOUND, "there is no file or directory %s in the sandbox", whole);
	else if (there == HR_CP_DIRECTORY)
		(void)hr_err_set(&err, HR_E_INVAL, "%s is a directory", whole);
	if (err.code == HR_OK)
		return whole;
	free(whole);
	*ret = cli_fail(&err);
	return NULL;
}

static int
read_file(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	HR_FREE char *path = NULL;
	int r = CLI_OK;

	if (!hr_cp_is_direct(s) && (path = path_of(s, a->argv[0], &r)) == NULL)
		return r;
	return cli_act_in(
	    c, s, "read", hr_json_texts(NULL, "path", path != NULL ? path : a->argv[0], NULL), 0);
}

const struct cli_command cli_read = {
    "read", NULL, "PATH", "Print a file of the sandbox.", NULL, 1, 1, CLI_PLAIN, NULL, read_file};

static int
edit(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	HR_FREE char *path = NULL;
	int r = CLI_OK;

	if (hr_cp_is_direct(s) && (path = hr_cp_path(s, a->argv[0])) == NULL)
		return cli_no_memory();
	if (path == NULL && (path = path_of(s, a->argv[0], &r)) == NULL)
		return r;
	return cli_act_in(c, s, "edit",
	    hr_json_texts(NULL, "path", path, "command", "str_replace", "old_str", a->argv[1],
		"new_str", a->argv[2], "impl_source", "oh_aci", NULL),
	    0);
}

const struct cli_command cli_edit = {"edit", NULL, "PATH OLD NEW",
    "Replace a string that occurs exactly once in a file of the sandbox.", NULL, 3, 3, CLI_VERBATIM,
    NULL, edit};
