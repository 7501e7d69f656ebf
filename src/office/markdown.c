/* Prints a page of HTML elements as Markdownify 1.2 does with the options of the original: each
 * element becomes a string, made of the strings of its children, so that blanks and empty lines
 * come out alike. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text/percent.h"
#include "base/text/utf8.h"
#include "office/office.h"
#include "office/office_int.h"

#define BLANKS " \t\r\n"
#define SPAN_MAX 1000

/* The elements around an element that change how it is printed. */
struct place {
	bool in_line; /* inside a heading or a cell */
	bool in_item; /* inside an item of a list */
	size_t uls;   /* number of bullet lists around it */
};

static unsigned
heading_level(const struct node *n)
{
	return n->name[0] == 'h' && n->name[1] >= '1' && n->name[1] <= '6'
		   ? (unsigned)(n->name[1] - '0')
		   : 0;
}

static bool
is_cell(const struct node *n)
{
	return node_is(n, "td") || node_is(n, "th");
}

static bool
is_list(const struct node *n)
{
	return node_is(n, "ul") || node_is(n, "ol");
}

static bool
is_block(const struct node *n)
{
	return n != NULL && n->name != NULL &&
	       (heading_level(n) > 0 || is_cell(n) || is_list(n) || node_is(n, "p") ||
		   node_is(n, "li") || node_is(n, "table") || node_is(n, "thead") ||
		   node_is(n, "tbody") || node_is(n, "tr"));
}

static void
pass_failure(const struct hr_buf *from, struct hr_buf *to)
{
	if (from->fail != HR_OK && to->fail == HR_OK)
		to->fail = from->fail;
}

/* Appends as much of p as there is room: a string that is too long is cut, not left out. */
static void
add_part(struct hr_buf *out, const char *p, size_t len)
{
	size_t room = out->cap - out->len;

	if (len > room)
		while (room > 0 && (p[room] & 0xc0) == 0x80)
			room--;
	hr_buf_add(out, p, len < room ? len : room);
	if (len > room && out->fail == HR_OK)
		out->fail = HR_E_TOOLARGE;
}

/* ---- text ---- */

/* Appends text with each run of blanks as one blank, or as a line feed if it has a line end, and
 * with `*` and `_` escaped. */
static void
add_folded(const struct hr_buf *raw, struct hr_buf *out)
{
	const char *p = hr_buf_str(raw), *end = p + raw->len;
	size_t run;

	while (p < end) {
		run = strspn(p, BLANKS);
		if (run > 0) {
			hr_buf_addc(out, strcspn(p, "\r\n") < run ? '\n' : ' ');
			p += run;
			continue;
		}
		if (*p == '*' || *p == '_')
			hr_buf_addc(out, '\\');
		run = 1 + strcspn(p + 1, BLANKS "*_");
		add_part(out, p, run);
		p += run;
	}
}

/* Appends the text nodes from `first` to the element `next`, between the elements prev and next of
 * parent. */
static void
add_text(const struct node *parent, const struct node *prev, const struct node *first,
    const struct node *next, struct hr_buf *out)
{
	bool left = is_block(prev) || (is_block(parent) && prev == NULL);
	bool right = is_block(next) || (is_block(parent) && next == NULL);
	HR_BUF(raw, HR_OFFICE_TEXT_MAX);
	HR_BUF(b, HR_OFFICE_TEXT_MAX);
	const char *p;
	size_t len, skip;

	for (; first != next; first = first->next)
		add_part(&raw, first->text, strlen(first->text));
	p = hr_buf_str(&raw);
	len = raw.len;
	hr_utf8_strip(&p, &len);
	if (len == 0 && (left || right))
		return;
	add_folded(&raw, &b);
	p = hr_buf_str(&b);
	len = right ? hr_utf8_rstrip(p, b.len) : b.len;
	skip = left ? strspn(p, BLANKS) : 0;
	if (skip < len)
		add_part(out, p + skip, len - skip);
	pass_failure(&raw, out);
	pass_failure(&b, out);
}

/* ---- links and pictures ---- */

/* Returns the length of the scheme of a URL, 0 if it has none. */
static size_t
scheme_length(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

	return n > 0 && url[n] == ':' && ((url[0] | 0x20) >= 'a' && (url[0] | 0x20) <= 'z') ? n : 0;
}

