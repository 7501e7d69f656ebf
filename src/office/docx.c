/* Reads a text document into a page of HTML elements as Mammoth does, which markdown.c prints.
 * Style names make headings, numbering makes lists; only elements with content are made. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "office/office.h"
#include "office/office_int.h"

#define LEVELS 5              /* levels of lists that are shown as lists */
#define COLUMNS 1024          /* columns of a table whose merged cells are known */
#define FIELDS 32             /* open fields within each other whose links are known */
#define JOINED_MAX (8u << 20) /* more bytes than pointers to all paragraphs of a tree */

enum {
	STRONG = 1, /* the style of the run is "Strong" */
	BOLD = 2,
	ITALIC = 4,
	SUPER = 8,
	SUB = 16,
	STRUCK = 32,
};

static const char *const marks[] = {"strong", "strong", "em", "sup", "sub", "s"};

struct notes {
	struct tree *tree;
	struct rels rels;
};

struct docx {
	const struct parts *ps;
	const struct rels *links; /* relationships of the part that is read */
	struct rels rels;
	struct tree *main, *types;
	struct docx_styles styles;
	struct notes footnotes, endnotes;
	struct tree *html;
	struct node *page, *refs; /* refs: an element of html for each reference to a note */
	size_t nrefs;
	struct hr_buf code;        /* code of the field that is read */
	const char *field[FIELDS]; /* links of the open fields, NULL: another field */
	size_t fields;
	struct hr_buf joined; /* deleted paragraphs (struct node *), which the next one joins */
};

/* The block that content goes to; it is made when it has content. */
struct block {
	struct node *container, *made;
	const char *tag; /* NULL: an item of a list */
	bool ordered;
	unsigned level;
};

/* A link around content, perhaps within another link. */
struct link {
	const struct link *outer;
	const char *href;
};

struct run {
	const struct link *link;
	unsigned marks;
};

/* ---- the page ---- */

/* Returns the last child of parent if it is such an element, otherwise a new one. */
static struct node *
into(struct docx *d, struct node *parent, const char *name, const char *other, const char *href)
{
	struct node *last = parent != NULL ? parent->last : NULL;
	const char *v = node_attr(last, "href");

	if ((node_is(last, name) || (other != NULL && node_is(last, other))) &&
	    (href == NULL ? last->attrs == NULL : v != NULL && strcmp(v, href) == 0))
		return last;
	last = tree_put(d->html, parent, name);
	tree_set(d->html, last, "href", href);
	return last;
}

static struct node *
block_node(struct docx *d, struct block *b)
{
	struct node *n = b->container;
	unsigned i;

	if (b->made != NULL)
		return b->made;
	if (b->tag == NULL) {
		for (i = 0; i < b->level; i++)
			n = into(d, into(d, n, "ul", "ol", NULL), "li", NULL, NULL);
		n = into(d, n, b->ordered ? "ol" : "ul", NULL, NULL);
	}
	b->made = tree_put(d->html, n, b->tag != NULL ? b->tag : "li");
	return b->made;
}

static struct node *
into_link(struct docx *d, struct node *n, const struct link *l)
{
	return l != NULL ? into(d, into_link(d, n, l->outer), "a", NULL, l->href) : n;
}

/* Returns the element for content of a run: links, then marks, then the link of a field. */
static struct node *
place(struct docx *d, struct block *b, const struct run *r)
{
	struct node *n = into_link(d, block_node(d, b), r->link);
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if ((r->marks & (1u << i)) != 0)
			n = into(d, n, marks[i], NULL, NULL);
	for (i = d->fields < FIELDS ? d->fields : FIELDS; i > 0; i--)
		if (d->field[i - 1] != NULL)
			return into(d, n, "a", NULL, d->field[i - 1]);
	return n;
}

static void
add_text(struct docx *d, struct block *b, const struct run *r, const char *text)
{
	if (*text != '\0')
		tree_put_text(d->html, place(d, b, r), text);
}

/* ---- pictures, notes and fields ---- */

