/* hr_editor: implements the file editor of the action `edit`, and of `read` with impl_source oh_aci
 * (doc/files.md, "edit"). */
#ifndef HR_FILES_EDITOR_EDITOR_H
#define HR_FILES_EDITOR_EDITOR_H

#include "base/buf.h"
#include "files/place/commit.h"
#include "base/span.h"
#include "proto/json.h"

struct hr_editor {
	struct hr_span root;     /* the initial directory, for suggesting a path; "": unknown */
	const char *history_dir; /* see files/history.h */
	const char *office;      /* see files/document.h */
};

/* The arguments of an edit. All members are borrowed; a NULL value is null. */
struct hr_edit {
	struct hr_span command; /* a value that is not a string has its Python text here */
	struct json_object *path, *file_text, *old_str, *new_str, *insert_line, *view_range;
	const struct hr_commit *commit; /* called when the change is ready */
};

enum hr_edit_result {
	HR_EDIT_DONE,   /* text is the output */
	HR_EDIT_ERROR,  /* text is the error, to be shown after "ERROR:\n" */
	HR_EDIT_RAISED, /* text is the detail of a 500 */
};

/* No text of the editor is longer; the caller gives `text` and `diff` at least this cap. A view is
 * cut at 16,000 characters, but errors repeat their arguments. */
#define HR_EDIT_TEXT_MAX (256u << 20)

/* Runs a command: appends to text, and the diff of a change to diff, whose headers have the path
 * verbatim. Blocks while other workers change files. Check both buffers for memory. */
enum hr_edit_result hr_editor_run(
    const struct hr_editor *e, const struct hr_edit *q, struct hr_buf *text, struct hr_buf *diff);

#endif