/* Appends a URL with its path percent-encoded. Returns false for a scheme that is not shown. */
static bool
add_url(const char *url, struct hr_buf *out)
{
	static const char *const shown[] = {"http", "https", "file"};
	size_t scheme = scheme_length(url), i, len;
	HR_BUF(path, HR_OFFICE_TEXT_MAX);
	const char *p = url, *end, *slash, *params;

	for (i = 0; scheme > 0 && i < 3; i++)
		if (strlen(shown[i]) == scheme && strncasecmp(url, shown[i], scheme) == 0)
			break;
	if (scheme > 0 && i == 3)
		return false;
	if (scheme > 0) {
		hr_buf_addf(out, "%s:", shown[i]);
		p += scheme + 1;
	}
	len = strncmp(p, "//", 2) == 0 ? 2 + strcspn(p + 2, "/?#") : 0;
	if (len > 2 || scheme == 0)
		add_part(out, p, len);
	else
		hr_buf_adds(out, "//");
	p += len;
	end = p + strcspn(p, "?#");
	slash = memrchr(p, '/', (size_t)(end - p));
	params =
	    memchr(slash != NULL ? slash : p, ';', (size_t)(end - (slash != NULL ? slash : p)));
	if (params == NULL || i == 2) /* file: has no parameters */
		params = end;
	hr_percent_decode(&path, p, (size_t)(params - p), false);
	for (p = hr_buf_str(&path), end = p + path.len; p <= end; p += strlen(p) + 1) {
		hr_buf_adds(out, p > hr_buf_str(&path) ? "%00" : ""); /* a NUL ends each string */
		hr_percent_encode(out, p, "/_.-~");
	}
	hr_buf_adds(out, params);
	pass_failure(&path, out);
	return true;
}

static void
add_link(const char *href, const char *p, size_t len, struct hr_buf *out)
{
	HR_BUF(url, HR_OFFICE_TEXT_MAX);
	HR_BUF(plain, HR_OFFICE_TEXT_MAX);
	bool before = len > 0 && p[0] == ' ', after = len > 0 && p[len - 1] == ' ', shown;
	size_t i;

	hr_utf8_strip(&p, &len);
	if (len == 0)
		return;
	shown = href != NULL && add_url(href, &url);
	for (i = 0; i < len; i++)
		if (p[i] != '\\' || i + 1 == len || p[i + 1] != '_')
			hr_buf_addc(&plain, p[i]);
	if (shown && strcmp(hr_buf_str(&plain), hr_buf_str(&url)) == 0) {
		hr_buf_addf(out, "<%s>", hr_buf_str(&url));
		return;
	}
	if (before && href != NULL)
		hr_buf_addc(out, ' ');
	if (shown && url.len > 0)
		hr_buf_addc(out, '[');
	add_part(out, p, len);
	if (shown && url.len > 0) {
		hr_buf_adds(out, "](");
		add_part(out, url.p, url.len);
		hr_buf_addc(out, ')');
	}
	if (after && href != NULL)
		hr_buf_addc(out, ' ');
}

static void
add_picture(const struct node *n, struct place in, struct hr_buf *out)
{
	const char *alt = node_attr(n, "alt"), *type = node_attr(n, "type");

	if (!in.in_line)
		hr_buf_adds(out, "![");
	hr_buf_adds(out, alt != NULL ? alt : "");
	if (!in.in_line)
		hr_buf_addf(out, "](data:%s;base64...)", type != NULL ? type : "None");
}

/* ---- marks, lists and tables ---- */

/* Puts marks around text; blanks at its ends go outside. */
static void
add_marked(const char *mark, const char *p, size_t len, struct hr_buf *out)
{
	bool before = len > 0 && p[0] == ' ', after = len > 0 && p[len - 1] == ' ';

	hr_utf8_strip(&p, &len);
	if (len == 0)
		return;
	hr_buf_adds(out, before ? " " : "");
	hr_buf_adds(out, mark);
	add_part(out, p, len);
	hr_buf_adds(out, mark);
	hr_buf_adds(out, after ? " " : "");
}

/* Appends the item with that number of its list, its further lines indented. */
static void
add_item(const struct node *li, struct place in, size_t number, const char *p, size_t len,
    struct hr_buf *out)
{
	const char *end, *line;
	size_t start = out->len, width;

