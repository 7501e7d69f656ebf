/* Writes page text: fed with tags and texts in order, it appends Markdown: headings, emphasis,
 * lists, links, tables, quotes, code. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PAGEMARK_H
#define HR_PLUGINS_BROWSER_PAGE_PAGEMARK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

struct page_tag {
	char name[16]; /* name of the tag; "": irrelevant */
	bool opens;
	char *href, *title, *start_at; /* attributes; NULL: none */
};

struct page;

/* Returns a writer that appends to out, which records failures; NULL without memory. */
struct page *page_new(struct hr_buf *out);
void page_tag(struct page *p, const struct page_tag *tag);
/* Handles text; `entity`: data is one escaped character. */
void page_data(struct page *p, const char *data, size_t len, bool entity);
void page_end(struct page *p); /* Writes the rest, and frees p. */

#endif
