/* Reads snapshots: strings by number, and elements' attributes from marking script and layout. */
#include "config.h"

#include "plugins/browser/page/snapshot_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/page/axtree_int.h"

#define NOWHERE SIZE_MAX

/* Longer values in JSON are not the marking script's. Many nodes may name one long string, which
 * would be copied for each of them. */
#define BID_MAX 1024
#define RATIO_MAX 32

int
br_snapshot_column(const struct br_tape *t, uint32_t list, uint32_t **ret, size_t *ret_n)
{
	size_t n = br_tape_count(t, list), k = 0;
	uint32_t i, *v = reallocarray(NULL, n + 1, sizeof(*v));

	if (v == NULL)
		return -1;
	if (n > 0)
		for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i))
			v[k++] = i;
	*ret = v;
	*ret_n = n;
	return 0;
}

/* Returns the string number in a value, or NOWHERE if there is none. */
static size_t
number_at(const struct br_snapshot *s, uint32_t place)
{
	int64_t v = br_tape_int(&s->tape, place, -1);

	return v >= 0 && (uint64_t)v < s->n_strings ? (size_t)v : NOWHERE;
}

bool
br_snapshot_is(const struct br_snapshot *s, uint32_t place, const char *text)
{
	size_t i = number_at(s, place);

	return i != NOWHERE && br_tape_is(&s->tape, s->strings[i], text);
}

bool
br_snapshot_string(const struct br_snapshot *s, uint32_t place, struct hr_buf *b)
{
	size_t i = number_at(s, place), from = b->len, bid, rest;

	if (i == NOWHERE)
		return false;
	br_tape_str(&s->tape, s->strings[i], b);
	if (b->fail == HR_OK && s->marked[i] && b->len > from &&
	    br_ax_marked(b->p + from, b->len - from, &bid, &rest)) {
		memmove(b->p + from, b->p + from + rest, b->len - from - rest);
		b->len -= rest;
		b->p[b->len] = '\0';
	}
	return true;
}

static bool
is_short(const struct br_snapshot *s, uint32_t place, size_t max)
{
	size_t i = number_at(s, place), len;

	if (i == NOWHERE)
		return false;
	(void)br_tape_raw(&s->tape, s->strings[i], &len);
	return len <= max;
}

static size_t
find_string(const struct br_snapshot *s, const char *text)
{
	size_t i;

	for (i = 0; i < s->n_strings; i++)
		if (br_tape_is(&s->tape, s->strings[i], text))
			return i;
	return NOWHERE;
}

static uint32_t
nodes_at(const struct br_snapshot *s, size_t document, const char *name)
{
	const struct br_tape *t = &s->tape;

	return br_tape_at(t, br_tape_at(t, s->documents[document], "nodes"), name);
}

static void
find_marks(struct br_snapshot *s, const char *attribute)
{
	const struct br_tape *t = &s->tape;
	size_t name = find_string(s, attribute), d, value;
	uint32_t list, node, i;

	for (d = 0; name != NOWHERE && d < s->n_documents; d++) {
		list = nodes_at(s, d, "attributes");
		for (node = br_tape_first(t, list); node != BR_TAPE_NONE;
		     node = br_tape_next(t, list, node))
			for (i = br_tape_first(t, node); i != BR_TAPE_NONE;
			     i = br_tape_next(t, node, br_tape_next(t, node, i))) {
				value = number_at(s, br_tape_next(t, node, i));
				if (number_at(s, i) == name && value != NOWHERE)
					s->marked[value] = 1;
			}
	}
}

static int
load(struct br_snapshot *s, struct hr_err *err)
{
	const struct br_tape *t = &s->tape;
	uint32_t at = br_tape_at(t, 0, "result");

	if (at == BR_TAPE_NONE)
		at = 0;
	if (br_snapshot_column(t, br_tape_at(t, at, "strings"), &s->strings, &s->n_strings) < 0 ||
	    br_snapshot_column(t, br_tape_at(t, at, "documents"), &s->documents, &s->n_documents) <
		0)
		return hr_err_nomem(err);
	s->marked = calloc(s->n_strings + 1, 1);
	if (s->marked == NULL)
		return hr_err_nomem(err);
	if (s->n_documents == 0)
		return hr_err_set(err, HR_E_PROTO, "a snapshot without a document");
	find_marks(s, "aria-roledescription");
	find_marks(s, "aria-description");
	return 0;
}

struct br_snapshot *
br_snapshot_new(const char *json, size_t len, struct hr_err *err)
{
	struct br_snapshot *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return hr_err_null(err);
	if (br_tape_parse(&s->tape, json, len, err) == 0 && load(s, err) == 0)
		return s;
	br_snapshot_free(s);
	return NULL;
}

