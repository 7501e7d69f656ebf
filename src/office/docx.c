/* Converts a text document to Markdown as Mammoth and Markdownify together do. Paragraphs are
 * blocks with an empty line between; style names make headings, numbering makes lists. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "office/office_int.h"
#include "office/office.h"

#define LEVELS 9

enum {
	BOLD = 1,
	ITALIC = 2,
	STRUCK = 4,
};

/* A piece of a paragraph; its text is in inlines.text. */
struct piece {
	size_t from, to;
	unsigned flags;
	const char *href;
};

struct inlines {
	struct hr_buf text;
	struct piece *v;
	size_t n, room;
	bool nomem;
};

struct docx {
	const struct parts *ps;
	struct hr_buf *out;
	struct rels rels;
	struct tree *main, *styles, *numbering;
	unsigned count[LEVELS]; /* numbers of the open list by level, 0: none at this level */
	bool in_list, ordered[LEVELS];
	size_t indent[LEVELS + 1];
};

/* ---- pieces ---- */

static void
inlines_init(struct inlines *in)
{
	*in = (struct inlines){.v = NULL};
	hr_buf_init(&in->text, HR_OFFICE_TEXT_MAX);
}

static void
inlines_done(struct inlines *in)
{
	hr_buf_done(&in->text);
	free(in->v);
}

/* Makes the text added since `from` a piece. */
static void
inlines_end(struct inlines *in, size_t from, unsigned flags, const char *href)
{
	struct piece *p;

	if (in->text.len == from)
		return;
	if (in->n == in->room) {
		p = realloc(in->v, (in->room * 2 + 16) * sizeof(*p));
		if (p == NULL) {
			in->nomem = true;
			return;
		}
		in->v = p;
		in->room = in->room * 2 + 16;
	}
	in->v[in->n++] = (struct piece){from, in->text.len, flags, href};
}

static bool
piece_has(const struct piece *p, unsigned level)
{
	return level == 0 ? p->href != NULL : (p->flags & (1u << (level - 1))) != 0;
}

/* Renders pieces; those with the same mark share it, and blanks at its ends go outside. */
static void
inlines_render(const struct inlines *in, size_t from, size_t to, unsigned level, struct hr_buf *out)
{
	static const char *const marks[] = {"", "**", "*", "~~"};
	size_t i, end, head, tail;
	struct hr_buf b;

	for (i = from; i < to; i = end) {
		for (end = i + 1; end < to && level < 4 &&
				  piece_has(&in->v[end], level) == piece_has(&in->v[i], level) &&
				  (level > 0 || in->v[end].href == in->v[i].href);)
			end++;
		if (level == 4) {
			hr_buf_add(out, hr_buf_str(&in->text) + in->v[i].from,
			    in->v[i].to - in->v[i].from);
			continue;
		}
		if (!piece_has(&in->v[i], level)) {
			inlines_render(in, i, end, level + 1, out);
			continue;
		}
		hr_buf_init(&b, HR_OFFICE_TEXT_MAX);
		inlines_render(in, i, end, level + 1, &b);
		for (head = 0; head < b.len && strchr(" \n", b.p[head]) != NULL;)
			head++;
		for (tail = b.len; tail > head && strchr(" \n", b.p[tail - 1]) != NULL;)
			tail--;
		hr_buf_add(out, hr_buf_str(&b), head);
		if (tail > head) {
			hr_buf_adds(out, level == 0 ? "[" : marks[level]);
			hr_buf_add(out, b.p + head, tail - head);
			if (level == 0)
				hr_buf_addf(out, "](%s)", in->v[i].href);
			else
				hr_buf_adds(out, marks[level]);
		}
		hr_buf_add(out, hr_buf_str(&b) + tail, b.len - tail);
		if (b.fail != HR_OK && out->fail == HR_OK)
			out->fail = b.fail;
		hr_buf_done(&b);
	}
}

/* ---- the content of a paragraph ---- */

