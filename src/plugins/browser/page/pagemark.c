/* Writes a page's text as Markdown. Blanks and line ends are requested when a tag or a text ends,
 * and written before the next text that is not empty. */
#include "config.h"

#include "plugins/browser/page/pagemark_int.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/browser/program/pychars.h"
#include "base/text/utf8.h"

/* ---- writing ---- */

/* Empties one of p's buffers, but keeps its failure in p->out. */
void
page_reset(struct page *p, struct hr_buf *b)
{
	if (b->fail != HR_OK && p->out->fail == HR_OK)
		p->out->fail = b->fail;
	hr_buf_reset(b);
}

static void
out(struct page *p, const char *s, size_t len)
{
	hr_buf_add(p->out, s, len);
	if (len > 0)
		p->after_newline = s[len - 1] == '\n';
	p->after_bracket = len == 1 && *s == '[';
}

static void
outs(struct page *p, const char *s)
{
	out(p, s, strlen(s));
}

/* Puts the prefix of each line of a quotation or of code. */
static void
put_margin(const struct page *p, struct hr_buf *b, bool bare)
{
	size_t i;
	int q;

	for (q = 0; q < p->quotes; q++)
		hr_buf_addc(b, '>');
	if (p->quotes > 0 && !bare)
		hr_buf_addc(b, ' ');
	if (!p->pre)
		return;
	for (i = 0; p->n_lists > 0 && i < p->list_indent; i++)
		hr_buf_addc(b, ' ');
	hr_buf_adds(b, "    ");
}

/* Puts the text of a <pre> into p->margin, with the margin after each line end. */
static struct hr_span
with_margin(struct page *p, struct hr_span s, bool bare)
{
	bool begins = p->begin_pre;
	size_t i;

	page_reset(p, &p->margin);
	if (begins && !(s.len > 0 && s.p[0] == '\n') &&
	    !(s.len > 1 && s.p[0] == '\r' && s.p[1] == '\n')) {
		hr_buf_addc(&p->margin, '\n');
		if (p->pre)
			put_margin(p, &p->margin, bare);
	}
	for (i = 0; i < s.len && p->margin.fail == HR_OK; i++) {
		hr_buf_addc(&p->margin, s.p[i]);
		if (p->pre && s.p[i] == '\n')
			put_margin(p, &p->margin, bare);
	}
	p->begin_pre = false;
	s = hr_span_of_buf(&p->margin);
	if (begins && p->n_lists > 0) /* an existing indent is not doubled */
		while (s.len > 0 && (*s.p == '\n' || (p->pre && *s.p == ' ') ||
					(p->pre && *s.p == '>' && p->quotes > 0))) {
			s.p++;
			s.len--;
		}
	return s;
}

static void
put_lines(struct page *p, bool bare)
{
	for (; p->lines > 0; p->lines--) {
		hr_buf_adds(p->out, p->soft ? "  \n" : "\n");
		put_margin(p, p->out, bare);
	}
	p->after_newline = p->out->fail == HR_OK && p->out->p[p->out->len - 1] == '\n';
	p->after_bracket = false;
	p->soft = false;
	p->blank = false;
}

/* Writes s; `forced`: even if s is empty, and without a blank after the margin if s is a margin
 * itself. */
void
page_write(struct page *p, struct hr_span s, bool forced)
{
	bool bare = forced && s.len > 0 && *s.p == '>' && !p->begin_pre;

	if (p->in_abbr)
		hr_buf_add(&p->abbr, s.p, s.len);
	if (p->quiet != 0 || (s.len == 0 && !forced))
		return;
	if (p->pre || p->begin_pre)
		s = with_margin(p, s, bare);
	if (p->start) {
		p->blank = false;
		p->lines = 0;
		p->start = false;
	}
	if (p->lines > 0)
		put_lines(p, bare);
	if (p->blank && !p->after_newline)
		outs(p, " ");
	p->blank = false;
	p->lines = 0;
	out(p, s.p, s.len);
}

void
page_mark(struct page *p, const char *s)
{
	page_write(p, hr_span_of(s), false);
}