void
br_snapshot_free(struct br_snapshot *s)
{
	if (s == NULL)
		return;
	br_tape_done(&s->tape);
	free(s->strings);
	free(s->marked);
	free(s->documents);
	free(s);
}

/* ---- properties ---- */

struct document {
	bool seen;
	double x, y; /* corner in the viewport */
	struct br_prop *nodes;
	uint32_t *bounds; /* indexes on the tape by node; 0: none */
	size_t n;
};

struct collector {
	const struct br_snapshot *s;
	struct document *documents;
	size_t *order, n_order; /* numbers in order of visiting */
	size_t *stack, n_stack;
	size_t bid, visibility, marks; /* string numbers of attributes */
	struct hr_buf text;
};

static double
number_of(const struct br_tape *t, uint32_t i)
{
	return br_tape_number(t, i, 0);
}

/* Finds the position of the frame element in its document's layout. */
static void
place_child(struct collector *c, size_t parent, int64_t node, struct document *child)
{
	const struct br_tape *t = &c->s->tape;
	const struct document *doc = &c->documents[parent];
	uint32_t b = node >= 0 && (uint64_t)node < doc->n ? doc->bounds[node] : 0, i;

	child->x = child->y = 0;
	if (b == 0 || br_tape_count(t, b) < 2)
		return;
	i = br_tape_first(t, b);
	child->x = doc->x + number_of(t, i);
	child->y = doc->y + number_of(t, br_tape_next(t, b, i));
}

static void
meet_children(struct collector *c, size_t d)
{
	const struct br_tape *t = &c->s->tape;
	uint32_t list = nodes_at(c->s, d, "contentDocumentIndex");
	uint32_t index = br_tape_at(t, list, "index"), value = br_tape_at(t, list, "value");
	uint32_t i = br_tape_first(t, index), v = br_tape_first(t, value);
	int64_t child;

	for (; i != BR_TAPE_NONE && v != BR_TAPE_NONE;
	     i = br_tape_next(t, index, i), v = br_tape_next(t, value, v)) {
		child = br_tape_int(t, v, -1);
		if (child < 0 || (uint64_t)child >= c->s->n_documents || c->documents[child].seen)
			continue;
		c->documents[child].seen = true;
		place_child(c, d, br_tape_int(t, i, -1), &c->documents[child]);
		c->order[c->n_order++] = (size_t)child;
		c->stack[c->n_stack++] = (size_t)child;
	}
}

/* Returns float() of an attribute that only the marking script should have set. */
static double
ratio(struct collector *c, uint32_t place)
{
	char *end;
	double v;

	c->text.len = 0; /* keeps b.fail, unlike a reset */
	if (!is_short(c->s, place, RATIO_MAX))
		return NAN;
	if (!br_snapshot_string(c->s, place, &c->text) || c->text.fail != HR_OK || c->text.len == 0)
		return NAN;
	v = strtod(c->text.p, &end);
	return *end == '\0' ? v : NAN;
}

static int
read_attributes(struct collector *c, struct br_prop *p, uint32_t node)
{
	const struct br_tape *t = &c->s->tape;
	uint32_t i = br_tape_first(t, node), value;
	size_t name;

	for (; i != BR_TAPE_NONE; i = br_tape_next(t, node, value)) {
		value = br_tape_next(t, node, i);
		name = number_at(c->s, i);
		if (value == BR_TAPE_NONE)
			break;
		if (name == NOWHERE)
			continue;
		if (name == c->bid) {
			c->text.len = 0;
			free(p->bid);
			p->bid = NULL;
			if (is_short(c->s, value, BID_MAX) &&
			    br_snapshot_string(c->s, value, &c->text) &&
			    (p->bid = strndup(hr_buf_str(&c->text), c->text.len)) == NULL)
				return -1;
		}
		if (name == c->visibility)
			p->visibility = ratio(c, value);
		if (name == c->marks)
			p->marked = br_snapshot_is(c->s, value, "1");
	}
	return 0;
}

