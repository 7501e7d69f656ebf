/* Tidies markup: libxml2's parser repairs what browsers repair, and more. Each tag and each text
 * gets its own line, indented by its depth, except inside <pre> and <textarea>. No tree is built: a
 * tag is written once it is known whether its element is empty. */
#include "config.h"

#include "plugins/browser/page/html.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <libxml/HTMLparser.h>

#include "base/span.h"
#include "base/text/utf8.h"

struct tidy {
	htmlParserCtxtPtr parser;
	struct hr_buf *out;
	struct hr_buf text; /* text of the element so far */
	struct hr_buf open; /* start tag without its >, until content comes */
	char *open_name;    /* name of the pending tag; "": none */
	size_t depth;
	size_t literal; /* depth of the enclosing <pre> plus 1; 0: none */
	unsigned raw;   /* number of nested <script> and <style> */
	bool failed;
};

static bool
is_void(const char *name)
{
	static const char *const names[] = {"area", "base", "br", "col", "embed", "hr", "img",
	    "input", "keygen", "link", "menuitem", "meta", "param", "source", "track", "wbr",
	    "basefont", "bgsound", "command", "frame", "image", "isindex", "nextid", "spacer",
	    NULL};

	return hr_is_one_of(name, names);
}

static bool
is_literal(const char *name)
{
	return strcmp(name, "pre") == 0 || strcmp(name, "textarea") == 0;
}

static bool
is_raw(const char *name)
{
	return strcmp(name, "script") == 0 || strcmp(name, "style") == 0;
}

static void
indent(struct tidy *t, size_t depth)
{
	while (depth-- > 0 && t->out->fail == HR_OK)
		hr_buf_addc(t->out, ' ');
}

static void
put_escaped(struct hr_buf *b, const char *p, size_t len, bool quote)
{
	size_t i;

	for (i = 0; i < len && b->fail == HR_OK; i++)
		switch (p[i]) {
		case '&': hr_buf_adds(b, "&amp;"); break;
		case '<': hr_buf_adds(b, "&lt;"); break;
		case '>': hr_buf_adds(b, "&gt;"); break;
		case '"': hr_buf_adds(b, quote ? "&quot;" : "\""); break;
		default: hr_buf_addc(b, p[i]);
		}
}

/* Empties one of t's buffers, but keeps its failure in t->out. */
static void
empty(struct tidy *t, struct hr_buf *b)
{
	if (b->fail != HR_OK && t->out->fail == HR_OK)
		t->out->fail = b->fail;
	hr_buf_reset(b);
}

/* Writes the pending start tag: its element has content. */
static void
flush_open(struct tidy *t)
{
	if (t->open.len == 0)
		return;
	if (t->literal == 0)
		indent(t, t->depth - 1);
	hr_buf_add(t->out, t->open.p, t->open.len);
	hr_buf_addc(t->out, '>');
	if (t->literal == 0 && is_literal(t->open_name))
		t->literal = t->depth;
	if (t->literal == 0)
		hr_buf_addc(t->out, '\n');
	empty(t, &t->open);
}

static void
flush_text(struct tidy *t)
{
	const char *p = hr_buf_str(&t->text);
	size_t len = t->text.len;

	if (len == 0)
		return;
	if (t->literal == 0)
		hr_utf8_strip(&p, &len);
	if (len > 0 && t->literal == 0)
		indent(t, t->depth);
	if (t->raw > 0)
		hr_buf_add(t->out, p, len);
	else
		put_escaped(t->out, p, len, false);
	if (len > 0 && t->literal == 0)
		hr_buf_addc(t->out, '\n');
	empty(t, &t->text);
}

/* ---- attributes ---- */