static bool
is_on(const struct node *n)
{
	const char *v = node_attr(n, "val");

	return n != NULL && (v == NULL || (strcmp(v, "0") != 0 && strcasecmp(v, "false") != 0 &&
					      strcasecmp(v, "off") != 0 && strcmp(v, "none") != 0));
}

static void
add_image(struct inlines *in, const char *alt, const char *target)
{
	const char *dot = target != NULL ? strrchr(target, '.') : NULL;
	const char *type = dot != NULL ? dot + 1 : "png";

	if (strcasecmp(type, "jpg") == 0)
		type = "jpeg";
	hr_buf_adds(&in->text, "![");
	hr_buf_adds(&in->text, alt != NULL ? alt : "");
	hr_buf_addf(&in->text, "](data:image/%.16s;base64...)", type);
}

static void
drawing_read(const struct docx *d, const struct node *n, struct inlines *in)
{
	const struct node *blip = node_below(n, "blip"), *old = node_below(n, "imagedata"),
			  *about = node_below(n, "docPr");
	size_t from = in->text.len;
	const char *alt;

	if (blip != NULL) {
		alt = node_attr(about, "descr");
		add_image(in, alt != NULL ? alt : node_attr(about, "title"),
		    rels_target(&d->rels, node_attr(blip, "r:embed")));
	} else if (old != NULL) {
		add_image(
		    in, node_attr(old, "title"), rels_target(&d->rels, node_attr(old, "r:id")));
	}
	inlines_end(in, from, 0, NULL);
}

static void
run_read(const struct docx *d, const struct node *run, const char *href, struct inlines *in)
{
	const struct node *props = node_child(run, "rPr"), *n, *t;
	size_t from = in->text.len;
	unsigned flags = (is_on(node_child(props, "b")) ? BOLD : 0u) |
			 (is_on(node_child(props, "i")) ? ITALIC : 0u) |
			 (is_on(node_child(props, "strike")) ? STRUCK : 0u);

	for (n = run->first; n != NULL; n = n->next) {
		if (node_is(n, "t")) {
			for (t = n->first; t != NULL; t = t->next)
				if (t->text != NULL)
					office_add_flat(&in->text, t->text, strlen(t->text), true);
		} else if (node_is(n, "tab")) {
			hr_buf_addc(&in->text, ' ');
		} else if (node_is(n, "br") || node_is(n, "cr")) {
			hr_buf_addc(&in->text, '\n');
		} else if (node_is(n, "noBreakHyphen")) {
			hr_buf_adds(&in->text, "\xe2\x80\x91");
		} else if (node_is(n, "drawing") || node_is(n, "pict") || node_is(n, "object")) {
			inlines_end(in, from, flags, href);
			drawing_read(d, n, in);
			from = in->text.len;
		}
	}
	inlines_end(in, from, flags, href);
}

/* Returns true for a node to skip: bare text, deleted or moved-away text, a text box, properties of
 * a paragraph, and the newer form of content that has an older form, too. */
static bool
is_skipped(const struct node *n)
{
	return n->name == NULL || node_is(n, "del") || node_is(n, "moveFrom") ||
	       node_is(n, "Choice") || node_is(n, "txbxContent") || node_is(n, "pPr");
}

static void
inlines_read(const struct docx *d, const struct node *top, const char *href, struct inlines *in)
{
	const char *inner;
	struct node *n;

	for (n = top->first; n != NULL; n = n->next) {
		if (is_skipped(n))
			continue;
		if (node_is(n, "r")) {
			run_read(d, n, href, in);
		} else if (node_is(n, "hyperlink")) {
			inner = rels_target(&d->rels, node_attr(n, "r:id"));
			inlines_read(d, n, inner != NULL ? inner : href, in);
		} else {
			inlines_read(d, n, href, in);
		}
	}
}

/* ---- styles and numbering ---- */

