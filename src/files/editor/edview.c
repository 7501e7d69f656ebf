/* Implements view of a file and of a document (doc/files.md, "view of a file" and
 * "Documents"). */
#include "config.h"

#include <inttypes.h>

#include "files/editor/editor_int.h"
#include "files/pytext.h"
#include "proto/python/repr.h"
#include "files/document.h"

/* Accepts integers, and true and false, which are integers in Python. */
static bool
range_element(struct json_object *v, int64_t *ret)
{
	enum hr_py_type t = hr_json_type(v);

	*ret = t == HR_PY_BOOL ? json_object_get_boolean(v) : hr_json_int(v);
	return t == HR_PY_INT || t == HR_PY_BOOL;
}

static enum hr_edit_result
refuse_range(struct edit *e)
{
	edit_invalid_range(e, e->q->view_range);
	hr_buf_adds(e->text, "It should be a list of two integers.");
	return HR_EDIT_ERROR;
}

/* A range of lines: counted from 1, both ends inclusive. */
struct range {
	int64_t from, to;
	bool clamped;
};

static enum hr_edit_result
range_check(struct edit *e, int64_t lines, struct range *ret)
{
	struct json_object *v = e->q->view_range, *first, *second;
	enum hr_py_type t = hr_json_type(v);

	if (t != HR_PY_LIST && t != HR_PY_STR && t != HR_PY_DICT) {
		hr_buf_addf(e->text, "object of type '%s' has no len()", hr_py_type_name(t));
		return HR_EDIT_ERROR;
	}
	if (t != HR_PY_LIST || json_object_array_length(v) != 2)
		return refuse_range(e);
	first = json_object_array_get_idx(v, 0);
	second = json_object_array_get_idx(v, 1);
	if (!range_element(first, &ret->from) || !range_element(second, &ret->to))
		return refuse_range(e);
	if (ret->from < 1 || ret->from > lines) {
		edit_invalid_range(e, v);
		hr_buf_adds(e->text, "Its first element `");
		edit_put_value(e->text, first);
		hr_buf_addf(e->text,
		    "` should be within the range of lines of the file: [1, %" PRId64 "].", lines);
		return HR_EDIT_ERROR;
	}
	ret->clamped = ret->to > lines;
	if (ret->to == -1 || ret->clamped)
		ret->to = lines;
	if (ret->to < ret->from) {
		edit_invalid_range(e, v);
		hr_buf_adds(e->text, "Its second element `");
		edit_put_value(e->text, second);
		hr_buf_adds(e->text, "` should be greater than or equal to the first element `");
		edit_put_value(e->text, first);
		hr_buf_adds(e->text, "`.");
		return HR_EDIT_ERROR;
	}
	return HR_EDIT_DONE;
}

static enum hr_edit_result
view_range(struct edit *e, const char *p, size_t len)
{
	int64_t lines = (int64_t)hr_pytext_lines(p, len);
	size_t from, to;
	struct range range;
	enum hr_edit_result r = range_check(e, lines, &range);
	HR_BUF(part, HR_EDIT_TEXT_MAX);

	if (r != HR_EDIT_DONE)
		return r;
	from = hr_pytext_line_at(p, len, (size_t)range.from - 1);
	to = from + hr_pytext_line_at(p + from, len - from, (size_t)(range.to - range.from) + 1);
	hr_pytext_rejoin(&part, p + from, to - from);
	if (range.clamped)
		hr_buf_addf(e->text,
		    "NOTE: We only show up to %" PRId64 " since there're only %" PRId64
		    " lines in this file.\n",
		    lines, lines);
	edit_put_block(e, "", true, hr_buf_str(&part), part.len, (uint64_t)range.from);
	if (part.fail != HR_OK)
		e->text->fail = part.fail;
	return HR_EDIT_DONE;
}

static const char clipped[] =
    "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to "
    "you. Please use Python libraries to view the entire file or search for specific content "
    "within the file.</NOTE>";

static enum hr_edit_result
view_document(struct edit *e)
{
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(why, HR_EDIT_TEXT_MAX);
	size_t shown;
	int r;

	r = hr_document_text(
	    e->editor->office, e->file, hr_buf_str(&e->path), e->path.len, &text, &why);
	if (r == 0) {
		shown = hr_pytext_prefix(hr_buf_str(&text), text.len, EDIT_SHOWN);
		(void)edit_error(e,
		    "Here's the content of the file %s displayed in Markdown format:\n",
		    edit_path(e));
		hr_buf_add(e->text, hr_buf_str(&text), shown);
		if (shown < text.len)
			hr_buf_add(e->text, clipped, sizeof(clipped) - 1);
		hr_buf_addc(e->text, '\n');
	} else {
		(void)edit_error(e,
		    "Error in converting file to Markdown: %s. Please use Python code to read %s",
		    hr_span_of_buf(&why), edit_path(e));
	}
	if (text.fail != HR_OK || why.fail != HR_OK)
		e->text->fail = text.fail != HR_OK ? text.fail : why.fail;
	return r == 0 ? HR_EDIT_DONE : HR_EDIT_ERROR;
}

enum hr_edit_result
edit_view(struct edit *e)
{
	struct hr_encoding enc;
	enum hr_edit_result r;
	HR_BUF(text, HR_EDIT_TEXT_MAX);

	if (S_ISDIR(e->st.st_mode))
		return edit_view_directory(e);
	r = edit_validate(e);
	if (r != HR_EDIT_DONE)
		return r;
	if (edit_is_document(e))
		return view_document(e);
	r = edit_load(e, true, &text, &enc);
	if (r == HR_EDIT_DONE) {
		if (hr_py_truthy(e->q->view_range))
			r = view_range(e, hr_buf_str(&text), text.len);
		else
			edit_put_block(e, "", true, hr_buf_str(&text), text.len, 1);
	}
	if (text.fail != HR_OK)
		e->text->fail = text.fail;
	return r;
}