static void
add_image(struct docx *d, struct block *b, const struct run *r, const char *alt, const char *id)
{
	const char *target = rels_target(d->links, id), *dot, *type;
	const struct node *known;
	struct node *n;
	HR_BUF(name, HR_OFFICE_TEXT_MAX);

	if (target == NULL)
		return;
	dot = strrchr(target, '.');
	known = node_with(d->types != NULL ? tree_root(d->types) : NULL, "Default", "Extension",
	    dot != NULL ? dot + 1 : NULL);
	type = node_attr(known, "ContentType");
	hr_buf_addf(&name, "image/%s", dot != NULL ? dot + 1 : "png");
	n = tree_put(d->html, place(d, b, r), "img");
	tree_set(d->html, n, "alt", alt);
	tree_set(d->html, n, "type", type != NULL ? type : hr_buf_str(&name));
}

static void
drawing_read(struct docx *d, const struct node *n, struct block *b, const struct run *r)
{
	const struct node *about = node_child(n, "docPr"), *blip, *pic;
	const char *alt = node_attr(about, "descr"), *id;

	if (alt == NULL || alt[strspn(alt, " \t\r\n")] == '\0')
		alt = node_attr(about, "title");
	pic = node_child(node_child(node_child(n, "graphic"), "graphicData"), "pic");
	blip = node_child(node_child(pic, "blipFill"), "blip");
	id = node_attr(blip, "r:embed");
	add_image(d, b, r, alt, id != NULL ? id : node_attr(blip, "r:link"));
}

static const struct node *
find_note(const struct docx *d, const char *kind, const char *id)
{
	const struct tree *t = strcmp(kind, "footnote") == 0 ? d->footnotes.tree : d->endnotes.tree;

	return t != NULL ? node_with(tree_root(t), kind, "id", id) : NULL;
}

static void
note_reference(
    struct docx *d, struct block *b, const struct run *r, const char *kind, const char *id)
{
	struct node *a;
	HR_BUF(href, HR_OFFICE_TEXT_MAX);
	char text[32];

	if (id == NULL || find_note(d, kind, id) == NULL)
		return;
	a = tree_put(d->html, tree_put(d->html, place(d, b, r), "sup"), "a");
	hr_buf_addf(&href, "#%s-%s", kind, id);
	tree_set(d->html, a, "href", hr_buf_str(&href));
	(void)snprintf(text, sizeof(text), "[%zu]", ++d->nrefs);
	tree_put_text(d->html, a, text);
	tree_set(d->html, tree_put(d->html, d->refs, kind), "id", id);
}

/* Finds the link of the field whose code is complete, NULL for another field. Its end is at the
 * last quotation mark. */
static const char *
field_link(struct docx *d)
{
	char *p = d->code.len > 0 ? d->code.p : NULL, *end = p != NULL ? strrchr(p, '"') : NULL;
	struct node *n;
	bool inner;

	if (end == NULL)
		return NULL;
	p += strspn(p, " \t\r\n");
	if (strncmp(p, "HYPERLINK", 9) != 0)
		return NULL;
	p += 9 + strspn(p + 9, " \t\r\n");
	inner = strncmp(p, "\\l", 2) == 0;
	if (inner)
		p += 2 + strspn(p + 2, " \t\r\n");
	if (*p != '"' || p == end)
		return NULL;
	*end = '\0';
	if (inner)
		*p = '#';
	n = tree_put(d->html, d->refs, "link");
	tree_set(d->html, n, "href", inner ? p : p + 1);
	return node_attr(n, "href");
}

static void
field_read(struct docx *d, const char *type)
{
	if (type != NULL && strcmp(type, "begin") == 0) {
		if (d->fields < FIELDS)
			d->field[d->fields] = NULL;
		d->fields++;
		hr_buf_reset(&d->code);
	} else if (type != NULL && strcmp(type, "end") == 0 && d->fields > 0) {
		d->fields--;
	} else if (type != NULL && strcmp(type, "separate") == 0 && d->fields > 0 &&
		   d->fields <= FIELDS) {
		d->field[d->fields - 1] = field_link(d);
	}
}

/* ---- the content of a paragraph ---- */

static void paragraph_read(struct docx *d, const struct node *p, struct node *container);
static void table_read(struct docx *d, const struct node *table, struct node *container);
static void
content_read(struct docx *d, const struct node *top, struct block *b, const struct run *r);

static bool
is_one_of(const struct node *n, const char *const *names)
{
	while (*names != NULL && !node_is(n, *names))
		names++;
	return *names != NULL;
}

/* Returns true for an element that only holds others. All unknown elements are left out. */
static bool
is_open(const struct node *n)
{
	static const char *const names[] = {"ins", "object", "smartTag", "drawing", "group", "rect",
	    "roundrect", "shape", "textbox", "txbxContent", "sdtContent", "Fallback",
	    "AlternateContent", "sdt", NULL};

	return is_one_of(n, names);
}