/* Writes page text: a run of white space is one blank, a leading one is only requested. */
static void
write_data(struct page *p, const char *s, size_t len)
{
	const char *end = s + len;
	bool space = false;
	size_t n;

	if (p->pre || p->quiet != 0) {
		page_write(p, (struct hr_span){s, len}, false);
		return;
	}
	if (p->in_abbr)
		hr_buf_add(&p->abbr, s, len);
	page_reset(p, &p->data);
	for (; s < end && p->data.fail == HR_OK; s += n) {
		if (hr_utf8_is_space(hr_utf8_next(s, end, &n))) {
			if (!space && p->data.len == 0)
				p->blank = true;
			else if (!space)
				hr_buf_addc(&p->data, ' ');
			space = true;
			continue;
		}
		space = false;
		hr_buf_add(&p->data, s, n);
	}
	if (p->data.len == 0)
		return;
	space = p->in_abbr;
	p->in_abbr = false; /* an abbr element shows its text unescaped */
	page_write(p, hr_span_of_buf(&p->data), false);
	p->in_abbr = space;
}

void
page_line(struct page *p)
{
	if (p->lines == 0)
		p->lines = 1;
}

void
page_paragraph(struct page *p)
{
	p->lines = 2;
}

void
page_soft_line(struct page *p)
{
	page_line(p);
	p->soft = true;
}

/* ---- texts ---- */

static bool
is_special(char c)
{
	return c != '\0' && strchr("\\`*_{}[]()#+-.!", c) != NULL;
}

static bool
is_digit(const char *s, const char *end, size_t *ret_len)
{
	return br_digit_value(hr_utf8_next(s, end, ret_len)) >= 0;
}

/* Returns the sign of a line that looks like a list item or a rule, or NULL. */
static const char *
find_sign(const char *s, const char *end, char sign)
{
	const char *from;
	size_t n;

	while (s < end && hr_utf8_is_space(hr_utf8_next(s, end, &n)))
		s += n;
	if (sign == '.') {
		for (from = s; s < end && is_digit(s, end, &n);)
			s += n;
		if (s == from)
			return NULL;
	}
	if (end - s < 2 || *s != sign)
		return NULL;
	if (sign == '-' && s[1] == '-')
		return s;
	return hr_utf8_is_space(hr_utf8_next(s + 1, end, &n)) ? s : NULL;
}

/* Appends s with a backslash before signs that would start such a line. */
static void
escape_lines(struct hr_buf *b, const char *s, size_t len, char sign)
{
	const char *end = s + len, *at, *next;

	while (s < end) {
		at = find_sign(s, end, sign);
		if (at != NULL) {
			hr_buf_add(b, s, (size_t)(at - s));
			hr_buf_addc(b, '\\');
			s = at;
		}
		next = memchr(s, '\n', (size_t)(end - s));
		next = next != NULL ? next + 1 : end;
		hr_buf_add(b, s, (size_t)(next - s));
		s = next;
	}
}

/* Escapes page text for Markdown, in p->tmp. */
static struct hr_span
escaped(struct page *p, struct hr_span s)
{
	static const char signs[] = ".+-";
	struct hr_buf b;
	size_t i;

	page_reset(p, &p->tmp);
	for (i = 0; i < s.len && p->tmp.fail == HR_OK; i++) {
		if (s.p[i] == '\\' && i + 1 < s.len && is_special(s.p[i + 1]))
			hr_buf_addc(&p->tmp, '\\');
		hr_buf_addc(&p->tmp, s.p[i]);
	}
	for (i = 0; signs[i] != '\0'; i++) {
		if (memchr(hr_buf_str(&p->tmp), signs[i], p->tmp.len) == NULL)
			continue;
		hr_buf_init(&b, p->tmp.cap);
		escape_lines(&b, p->tmp.p, p->tmp.len, signs[i]);
		page_reset(p, &p->tmp);
		hr_buf_done(&p->tmp);
		p->tmp = b;
	}
	return hr_span_of_buf(&p->tmp);
}

/* Escapes an address or a title. */
void
page_put_escaped(struct hr_buf *b, const char *s)
{
	for (; *s != '\0'; s++) {
		if (strchr("\\[]()", *s) != NULL)
			hr_buf_addc(b, '\\');
		hr_buf_addc(b, *s);
	}
}

