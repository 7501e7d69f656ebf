/* The writer of page texts: fed with tags and texts in their order, it appends text with Markdown's
 * marks: headings, emphasis, lists, links, tables, quotes, code. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PAGEMARK_H
#define HR_PLUGINS_BROWSER_PAGE_PAGEMARK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

struct page_tag {
	char name[16]; /* "": one that means nothing */
	bool opens;
	char *href, *title, *start_at; /* its attributes; NULL: none */
};

struct page;

/* Appends to out, where failures are kept. NULL: no memory. */
struct page *page_new(struct hr_buf *out);
void page_tag(struct page *p, const struct page_tag *tag);
/* entity: one character that was escaped. */
void page_data(struct page *p, const char *data, size_t len, bool entity);
void page_end(struct page *p); /* writes what is left, and frees */

#endif