static bool
is_on(const struct node *n)
{
	const char *v = node_attr(n, "val");

	return n != NULL && (v == NULL || (strcmp(v, "0") != 0 && strcmp(v, "false") != 0));
}

static void
run_read(struct docx *d, const struct node *n, struct block *b, const struct link *link)
{
	const struct node *props = node_child(n, "rPr"), *style;
	const char *vertical = node_attr(node_child(props, "vertAlign"), "val"), *name;
	struct run r = {.link = link};

	style = docx_style(&d->styles, node_attr(node_child(props, "rStyle"), "val"));
	name = node_attr(node_child(style, "name"), "val");
	r.marks = (name != NULL && strcasecmp(name, "strong") == 0 ? STRONG : 0u) |
		  (is_on(node_child(props, "b")) ? BOLD : 0u) |
		  (is_on(node_child(props, "i")) ? ITALIC : 0u) |
		  (is_on(node_child(props, "strike")) ? STRUCK : 0u);
	if (vertical != NULL && strcmp(vertical, "superscript") == 0)
		r.marks |= SUPER;
	else if (vertical != NULL && strcmp(vertical, "subscript") == 0)
		r.marks |= SUB;
	content_read(d, n, b, &r);
}

static void
link_read(struct docx *d, const struct node *n, struct block *b, const struct run *r)
{
	const char *target = rels_target(d->links, node_attr(n, "r:id")),
		   *anchor = node_attr(n, "anchor");
	struct link link = {.outer = r->link};
	struct run inner = {&link, r->marks};
	HR_BUF(href, HR_OFFICE_TEXT_MAX);

	if (target != NULL)
		hr_buf_add(&href, target, anchor != NULL ? strcspn(target, "#") : strlen(target));
	if (anchor != NULL)
		hr_buf_addf(&href, "#%s", anchor);
	link.href = hr_buf_str(&href);
	content_read(d, n, b, href.len > 0 ? &inner : r);
}

/* Reads a structured tag. A check box in one replaces its sign, the content of the tag. */
static void
tag_read(struct docx *d, const struct node *n, struct block *b, const struct run *r)
{
	if (node_child(node_child(n, "sdtPr"), "checkbox") != NULL)
		(void)tree_put(d->html, place(d, b, r), "input");
	else
		content_read(d, node_child(n, "sdtContent"), b, r);
}

static void
inline_read(struct docx *d, const struct node *n, struct block *b, const struct run *r)
{
	const char *type = node_attr(n, "type"), *name = node_attr(n, "name");
	const struct node *t;

	if (node_is(n, "t")) {
		for (t = n->first; t != NULL; t = t->next)
			add_text(d, b, r, t->text != NULL ? t->text : "");
	} else if (node_is(n, "tab")) {
		add_text(d, b, r, "\t");
	} else if (node_is(n, "br") && (type == NULL || strcmp(type, "textWrapping") == 0)) {
		(void)tree_put(d->html, place(d, b, r), "br");
	} else if (node_is(n, "noBreakHyphen")) {
		add_text(d, b, r, "\xe2\x80\x91");
	} else if (node_is(n, "softHyphen")) {
		add_text(d, b, r, "\xc2\xad");
	} else if (node_is(n, "inline") || node_is(n, "anchor")) {
		drawing_read(d, n, b, r);
	} else if (node_is(n, "imagedata")) {
		add_image(d, b, r, node_attr(n, "title"), node_attr(n, "r:id"));
	} else if (node_is(n, "footnoteReference")) {
		note_reference(d, b, r, "footnote", node_attr(n, "id"));
	} else if (node_is(n, "endnoteReference")) {
		note_reference(d, b, r, "endnote", node_attr(n, "id"));
	} else if (node_is(n, "fldChar")) {
		field_read(d, node_attr(n, "fldCharType"));
	} else if (node_is(n, "instrText")) {
		for (t = n->first; t != NULL; t = t->next)
			hr_buf_adds(&d->code, t->text != NULL ? t->text : "");
	} else if (node_is(n, "bookmarkStart") && name != NULL && strcmp(name, "_GoBack") != 0) {
		tree_set(d->html, tree_put(d->html, place(d, b, r), "a"), "id", name);
	}
}

