/* br_page_text: a page as text with Markdown's marks, for what `browse` shows of it. Pure. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PAGETEXT_H
#define HR_PLUGINS_BROWSER_PAGE_PAGETEXT_H

#include <stddef.h>

#include "base/buf.h"

/* Of HTML as br_snapshot_html() writes it. Appends to b; check b. */
void br_page_text(struct hr_buf *b, const char *html, size_t len);

#endif