static const struct node *
find_by_attr(const struct node *top, const char *name, const char *attr, const char *value)
{
	const struct node *n = top != NULL ? top->first : NULL;
	const char *v;

	for (; n != NULL && value != NULL; n = n->next)
		if (node_is(n, name) && (v = node_attr(n, attr)) != NULL && strcmp(v, value) == 0)
			return n;
	return NULL;
}

/* Returns 1 to 6 for "Heading 1" to "Heading 6", a style's name or id; otherwise 0. */
static unsigned
heading_level(const char *style)
{
	if (style == NULL || strncasecmp(style, "heading", 7) != 0)
		return 0;
	style += 7;
	if (*style == ' ')
		style++;
	return style[0] >= '1' && style[0] <= '6' && style[1] == '\0' ? (unsigned)(style[0] - '0')
								      : 0;
}

struct list_kind {
	bool is, ordered;
	unsigned level;
};

static struct list_kind
level_kind(const struct node *lvl, unsigned level)
{
	const char *format = node_attr(node_child(lvl, "numFmt"), "val");

	return (struct list_kind){true, format != NULL && strcmp(format, "bullet") != 0, level};
}

static struct list_kind
number_kind(const struct docx *d, const struct node *props)
{
	const struct node *root = d->numbering != NULL ? tree_root(d->numbering) : NULL, *num, *lvl;
	const char *id = node_attr(node_child(props, "numId"), "val"),
		   *level = node_attr(node_child(props, "ilvl"), "val");
	unsigned l;

	if (level == NULL)
		level = "0";
	num = find_by_attr(root, "num", "numId", id);
	lvl = find_by_attr(root, "abstractNum", "abstractNumId",
	    node_attr(node_child(num, "abstractNumId"), "val"));
	lvl = find_by_attr(lvl, "lvl", "ilvl", level);
	if (lvl == NULL)
		return (struct list_kind){false, false, 0};
	l = (unsigned)strtoul(level, NULL, 10);
	return level_kind(lvl, l < LEVELS ? l : LEVELS - 1);
}

/* Finds a paragraph's list: by its own numbering, or by that of its style, which a level of the
 * numbering may name in turn. */
static struct list_kind
paragraph_list(
    const struct docx *d, const struct node *props, const char *id, const struct node *style)
{
	const struct node *own = node_child(props, "numPr"), *abstract, *lvl;
	const char *named, *level;
	unsigned long l;

	if (own != NULL)
		return number_kind(d, own);
	abstract = d->numbering != NULL ? tree_root(d->numbering)->first : NULL;
	for (; id != NULL && abstract != NULL; abstract = abstract->next)
		for (lvl = abstract->first; lvl != NULL; lvl = lvl->next) {
			named = node_attr(node_child(lvl, "pStyle"), "val");
			level = node_attr(lvl, "ilvl");
			if (named == NULL || level == NULL || strcmp(named, id) != 0)
				continue;
			l = strtoul(level, NULL, 10);
			return level_kind(lvl, l < LEVELS ? (unsigned)l : LEVELS - 1);
		}
	return number_kind(d, node_child(node_child(style, "pPr"), "numPr"));
}

/* ---- blocks ---- */

static void
end_list(struct docx *d)
{
	if (d->in_list)
		hr_buf_addc(d->out, '\n');
	d->in_list = false;
	memset(d->count, 0, sizeof(d->count));
}

