/* Converts slides to Markdown: titles, the text of shapes, tables, names of pictures, notes. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "base/text/utf8.h"
#include "office/office.h"
#include "office/office_int.h"

/* Prints the paragraphs of a text body, one per line; a line break is a vertical tab, as in the
 * original. */
static void
body_text(const struct node *body, struct hr_buf *out)
{
	const struct node *p, *n;
	bool first = true;

	for (p = body != NULL ? body->first : NULL; p != NULL; p = p->next) {
		if (!node_is(p, "p"))
			continue;
		if (!first)
			hr_buf_addc(out, '\n');
		first = false;
		for (n = p->first; n != NULL; n = node_next(n, p, true)) {
			if (n->text != NULL && node_is(n->parent, "t"))
				hr_buf_adds(out, n->text);
			else if (node_is(n, "br"))
				hr_buf_addc(out, '\v');
		}
	}
}

/* Returns true for a placeholder without a number of its own, as titles are. */
static bool
is_title(const struct node *shape)
{
	const struct node *ph = node_below(node_child(shape, "nvSpPr"), "ph");
	const char *number = node_attr(ph, "idx");

	return ph != NULL && (number == NULL || strcmp(number, "0") == 0);
}

static void
shape_read(const struct node *shape, bool title, struct hr_buf *out)
{
	HR_BUF(text, HR_OFFICE_TEXT_MAX);
	const char *p;

	body_text(node_child(shape, "txBody"), &text);
	p = hr_buf_str(&text);
	if (title) {
		hr_buf_adds(out, "# ");
		p += hr_utf8_lstrip(p, text.len);
	}
	hr_buf_adds(out, p);
	hr_buf_addc(out, '\n');
}

static void
table_read(const struct node *table, struct hr_buf *out)
{
	const struct node *row, *cell;
	struct hr_buf text;
	const char *p;
	size_t columns, len;
	bool first = true;

	hr_buf_addc(out, '\n');
	for (row = table->first; row != NULL; row = row->next) {
		if (!node_is(row, "tr"))
			continue;
		hr_buf_addc(out, '|');
		columns = 0;
		for (cell = row->first; cell != NULL; cell = cell->next) {
			if (!node_is(cell, "tc"))
				continue;
			hr_buf_init(&text, HR_OFFICE_TEXT_MAX);
			body_text(node_child(cell, "txBody"), &text);
			p = hr_buf_str(&text);
			len = text.len;
			hr_utf8_strip(&p, &len);
			hr_buf_addc(out, ' ');
			office_add_flat(out, p, len, true);
			hr_buf_adds(out, " |");
			hr_buf_done(&text);
			columns++;
		}
		hr_buf_addc(out, '\n');
		if (first)
			office_add_rule(out, columns);
		first = false;
	}
}

static void
picture_read(const struct node *picture, struct hr_buf *out)
{
	const struct node *about = node_below(picture, "cNvPr");
	const char *alt = node_attr(about, "descr"), *name = node_attr(about, "name");

	if (name == NULL)
		name = "";
	hr_buf_adds(out, "\n![");
	hr_buf_adds(out, alt != NULL && *alt != '\0' ? alt : name);
	hr_buf_adds(out, "](");
	for (; *name != '\0'; name++)
		if (isalnum((unsigned char)*name) || *name == '_' || (unsigned char)*name >= 0x80)
			hr_buf_addc(out, *name);
	hr_buf_adds(out, ".jpg)\n");
}

/* Prints the shapes of a slide. The original shows neither the shapes of a group nor films. */
static void
shapes_read(const struct node *tree, struct hr_buf *out)
{
	const struct node *n, *table;
	bool titled = false, title;

	for (n = tree->first; n != NULL && out->fail == HR_OK; n = n->next) {
		if (node_is(n, "sp")) {
			title = !titled && is_title(n);
			titled = titled || title;
			shape_read(n, title, out);
		} else if (node_is(n, "pic")) {
			if (node_below(node_child(n, "nvPicPr"), "videoFile") == NULL)
				picture_read(n, out);
		} else if (node_is(n, "graphicFrame")) {
			table = node_below(n, "tbl");
			if (table != NULL)
				table_read(table, out);
		}
	}
}

static int
notes_read(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err)
{
	HR_CLEAN(tree_done) struct tree *t = tree_of(ps, part, err);
	const struct node *n, *root;
	const char *type;

	if (t == NULL)
		return -1;
	hr_buf_adds(out, "\n\n### Notes:\n");
	root = tree_root(t);
	for (n = root; n != NULL; n = node_next(n, root, true)) {
		if (!node_is(n, "sp"))
			continue;
		type = node_attr(node_below(node_child(n, "nvSpPr"), "ph"), "type");
		if (type == NULL || strcmp(type, "body") != 0)
			continue;
		body_text(node_child(n, "txBody"), out);
		break;
	}
	office_trim(out);
	return 0;
}

static int
slide_read(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err)
{
	HR_CLEAN(tree_done) struct tree *t = tree_of(ps, part, err);
	HR_CLEAN(rels_done) struct rels rels = {NULL, NULL};
	const struct node *shapes;
	const char *notes;
	int r = -1;

	if (t != NULL && rels_open(&rels, ps, part, err) == 0) {
		shapes = node_below(tree_root(t), "spTree");
		if (shapes != NULL)
			shapes_read(shapes, out);
		office_trim(out);
		notes = rels_of_type(&rels, "notesSlide");
		r = notes != NULL && parts_find(ps, notes) != NULL ? notes_read(ps, notes, out, err)
								   : 0;
	}
	return r;
}

int
pptx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err)
{
	HR_CLEAN(tree_done) struct tree *t = tree_of(ps, part, err);
	HR_CLEAN(rels_done) struct rels rels = {NULL, NULL};
	const struct node *n = NULL;
	const char *slide;
	unsigned number = 0;
	int r = -1;

	if (t != NULL && rels_open(&rels, ps, part, err) == 0) {
		n = node_child(tree_root(t), "sldIdLst");
		r = 0;
	}
	for (n = n != NULL ? n->first : NULL; n != NULL && r == 0 && out->fail == HR_OK;
	     n = n->next) {
		slide = rels_target(&rels, node_attr(n, "r:id"));
		if (!node_is(n, "sldId") || slide == NULL)
			continue;
		hr_buf_addf(
		    out, "%s<!-- Slide number: %u -->\n", number > 0 ? "\n\n" : "", number + 1);
		number++;
		r = slide_read(ps, slide, out, err);
	}
	return r;
}
