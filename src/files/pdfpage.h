/* hr_pdf_page: the pieces of text of a PDF page, and their order. */
#ifndef HR_FILES_PDFPAGE_H
#define HR_FILES_PDFPAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct hr_pdf_rect {
	double x0, y0, x1, y1; /* points; y grows upwards */
};

/* A string that the page draws in one go. */
struct hr_pdf_run {
	struct hr_pdf_rect at;
	double first, last; /* widths of its first and last character */
	size_t text, len;   /* a part of the page's text */
	bool blank;         /* nothing but white space */
};

struct hr_pdf_page {
	double width, height;
	struct hr_pdf_run *runs; /* ordered as the page's content */
	size_t n, room;
	struct hr_buf text;
	bool ordered; /* the lines stay in the order of the content */
};

/* Appends the page's text as pdfminer 20260107 arranges it: runs become lines, near lines of one
 * size become boxes with an empty line between them, and the closest boxes are read together. A
 * form feed ends the page. */
void hr_pdf_page_put(const struct hr_pdf_page *p, struct hr_buf *out);

#endif