static void
read_layout(struct collector *c, size_t d)
{
	const struct br_tape *t = &c->s->tape;
	struct document *doc = &c->documents[d];
	uint32_t layout = br_tape_at(t, c->s->documents[d], "layout");
	uint32_t index = br_tape_at(t, layout, "nodeIndex"), i = br_tape_first(t, index);
	uint32_t bounds = br_tape_at(t, layout, "bounds"), b = br_tape_first(t, bounds), k;
	uint32_t rects = br_tape_at(t, layout, "clientRects"), r = br_tape_first(t, rects);
	struct br_prop *p;
	int64_t node;
	int n;

	for (; i != BR_TAPE_NONE && b != BR_TAPE_NONE; i = br_tape_next(t, index, i),
						       b = br_tape_next(t, bounds, b),
						       r = br_tape_next(t, rects, r)) {
		node = br_tape_int(t, i, -1);
		if (node < 0 || (uint64_t)node >= doc->n)
			continue;
		if (doc->bounds[node] == 0)
			doc->bounds[node] = b;
		if (r == BR_TAPE_NONE)
			continue;
		p = &doc->nodes[node];
		p->has_bbox = br_tape_first(t, r) != BR_TAPE_NONE && br_tape_count(t, b) == 4;
		for (k = br_tape_first(t, b), n = 0; p->has_bbox && n < 4; n++) {
			p->bbox[n] = number_of(t, k) + (n == 0 ? doc->x : n == 1 ? doc->y : 0);
			k = br_tape_next(t, b, k);
		}
	}
}

static int
read_document(struct collector *c, size_t d)
{
	const struct br_tape *t = &c->s->tape;
	struct document *doc = &c->documents[d];
	uint32_t list = nodes_at(c->s, d, "attributes"), i;
	int64_t node;
	size_t k = 0;

	doc->x -= number_of(t, br_tape_at(t, c->s->documents[d], "scrollOffsetX"));
	doc->y -= number_of(t, br_tape_at(t, c->s->documents[d], "scrollOffsetY"));
	doc->n = br_tape_count(t, list);
	doc->nodes = calloc(doc->n + 1, sizeof(*doc->nodes));
	doc->bounds = calloc(doc->n + 1, sizeof(*doc->bounds));
	if (doc->nodes == NULL || doc->bounds == NULL)
		return -1;
	/* an object instead of the list is harmless: its members do not count */
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE && k < doc->n;
	     i = br_tape_next(t, list, i), k++) {
		doc->nodes[k].visibility = NAN;
		doc->nodes[k].marked = -1;
		if (read_attributes(c, &doc->nodes[k], i) < 0)
			return -1;
	}
	list = br_tape_at(t, nodes_at(c->s, d, "isClickable"), "index");
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i)) {
		node = br_tape_int(t, i, -1);
		if (node >= 0 && (uint64_t)node < doc->n)
			doc->nodes[node].clickable = true;
	}
	read_layout(c, d);
	return 0;
}

static int
collect(struct collector *c)
{
	size_t d;

	c->order[c->n_order++] = 0;
	c->stack[c->n_stack++] = 0;
	c->documents[0].seen = true;
	while (c->n_stack > 0) {
		d = c->stack[--c->n_stack];
		if (read_document(c, d) < 0)
			return -1;
		meet_children(c, d);
	}
	return 0;
}

static int
keep(struct collector *c, struct br_props *ret)
{
	struct br_prop *p, *from;
	size_t i, k;
	char *bid;

	for (i = 0; i < c->n_order; i++)
		for (k = 0; k < c->documents[c->order[i]].n; k++) {
			from = &c->documents[c->order[i]].nodes[k];
			if (from->bid == NULL || from->bid[0] == '\0')
				continue;
			p = br_props_put(ret, from->bid);
			if (p == NULL)
				return -1;
			bid = p->bid;
			*p = *from;
			p->bid = bid;
		}
	return 0;
}

static void
collector_done(struct collector *c)
{
	size_t d, i;

	for (d = 0; c->documents != NULL && d < c->s->n_documents; d++) {
		for (i = 0; c->documents[d].nodes != NULL && i < c->documents[d].n; i++)
			free(c->documents[d].nodes[i].bid);
		free(c->documents[d].nodes);
		free(c->documents[d].bounds);
	}
	free(c->documents);
	free(c->order);
	free(c->stack);
	hr_buf_done(&c->text);
}

int
br_snapshot_props(const struct br_snapshot *s, struct br_props *ret, struct hr_err *err)
{
	HR_CLEAN(collector_done) struct collector c = {.s = s};
	int done = -1;

	hr_buf_init(&c.text, BR_TAPE_TEXT_MAX);
	c.documents = calloc(s->n_documents, sizeof(*c.documents));
	c.order = calloc(s->n_documents, sizeof(*c.order));
	c.stack = calloc(s->n_documents, sizeof(*c.stack));
	c.bid = find_string(s, "bid");
	c.visibility = find_string(s, "browsergym_visibility_ratio");
	c.marks = find_string(s, "browsergym_set_of_marks");
	if (c.documents != NULL && c.order != NULL && c.stack != NULL && collect(&c) == 0)
		done = keep(&c, ret);
	if (c.text.fail != HR_OK)
		done = -1;
	return done < 0 ? hr_err_nomem(err) : 0;
}