/* Returns true for attributes that are lists, whose extra blanks are dropped. */
static bool
is_list(const char *tag, const char *name)
{
	static const char *const all[] = {"class", "accesskey", "dropzone", NULL};
	static const char *const some[][2] = {{"a", "rel"}, {"a", "rev"}, {"link", "rel"},
	    {"link", "rev"}, {"td", "headers"}, {"th", "headers"}, {"form", "accept-charset"},
	    {"object", "archive"}, {"area", "rel"}, {"icon", "sizes"}, {"iframe", "sandbox"},
	    {"output", "for"}};
	size_t i;

	if (hr_is_one_of(name, all))
		return true;
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		if (strcmp(some[i][0], tag) == 0 && strcmp(some[i][1], name) == 0)
			return true;
	return false;
}

static void
put_words(struct hr_buf *b, const char *p, bool quote)
{
	const char *sep = "";
	size_t n;

	for (p += strspn(p, " \t\n\r\f\v"); *p != '\0'; p += n + strspn(p + n, " \t\n\r\f\v")) {
		n = strcspn(p, " \t\n\r\f\v");
		hr_buf_adds(b, sep);
		put_escaped(b, p, n, quote);
		sep = " ";
	}
}

static void
put_attribute(struct hr_buf *b, const char *tag, const char *name, const char *value)
{
	bool twice = strchr(value, '"') != NULL, both = twice && strchr(value, '\'') != NULL;
	char quote = twice && !both ? '\'' : '"';

	if (strcmp(tag, "meta") == 0 && strcmp(name, "charset") == 0)
		value = "utf-8";
	hr_buf_addf(b, " %s=%c", name, quote);
	if (is_list(tag, name))
		put_words(b, value, both);
	else
		put_escaped(b, value, strlen(value), both);
	hr_buf_addc(b, quote);
}

static int
by_name(const void *a, const void *b)
{
	const xmlChar *const *l = a, *const *r = b;

	return strcmp((const char *)*l, (const char *)*r);
}

static void
put_attributes(struct tidy *t, const char *tag, const xmlChar **given)
{
	const xmlChar **sorted;
	size_t n = 0, i;

	while (given != NULL && given[n] != NULL)
		n += 2;
	if (n == 0)
		return;
	sorted = reallocarray(NULL, n, sizeof(*sorted));
	if (sorted == NULL) {
		t->failed = true;
		return;
	}
	memcpy(sorted, given, n * sizeof(*sorted));
	qsort(sorted, n / 2, 2 * sizeof(*sorted), by_name);
	for (i = 0; i < n; i += 2)
		put_attribute(&t->open, tag, (const char *)sorted[i],
		    sorted[i + 1] != NULL ? (const char *)sorted[i + 1] : "");
	free(sorted);
}

/* ---- the parser's callbacks ---- */

static const char *
tag_name(const xmlChar *name)
{
	const char *tag = (const char *)name;
	size_t n = strlen(BR_HTML_KEPT);

	return strncmp(tag, BR_HTML_KEPT, n) == 0 && tag[n] != '\0' ? tag + n : tag;
}

static void
on_start(void *ctx, const xmlChar *name, const xmlChar **attributes)
{
	const char *tag = tag_name(name);
	struct tidy *t = ctx;

	flush_open(t);
	flush_text(t);
	if (t->depth == BR_HTML_DEPTH && t->out->fail == HR_OK)
		t->out->fail = HR_E_TOOLARGE;
	if (t->out->fail != HR_OK) {
		t->failed = true;
		xmlStopParser(t->parser);
		return;
	}
	free(t->open_name);
	t->open_name = strdup(tag);
	if (t->open_name == NULL) {
		t->failed = true;
		return;
	}
	hr_buf_addf(&t->open, "<%s", tag);
	put_attributes(t, tag, attributes);
	t->depth++;
	t->raw += is_raw(tag);
}

