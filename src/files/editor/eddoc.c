/* Implements view of a document (doc/files.md, "Documents"). */
#include "config.h"

#include "files/document.h"
#include "files/editor/editor_int.h"
#include "files/pytext.h"

static const char clipped[] =
    "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to "
    "you. Please use Python libraries to view the entire file or search for specific content "
    "within the file.</NOTE>";

enum hr_edit_result
edit_view_document(struct edit *e)
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
