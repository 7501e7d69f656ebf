/* Prints a snapshot's nodes as markup. Text is not escaped, as in the original: a page that shows
 * "<b>" gets bold text. A frame's content is tidied and put into its element. */
#include "config.h"

#include "plugins/browser/page/html.h"

#include <stdlib.h>

#include "plugins/browser/page/snapshot_int.h"

#define FRAMES_DEEPEST 30 /* maximum of nested frames; deeper ones are left out */
#define NO_NODE UINT32_MAX

enum node_type {
	ELEMENT = 1,
	TEXT = 3,
	CDATA = 4,
	INSTRUCTION = 7,
	FRAGMENT = 11,
};

/* A document's nodes, by number. */
struct nodes {
	uint32_t *type, *name, *value, *attributes; /* indexes on the tape */
	size_t n;
	uint32_t *parent, *child, *next; /* numbers of nodes */
	uint32_t *document;              /* number of a frame element's document plus 1 */
};

static void
nodes_done(struct nodes *t)
{
	free(t->type);
	free(t->name);
	free(t->value);
	free(t->attributes);
	free(t->parent);
	free(t->child);
	free(t->next);
	free(t->document);
}

/* Links children after their parents, in order; drops nodes that precede their parent. */
static void
link_nodes(struct nodes *t, const struct br_tape *tape, const uint32_t *parents)
{
	int64_t parent;
	size_t i;

	for (i = 0; i < t->n; i++)
		t->parent[i] = t->child[i] = t->next[i] = NO_NODE;
	for (i = t->n; i-- > 1;) {
		parent = br_tape_int(tape, parents[i], -1);
		if (parent < 0 || (uint64_t)parent >= i)
			continue;
		t->parent[i] = (uint32_t)parent;
		t->next[i] = t->child[parent];
		t->child[parent] = (uint32_t)i;
	}
}

static void
link_documents(struct nodes *t, const struct br_snapshot *s, uint32_t nodes)
{
	const struct br_tape *tape = &s->tape;
	uint32_t list = br_tape_at(tape, nodes, "contentDocumentIndex");
	uint32_t index = br_tape_at(tape, list, "index"), value = br_tape_at(tape, list, "value");
	uint32_t i = br_tape_first(tape, index), v = br_tape_first(tape, value);
	int64_t node, document;

	for (; i != BR_TAPE_NONE && v != BR_TAPE_NONE;
	     i = br_tape_next(tape, index, i), v = br_tape_next(tape, value, v)) {
		node = br_tape_int(tape, i, -1);
		document = br_tape_int(tape, v, -1);
		if (node >= 0 && (uint64_t)node < t->n && document > 0 &&
		    (uint64_t)document < s->n_documents)
			t->document[node] = (uint32_t)document + 1;
	}
}

static int
nodes_load(struct nodes *t, const struct br_snapshot *s, uint32_t nodes)
{
	const struct br_tape *tape = &s->tape;
	size_t n[5] = {0}, k;
	HR_FREE uint32_t *parents = NULL;

	if (br_snapshot_column(tape, br_tape_at(tape, nodes, "nodeType"), &t->type, &n[0]) < 0 ||
	    br_snapshot_column(tape, br_tape_at(tape, nodes, "nodeName"), &t->name, &n[1]) < 0 ||
	    br_snapshot_column(tape, br_tape_at(tape, nodes, "nodeValue"), &t->value, &n[2]) < 0 ||
	    br_snapshot_column(tape, br_tape_at(tape, nodes, "attributes"), &t->attributes, &n[3]) <
		0 ||
	    br_snapshot_column(tape, br_tape_at(tape, nodes, "parentIndex"), &parents, &n[4]) < 0)
		return -1;
	for (t->n = n[0], k = 1; k < 5; k++)
		t->n = n[k] < t->n ? n[k] : t->n;
	t->parent = calloc(t->n + 1, sizeof(*t->parent));
	t->child = calloc(t->n + 1, sizeof(*t->child));
	t->next = calloc(t->n + 1, sizeof(*t->next));
	t->document = calloc(t->n + 1, sizeof(*t->document));
	if (t->parent == NULL || t->child == NULL || t->next == NULL || t->document == NULL)
		return -1;
	link_nodes(t, tape, parents);
	link_documents(t, s, nodes);
	return 0;
}

static void
put_name(struct hr_buf *b, const struct br_snapshot *s, uint32_t place)
{
	size_t from = b->len, i;

	(void)br_snapshot_string(s, place, b);
	for (i = from; b->fail == HR_OK && i < b->len; i++)
		if (b->p[i] >= 'A' && b->p[i] <= 'Z')
			b->p[i] += 'a' - 'A';
}

/* Returns true for a list of one type directly inside one of the other: libxml2 before 2.12 ends an
 * <ol> where a <ul> begins, and vice versa. */
static bool
is_list_in_list(const struct br_snapshot *s, const struct nodes *t, uint32_t i)
{
	uint32_t up = t->parent[i];

	if (up == NO_NODE)
		return false;
	return (br_snapshot_is(s, t->name[i], "OL") && br_snapshot_is(s, t->name[up], "UL")) ||
	       (br_snapshot_is(s, t->name[i], "UL") && br_snapshot_is(s, t->name[up], "OL"));
}

static void
put_tag(struct hr_buf *b, const struct br_snapshot *s, const struct nodes *t, uint32_t i)
{
	hr_buf_adds(b, is_list_in_list(s, t, i) ? BR_HTML_KEPT : "");
	put_name(b, s, t->name[i]);
}

