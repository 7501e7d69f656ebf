/* hr_document: the text of a document (doc/files.md, "Documents"). */
#ifndef HR_FILES_DOCUMENT_H
#define HR_FILES_DOCUMENT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the Markdown of a file by the suffix of its name: each line right-stripped, runs of three
 * or more newlines reduced to two. A file that is no such document but UTF-8 text is shown as that.
 * -1: why has the reason. Blocks; may start a converter. That of office documents is the program
 * `office`, by path: called with docx, pptx or xlsx and the document as stdin, it writes Markdown,
 * or, with status 1, the reason why not. NULL: there is none. */
int hr_document_text(const char *office, const char *file, const char *path, size_t len,
    struct hr_buf *text, struct hr_buf *why);

#endif
