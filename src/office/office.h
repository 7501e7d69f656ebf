/* hr_office: the text of a document of an office program (doc/files.md, "Documents"): what the ZIP
 * archive of XML files says, as Markdown. All of it is hostile input; it runs in a program of its
 * own. */
#ifndef HR_OFFICE_OFFICE_H
#define HR_OFFICE_OFFICE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_OFFICE_TEXT_MAX (1u << 20) /* a reader sees far less */

/* Appends the Markdown of the document in the len bytes; kind: "docx", "pptx" or "xlsx". text has
 * the cap above: a document with more is cut there, which is no error. -1: it is no such document,
 * or more than can be read (why in *err). */
int hr_office_text(
    const char *kind, const void *bytes, size_t len, struct hr_buf *text, struct hr_err *err);

#endif
