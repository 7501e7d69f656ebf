/* Prints an accessibility tree, one line per node, like the original's flatten_axtree_to_str() with
 * clickable elements and no filter. There is no recursion: trees have any depth, and a child may be
 * its own ancestor. */
#include "config.h"

#include "plugins/browser/page/axtree_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "plugins/browser/program/value.h"
#include "proto/python/repr.h"
#include "base/text/utf8.h"

/* about Python's 1000 frames less those of its callers */
#define DEEPEST 970
#define VALUE_DEEPEST 100 /* maximum of nested brackets in a property's value */
/* Bytes of names that are searched for texts in total: a long name may have many texts below it. */
#define SEARCHED_MAX (1u << 30)

/* A node on the path from the root. */
struct step {
	size_t node;
	uint32_t child; /* next child, on the tape */
	bool joined;    /* the node joined after the children was taken */
	bool printed;
	size_t name; /* offset of the node's name in `names` */
};

struct writer {
	const struct br_ax *ax;
	const struct br_props *props;
	struct hr_buf *out, *why;
	struct hr_buf names; /* names of all nodes on the path */
	struct hr_buf attributes;
	size_t searched; /* bytes of names */
	/* hash table of the nodes' ids: index + 1; of equal ids the last one counts */
	size_t *slots;
	size_t n_slots;
	struct step way[DEEPEST + 1];
	size_t depth, indent;
};

static const struct br_tape *
tape_of(const struct writer *w, size_t node)
{
	return &w->ax->frames[w->ax->nodes[node].frame].tape;
}

static uint32_t
member(const struct writer *w, size_t node, const char *name)
{
	return br_tape_at(tape_of(w, node), w->ax->nodes[node].value, name);
}

/* ---- nodes by id ---- */

static const char *
id_of(const struct writer *w, size_t node, size_t *ret_len)
{
	return br_tape_raw(tape_of(w, node), member(w, node, "nodeId"), ret_len);
}

static size_t *
slot_of(const struct writer *w, const char *id, size_t len)
{
	size_t h = 2166136261u, i, have;
	const char *other;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)id[i]) * 16777619u;
	for (i = h & (w->n_slots - 1); w->slots[i] != 0; i = (i + 1) & (w->n_slots - 1)) {
		other = id_of(w, w->slots[i] - 1, &have);
		if (have == len && memcmp(other, id, len) == 0)
			break;
	}
	return &w->slots[i];
}

static int
raise(struct writer *w, const char *what)
{
	if (w->why->len == 0)
		hr_buf_adds(w->why, what);
	return 1;
}

static int
index_ids(struct writer *w)
{
	const char *id;
	size_t i, len;

	for (w->n_slots = 64; w->n_slots < w->ax->n * 2;)
		w->n_slots *= 2;
	w->slots = calloc(w->n_slots, sizeof(*w->slots));
	if (w->slots == NULL)
		return -1;
	for (i = 0; i < w->ax->n; i++) {
		if (member(w, i, "nodeId") == BR_TAPE_NONE)
			return raise(w, "KeyError: 'nodeId'");
		id = id_of(w, i, &len);
		*slot_of(w, id, len) = i + 1;
	}
	return 0;
}

/* ---- a line ---- */

static int
put_repr(struct hr_buf *b, const struct br_tape *t, uint32_t i)
{
	struct br_value v;

	if (br_tape_value(t, i, VALUE_DEEPEST, &v) < 0)
		return -1;
	br_value_repr(b, &v);
	br_value_done(&v);
	return 0;
}

static bool
is_truthy(const struct br_tape *t, uint32_t i)
{
	size_t len;

	(void)br_tape_raw(t, i, &len);
	switch (br_tape_type(t, i)) {
	case BR_TAPE_TRUE: return true;
	case BR_TAPE_STRING: return len > 0;
	case BR_TAPE_NUMBER: return br_tape_number(t, i, 1) != 0;
	case BR_TAPE_LIST:
	case BR_TAPE_OBJECT: return br_tape_first(t, i) != BR_TAPE_NONE;
	default: return false;
	}
}

static bool
is_one_of(const struct br_tape *t, uint32_t i, const char *const *names)
{
	while (*names != NULL && !br_tape_is(t, i, *names))
		names++;
	return *names != NULL;
}

