/* hr_office: converts an office document (doc/files.md, "Documents"), a ZIP archive of XML files,
 * to Markdown. Its input is hostile, so it runs in a separate program. */
#ifndef HR_OFFICE_OFFICE_H
#define HR_OFFICE_OFFICE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_OFFICE_TEXT_MAX (1u << 20) /* maximum bytes; a reader sees far less */

/* Appends the Markdown of the document in the len bytes; `kind` is "docx", "pptx" or "xlsx". text
 * has the cap above: a longer document is cut there, without error. Returns -1 with *err set if it
 * is not such a document or exceeds the limits. */
int hr_office_text(
    const char *kind, const void *bytes, size_t len, struct hr_buf *text, struct hr_err *err);

#endif
