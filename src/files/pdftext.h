/* hr_pdftext: the text of a PDF from the XML of pdftohtml. */
#ifndef HR_FILES_PDFTEXT_H
#define HR_FILES_PDFTEXT_H

#include <stddef.h>

#include "base/buf.h"

/* pdftohtml from its standard input, in the form that hr_pdftext() reads; it opens no other file */
#define HR_PDFTEXT_COMMAND                                                                         \
	"pdftohtml", "-xml", "-noroundcoord", "-zoom", "3", "-i", "-hidden", "-nodrm", "-q",       \
	    "-enc", "UTF-8", "-stdout", "-", "/dev/null"

/* Appends the text of all pages, each with a form feed at its end. Pages after the part that a view
 * shows are not arranged. Damaged or cut XML is read as far as possible. A failure is out's. */
void hr_pdftext(const char *xml, size_t len, struct hr_buf *out);

#endif
