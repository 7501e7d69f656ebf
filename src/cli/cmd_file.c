/* ls, put, get: files of a sandbox. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "host/transfer/zip.h"
#include "proto/json.h"

static int
ls(struct cli *c, const struct cli_args *a)
{
	struct json_object *list = NULL;
	struct hr_error err = {0};
	struct hr_json_error why;
	struct hr_sandbox *s;
	struct hr_buf b;
	char *text = NULL;
	int rc = CLI_ERROR;

	s = cli_attach(c, &rc);
	if (s == NULL)
		return rc;
	if (hr_sandbox_list_files(s, a->argc > 0 ? a->argv[0] : NULL, &text, &err) != 0) {
		rc = cli_fail(&err);
	} else if (c->json) {
		rc = cli_outs(text);
		rc = rc == CLI_OK ? cli_outs("\n") : rc;
	} else if (hr_json_decode(text, strlen(text), &list, &why) == 0) {
		hr_buf_init(&b, 64u << 20);
		for (size_t i = 0; i < hr_json_count(list); i++) {
			const char *name = hr_json_text(hr_json_entry(list, i));

			if (name == NULL)
				continue;
			hr_quote_text(&b, name, strlen(name));
			hr_buf_addc(&b, '\n');
		}
		rc = cli_out(hr_buf_str(&b), b.len);
		hr_buf_done(&b);
	} else {
		cli_say("the server's list of files is no JSON");
	}
	json_object_put(list);
	free(text);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_ls = {
    "ls", "[PATH]", "List a directory of the sandbox.", NULL, 0, 1, ls};

static int
put(struct cli *c, const struct cli_args *a)
{
	struct hr_error err = {0};
	struct hr_sandbox *s;
	struct stat st;
	int rc = CLI_ERROR;

	if (stat(a->argv[0], &st) != 0) {
		cli_say("Source file %s does not exist.", a->argv[0]);
		return CLI_NOT_FOUND;
	}
	s = cli_attach(c, &rc);
	if (s == NULL)
		return rc;
	rc = hr_sandbox_copy_to(s, a->argv[0], a->argv[1], S_ISDIR(st.st_mode), &err);
	cli_progress_end(c);
	rc = rc == 0 ? cli_done(c, "from", a->argv[0], "to", a->argv[1], NULL) : cli_fail(&err);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_put = {"put", "FILE|DIR DIRECTORY",
    "Copy a file or a directory into a directory of the sandbox.", NULL, 2, 2, put};

static int
get(struct cli *c, const struct cli_args *a)
{
	const char *to = a->argc > 1 ? a->argv[1] : ".";
	struct hr_error err = {0};
	struct hr_sandbox *s;
	char *zip = NULL;
	int rc = CLI_ERROR;

	s = cli_attach(c, &rc);
	if (s == NULL)
		return rc;
	rc = hr_sandbox_copy_from(s, a->argv[0], &zip, &err);
	cli_progress_end(c);
	if (rc != 0 || hr_zip_extract(zip, to, 0, &err) != 0)
		rc = cli_fail(&err);
	else
		rc = cli_done(c, "from", a->argv[0], "to", to, NULL);
	if (zip != NULL)
		(void)unlink(zip);
	free(zip);
	hr_sandbox_free(s);
	return rc;
}

const struct cli_command cli_get = {"get", "PATH [DIRECTORY]",
    "Copy what is in a directory of the sandbox into one of yours.", NULL, 1, 2, get};
