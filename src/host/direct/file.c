/* Implements the actions read, write and edit of the back-end "cli". */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "files/place/atomic.h"
#include "files/binary.h"
#include "files/editor/editor.h"
#include "files/textfile.h"
#include "host/direct/direct_int.h"
#include "base/err.h"
#include "host/common/module.h"
#include "proto/obs.h"

#define FILE_MAX (256u << 20)
#define BINARY "ERROR_BINARY_FILE"

/* Ends an observation; put -1 means that memory ran out, since all else is replaced. */
static char *
put_done(struct hr_buf *b, int put, struct hr_err *err)
{
	if (put != 0)
		b->fail = HR_E_NOMEM;
	return hr_buf_end(b, err);
}

static bool
is_binary(const char *file)
{
	struct stat st;

	return stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
	       (hr_binary_name(file, strlen(file)) || hr_binary_file(file));
}

/* ---- the editor ---- */

static enum hr_edit_result
use_editor(struct hr_direct *c, const char *file, struct hr_edit *q, struct hr_buf *text,
    struct hr_buf *diff)
{
	HR_FREE char *office = hr_path_join(hr_module_dir(), "handrail-office");
	const struct hr_editor editor = {
	    .root = hr_span_of(c->workspace), .history_dir = c->undo, .office = office};
	enum hr_edit_result r = HR_EDIT_RAISED;
	HR_BUF(out, HR_EDIT_TEXT_MAX);

	q->path = json_object_new_string(file);
	if (q->path == NULL || office == NULL)
		text->fail = HR_E_NOMEM;
	else
		r = hr_editor_run(&editor, q, &out, diff);
	if (r != HR_EDIT_DONE)
		hr_buf_adds(text, "ERROR:\n");
	hr_buf_add(text, hr_buf_str(&out), out.len);
	if (out.fail != HR_OK)
		text->fail = out.fail;
	json_object_put(q->path);
	return r;
}

char *
hr_direct_edit(struct hr_direct *c, struct json_object *args, struct hr_err *err)
{
	const char *path = hr_json_text_or(args, "path", "");
	struct hr_edit q = {.command = hr_span_of(hr_json_text_or(args, "command", "")),
	    .file_text = hr_json_at(args, "file_text"),
	    .old_str = hr_json_at(args, "old_str"),
	    .new_str = hr_json_at(args, "new_str"),
	    .insert_line = hr_json_at(args, "insert_line")};
	struct hr_obs_edit e = {
	    .path = hr_span_of(path), .old_str = q.old_str, .new_str = q.new_str};
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	HR_BUF(b, HR_DIRECT_TEXT_MAX);
	HR_FREE char *file = NULL;

	if (strcmp(hr_json_text_or(args, "impl_source", "oh_aci"), "oh_aci") != 0)
		return hr_direct_error("", err, "LLM-based editing is not available.");
	file = hr_direct_path(c, path, err);
	if (file == NULL)
		return NULL;
	if (is_binary(file))
		return hr_direct_error("", err, BINARY);
	(void)use_editor(c, file, &q, &text, &diff);
	e.content = hr_span_of_buf(&text);
	e.diff = hr_span_of_buf(&diff);
	if (text.fail != HR_OK || diff.fail != HR_OK)
		return hr_err_null(err);
	return put_done(&b, hr_obs_put_edit(&b, &e, HR_JSON_REPLACE), err);
}

/* ---- read, write ---- */

/* Converts "\r
 * " and "\r" to line feeds, as Python's text files do. */
static void
plain_ends(struct hr_buf *b)
{
	size_t to = 0;
	size_t i;

	for (i = 0; i < b->len; i++) {
		if (b->p[i] == '\r' && i + 1 < b->len && b->p[i + 1] == '\n')
			continue;
		b->p[to++] = b->p[i] == '\r' ? '\n' : b->p[i];
	}
	b->len = to;
}

static char *
show(const char *path, const char *impl, const struct hr_buf *text, struct hr_err *err)
{
	HR_BUF(b, HR_DIRECT_TEXT_MAX);

	if (text->fail != HR_OK)
		return hr_err_null(err);
	return put_done(&b,
	    hr_obs_put_read(&b, hr_span_of(path), impl, hr_span_of_buf(text), HR_JSON_REPLACE),
	    err);
}

static char *
read_whole(const char *file, const char *path, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(b, FILE_MAX);
	struct stat st;

	if (stat(file, &st) != 0 && errno == ENOENT)
		return hr_direct_error("", err, "File not found: %s", path);
	if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
		return hr_direct_error("", err, "Cannot read directory: %s", path);
	if (hr_textfile_read(file, &b, &e) != 0)
		return hr_direct_error("", err, "Error reading file %s: %s", path,
		    e.sys != 0 ? strerror(e.sys) : e.msg);
	plain_ends(&b);
	return show(path, "default", &b, err);
}

char *
hr_direct_read(struct hr_direct *c, struct json_object *args, struct hr_err *err)
{
	const char *path = hr_json_text_or(args, "path", "");
	struct hr_edit q = {
	    .command = HR_OBS_SPAN("view"), .view_range = hr_json_at(args, "view_range")};
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	HR_FREE char *file = hr_direct_path(c, path, err);

	if (file == NULL)
		return NULL;
	if (is_binary(file))
		return hr_direct_error("", err, BINARY);
	if (strcmp(hr_json_text_or(args, "impl_source", "default"), "oh_aci") != 0)
		return read_whole(file, path, err);
	(void)use_editor(c, file, &q, &text, &diff);
	return show(path, "oh_aci", &text, err);
}

static int
write_whole(const char *file, struct json_object *content, struct hr_err *e)
{
	HR_FREE char *dir = strdup(file);
	int r;

	if (dir == NULL)
		return hr_err_nomem(e);
	*strrchr(dir, '/') = '\0';
	r = *dir == '\0' ? 0 : hr_path_mkdirs(dir, 0777, NULL, e);
	if (r != 0)
		return r;
	return hr_atomic_write(file, hr_json_text(content) != NULL ? hr_json_text(content) : "",
	    (size_t)json_object_get_string_len(content), 0666, e);
}

char *
hr_direct_write(struct hr_direct *c, struct json_object *args, struct hr_err *err)
{
	const char *path = hr_json_text_or(args, "path", "");
	struct json_object *content = hr_json_at(args, "content");
	struct hr_err e = {0};
	HR_BUF(b, HR_DIRECT_TEXT_MAX);
	HR_FREE char *file = hr_direct_path(c, path, err);

	if (file == NULL)
		return NULL;
	if (!json_object_is_type(content, json_type_string))
		content = NULL;
	if (write_whole(file, content, &e) != 0)
		return hr_direct_error("", err, "Error writing to file %s: %s", path,
		    e.sys != 0 ? strerror(e.sys) : e.msg);
	return put_done(&b, hr_obs_put_write(&b, hr_span_of(path), HR_JSON_REPLACE), err);
}
