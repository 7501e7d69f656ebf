/* Reads the tags of tidy HTML (snapshot.h) and passes them to the writer, pagemark.c. */
#include "config.h"

#include "plugins/browser/page/pagetext.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/browser/page/pagemark.h"

/* Puts text without its escapes. */
static void
put_plain(struct hr_buf *b, const char *p, size_t len)
{
	static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
	static const char signs[] = "&<>\"";
	const char *end = p + len;
	size_t i, n;

	while (p < end) {
		for (i = 0; *p == '&' && i < 4; i++) {
			n = strlen(names[i]);
			if ((size_t)(end - p) >= n && memcmp(p, names[i], n) == 0)
				break;
		}
		if (*p == '&' && i < 4) {
			hr_buf_addc(b, signs[i]);
			p += strlen(names[i]);
		} else {
			hr_buf_addc(b, *p++);
		}
	}
}

/* Reads an attribute at p. Returns its end, or NULL if there is none. */
static const char *
read_attribute(const char *p, const char *end, struct hr_span *ret_name, struct hr_span *ret_value)
{
	char quote;

	while (p < end && *p == ' ')
		p++;
	*ret_name = (struct hr_span){p, 0};
	while (p < end && *p != '=' && *p != ' ')
		p++;
	ret_name->len = (size_t)(p - ret_name->p);
	if (end - p < 2 || *p != '=' || (p[1] != '"' && p[1] != '\''))
		return NULL;
	quote = p[1];
	p += 2;
	*ret_value = (struct hr_span){p, 0};
	while (p < end && *p != quote)
		p++;
	ret_value->len = (size_t)(p - ret_value->p);
	return p < end ? p + 1 : NULL;
}

/* Reads the few attributes that Markdown uses. */
static void
read_attributes(struct page_tag *tag, struct hr_buf *b, const char *p, const char *end)
{
	struct hr_span name, value;
	char **to;

	while ((p = read_attribute(p, end, &name, &value)) != NULL) {
		to = hr_span_equal(name, hr_span_of("href"))    ? &tag->href
		     : hr_span_equal(name, hr_span_of("title")) ? &tag->title
		     : hr_span_equal(name, hr_span_of("start")) ? &tag->start_at
								: NULL;
		if (to == NULL)
			continue;
		hr_buf_reset(b);
		put_plain(b, value.p, value.len);
		free(*to);
		*to = strndup(hr_buf_str(b), b->len);
		if (*to == NULL)
			b->fail = HR_E_NOMEM;
		if (b->fail != HR_OK)
			return;
	}
}

/* Finds the > that ends a tag, outside of quotes. */
static const char *
tag_end(const char *p, const char *end)
{
	char quote = 0;

	for (; p < end && (quote != 0 || *p != '>'); p++) {
		if (quote != 0)
			quote = *p == quote ? 0 : quote;
		else if (*p == '"' || *p == '\'')
			quote = *p;
	}
	return p;
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the end of the comment or declaration at p, or NULL if there is none at p. */
static const char *
read_declaration(const char *p, const char *end)
{
	const char *close;

	if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
		close = memmem(p + 4, (size_t)(end - p - 4), "-->", 3);
		return close != NULL ? close + 3 : end;
	}
	if (end - p < 2 || (p[1] != '?' && p[1] != '!'))
		return NULL;
	close = memchr(p + 1, '>', (size_t)(end - p - 1));
	return close != NULL ? close + 1 : end;
}

/* Reads a tag at p, or text that only starts like one. Returns where the text continues. */
static const char *
read_tag(struct page *page, struct hr_buf *tmp, const char *p, const char *end, char *raw)
{
	struct page_tag tag = {.opens = end - p < 2 || p[1] != '/'};
	const char *name = p + 1 + !tag.opens, *close = read_declaration(p, end), *behind;

	if (close != NULL)
		return close;
	if (name >= end || !is_letter(*name)) {
		close = tag.opens ? p + 1 : tag_end(p, end);
		if (tag.opens)
			page_data(page, p, 1, false);
		return close < end && !tag.opens ? close + 1 : close;
	}
	close = tag_end(p, end);
	for (behind = name; behind < close && *behind != ' ' && *behind != '/';)
		behind++;
	if ((size_t)(behind - name) < sizeof(tag.name)) {
		memcpy(tag.name, name, (size_t)(behind - name));
		read_attributes(&tag, tmp, behind, close);
	}
	page_tag(page, &tag);
	if (tag.opens && close[-1] == '/') {
		tag.opens = false;
		page_tag(page, &tag);
	} else if (tag.opens &&
		   (strcmp(tag.name, "script") == 0 || strcmp(tag.name, "style") == 0)) {
		memcpy(raw, tag.name, sizeof(tag.name)); /* `raw` has the size of tag.name */
	}
	free(tag.href);
	free(tag.title);
	free(tag.start_at);
	return close < end ? close + 1 : end;
}

/* Finds the end of a script, whose content is text in any case. */
static const char *
raw_end(const char *p, const char *end, const char *name)
{
	size_t n = strlen(name);

	for (; p < end; p++)
		if (*p == '<' && (size_t)(end - p) > n + 2 && p[1] == '/' &&
		    strncasecmp(p + 2, name, n) == 0 && p[n + 2] == '>')
			break;
	return p;
}

/* Passes an escape as a text of its own. */
static const char *
read_entity(struct page *page, struct hr_buf *tmp, const char *p, const char *end)
{
	const char *semicolon = memchr(p, ';', (size_t)(end - p) < 8 ? (size_t)(end - p) : 8);
	size_t n = semicolon != NULL ? (size_t)(semicolon + 1 - p) : 1;

	hr_buf_reset(tmp);
	put_plain(tmp, p, n);
	page_data(page, hr_buf_str(tmp), tmp->len, true);
	return p + n;
}

void
br_page_text(struct hr_buf *b, const char *html, size_t len)
{
	const char *p = html, *end = html + len, *from;
	char raw[sizeof(((struct page_tag *)0)->name)] = "";
	struct page *page = page_new(b);
	HR_BUF(tmp, b->cap);

	if (page == NULL) {
		b->fail = HR_E_NOMEM;
		return;
	}
	while (p < end && b->fail == HR_OK && tmp.fail == HR_OK) {
		from = p;
		if (raw[0] != '\0')
			p = raw_end(p, end, raw);
		else
			while (p < end && *p != '<' && *p != '&')
				p++;
		if (p > from)
			page_data(page, from, (size_t)(p - from), false);
		raw[0] = '\0';
		if (p < end)
			p = *p == '<' ? read_tag(page, &tmp, p, end, raw)
				      : read_entity(page, &tmp, p, end);
	}
	if (tmp.fail != HR_OK && b->fail == HR_OK)
		b->fail = tmp.fail;
	page_end(page);
}