static void
put_attribute(struct hr_buf *b, const struct br_snapshot *s, uint32_t name, uint32_t value)
{
	size_t from = b->len, behind;

	hr_buf_addc(b, ' ');
	(void)br_snapshot_string(s, name, b);
	hr_buf_adds(b, "=\"");
	behind = b->len;
	if (!br_snapshot_string(s, value, b)) {
		if (b->fail == HR_OK)
			b->len -= 2;
		return;
	}
	/* the marking script wrote this attribute, not the page */
	if (b->fail == HR_OK && b->len == behind &&
	    (br_snapshot_is(s, name, "aria-roledescription") ||
		br_snapshot_is(s, name, "aria-description"))) {
		b->len = from;
		return;
	}
	hr_buf_addc(b, '"');
}

static void
put_attributes(struct hr_buf *b, const struct br_snapshot *s, uint32_t node)
{
	const struct br_tape *t = &s->tape;
	uint32_t i, value, bid = BR_TAPE_NONE;

	for (i = br_tape_first(t, node); i != BR_TAPE_NONE; i = br_tape_next(t, node, i + 1))
		if (br_snapshot_is(s, i, "bid"))
			bid = i;
	if (bid != BR_TAPE_NONE)
		put_attribute(b, s, bid, br_tape_next(t, node, bid));
	for (i = br_tape_first(t, node); i != BR_TAPE_NONE; i = br_tape_next(t, node, value)) {
		value = br_tape_next(t, node, i);
		if (value == BR_TAPE_NONE)
			return;
		if (!br_snapshot_is(s, i, "bid") &&
		    !br_snapshot_is(s, i, "browsergym_visibility_ratio") &&
		    !br_snapshot_is(s, i, "browsergym_set_of_marks"))
			put_attribute(b, s, i, value);
	}
}

static bool
is_skipped(const struct br_tape *t, uint32_t type)
{
	int64_t v = br_tape_int(t, type, ELEMENT);

	return v >= INSTRUCTION && v <= FRAGMENT;
}

static int put_document(struct hr_buf *b, const struct br_snapshot *s, size_t d, unsigned depth);

static int
open_node(struct hr_buf *b, const struct br_snapshot *s, const struct nodes *t, uint32_t i,
    unsigned depth)
{
	uint32_t up = t->parent[i];
	bool hidden = up != NO_NODE && is_skipped(&s->tape, t->type[up]);

	switch (br_tape_int(&s->tape, t->type[i], ELEMENT)) {
	case TEXT:
		if (!hidden)
			(void)br_snapshot_string(s, t->value[i], b);
		break;
	case CDATA:
		if (!hidden) {
			hr_buf_adds(b, "<!CDATA[[");
			(void)br_snapshot_string(s, t->value[i], b);
			hr_buf_adds(b, "]]>");
		}
		break;
	default:
		if (is_skipped(&s->tape, t->type[i]))
			break;
		hr_buf_addc(b, '<');
		put_tag(b, s, t, i);
		put_attributes(b, s, t->attributes[i]);
		hr_buf_addc(b, '>');
		break;
	}
	if (t->document[i] > 0 && depth < FRAMES_DEEPEST &&
	    put_document(b, s, t->document[i] - 1, depth + 1) < 0)
		return -1;
	return b->fail == HR_OK ? 0 : -1;
}

static void
close_node(struct hr_buf *b, const struct br_snapshot *s, const struct nodes *t, uint32_t i)
{
	int64_t type = br_tape_int(&s->tape, t->type[i], ELEMENT);

	if (type == TEXT || type == CDATA || is_skipped(&s->tape, t->type[i]))
		return;
	hr_buf_adds(b, "</");
	put_tag(b, s, t, i);
	hr_buf_addc(b, '>');
}

static int
put_nodes(struct hr_buf *b, const struct br_snapshot *s, const struct nodes *t, unsigned depth)
{
	uint32_t i = 0;

	if (t->n == 0)
		return 0;
	for (;;) {
		if (open_node(b, s, t, i, depth) < 0)
			return -1;
		if (t->child[i] != NO_NODE) {
			i = t->child[i];
			continue;
		}
		close_node(b, s, t, i);
		while (t->next[i] == NO_NODE) {
			i = t->parent[i];
			if (i == NO_NODE)
				return 0;
			close_node(b, s, t, i);
		}
		i = t->next[i];
	}
}

/* Appends a document, tidied. */
static int
put_document(struct hr_buf *b, const struct br_snapshot *s, size_t d, unsigned depth)
{
	HR_BUF(markup, b->cap);
	HR_CLEAN(nodes_done) struct nodes t = {0};
	int done;

	if (nodes_load(&t, s, br_tape_at(&s->tape, s->documents[d], "nodes")) < 0)
		return -1;
	done = put_nodes(&markup, s, &t, depth);
	if (done == 0 && markup.fail == HR_OK)
		done = br_html_tidy(hr_buf_str(&markup), markup.len, b, NULL);
	else
		done = -1;
	if (markup.fail != HR_OK && b->fail == HR_OK)
		b->fail = markup.fail;
	return done;
}

int
br_snapshot_html(const struct br_snapshot *s, struct hr_buf *b, struct hr_err *err)
{
	if (put_document(b, s, 0, 0) == 0)
		return 0;
	if (b->fail == HR_E_TOOLARGE)
		return hr_err_set(err, HR_E_TOOLARGE,
		    "the page nests more than %d elements of markup, or has more than %zu bytes",
		    BR_HTML_DEPTH, b->cap);
	return hr_err_nomem(err);
}