static void
on_end(void *ctx, const xmlChar *name)
{
	const char *tag = tag_name(name);
	struct tidy *t = ctx;
	bool was_literal;

	if (t->depth == 0 || t->failed)
		return;
	if (t->open.len > 0 && is_void(tag)) {
		t->depth--;
		if (t->literal == 0)
			indent(t, t->depth);
		hr_buf_add(t->out, t->open.p, t->open.len);
		hr_buf_adds(t->out, t->literal == 0 ? "/>\n" : "/>");
		empty(t, &t->open);
		return;
	}
	flush_open(t);
	flush_text(t);
	was_literal = t->literal > 0;
	if (t->literal == t->depth)
		t->literal = 0;
	t->depth--;
	t->raw -= is_raw(tag) && t->raw > 0;
	if (!was_literal)
		indent(t, t->depth);
	hr_buf_addf(t->out, "</%s>%s", tag, t->literal == 0 ? "\n" : "");
}

static void
on_text(void *ctx, const xmlChar *p, int len)
{
	struct tidy *t = ctx;

	flush_open(t);
	hr_buf_add(&t->text, p, (size_t)len);
}

/* Starts a comment or declaration: a snapshot has none, but its text may look like one. */
static void
begin_special(struct tidy *t)
{
	flush_open(t);
	flush_text(t);
	if (t->literal == 0)
		indent(t, t->depth);
}

static void
on_comment(void *ctx, const xmlChar *content)
{
	const char *p = (const char *)content;
	struct tidy *t = ctx;

	begin_special(t);
	if (t->literal == 0 && p[strspn(p, " \t\n\f\r")] == '\0')
		p = strchr(p, '\n') != NULL ? "\n" : " ";
	hr_buf_addf(t->out, "<!--%s-->%s", p, t->literal == 0 ? "\n" : "");
}

static void
on_instruction(void *ctx, const xmlChar *target, const xmlChar *data)
{
	struct tidy *t = ctx;

	begin_special(t);
	hr_buf_addf(t->out, "<?%s %s>%s", (const char *)target,
	    data != NULL ? (const char *)data : "", t->literal == 0 ? "\n" : "");
}

static void
on_doctype(void *ctx, const xmlChar *name, const xmlChar *public, const xmlChar *system)
{
	struct tidy *t = ctx;

	begin_special(t);
	hr_buf_addf(t->out, "<!DOCTYPE %s", name != NULL ? (const char *)name : " ");
	if (public != NULL)
		hr_buf_addf(t->out, " PUBLIC \"%s\"", (const char *)public);
	else if (system != NULL)
		hr_buf_adds(t->out, " SYSTEM");
	if (system != NULL)
		hr_buf_addf(t->out, " \"%s\"", (const char *)system);
	hr_buf_adds(t->out, ">\n");
}

static void __attribute__((format(printf, 2, 3))) on_fault(void *ctx, const char *fmt, ...)
{
	(void)ctx; /* the markup has faults */
	(void)fmt;
}

static int
feed(struct tidy *t, const char *p, size_t len)
{
	htmlSAXHandler sax = {.startElement = on_start,
	    .endElement = on_end,
	    .characters = on_text,
	    .ignorableWhitespace = on_text,
	    .cdataBlock = on_text,
	    .comment = on_comment,
	    .processingInstruction = on_instruction,
	    .internalSubset = on_doctype,
	    .warning = on_fault,
	    .error = on_fault,
	    .fatalError = on_fault};
	htmlParserCtxtPtr parser;

	if (len > INT_MAX)
		return -1;
	parser = htmlCreatePushParserCtxt(&sax, t, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);
	if (parser == NULL)
		return -1;
	t->parser = parser;
	(void)htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_NONET |
					     HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
					     HTML_PARSE_IGNORE_ENC | HTML_PARSE_COMPACT);
	/* libxml2 repairs bad markup; its warnings are dropped */
	(void)htmlParseChunk(parser, p, (int)len, 0);
	(void)htmlParseChunk(parser, NULL, 0, 1);
	if (parser->errNo == XML_ERR_NO_MEMORY)
		t->failed = true;
	if (parser->myDoc != NULL)
		xmlFreeDoc(parser->myDoc);
	htmlFreeParserCtxt(parser);
	return 0;
}

