/* Translates the tags of a page into Markdown. */
#include "config.h"

#include "plugins/browser/page/pagemark_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"

/* Each new one is compared with all others; a page's further ones are ignored. */
#define ABBREVIATIONS_MAX 1000

/* Returns true if the tag needs nothing else. */
static bool
do_heading(struct page *p, const struct page_tag *t)
{
	static const char signs[] = "#########";
	unsigned n = page_heading(t->name);

	if (n == 0)
		return false;
	if (p->n_links > 0) {
		if (!t->opens) {
			p->lines = 0; /* keeps the link's text on one line */
			return true;
		}
		if (p->after_bracket && p->out->fail == HR_OK) {
			p->out->p[--p->out->len] = '\0';
			p->after_bracket = false;
			p->blank = false;
			page_reset(p, &p->tmp);
			hr_buf_addf(&p->tmp, "%.*s ", (int)n, signs);
			page_write(p, hr_span_of_buf(&p->tmp), false);
			page_mark(p, "[");
		}
		return false;
	}
	page_paragraph(p);
	if (t->opens) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%.*s ", (int)n, signs);
		page_mark(p, text);
	}
	return !t->opens;
}

static void
do_blocks(struct page *p, const struct page_tag *t)
{
	static const char *const blocks[] = {"p", "div", NULL};
	static const char *const silent[] = {"head", "style", "script", NULL};

	if (hr_is_one_of(t->name, blocks) && p->n_links == 0 && !p->cell)
		page_paragraph(p);
	if (strcmp(t->name, "br") == 0 && t->opens)
		page_mark(p, p->quotes > 0 ? "  \n> " : "  \n");
	if (strcmp(t->name, "hr") == 0 && t->opens) {
		page_paragraph(p);
		page_mark(p, "* * *");
		page_paragraph(p);
	}
	if (hr_is_one_of(t->name, silent))
		p->quiet += t->opens ? 1 : -1;
	if (strcmp(t->name, "body") == 0)
		p->quiet = 0;
	if (strcmp(t->name, "blockquote") == 0) {
		if (t->opens) {
			page_paragraph(p);
			page_write(p, hr_span_of("> "), true);
			p->start = true;
			p->quotes++;
		} else {
			p->quotes--;
			page_paragraph(p);
		}
	}
}

static void
emphasize(struct page *p, const struct page_tag *t, const char *sign, bool apart)
{
	char text[4];

	(void)snprintf(text, sizeof(text), "%s%s", t->opens && apart ? " " : "", sign);
	if (t->opens && apart)
		p->last = ' ';
	page_mark(p, text);
	if (t->opens)
		p->stressed = true;
}

static bool
is_ascii_one_of(int32_t c, const char *set)
{
	return c > 0 && c < 0x80 && strchr(set, (int)c) != NULL;
}

static void
do_emphasis(struct page *p, const struct page_tag *t)
{
	static const char *const slanted[] = {"em", "i", "u", NULL};
	static const char *const strong[] = {"strong", "b", NULL};
	static const char *const struck[] = {"del", "strike", "s", NULL};
	static const char *const code[] = {"kbd", "code", "tt", NULL};
	static const char apart[] = " \t\n\r\v\f!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

	if (hr_is_one_of(t->name, slanted))
		emphasize(p, t, "_", p->last != 0 && !is_ascii_one_of(p->last, apart));
	if (hr_is_one_of(t->name, strong))
		emphasize(p, t, "**", p->last == '*');
	if (hr_is_one_of(t->name, struck))
		emphasize(p, t, "~~", p->last == '~');
	if (hr_is_one_of(t->name, code) && !p->pre) {
		page_mark(p, "`");
		p->code = !p->code;
	}
	if (strcmp(t->name, "q") == 0)
		page_mark(p, "\"");
}

static char *
copy(struct page *p, const char *s)
{
	char *c = s != NULL ? strdup(s) : NULL;

	if (s != NULL && c == NULL)
		p->out->fail = HR_E_NOMEM;
	return c;
}

static void
add_abbreviation(struct page *p)
{
	struct abbreviation *grown;
	size_t i;

	for (i = 0; i < p->n_abbrs; i++)
		if (hr_span_equal(hr_span_of_buf(&p->abbrs[i].text), hr_span_of_buf(&p->abbr)))
			break;
	if (i == ABBREVIATIONS_MAX)
		return;
	if (i == p->n_abbrs) {
		grown = reallocarray(p->abbrs, p->n_abbrs + 1, sizeof(*grown));
		if (grown == NULL) {
			p->out->fail = HR_E_NOMEM;
			return;
		}
		p->abbrs = grown;
		p->abbrs[p->n_abbrs++] = (struct abbreviation){.text = p->abbr};
		hr_buf_init(&p->abbr, p->out->cap);
	}
	free(p->abbrs[i].title);
	p->abbrs[i].title = p->abbr_title;
	p->abbr_title = NULL;
}

static void
do_abbreviation(struct page *p, const struct page_tag *t)
{
	if (strcmp(t->name, "abbr") != 0)
		return;
	if (t->opens) {
		free(p->abbr_title);
		p->abbr_title = copy(p, t->title);
		page_reset(p, &p->abbr);
		p->in_abbr = true;
		return;
	}
	if (p->abbr_title != NULL)
		add_abbreviation(p);
	p->in_abbr = false;
}

static void
open_link(struct page *p, const struct page_tag *t)
{
	struct link *grown = reallocarray(p->links, p->n_links + 1, sizeof(*grown));
	struct link l = {.is_link = t->href != NULL && t->href[0] != '#'};

	if (grown == NULL) {
		p->out->fail = HR_E_NOMEM;
		return;
	}
	p->links = grown;
	if (l.is_link) {
		l.href = copy(p, t->href);
		l.title = copy(p, t->title);
		free(p->pending);
		p->pending = copy(p, t->href);
		p->empty_link = true;
	}
	p->links[p->n_links++] = l;
}

