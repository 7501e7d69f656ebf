/* br_page_text: prints a page as Markdown, for the action `browse`. Pure. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PAGETEXT_H
#define HR_PLUGINS_BROWSER_PAGE_PAGETEXT_H

#include <stddef.h>

#include "base/buf.h"

/* Converts HTML as br_snapshot_html() prints it. Appends to b; check b. */
void br_page_text(struct hr_buf *b, const char *html, size_t len);

#endif
