/* handrail-editor LIBEXECDIR UNDODIR: makes one call of the editor, with the caller's rights: a
 * JSON object of arguments on stdin, one of results on stdout. file_editor of the agents' functions
 * (handrail-jupyter(8)) uses it in a kernel of the sandbox's user. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "files/charset/detect.h"
#include "files/editor/editor.h"
#include "files/charset/encoding.h"
#include "files/purepath.h"
#include "files/textfile.h"

#define TEXT_MAX (64u << 20) /* the editor's limit for files is 10 MB */

static int
read_request(struct json_object **ret)
{
	HR_BUF(b, HR_JSON_BODY_MAX);
	int r;

	*ret = NULL;
	r = hr_path_read_fd(STDIN_FILENO, "stdin", &b, NULL);
	if (r == 0)
		r = hr_json_decode(hr_buf_str(&b), b.len, ret, NULL);
	if (r == 0 && hr_json_type(*ret) == HR_PY_DICT)
		return 0;
	hr_json_drop(ret);
	return -1;
}

/* Reads the text of the file as the editor reads it. Returns false if it has none. */
static bool
read_text(struct json_object *path, struct hr_buf *text)
{
	struct hr_encoding encoding;
	HR_BUF(bytes, TEXT_MAX);
	HR_BUF(why, 4096);
	HR_FREE char *file = NULL;
	const char *p;
	size_t len;
	bool ok;

	if (hr_json_type(path) == HR_PY_STR) {
		p = hr_json_str(path, &len);
		file = hr_purepath_bytes(p, len, &why);
	}
	ok = file != NULL && hr_textfile_read(file, &bytes, NULL) == 0;
	if (ok) {
		hr_encoding_detect(hr_buf_str(&bytes), bytes.len, &encoding);
		ok = hr_textfile_decode(&bytes, &encoding, text, &why) == 0 && text->fail == HR_OK;
	}
	return ok;
}

/* ---- the answer ---- */

static void
put_text(struct hr_buf *b, const char *name, const struct hr_buf *text)
{
	hr_buf_addf(b, "%s\"%s\": ", b->len > 1 ? "," : "", name);
	if (text != NULL)
		(void)hr_json_put_str(b, hr_buf_str(text), text->len, HR_JSON_REPLACE);
	else
		hr_buf_adds(b, "null");
}

/* Adds the change of a successful command to its output. */
static void
put_change(struct hr_buf *b, struct json_object *args, const struct hr_buf *before)
{
	struct json_object *command = hr_json_at(args, "command"), *path = hr_json_at(args, "path");
	bool create = hr_json_str_is(command, "create"), view = hr_json_str_is(command, "view");
	HR_BUF(after, TEXT_MAX);
	HR_BUF(name, TEXT_MAX);
	const char *p;
	size_t len;

	p = hr_json_str(path, &len);
	hr_buf_add(&name, p, len);
	put_text(b, "path", &name);
	hr_buf_addf(b, ",\"prev_exist\": %s", create ? "false" : "true");
	put_text(b, "old_content", create || view ? NULL : before);
	put_text(b, "new_content", !view && read_text(path, &after) ? &after : NULL);
}

static int
answer(struct json_object *args, enum hr_edit_result r, const struct hr_buf *text,
    const struct hr_buf *before)
{
	struct hr_err err = {0};
	HR_BUF(b, (size_t)HR_EDIT_TEXT_MAX * 4);
	int ok;

	hr_buf_addc(&b, '{');
	if (r == HR_EDIT_RAISED) {
		put_text(&b, "raised", text);
	} else {
		put_text(&b, "output", r == HR_EDIT_DONE ? text : NULL);
		put_text(&b, "error", r == HR_EDIT_ERROR ? text : NULL);
		if (r == HR_EDIT_DONE)
			put_change(&b, args, before);
	}
	hr_buf_addc(&b, '}');
	ok = hr_buf_check(&b, &err);
	if (ok == 0)
		ok = hr_fd_write_full(STDOUT_FILENO, b.p, b.len, &err);
	if (ok != 0)
		(void)fprintf(stderr, "handrail-editor: %s\n", err.msg);
	return ok;
}

static int
run(const struct hr_editor *e, struct json_object *args)
{
	struct json_object *command = hr_json_at(args, "command");
	struct hr_edit q = {.path = hr_json_at(args, "path"),
	    .file_text = hr_json_at(args, "file_text"),
	    .old_str = hr_json_at(args, "old_str"),
	    .new_str = hr_json_at(args, "new_str"),
	    .insert_line = hr_json_at(args, "insert_line"),
	    .view_range = hr_json_at(args, "view_range")};
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	HR_BUF(before, TEXT_MAX);
	enum hr_edit_result r;
	int ok = -1;

	if (hr_json_type(command) != HR_PY_STR) {
		(void)fprintf(stderr, "handrail-editor: command: must be a string\n");
		return -1;
	}
	q.command.p = hr_json_str(command, &q.command.len);
	(void)read_text(q.path, &before); /* the editor reports errors later */
	r = hr_editor_run(e, &q, &text, &diff);
	if (text.fail == HR_OK && diff.fail == HR_OK)
		ok = answer(args, r, &text, &before);
	else
		(void)fprintf(stderr, "handrail-editor: out of memory\n");
	return ok;
}

int
main(int argc, char **argv)
{
	HR_PUT struct json_object *args = NULL;
	struct hr_editor e;
	HR_FREE char *office = NULL;
	int ok;

	if (argc != 3) {
		(void)fprintf(
		    stderr, "usage: handrail-editor LIBEXECDIR UNDODIR <ARGUMENTS.json\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	hr_detect_from(argv[1]);
	if (read_request(&args) != 0) {
		(void)fprintf(stderr, "handrail-editor: stdin: no JSON object\n");
		return 2;
	}
	/* NULL (no memory) means that no converter is used */
	office = hr_path_join(argv[1], "handrail-office");
	e = (struct hr_editor){.history_dir = argv[2], .office = office};
	ok = run(&e, args);
	return ok == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