	hr_utf8_strip(&p, &len);
	end = p + len;
	if (len > 0 && node_is(li->parent, "ol"))
		hr_buf_addf(out, "%zu. ", number);
	else if (len > 0)
		hr_buf_addf(out, "%c ", "*+-"[(in.uls + 2) % 3]);
	width = out->len - start;
	for (line = p; line < end; line = p + 1) {
		p = memchr(line, '\n', (size_t)(end - line));
		if (p == NULL)
			p = end;
		if (line > end - len && p > line)
			hr_buf_addf(out, "%*s", (int)width, "");
		add_part(out, line, (size_t)(p - line));
		if (p < end)
			hr_buf_addc(out, '\n');
	}
	hr_buf_addc(out, '\n');
}

static size_t
cell_span(const struct node *cell)
{
	const char *span = node_attr(cell, "colspan");
	unsigned long n = span != NULL ? strtoul(span, NULL, 10) : 1;

	return n < 1 ? 1 : n > SPAN_MAX ? SPAN_MAX : n;
}

static void
add_cell(const struct node *cell, const char *p, size_t len, struct hr_buf *out)
{
	const char *end, *line;
	size_t span = cell_span(cell);

	hr_utf8_strip(&p, &len);
	hr_buf_addc(out, ' ');
	for (end = p + len; p < end; p = line) {
		line = memchr(p, '\n', (size_t)(end - p));
		line = line == p ? p + 1 : line != NULL ? line : end;
		if (*p == '\n')
			hr_buf_addc(out, ' ');
		else
			add_part(out, p, (size_t)(line - p));
	}
	for (; span > 0 && out->fail == HR_OK; span--)
		hr_buf_adds(out, " |");
}

/* Appends a row. The first one of a table has a rule below it if it is a header, and otherwise an
 * empty header above it. */
static void
add_row(const struct node *tr, bool first, const struct hr_buf *text, struct hr_buf *out)
{
	const struct node *n, *part = tr->parent;
	size_t columns = 0, i;
	bool header = true;

	for (n = tr->first; n != NULL; n = node_next(n, tr, true))
		if (is_cell(n)) {
			columns += cell_span(n);
			header = header && node_is(n, "th");
		}
	if (first && !header && !(node_is(part, "tbody") && part != part->parent->first)) {
		hr_buf_addc(out, '|');
		for (i = 0; i < columns && out->fail == HR_OK; i++)
			hr_buf_adds(out, "  |");
		hr_buf_addc(out, '\n');
		office_add_rule(out, columns);
	}
	hr_buf_addc(out, '|');
	add_part(out, hr_buf_str(text), text->len);
	hr_buf_addc(out, '\n');
	if (first && header)
		office_add_rule(out, columns);
}

/* ---- elements ---- */

static void add_children(const struct node *n, struct place in, struct hr_buf *out);

/* Appends text between empty lines. */
static void
add_block(const char *mark, const char *p, size_t len, struct hr_buf *out)
{
	hr_buf_addf(out, "\n\n%s", mark);
	add_part(out, p, len);
	hr_buf_adds(out, "\n\n");
}

static void
add_heading(unsigned level, const char *p, size_t len, struct hr_buf *out)
{
	HR_BUF(b, HR_OFFICE_TEXT_MAX);

	hr_utf8_strip(&p, &len);
	office_add_flat(&b, p, len, false);
	add_block(&"###### "[6 - level], hr_buf_str(&b), b.len, out);
	pass_failure(&b, out);
}

static void
add_list(const struct node *n, struct place in, const struct hr_buf *text, struct hr_buf *out)
{
	const char *p = hr_buf_str(text);

	hr_buf_adds(out, in.in_item ? "\n" : "\n\n");
	add_part(out, p, in.in_item ? hr_utf8_rstrip(p, text->len) : text->len);
	if (!in.in_item && n->next != NULL && !is_list(n->next))
		hr_buf_addc(out, '\n');
}

/* Strips the blanks that end or begin a paragraph. */
static void
strip_blanks(const char **p, size_t *len)
{
	size_t n = strspn(*p, BLANKS);

	*p += n;
	*len -= n;
	while (*len > 0 && strchr(BLANKS, (*p)[*len - 1]) != NULL)
		(*len)--;
}

