/* Internals of hr_editor: editor.c has the checks and the table of commands; edview.c, eddir.c
 * and edchange.c the commands; edfile.c the parts they share. */
#ifndef HR_FILES_EDITOR_EDITOR_INT_H
#define HR_FILES_EDITOR_EDITOR_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "files/editor/editor.h"
#include "files/charset/encoding.h"
#include "files/history.h"

#define EDIT_FILE_MAX (10u << 20) /* maximum bytes of a file */
#define EDIT_SHOWN 16000          /* maximum characters of a text that are shown */

struct edit {
	const struct hr_editor *editor;
	const struct hr_edit *q;
	struct hr_buf path; /* normalised path; printed in all texts */
	char *file;         /* path for system calls; NULL: no such file can exist */
	bool exists;
	struct stat st; /* valid if the file exists */
	struct hr_history history;
	struct hr_buf *text, *diff;
};

typedef enum hr_edit_result edit_command_fn(struct edit *e);
edit_command_fn edit_view; /* implemented in edview.c */
/* implemented in edchange.c */
edit_command_fn edit_create, edit_str_replace, edit_insert, edit_undo;

edit_command_fn edit_view_directory; /* implemented in eddir.c */

/* ---- edfile.c ---- */

static inline struct hr_span
edit_path(const struct edit *e)
{
	return hr_span_of_buf(&e->path);
}

/* Appends a text in which every %s is a struct hr_span argument. Returns HR_EDIT_ERROR. */
enum hr_edit_result edit_error(struct edit *e, const char *format, ...);
/* Appends "Parameter `name` is required for command: command." */
enum hr_edit_result edit_required(struct edit *e, const char *name);
/* Appends "Invalid `name` parameter: <value>. "; the caller adds the rest. */
void edit_invalid_range(struct edit *e, struct json_object *value);
/* Appends a value as Python's str() shows it (doc/actions.md, "repr"). */
void edit_put_value(struct hr_buf *b, struct json_object *value);
/* Reads a string argument; null is "". Returns false for another type, whose name is appended
 * between the parts of the error. */
bool edit_string(struct edit *e, struct json_object *value, const char *before, const char *after,
    struct hr_span *ret);

/* Returns true for a suffix of documents (doc/files.md, "Documents"). */
bool edit_is_document(const struct edit *e);
/* Checks doc/files.md, "What may be shown or changed". HR_EDIT_DONE: the file may be read. */
enum hr_edit_result edit_validate(struct edit *e);

/* Reads and decodes the whole file. With `counting`, text that cannot be decoded is
 * HR_EDIT_RAISED. */
enum hr_edit_result
edit_load(struct edit *e, bool counting, struct hr_buf *text, struct hr_encoding *ret);
/* Encodes and writes the text; *written (may be NULL) gets the text as a reader now sees it. With
 * `raises`, text that cannot be encoded is HR_EDIT_RAISED. On an error the file is unchanged. */
enum hr_edit_result edit_store(struct edit *e, const struct hr_encoding *enc, bool raises,
    const struct hr_buf *text, struct hr_buf *written);

/* Appends the numbered block (doc/files.md, "view of a file") of a text, described by `what` +
 * path. */
void edit_put_block(
    struct edit *e, const char *what, bool with_path, const char *p, size_t len, uint64_t first);

#endif
