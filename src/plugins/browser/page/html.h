/* br_html_tidy: the form that br_snapshot_html() gives a page. */
#ifndef HR_PLUGINS_BROWSER_PAGE_HTML_H
#define HR_PLUGINS_BROWSER_PAGE_HTML_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Before a tag's name: it is to stay where it is, whatever the parser thinks of it there. */
#define BR_HTML_KEPT "kept-"

/* Appends markup, read with the faults that it may have and written anew: one tag or text a line.
 * -1: no memory, or larger than b takes. */
int br_html_tidy(const char *markup, size_t len, struct hr_buf *b, struct hr_err *err);

#endif