/* Appends the page's own text, after the mark. Returns -1 without memory. */
static int
put_roledescription(struct writer *w, const struct br_tape *t, uint32_t value)
{
	size_t bid, rest = 0;
	HR_BUF(b, BR_TAPE_TEXT_MAX);

	br_tape_str(t, value, &b);
	if (b.fail != HR_OK)
		return -1;
	if (!br_ax_marked(hr_buf_str(&b), b.len, &bid, &rest))
		rest = 0;
	if (rest < b.len) {
		hr_buf_adds(&w->attributes, ", roledescription=");
		hr_pyrepr_str(&w->attributes, b.p + rest, b.len - rest);
	}
	return 0;
}

static int
put_property(struct writer *w, const struct br_tape *t, uint32_t p, bool marked)
{
	static const char *const ignored[] = {
	    "editable", "readonly", "level", "settable", "multiline", "invalid", "focusable", NULL};
	static const char *const flags[] = {"required", "focused", "atomic", NULL};
	uint32_t name = br_tape_at(t, p, "name");
	uint32_t value = br_tape_at(t, br_tape_at(t, p, "value"), "value");

	if (value == BR_TAPE_NONE)
		return 0;
	if (name == BR_TAPE_NONE)
		return raise(w, "KeyError: 'name'");
	if (is_one_of(t, name, ignored))
		return 0;
	if (is_one_of(t, name, flags)) {
		if (is_truthy(t, value)) {
			hr_buf_adds(&w->attributes, ", ");
			br_tape_str(t, name, &w->attributes);
		}
		return 0;
	}
	if (marked && br_tape_type(t, value) == BR_TAPE_STRING)
		return put_roledescription(w, t, value);
	hr_buf_adds(&w->attributes, ", ");
	br_tape_str(t, name, &w->attributes);
	hr_buf_addc(&w->attributes, '=');
	return put_repr(&w->attributes, t, value);
}

static int
put_properties(struct writer *w, size_t node)
{
	const struct br_tape *t = tape_of(w, node);
	uint32_t list = member(w, node, "properties"), marked = BR_TAPE_NONE, i;
	int done = 0;

	hr_buf_reset(&w->attributes);
	if (w->ax->frames[w->ax->nodes[node].frame].id != NULL)
		marked = br_ax_roledescription(t, w->ax->nodes[node].value);
	for (i = br_tape_first(t, list); done == 0 && i != BR_TAPE_NONE;
	     i = br_tape_next(t, list, i))
		done = put_property(w, t, i, i == marked);
	return done;
}

/* Looks up whether the node is clickable. Returns 1 if Python would raise an exception. */
static int
look_up(struct writer *w, size_t node, bool *ret_clickable)
{
	const char *bid = w->ax->nodes[node].bid;
	const struct br_prop *p = bid != NULL ? br_props_find(w->props, bid) : NULL;

	*ret_clickable = p != NULL && p->clickable;
	if (p != NULL && isnan(p->visibility))
		return raise(
		    w, "TypeError: '>=' not supported between instances of 'NoneType' and 'float'");
	return 0;
}

static void
put_line(struct writer *w, size_t node, uint32_t role, struct hr_span name, bool clickable)
{
	const struct br_tape *t = tape_of(w, node);
	const char *bid = w->ax->nodes[node].bid, *p = name.p;
	size_t i, len = name.len;
	uint32_t value = br_tape_at(t, member(w, node, "value"), "value");

	if (w->out->len > 0)
		hr_buf_addc(w->out, '\n');
	for (i = 0; i < w->indent; i++)
		hr_buf_addc(w->out, '\t');
	if (bid != NULL)
		hr_buf_addf(w->out, "[%s] ", bid);
	br_tape_str(t, role, w->out);
	if (!br_tape_is(t, role, "generic") || len > 0) {
		hr_utf8_strip(&p, &len);
		hr_buf_addc(w->out, ' ');
		hr_pyrepr_str(w->out, p, len);
	}
	if (br_tape_type(t, value) > BR_TAPE_NULL) {
		hr_buf_adds(w->out, " value=");
		if (put_repr(w->out, t, value) < 0)
			w->out->fail = HR_E_TOOLARGE;
	}
	hr_buf_adds(w->out, clickable ? ", clickable" : "");
	hr_buf_add(w->out, hr_buf_str(&w->attributes), w->attributes.len);
}

/* Returns true if the name at this offset, with text after it, contains this text. */
static bool
holds(struct writer *w, size_t name, struct hr_span text)
{
	const char *in = hr_buf_str(&w->names) + name;
	size_t len = (size_t)(text.p - in);

	if (text.len == 0 || text.len > len)
		return text.len == 0;
	if (len > SEARCHED_MAX - w->searched)
		return false;
	w->searched += len;
	return memmem(in, len, text.p, text.len) != NULL;
}