static void
content_read(struct docx *d, const struct node *top, struct block *b, const struct run *r)
{
	const struct node *n = top != NULL ? top->first : NULL;

	for (; n != NULL && tree_check(d->html, NULL) == 0; n = n->next) {
		if (node_is(n, "p"))
			paragraph_read(d, n, b->container);
		else if (node_is(n, "tbl"))
			table_read(d, n, b->container);
		else if (node_is(n, "r"))
			run_read(d, n, b, r->link);
		else if (node_is(n, "hyperlink"))
			link_read(d, n, b, r);
		else if (node_is(n, "sdt"))
			tag_read(d, n, b, r);
		else if (is_open(n))
			content_read(d, n, b, r);
		else
			inline_read(d, n, b, r);
	}
}

/* Reads elements below top into a container, outside any paragraph. */
static void
body_read(struct docx *d, const struct node *top, struct node *container)
{
	struct block b = {.container = container, .made = container};
	struct run r = {.link = NULL};

	content_read(d, top, &b, &r);
}

/* ---- blocks ---- */

/* Reads the old pictures and text boxes of a paragraph, which follow it. */
static void
boxes_read(struct docx *d, const struct node *p, struct node *container)
{
	const struct node *n;

	for (n = p->first; n != NULL;
	     n = node_next(n, p, is_open(n) || node_is(n, "r") || node_is(n, "hyperlink")))
		if (node_is(n, "pict"))
			body_read(d, n, container);
}

/* Reads a paragraph after the deleted ones before it; a deleted one waits for the next. */
static void
paragraph_read(struct docx *d, const struct node *p, struct node *container)
{
	const struct node *props = node_child(p, "pPr"), *level;
	const char *id = node_attr(node_child(props, "pStyle"), "val"), *format;
	struct block b = {.container = container};
	struct run r = {.link = NULL};
	HR_BUF(joined, JOINED_MAX);
	const struct node *const *all;
	size_t i;

	hr_buf_add(&d->joined, &p, sizeof(p));
	if (node_child(node_child(props, "rPr"), "del") != NULL)
		return;
	joined = d->joined;
	d->joined = (struct hr_buf){.cap = JOINED_MAX, .fail = joined.fail};
	b.tag = docx_style_tag(&d->styles, id);
	level = b.tag == NULL ? docx_level(&d->styles, props, id) : NULL;
	if (level != NULL) {
		format = node_attr(level, "ilvl");
		b.level = format != NULL ? (unsigned)strtoul(format, NULL, 10) : 0;
		format = node_attr(node_child(level, "numFmt"), "val");
		b.ordered = format == NULL || strcmp(format, "bullet") != 0;
	}
	if (b.tag == NULL && (level == NULL || b.level >= LEVELS))
		b.tag = "p";
	all = (const void *)hr_buf_str(&joined);
	for (i = 0; i < joined.len / sizeof(p); i++)
		content_read(d, all[i], &b, &r);
	for (i = 0; i < joined.len / sizeof(p); i++)
		boxes_read(d, all[i], container);
}

/* Reads a row. A cell that continues the one above it is left out: started has the columns that
 * have a cell to continue. */
static void
row_read(struct docx *d, const struct node *row, struct node *part, const char *tag, bool *started)
{
	struct node *tr = tree_put(d->html, part, "tr"), *td;
	const struct node *cell, *props, *merge;
	const char *span, *how;
	size_t column = 0;

	for (cell = row->first; cell != NULL; cell = node_next(cell, row, is_open(cell))) {
		if (!node_is(cell, "tc"))
			continue;
		props = node_child(cell, "tcPr");
		merge = node_child(props, "vMerge");
		how = node_attr(merge, "val");
		span = node_attr(node_child(props, "gridSpan"), "val");
		if (merge == NULL || (how != NULL && strcmp(how, "continue") != 0) ||
		    column >= COLUMNS || !started[column]) {
			if (column < COLUMNS)
				started[column] = true;
			td = tree_put(d->html, tr, tag);
			tree_set(d->html, td, "colspan", span);
			body_read(d, cell, td);
		}
		column += span != NULL ? strtoul(span, NULL, 10) & 0xffff : 1;
	}
}