/* Removes characters at which the parser stops or changes the encoding. */
static void
clean(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len, *from = p;
	size_t n;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp > 0 && !hr_utf8_is_surrogate(cp))
			continue;
		hr_buf_add(b, from, (size_t)(p - from));
		hr_buf_adds(b, cp == 0 ? "" : "\xEF\xBF\xBD");
		from = p + n;
	}
	hr_buf_add(b, from, (size_t)(end - from));
}

/* Returns the end of what begins at p and includes `last`. */
static const char *
past(const char *p, const char *last)
{
	const char *found = strstr(p, last);

	return found != NULL ? found + strlen(last) : p + strlen(p);
}

/* Returns the end of a tag: a > in a quoted value does not end it. NULL: it has no end. */
static const char *
past_tag(const char *p)
{
	bool value = false;

	for (; *p != '\0' && *p != '>'; p++) {
		if (value && (*p == '"' || *p == '\'')) {
			p = strchr(p + 1, *p);
			if (p == NULL)
				return NULL;
		}
		value = *p == '=' || (value && strchr(" \t\n\r\f", *p) != NULL);
	}
	return *p == '>' ? p + 1 : p;
}

static bool
is_tag(const char *p, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(p + 1, name, n) == 0 && strchr(" \t\n\r\f>", p[n + 1]) != NULL;
}

/* Returns the end of a start tag, with its content if that is a script or style. NULL: none. */
static const char *
past_start(const char *p)
{
	const char *end = past_tag(p);

	if (end != NULL && is_tag(p, "script"))
		return strcasestr(end, "</script");
	if (end != NULL && is_tag(p, "style"))
		return strcasestr(end, "</style");
	return end;
}

/* Copies markup without its declarations: libxml2 before 2.13 makes text of <!x> and <![CDATA[x]]>,
 * and <!--> begins a comment there instead of being one. */
static void
drop_declarations(struct hr_buf *b, const char *p)
{
	const char *from = p, *next;

	while ((p = strchr(p, '<')) != NULL) {
		if ((p[1] | 0x20) >= 'a' && (p[1] | 0x20) <= 'z')
			next = past_start(p);
		else if (p[1] == '/' || p[1] == '?' || strncasecmp(p, "<!doctype", 9) == 0)
			next = past(p, ">");
		else if (strncmp(p, "<!--", 4) == 0 && p[4] != '>' && strncmp(p + 4, "->", 2) != 0)
			next = past(p + 4, "-->");
		else if (p[1] != '!')
			next = p + 1;
		else {
			hr_buf_add(b, from, (size_t)(p - from));
			hr_buf_adds(b, strncmp(p, "<!--", 4) == 0 ? "<!---->" : "");
			from = next = past(p, ">");
		}
		if (next == NULL)
			break;
		p = next;
	}
	hr_buf_adds(b, from);
}

int
br_html_tidy(const char *markup, size_t len, struct hr_buf *b, struct hr_err *err)
{
	struct tidy t = {.out = b};
	HR_BUF(cleaned, b->cap);
	HR_BUF(plain, b->cap);

	hr_buf_init(&t.text, b->cap);
	hr_buf_init(&t.open, b->cap);
	clean(&plain, markup, len);
	drop_declarations(&cleaned, hr_buf_str(&plain));
	if (plain.fail != HR_OK)
		cleaned.fail = plain.fail;
	if (cleaned.fail == HR_OK && feed(&t, hr_buf_str(&cleaned), cleaned.len) < 0)
		t.failed = true;
	flush_open(&t);
	flush_text(&t);
	if (b->fail == HR_OK)
		b->fail = t.text.fail != HR_OK   ? t.text.fail
			  : t.open.fail != HR_OK ? t.open.fail
						 : cleaned.fail;
	hr_buf_done(&t.text);
	hr_buf_done(&t.open);
	free(t.open_name);
	if (hr_buf_check(b, err) < 0)
		return -1;
	return t.failed ? hr_err_nomem(err) : 0;
}
