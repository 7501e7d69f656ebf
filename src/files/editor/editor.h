/* hr_editor: the file editor behind the action `edit` and behind `read` with impl_source oh_aci
 * (doc/files.md, "edit"). */
#ifndef HR_FILES_EDITOR_EDITOR_H
#define HR_FILES_EDITOR_EDITOR_H

#include "base/buf.h"
#include "files/place/commit.h"
#include "base/span.h"
#include "proto/json.h"

struct hr_editor {
	struct hr_span root;     /* the initial directory, for the suggestion of a path; "": none */
	const char *history_dir; /* see files/history.h */
	const char *office;      /* see files/document.h */
};

/* Borrowed. NULL: null. */
struct hr_edit {
	struct hr_span command; /* of another type than a string: its Python text */
	struct json_object *path, *file_text, *old_str, *new_str, *insert_line, *view_range;
	const struct hr_commit *commit; /* of the change */
};

enum hr_edit_result {
	HR_EDIT_DONE,   /* text is the output */
	HR_EDIT_ERROR,  /* text is the error, to be shown behind "ERROR:\n" */
	HR_EDIT_RAISED, /* text is the detail of a 500 */
};

/* No text of the editor is longer; the caller gives `text` and `diff` at least this cap. A view is
 * cut at 16,000 characters, but errors repeat arguments. */
#define HR_EDIT_TEXT_MAX (256u << 20)

/* Appends to text, and the diff of what was changed to diff; its headers have the path verbatim.
 * Changes wait for other workers' changes. Check both buffers for memory. */
enum hr_edit_result hr_editor_run(
    const struct hr_editor *e, const struct hr_edit *q, struct hr_buf *text, struct hr_buf *diff);

#endif
