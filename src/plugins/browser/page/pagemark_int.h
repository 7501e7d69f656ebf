/* What pagemark.c and pagetags.c share: where the writer of a page's text is. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PAGEMARK_INT_H
#define HR_PLUGINS_BROWSER_PAGE_PAGEMARK_INT_H

#include <stdint.h>

#include "plugins/browser/page/pagemark.h"

struct list {
	bool ordered;
	long number;
};

struct link {
	bool is_link; /* <a> without an address counts as none */
	char *href, *title;
};

struct abbreviation {
	struct hr_buf text;
	char *title;
};

struct page {
	struct hr_buf *out;
	struct hr_buf tmp, data, margin;
	/* what is to come before the next text */
	int lines; /* line ends */
	bool blank;
	bool soft;          /* two blanks before the first line end */
	bool start;         /* nothing comes before it: the page or a list item begins */
	bool after_newline; /* the last text ended with one */
	bool after_bracket; /* ... was a [ alone */
	/* where we are */
	int quiet;
	int quotes; /* <blockquote>s */
	bool pre, begin_pre, code;
	struct list *lists;
	size_t n_lists;
	size_t list_indent; /* of a <pre> in a list item */
	bool after_list;
	struct link *links;
	size_t n_links;
	char *pending; /* the address of a link whose [ is not out yet */
	bool empty_link;
	bool cell, table_begins;
	size_t cells;
	char tag[16];
	/* emphasis */
	bool stressed, was_stressed;
	int32_t last; /* character of the last text; 0: none */
	/* abbreviations */
	bool in_abbr;
	struct hr_buf abbr;
	char *abbr_title;
	struct abbreviation *abbrs;
	size_t n_abbrs;
};

void page_reset(struct page *p, struct hr_buf *b);
void page_write(struct page *p, struct hr_span s, bool forced);
void page_mark(struct page *p, const char *s);
void page_line(struct page *p);
void page_paragraph(struct page *p);
void page_soft_line(struct page *p);
void page_put_escaped(struct hr_buf *b, const char *s);
unsigned page_heading(const char *tag);
void page_open_bracket(struct page *p);

#endif