static void
add_item(struct docx *d, struct list_kind k, const struct hr_buf *text)
{
	const char *p = hr_buf_str(text), *next;
	size_t start, i;

	for (i = k.level + 1; i < LEVELS; i++)
		d->count[i] = 0;
	if (d->in_list && d->count[k.level] > 0 && d->ordered[k.level] != k.ordered) {
		if (k.level == 0)
			hr_buf_addc(d->out, '\n');
		d->count[k.level] = 0;
	}
	d->in_list = true;
	d->ordered[k.level] = k.ordered;
	for (i = 0; i < d->indent[k.level]; i++)
		hr_buf_addc(d->out, ' ');
	start = d->out->len;
	d->count[k.level]++;
	if (k.ordered)
		hr_buf_addf(d->out, "%u. ", d->count[k.level]);
	else
		hr_buf_addf(d->out, "%c ", "*+-"[k.level % 3]);
	for (i = k.level + 1; i <= LEVELS; i++)
		d->indent[i] = d->indent[k.level] + (d->out->len - start);
	for (; (next = strchr(p, '\n')) != NULL; p = next + 1) {
		hr_buf_add(d->out, p, (size_t)(next - p) + 1);
		for (i = 0; i < d->indent[k.level + 1]; i++)
			hr_buf_addc(d->out, ' ');
	}
	hr_buf_adds(d->out, p);
	hr_buf_addc(d->out, '\n');
}

static int body_read(struct docx *d, const struct node *body, struct hr_err *err);

static int
boxes_read(struct docx *d, const struct node *p, struct hr_err *err)
{
	const struct node *n;
	bool inside;

	for (n = p->first; n != NULL; n = node_next(n, p, inside)) {
		inside = !is_skipped(n);
		if (node_is(n, "txbxContent") && body_read(d, n, err) < 0)
			return -1;
	}
	return 0;
}

static int
paragraph_text(const struct docx *d, const struct node *p, struct hr_buf *text, struct hr_err *err)
{
	HR_CLEAN(inlines_done) struct inlines in = {0};
	int r = 0;

	inlines_init(&in);
	inlines_read(d, p, NULL, &in);
	inlines_render(&in, 0, in.n, 0, text);
	office_trim(text);
	if (in.nomem || in.text.fail == HR_E_NOMEM || text->fail == HR_E_NOMEM)
		r = hr_err_nomem(err);
	return r;
}

static int
paragraph_read(struct docx *d, const struct node *p, struct hr_err *err)
{
	const struct node *props = node_child(p, "pPr"), *style;
	const char *id = node_attr(node_child(props, "pStyle"), "val"), *shown;
	unsigned level = heading_level(id);
	struct list_kind list;
	HR_BUF(text, HR_OFFICE_TEXT_MAX);
	int r;

	style =
	    d->styles != NULL ? find_by_attr(tree_root(d->styles), "style", "styleId", id) : NULL;
	if (level == 0)
		level = heading_level(node_attr(node_child(style, "name"), "val"));
	r = paragraph_text(d, p, &text, err);
	shown = hr_buf_str(&text);
	shown += strspn(shown, " \n");
	if (r == 0 && *shown != '\0') {
		list = paragraph_list(d, props, id, style);
		if (level == 0 && list.is) {
			add_item(d, list, &text);
		} else {
			end_list(d);
			if (level > 0)
				hr_buf_addf(d->out, "%.*s ", (int)level, "######");
			if (level > 0)
				office_add_flat(d->out, shown, strlen(shown), false);
			else
				hr_buf_adds(d->out, shown);
			hr_buf_adds(d->out, "\n\n");
		}
	}
	return r == 0 ? boxes_read(d, p, err) : r;
}

/* ---- tables ---- */

/* Puts all paragraphs of a cell into one line. */
static int
cell_read(struct docx *d, const struct node *cell, struct hr_err *err)
{
	const struct node *n;
	struct hr_buf text;
	const char *span = node_attr(node_child(node_child(cell, "tcPr"), "gridSpan"), "val");
	unsigned long columns = span != NULL ? strtoul(span, NULL, 10) : 1;
	int r = 0;

	hr_buf_addc(d->out, ' ');
	for (n = cell->first; n != NULL && r == 0;
	     n = node_next(n, cell, !is_skipped(n) && !node_is(n, "p"))) {
		if (!node_is(n, "p"))
			continue;
		hr_buf_init(&text, HR_OFFICE_TEXT_MAX);
		r = paragraph_text(d, n, &text, err);
		if (text.len > 0) {
			office_add_flat(d->out, text.p, text.len, false);
			hr_buf_addc(d->out, ' ');
		}
		hr_buf_done(&text);
	}
	if (d->out->len > 0 && d->out->p[d->out->len - 1] != ' ')
		hr_buf_addc(d->out, ' ');
	hr_buf_addc(d->out, '|');
	for (; columns > 1 && d->out->fail == HR_OK; columns--)
		hr_buf_adds(d->out, "  |");
	return r;
}

