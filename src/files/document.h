/* hr_document: extracts the text of a document (doc/files.md, "Documents"). */
#ifndef HR_FILES_DOCUMENT_H
#define HR_FILES_DOCUMENT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the Markdown of a file, chosen by the suffix of its name: each line right-stripped, runs
 * of three or more newlines reduced to two. UTF-8 text under such a suffix is shown as it is.
 * Returns -1 with the reason in why. Blocks; may start a converter. The converter of office
 * documents is the program at the path `office`: called with docx, pptx or xlsx and the document as
 * stdin, it writes Markdown, or, with status 1, the reason for its failure. NULL: there is none. */
int hr_document_text(const char *office, const char *file, const char *path, size_t len,
    struct hr_buf *text, struct hr_buf *why);

#endif