static void
write_link(struct page *p, const struct link *l)
{
	const char *title = l->title != NULL ? l->title : "";
	size_t len = strlen(title);
	HR_BUF(b, p->out->cap);

	if (p->empty_link)
		page_open_bracket(p);
	p->lines = 0;
	hr_buf_adds(&b, "](");
	page_put_escaped(&b, l->href != NULL ? l->href : "");
	hr_utf8_strip(&title, &len);
	if (len > 0) {
		hr_buf_adds(&b, " \"");
		page_put_escaped(&b, l->title);
		hr_buf_addc(&b, '"');
	}
	hr_buf_addc(&b, ')');
	page_write(p, hr_span_of_buf(&b), false);
	page_reset(p, &b);
}

static void
do_link(struct page *p, const struct page_tag *t)
{
	struct link l;

	if (strcmp(t->name, "a") != 0)
		return;
	if (t->opens) {
		open_link(p, t);
		return;
	}
	if (p->n_links == 0)
		return;
	l = p->links[--p->n_links];
	if (p->pending != NULL && p->pending[0] != '\0' && !p->empty_link) {
		free(p->pending);
		p->pending = NULL;
	} else if (l.is_link) {
		write_link(p, &l);
	}
	free(l.href);
	free(l.title);
}

static void
open_list(struct page *p, const struct page_tag *t)
{
	struct list *grown;
	char *end;
	long at;

	grown = reallocarray(p->lists, p->n_lists + 1, sizeof(*grown));
	if (grown == NULL) {
		p->out->fail = HR_E_NOMEM;
		return;
	}
	p->lists = grown;
	at = t->start_at != NULL ? strtol(t->start_at, &end, 10) : 1;
	if (t->start_at != NULL && (end == t->start_at || end[strspn(end, " \t\n\r\f\v")] != '\0'))
		at = 1;
	p->lists[p->n_lists++] = (struct list){strcmp(t->name, "ol") == 0, at - 1};
}

static void
do_list(struct page *p, const struct page_tag *t)
{
	bool is_list = strcmp(t->name, "ol") == 0 || strcmp(t->name, "ul") == 0;

	if (strcmp(t->name, "dl") == 0 && t->opens)
		page_paragraph(p);
	if ((strcmp(t->name, "dt") == 0 || strcmp(t->name, "dd") == 0) && !t->opens)
		page_line(p);
	if (strcmp(t->name, "dd") == 0 && t->opens)
		page_mark(p, "    ");
	if (is_list) {
		if (p->n_lists == 0 && !p->after_list)
			page_paragraph(p);
		if (t->opens) {
			open_list(p, t);
		} else if (p->n_lists > 0 && --p->n_lists == 0) {
			page_mark(p, "\n");
		}
	}
	p->after_list = is_list;
}

static void
do_item(struct page *p, const struct page_tag *t)
{
	struct list none = {0}, *l;
	char text[32];
	size_t i;

	if (strcmp(t->name, "li") != 0)
		return;
	p->list_indent = 0;
	page_line(p);
	if (!t->opens)
		return;
	l = p->n_lists > 0 ? &p->lists[p->n_lists - 1] : &none;
	for (i = 0; i < p->n_lists; i++)
		p->list_indent += i > 0 && p->lists[i - 1].ordered ? 3 : 2;
	page_reset(p, &p->tmp);
	for (i = 0; i < p->list_indent; i++)
		hr_buf_addc(&p->tmp, ' ');
	page_write(p, hr_span_of_buf(&p->tmp), false);
	if (l->ordered)
		(void)snprintf(text, sizeof(text), "%ld. ", ++l->number);
	else
		(void)snprintf(text, sizeof(text), "* ");
	p->list_indent += l->ordered ? 3 : 2;
	page_mark(p, text);
	p->start = true;
}

static void
end_row(struct page *p)
{
	size_t i;

	p->cell = false;
	page_soft_line(p);
	if (!p->table_begins)
		return;
	page_reset(p, &p->tmp);
	for (i = 0; i < p->cells; i++)
		hr_buf_adds(&p->tmp, i > 0 ? "|---" : "---");
	page_write(p, hr_span_of_buf(&p->tmp), false);
	page_soft_line(p);
	p->table_begins = false;
}

static void
do_table(struct page *p, const struct page_tag *t)
{
	if (strcmp(t->name, "table") == 0 && t->opens)
		p->table_begins = true;
	if ((strcmp(t->name, "td") == 0 || strcmp(t->name, "th") == 0) && t->opens) {
		if (p->cell)
			page_mark(p, "| ");
		p->cell = true;
		p->cells++;
	}
	if (strcmp(t->name, "tr") == 0) {
		if (t->opens)
			p->cells = 0;
		else
			end_row(p);
	}
}

static void
do_pre(struct page *p, const struct page_tag *t)
{
	if (strcmp(t->name, "pre") != 0)
		return;
	p->pre = t->opens;
	if (t->opens)
		p->begin_pre = true;
	page_paragraph(p);
}

void
page_tag(struct page *p, const struct page_tag *t)
{
	static const char *const open[] = {"p", "div", "style", "dl", "dt", NULL};

	memcpy(p->tag, t->name, sizeof(p->tag));
	if (t->opens && p->pending != NULL && !hr_is_one_of(t->name, open))
		page_open_bracket(p);
	if (do_heading(p, t))
		return;
	do_blocks(p, t);
	do_emphasis(p, t);
	do_abbreviation(p, t);
	do_link(p, t);
	do_list(p, t);
	do_item(p, t);
	do_table(p, t);
	do_pre(p, t);
}