static size_t
row_columns(const struct node *row)
{
	const struct node *n;
	const char *span;
	size_t columns = 0;

	for (n = row != NULL ? row->first : NULL; n != NULL;
	     n = node_next(n, row, node_is(n, "sdt") || node_is(n, "sdtContent")))
		if (node_is(n, "tc")) {
			span = node_attr(node_child(node_child(n, "tcPr"), "gridSpan"), "val");
			columns += span != NULL ? strtoul(span, NULL, 10) & 0xffff : 1;
		}
	return columns;
}

static int
table_read(struct docx *d, const struct node *table, struct hr_err *err)
{
	const struct node *row, *cell, *first = node_below(table, "tr");
	size_t columns = row_columns(first), i;
	bool header = is_on(node_child(node_child(first, "trPr"), "tblHeader"));

	end_list(d);
	if (first == NULL)
		return 0;
	if (!header) {
		hr_buf_addc(d->out, '|');
		for (i = 0; i < columns && d->out->fail == HR_OK; i++)
			hr_buf_adds(d->out, "  |");
		hr_buf_addc(d->out, '\n');
		office_add_rule(d->out, columns);
	}
	for (row = table->first; row != NULL;
	     row = node_next(row, table, !node_is(row, "tr") && !is_skipped(row))) {
		if (!node_is(row, "tr"))
			continue;
		hr_buf_addc(d->out, '|');
		for (cell = row->first; cell != NULL;
		     cell =
			 node_next(cell, row, node_is(cell, "sdt") || node_is(cell, "sdtContent")))
			if (node_is(cell, "tc") && cell_read(d, cell, err) < 0)
				return -1;
		hr_buf_addc(d->out, '\n');
		if (row == first && header)
			office_add_rule(d->out, columns);
	}
	hr_buf_addc(d->out, '\n');
	return 0;
}

static int
body_read(struct docx *d, const struct node *body, struct hr_err *err)
{
	const struct node *n;
	int r = 0;

	for (n = body->first; n != NULL && r == 0 && d->out->fail == HR_OK; n = n->next) {
		if (node_is(n, "p"))
			r = paragraph_read(d, n, err);
		else if (node_is(n, "tbl"))
			r = table_read(d, n, err);
		else if (!is_skipped(n))
			r = body_read(d, n, err);
	}
	return r;
}

/* Reads the part of a relationship type. Returns 0, with *ret NULL if there is none. */
static int
side_part(const struct docx *d, const char *type, struct tree **ret, struct hr_err *err)
{
	const char *name = rels_of_type(&d->rels, type);
	const struct hr_buf *part = name != NULL ? parts_find(d->ps, name) : NULL;

	*ret = NULL;
	return part == NULL || (*ret = tree_read(part, err)) != NULL ? 0 : -1;
}

int
docx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err)
{
	struct docx d = {.ps = ps, .out = out};
	int r = -1;

	d.main = tree_of(ps, part, err);
	if (d.main != NULL && rels_open(&d.rels, ps, part, err) == 0 &&
	    side_part(&d, "styles", &d.styles, err) == 0 &&
	    side_part(&d, "numbering", &d.numbering, err) == 0)
		r = body_read(&d, tree_root(d.main), err);
	end_list(&d);
	office_trim(out);
	tree_done(&d.main);
	tree_done(&d.styles);
	tree_done(&d.numbering);
	rels_done(&d.rels);
	return r;
}