/* Prints the node unless it is left out; s->name is the offset at which to put its name. */
static int
visit(struct writer *w, struct step *s)
{
	const struct br_tape *t = tape_of(w, s->node);
	uint32_t role = br_tape_at(t, member(w, s->node, "role"), "value");
	uint32_t name = member(w, s->node, "name"), text;
	size_t parent = w->depth > 0 ? s[-1].name : s->name;
	bool clickable = false, is_static;
	struct hr_span own;

	if (member(w, s->node, "role") == BR_TAPE_NONE)
		return raise(w, "KeyError: 'role'");
	if (role == BR_TAPE_NONE)
		return raise(w, "KeyError: 'value'");
	if (br_tape_is(t, role, "LineBreak") || name == BR_TAPE_NONE)
		return 0;
	text = br_tape_at(t, name, "value");
	if (text == BR_TAPE_NONE)
		return raise(w, "KeyError: 'value'");
	br_tape_str(t, text, &w->names);
	if (w->names.fail != HR_OK)
		return -1;
	own = (struct hr_span){hr_buf_str(&w->names) + s->name, w->names.len - s->name};
	if (put_properties(w, s->node) != 0)
		return w->why->len > 0 ? 1 : -1;
	if (w->attributes.fail != HR_OK)
		return -1;
	is_static = br_tape_is(t, role, "StaticText");
	if (is_static && holds(w, parent, own))
		return 0;
	if (!is_static && look_up(w, s->node, &clickable) != 0)
		return 1;
	s->printed = true;
	put_line(w, s->node, role, own, clickable);
	return 0;
}

/* Finds the next existing child of the innermost node. Returns false if none is left. */
static bool
next_child(struct writer *w, struct step *s, size_t *ret)
{
	const struct br_tape *t = tape_of(w, s->node);
	uint32_t list = member(w, s->node, "childIds");
	const char *id, *own;
	size_t len, own_len, found;

	own = id_of(w, s->node, &own_len);
	for (;;) {
		if (s->child != BR_TAPE_NONE) {
			id = br_tape_raw(t, s->child, &len);
			s->child = br_tape_next(t, list, s->child);
		} else if (!s->joined && w->ax->nodes[s->node].child > 0) {
			s->joined = true;
			id = id_of(w, w->ax->nodes[s->node].child - 1, &len);
		} else {
			return false;
		}
		found = *slot_of(w, id, len);
		if (found > 0 && !(len == own_len && memcmp(id, own, len) == 0)) {
			*ret = found - 1;
			return true;
		}
	}
}

static int
enter(struct writer *w, size_t node)
{
	struct step *s = &w->way[w->depth];
	uint32_t list = member(w, node, "childIds");
	int done;

	*s = (struct step){.node = node, .name = w->names.len};
	done = visit(w, s);
	if (done != 0)
		return done;
	if (list == BR_TAPE_NONE)
		return raise(w, "KeyError: 'childIds'");
	s->child = br_tape_first(tape_of(w, node), list);
	w->indent += s->printed;
	w->depth++;
	return w->out->fail == HR_OK ? 0 : -1;
}

static void
leave(struct writer *w)
{
	struct step *s = &w->way[--w->depth];

	w->indent -= s->printed;
	w->names.len = s->name;
}

static int
walk(struct writer *w)
{
	size_t child;
	int done = enter(w, 0);

	while (done == 0 && w->depth > 0) {
		if (!next_child(w, &w->way[w->depth - 1], &child))
			leave(w);
		else if (w->depth == DEEPEST)
			done = raise(w, "RecursionError: maximum recursion depth exceeded while "
					"calling a Python object");
		else
			done = enter(w, child);
	}
	return done;
}

int
br_ax_text(
    const struct br_ax *ax, const struct br_props *props, struct hr_buf *b, struct hr_buf *why)
{
	HR_FREE struct writer *w = calloc(1, sizeof(*w));
	int done;

	if (w == NULL)
		return -1;
	w->ax = ax;
	w->props = props;
	w->out = b;
	w->why = why;
	hr_buf_init(&w->names, BR_TAPE_TEXT_MAX);
	hr_buf_init(&w->attributes, BR_TAPE_TEXT_MAX);
	if (ax->n == 0)
		done = raise(w, ax->no_nodes || ax->n_frames == 0
				    ? "KeyError: 'nodes'"
				    : "IndexError: list index out of range");
	else
		done = index_ids(w);
	if (done == 0)
		done = walk(w);
	if (done == 0 && w->attributes.fail != HR_OK)
		done = -1;
	free(w->slots);
	hr_buf_done(&w->names);
	hr_buf_done(&w->attributes);
	return done;
}
