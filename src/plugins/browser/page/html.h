/* br_html_tidy: defines the format in which br_snapshot_html() prints a page. */
#ifndef HR_PLUGINS_BROWSER_PAGE_HTML_H
#define HR_PLUGINS_BROWSER_PAGE_HTML_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* prefix of a tag's name that keeps the parser from moving the tag */
#define BR_HTML_KEPT "kept-"

/* The parser looks for each end tag among all open elements. Browsers stop at 512 elements, but
 * scripts may nest deeper. */
#define BR_HTML_DEPTH 1000

/* Appends markup, parsed with its faults and reprinted: one tag or text per line. Returns -1
 * without memory, or if it is larger than b's cap, or nests deeper. */
int br_html_tidy(const char *markup, size_t len, struct hr_buf *b, struct hr_err *err);

#endif