static void
table_read(struct docx *d, const struct node *table, struct node *container)
{
	struct node *all = tree_put(d->html, container, "table"), *part = NULL;
	const struct node *row, *props;
	bool started[COLUMNS] = {false}, header = true, is_header;

	for (row = table->first; row != NULL; row = node_next(row, table, is_open(row))) {
		props = node_child(row, "trPr");
		if (!node_is(row, "tr") || node_child(props, "del") != NULL)
			continue;
		is_header = node_child(props, "tblHeader") != NULL;
		if (part == NULL)
			part = is_header ? tree_put(d->html, all, "thead") : all;
		else if (header && !is_header)
			part = tree_put(d->html, all, "tbody");
		header = header && is_header;
		row_read(d, row, part, header ? "th" : "td", started);
	}
}

/* Puts the notes at the end, each with a link to its reference. */
static void
notes_read(struct docx *d)
{
	struct node *list = tree_put(d->html, d->page, "ol"), *li, *p, *a;
	const struct node *ref, *last = d->refs->last;
	HR_BUF(href, HR_OFFICE_TEXT_MAX);
	const char *id;

	for (ref = d->refs->first; ref != NULL && tree_check(d->html, NULL) == 0; ref = ref->next) {
		id = node_attr(ref, "id");
		if (id != NULL) {
			d->fields = d->joined.len = 0; /* that the text before left open */
			li = tree_put(d->html, list, "li");
			d->links =
			    node_is(ref, "footnote") ? &d->footnotes.rels : &d->endnotes.rels;
			body_read(d, find_note(d, ref->name, id), li);
			p = into(d, li, "p", NULL, NULL);
			tree_put_text(d->html, p, " ");
			a = tree_put(d->html, p, "a");
			hr_buf_reset(&href);
			hr_buf_addf(&href, "#%s-ref-%s", ref->name, id);
			tree_set(d->html, a, "href", hr_buf_str(&href));
			tree_put_text(d->html, a, "\xe2\x86\x91");
		}
		if (ref == last)
			break; /* references in notes have no notes */
	}
}

/* ---- the document ---- */

static int
notes_open(const struct docx *d, const char *type, struct notes *n, struct hr_err *err)
{
	const char *name = rels_of_type(&d->rels, type);

	if (tree_maybe(d->ps, name, &n->tree, err) < 0)
		return -1;
	return n->tree != NULL ? rels_open(&n->rels, d->ps, name, err) : 0;
}

static int
docx_open(struct docx *d, const char *part, struct hr_err *err)
{
	d->main = tree_of(d->ps, part, err);
	if (d->main == NULL || rels_open(&d->rels, d->ps, part, err) < 0 ||
	    tree_maybe(d->ps, "[Content_Types].xml", &d->types, err) < 0 ||
	    tree_maybe(d->ps, rels_of_type(&d->rels, "styles"), &d->styles.styles, err) < 0 ||
	    tree_maybe(d->ps, rels_of_type(&d->rels, "numbering"), &d->styles.numbering, err) < 0 ||
	    notes_open(d, "footnotes", &d->footnotes, err) < 0 ||
	    notes_open(d, "endnotes", &d->endnotes, err) < 0)
		return -1;
	d->html = tree_new("html", err);
	if (d->html == NULL)
		return -1;
	d->page = tree_put(d->html, tree_root(d->html), "body");
	d->refs = tree_put(d->html, tree_root(d->html), "refs");
	return tree_check(d->html, err);
}

static void
docx_close(struct docx *d)
{
	tree_done(&d->main);
	tree_done(&d->styles.styles);
	tree_done(&d->styles.numbering);
	tree_done(&d->types);
	tree_done(&d->footnotes.tree);
	tree_done(&d->endnotes.tree);
	tree_done(&d->html);
	rels_done(&d->rels);
	rels_done(&d->footnotes.rels);
	rels_done(&d->endnotes.rels);
	hr_buf_done(&d->code);
	hr_buf_done(&d->joined);
}

int
docx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err)
{
	HR_CLEAN(docx_close)
	struct docx d = {.ps = ps,
	    .links = &d.rels,
	    .code = {.cap = HR_OFFICE_TEXT_MAX},
	    .joined = {.cap = JOINED_MAX}};

	if (docx_open(&d, part, err) < 0)
		return -1;
	body_read(&d, node_child(tree_root(d.main), "body"), d.page);
	notes_read(&d);
	if (tree_check(d.html, err) < 0 || hr_buf_check(&d.joined, err) < 0)
		return -1;
	office_add_markdown(out, d.page);
	return 0;
}
