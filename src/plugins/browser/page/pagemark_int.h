/* Defines the state that pagemark.c and pagetags.c share: the writer's position in a page. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PAGEMARK_INT_H
#define HR_PLUGINS_BROWSER_PAGE_PAGEMARK_INT_H

#include <stdint.h>

#include "plugins/browser/page/pagemark.h"

struct list {
	bool ordered;
	long number;
};

struct link {
	bool is_link; /* false: an <a> without an address */
	char *href, *title;
};

struct abbreviation {
	struct hr_buf text;
	char *title;
};

struct page {
	struct hr_buf *out;
	struct hr_buf tmp, data, margin;
	/* ---- requested before the next text ---- */
	int lines; /* number of line ends */
	bool blank;
	bool soft;          /* two blanks before the first line end */
	bool start;         /* the page or a list item starts */
	bool after_newline; /* the last text ended with a newline */
	bool after_bracket; /* the last text was a single [ */
	/* ---- position ---- */
	int quiet;
	int quotes; /* number of nested <blockquote>s */
	bool pre, begin_pre, code;
	struct list *lists;
	size_t n_lists;
	size_t list_indent; /* indent of a <pre> in a list item */
	bool after_list;
	struct link *links;
	size_t n_links;
	char *pending; /* address of a link whose [ is not written yet */
	bool empty_link;
	bool cell, table_begins;
	size_t cells;
	char tag[16];
	/* ---- emphasis ---- */
	bool stressed, was_stressed;
	int32_t last; /* last character of the last text; 0: there is none */
	/* ---- abbreviations ---- */
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