/* Appends an element, the `number`th item of its parent if it is one. */
static void
add_element(const struct node *n, bool first, size_t number, struct place in, struct hr_buf *out)
{
	unsigned level = heading_level(n);
	struct place below = {in.in_line || level > 0 || is_cell(n), in.in_item || node_is(n, "li"),
	    in.uls + node_is(n, "ul")};
	HR_BUF(text, HR_OFFICE_TEXT_MAX);
	const char *p;
	size_t len;

	add_children(n, below, &text);
	p = hr_buf_str(&text);
	len = text.len;
	if (node_is(n, "p")) {
		strip_blanks(&p, &len);
		if (len > 0 && !in.in_line) {
			add_block("", p, len, out);
		} else if (in.in_line) {
			hr_buf_addc(out, ' ');
			add_part(out, p, len);
			hr_buf_addc(out, ' ');
		}
	} else if (level > 0 && !in.in_line) {
		add_heading(level, p, len, out);
	} else if (node_is(n, "table")) {
		hr_utf8_strip(&p, &len);
		add_block("", p, len, out);
	} else if (is_list(n)) {
		add_list(n, in, &text, out);
	} else if (node_is(n, "li")) {
		add_item(n, in, number, p, len, out);
	} else if (is_cell(n)) {
		add_cell(n, p, len, out);
	} else if (node_is(n, "tr")) {
		add_row(n, first, &text, out);
	} else if (node_is(n, "strong")) {
		add_marked("**", p, len, out);
	} else if (node_is(n, "em")) {
		add_marked("*", p, len, out);
	} else if (node_is(n, "s")) {
		add_marked("~~", p, len, out);
	} else if (node_is(n, "sup") || node_is(n, "sub")) {
		add_marked("", p, len, out);
	} else if (node_is(n, "a")) {
		add_link(node_attr(n, "href"), p, len, out);
	} else if (node_is(n, "img")) {
		add_picture(n, in, out);
	} else if (node_is(n, "br")) {
		hr_buf_adds(out, in.in_line ? " " : "  \n");
	} else {
		add_part(out, p, len);
	}
	pass_failure(&text, out);
}

/* Appends the string of a child. The line feeds between two children are those of the one that has
 * more, two at most. *feeds has the number of line feeds that end the previous child. */
static void
join(struct hr_buf *out, const struct hr_buf *child, size_t *feeds)
{
	const char *p = hr_buf_str(child);
	size_t lead = strspn(p, "\n"), len = child->len, tail = 0, want = lead;

	if (len == 0)
		return;
	while (tail < len - lead && p[len - 1 - tail] == '\n')
		tail++;
	if (lead > 0 && *feeds > 0) {
		want = lead > *feeds ? lead : *feeds;
		out->len -= *feeds;
		out->p[out->len] = '\0';
	}
	for (want = want > 2 && *feeds > 0 ? 2 : want; want > 0; want--)
		hr_buf_addc(out, '\n');
	add_part(out, p + lead, len - lead);
	*feeds = tail;
}

/* Appends the children of n to out, which has nothing else. */
static void
add_children(const struct node *n, struct place in, struct hr_buf *out)
{
	const struct node *c, *next, *prev = NULL;
	size_t feeds = 0, items = 0;
	HR_BUF(b, HR_OFFICE_TEXT_MAX);

	for (c = n->first; c != NULL && out->fail == HR_OK; c = next) {
		hr_buf_reset(&b);
		next = c->next;
		if (c->name == NULL) {
			while (next != NULL && next->name == NULL)
				next = next->next;
			add_text(n, prev, c, next, &b);
		} else {
			items += node_is(c, "li");
			add_element(c, prev == NULL, items, in, &b);
		}
		prev = c;
		join(out, &b, &feeds);
		pass_failure(&b, out);
	}
}

void
office_add_markdown(struct hr_buf *out, const struct node *page)
{
	struct place in = {.in_line = false};
	HR_BUF(b, HR_OFFICE_TEXT_MAX);
	const char *p;
	size_t lead;

	add_children(page, in, &b);
	p = hr_buf_str(&b);
	lead = strspn(p, "\n");
	add_part(out, p + lead, b.len - lead);
	while (out->len > 0 && out->p[out->len - 1] == '\n')
		out->p[--out->len] = '\0';
	pass_failure(&b, out);
}