unsigned
page_heading(const char *tag)
{
	return tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '9' && tag[2] == '\0'
		   ? (unsigned)(tag[1] - '0')
		   : 0;
}

static bool
is_absolute(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+");

	return n > 0 && strncmp(url + n, "://", 3) == 0;
}

void
page_open_bracket(struct page *p)
{
	page_mark(p, "[");
	free(p->pending);
	p->pending = NULL;
	p->empty_link = false;
}

/* Returns true if text directly after emphasis requires a blank. */
static bool
needs_blank(const struct page *p, const char *s, size_t len)
{
	static const char *const tags[] = {"a", "code", "pre", NULL};
	size_t n;
	int32_t cp = hr_utf8_next(s, s + len, &n);

	return !(cp < 0x80 && cp > 0 && strchr("][(){}.!?", (int)cp) != NULL) &&
	       !hr_utf8_is_space(cp) && page_heading(p->tag) == 0 && !hr_is_one_of(p->tag, tags);
}

static int32_t
last_of(struct hr_span s)
{
	size_t n, at = s.len;

	if (s.len == 0)
		return 0;
	while (--at > 0 && ((unsigned char)s.p[at] & 0xC0) == 0x80)
		;
	return hr_utf8_next(s.p + at, s.p + s.len, &n);
}

void
page_data(struct page *p, const char *data, size_t len, bool entity)
{
	struct hr_span s = {data, len};
	HR_BUF(whole, p->out->cap);

	if (len == 0)
		return;
	if (p->stressed) {
		hr_utf8_strip(&s.p, &s.len);
		p->stressed = false;
		p->was_stressed = true;
	} else if (p->was_stressed) {
		if (needs_blank(p, data, len))
			hr_buf_addc(&whole, ' ');
		p->was_stressed = false;
	}
	if (p->pending != NULL && whole.len == 0 && is_absolute(p->pending) &&
	    hr_span_equal(s, hr_span_of(p->pending))) {
		hr_buf_addf(&whole, "<%s>", p->pending);
		page_write(p, hr_span_of_buf(&whole), false);
		p->empty_link = false;
		return;
	}
	if (p->pending != NULL)
		page_open_bracket(p);
	if (whole.len > 0) {
		hr_buf_add(&whole, s.p, s.len);
		s = hr_span_of_buf(&whole);
	}
	if (!p->code && !p->pre && !entity)
		s = escaped(p, s);
	p->last = last_of(s);
	write_data(p, s.p, s.len);
	page_reset(p, &whole);
}

struct page *
page_new(struct hr_buf *b)
{
	struct page *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->out = b;
	p->start = true;
	hr_buf_init(&p->tmp, b->cap);
	hr_buf_init(&p->data, b->cap);
	hr_buf_init(&p->margin, b->cap);
	hr_buf_init(&p->abbr, b->cap);
	return p;
}

void
page_end(struct page *p)
{
	struct hr_span left = {"", 0};
	size_t i;

	if (p->quiet == 0) {
		if (p->begin_pre)
			left = with_margin(p, left, false);
		out(p, "\n", 1);
		for (i = 0; i < p->n_abbrs; i++)
			hr_buf_addf(p->out, "  *[%s]: %s\n", hr_buf_str(&p->abbrs[i].text),
			    p->abbrs[i].title);
		out(p, left.p, left.len);
	}
	for (i = 0; i < p->n_abbrs; i++) {
		hr_buf_done(&p->abbrs[i].text);
		free(p->abbrs[i].title);
	}
	for (i = 0; i < p->n_links; i++) {
		free(p->links[i].href);
		free(p->links[i].title);
	}
	if (p->out->fail == HR_OK)
		p->out->fail = p->tmp.fail != HR_OK      ? p->tmp.fail
			       : p->data.fail != HR_OK   ? p->data.fail
			       : p->margin.fail != HR_OK ? p->margin.fail
							 : p->abbr.fail;
	free(p->links);
	free(p->lists);
	free(p->abbrs);
	free(p->pending);
	free(p->abbr_title);
	hr_buf_done(&p->tmp);
	hr_buf_done(&p->data);
	hr_buf_done(&p->margin);
	hr_buf_done(&p->abbr);
	free(p);
}
