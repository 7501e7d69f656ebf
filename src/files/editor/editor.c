/* Runs the checks in their order (doc/files.md, "The order of checks"), then the command. */
#include "config.h"

#include "files/editor/editor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/editor/editor_int.h"
#include "files/purepath.h"
#include "files/place/oserror.h"
#include "files/pytext.h"
#include "proto/python/repr.h"

#define PATH_TEXT_MAX (64u << 20)

static const struct command {
	const char *name;
	edit_command_fn *run;
	bool changes;
} commands[] = {
    {"view", edit_view, false},
    {"create", edit_create, true},
    {"str_replace", edit_str_replace, true},
    {"insert", edit_insert, true},
    {"undo_edit", edit_undo, true},
};

static const struct command *
find_command(struct hr_span name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (name.len == strlen(commands[i].name) &&
		    memcmp(name.p, commands[i].name, name.len) == 0)
			return &commands[i];
	return NULL;
}

static bool
is_command(const struct edit *e, const char *name)
{
	const struct command *c = find_command(e->q->command);

	return c != NULL && strcmp(c->name, name) == 0;
}

/* Checks that a string in insert_line is a number. This comes before all other checks
 * (doc/files.md, "edit"). */
static bool
insert_line_ok(struct edit *e)
{
	struct json_object *v = e->q->insert_line;
	struct hr_span s;
	int64_t n;

	if (hr_json_type(v) != HR_PY_STR)
		return true;
	s.p = hr_json_str(v, &s.len);
	if (hr_pytext_int(s.p, s.len, &n) == 0)
		return true;
	(void)edit_error(e, "Invalid insert_line value: '%s'. Expected an integer.", s);
	return false;
}

/* Implements "exists" of doc/files.md, "Paths". Returns -1 if errno means more than that the file
 * is missing. */
static int
look(const char *file, bool *ret_exists, struct stat *st)
{
	*ret_exists = file != NULL && stat(file, st) == 0;
	if (*ret_exists || file == NULL || errno == ENOENT || errno == ENOTDIR || errno == EBADF ||
	    errno == ELOOP)
		return 0;
	return -1;
}

static enum hr_edit_result
raise_errno(struct edit *e, int sys, const struct hr_buf *path)
{
	hr_oserror_add(e->text, sys, hr_buf_str(path), path->len);
	return HR_EDIT_RAISED;
}

static void
say_path(struct edit *e)
{
	(void)edit_error(e, "Invalid `path` parameter: %s. ", edit_path(e));
}

static enum hr_edit_result
refuse_relative(struct edit *e)
{
	enum hr_edit_result r = HR_EDIT_ERROR;
	HR_BUF(near, PATH_TEXT_MAX);
	struct stat st;
	bool exists;
	HR_FREE char *file = NULL;

	say_path(e);
	hr_buf_adds(e->text, "The path should be an absolute path, starting with `/`.");
	if (e->editor->root.len == 0)
		return r;
	hr_purepath_join(&near, e->editor->root, hr_buf_str(&e->path), e->path.len);
	file = hr_purepath_bytes(hr_buf_str(&near), near.len, NULL);
	if (look(file, &exists, &st) < 0) {
		hr_buf_reset(e->text);
		r = raise_errno(e, errno, &near);
	} else if (exists) {
		(void)edit_error(e, " Maybe you meant %s?", hr_span_of_buf(&near));
	}
	return r;
}

static enum hr_edit_result
check_path(struct edit *e)
{
	struct hr_span suffix;

	if (hr_buf_str(&e->path)[0] != '/')
		return refuse_relative(e);
	if (look(e->file, &e->exists, &e->st) < 0)
		return raise_errno(e, errno, &e->path);
	if (is_command(e, "create") && e->exists) {
		say_path(e);
		return edit_error(e,
		    "File already exists at: %s. Cannot overwrite files using command `create`.",
		    edit_path(e));
	}
	if (!is_command(e, "create") && !e->exists) {
		say_path(e);
		return edit_error(
		    e, "The path %s does not exist. Please provide a valid path.", edit_path(e));
	}
	if (is_command(e, "view"))
		return HR_EDIT_DONE;
	if (e->exists && S_ISDIR(e->st.st_mode)) {
		say_path(e);
		return edit_error(e,
		    "The path %s is a directory and only the `view` command can be used on "
		    "directories.",
		    edit_path(e));
	}
	if (edit_is_document(e)) {
		suffix = hr_purepath_suffix(hr_buf_str(&e->path), e->path.len);
		say_path(e);
		return edit_error(e,
		    "The path %s points to a binary file (%s) and only the `view` command can be "
		    "used on supported binary files.",
		    edit_path(e), suffix);
	}
	return HR_EDIT_DONE;
}

static enum hr_edit_result
run_checked(struct edit *e)
{
	const struct command *c = find_command(e->q->command);
	enum hr_edit_result r;

	if (!insert_line_ok(e))
		return HR_EDIT_ERROR;
	if (hr_json_type(e->q->path) != HR_PY_STR) {
		hr_buf_addf(e->text,
		    "argument should be a str or an os.PathLike object where __fspath__ returns a "
		    "str, not '%s'",
		    hr_py_type_name(hr_json_type(e->q->path)));
		return HR_EDIT_ERROR;
	}
	r = check_path(e);
	if (r != HR_EDIT_DONE)
		return r;
	if (c == NULL)
		return edit_error(e,
		    "Unrecognized command %s. The allowed commands for the oh_editor tool are: "
		    "view, create, str_replace, insert, undo_edit",
		    e->q->command);
	return c->run(e);
}

/* Makes the name for system calls. A NUL or a surrogate leaves it NULL: no such file exists. */
static void
make_file_name(struct edit *e)
{
	const char *p;
	size_t len;

	hr_buf_init(&e->path, PATH_TEXT_MAX);
	if (hr_json_type(e->q->path) != HR_PY_STR)
		return;
	p = hr_json_str(e->q->path, &len);
	hr_purepath_put(&e->path, p, len);
	if (hr_buf_check(&e->path, NULL) < 0)
		e->text->fail = e->path.fail;
	else
		e->file = hr_purepath_bytes(hr_buf_str(&e->path), e->path.len, NULL);
}

enum hr_edit_result
hr_editor_run(const struct hr_editor *editor, const struct hr_edit *q, struct hr_buf *text,
    struct hr_buf *diff)
{
	struct edit e = {.editor = editor,
	    .q = q,
	    .text = text,
	    .diff = diff,
	    .history = {.dir = -1, .lock = -1}};
	const struct command *c = find_command(q->command);
	struct hr_err err = {.code = HR_OK};
	enum hr_edit_result r = HR_EDIT_RAISED;

	make_file_name(&e);
	if (c != NULL && c->changes && hr_history_open(&e.history, editor->history_dir, &err) < 0)
		hr_buf_adds(text, err.msg);
	else
		r = run_checked(&e);
	hr_history_close(&e.history);
	hr_buf_done(&e.path);
	free(e.file);
	return r;
}
