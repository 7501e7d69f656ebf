/* Parses a part into a tree, with expat. A DOCTYPE is an error, which rules out all entities but
 * the built-in ones; elements, depth and memory are limited. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "office/office_int.h"

#define NODES_MAX 3000000
#define DEPTH_MAX 200
#define BLOCK 65536
#define SEPARATOR '\n' /* separates namespace and name; neither can contain it */

struct block {
	struct block *next;
	size_t used, room;
	max_align_t data[];
};

struct tree {
	struct block *blocks;
	struct node *root, *at;
	XML_Parser parser;
	size_t nodes;
	unsigned depth;
	const char *fault;
};

static void *
tree_alloc(struct tree *t, size_t len)
{
	const size_t unit = sizeof(max_align_t);
	struct block *b = t->blocks;
	size_t room;
	char *p;

	len = (len + unit - 1) / unit * unit;
	if (b == NULL || b->room - b->used < len) {
		room = len > BLOCK ? len : BLOCK;
		b = malloc(sizeof(*b) + room);
		if (b == NULL)
			return NULL;
		b->room = room;
		b->used = 0;
		b->next = t->blocks;
		t->blocks = b;
	}
	p = (char *)b->data + b->used;
	b->used += len;
	memset(p, 0, len);
	return p;
}

static const char *
tree_copy(struct tree *t, const char *s, size_t len)
{
	char *p = tree_alloc(t, len + 1);

	if (p != NULL)
		memcpy(p, s, len);
	return p;
}

static void
tree_fail(struct tree *t, const char *fault)
{
	if (t->fault == NULL)
		t->fault = fault;
	if (t->parser != NULL)
		(void)XML_StopParser(t->parser, XML_FALSE);
}

static struct node *
tree_add(struct tree *t)
{
	struct node *n;

	if (++t->nodes > NODES_MAX) {
		tree_fail(t, "the document is too large");
		return NULL;
	}
	n = tree_alloc(t, sizeof(*n));
	if (n == NULL) {
		tree_fail(t, "out of memory");
		return NULL;
	}
	n->parent = t->at;
	if (t->at == NULL)
		t->root = n;
	else if (t->at->last == NULL)
		t->at->first = n;
	else
		t->at->last->next = n;
	if (t->at != NULL)
		t->at->last = n;
	return n;
}

static const char *
local_name(const char *name)
{
	const char *p = strrchr(name, SEPARATOR);

	return p != NULL ? p + 1 : name;
}

static bool
tree_add_attr(struct tree *t, struct node *n, const char *name, const char *value)
{
	static const char relationships[] = "/relationships";
	const char *local = local_name(name);
	size_t space = local > name ? (size_t)(local - name) - 1 : 0, len = strlen(local);
	struct attr *a = tree_alloc(t, sizeof(*a));
	char *own;
	bool r = space >= sizeof(relationships) - 1 &&
		 memcmp(name + space - (sizeof(relationships) - 1), relationships,
		     sizeof(relationships) - 1) == 0;

	own = tree_alloc(t, len + 3);
	if (a == NULL || own == NULL)
		return false;
	if (r)
		memcpy(own, "r:", 2);
	memcpy(own + (r ? 2 : 0), local, len);
	a->name = own;
	a->value = tree_copy(t, value, strlen(value));
	a->next = n->attrs;
	n->attrs = a;
	return a->value != NULL;
}

static void XMLCALL
on_start(void *arg, const char *name, const char **attrs)
{
	struct tree *t = arg;
	struct node *n;

	if (t->fault != NULL)
		return;
	if (++t->depth > DEPTH_MAX) {
		tree_fail(t, "the document is nested too deeply");
		return;
	}
	n = tree_add(t);
	if (n == NULL)
		return;
	t->at = n;
	name = local_name(name);
	n->name = tree_copy(t, name, strlen(name));
	for (; n->name != NULL && attrs[0] != NULL; attrs += 2)
		if (++t->nodes > NODES_MAX || !tree_add_attr(t, n, attrs[0], attrs[1]))
			break;
	if (n->name == NULL || attrs[0] != NULL)
		tree_fail(t, "the document is too large");
}

static void XMLCALL
on_end(void *arg, const char *name)
{
	struct tree *t = arg;

	(void)name;
	if (t->fault != NULL)
		return;
	t->depth--;
	t->at = t->at->parent;
}

static void XMLCALL
on_text(void *arg, const char *p, int len)
{
	struct tree *t = arg;
	struct node *n;

	if (t->fault != NULL ||
	    !(node_is(t->at, "t") || node_is(t->at, "v") || node_is(t->at, "instrText")))
		return;
	n = tree_add(t);
	if (n == NULL)
		return;
	n->text = tree_copy(t, p, (size_t)len);
	if (n->text == NULL)
		tree_fail(t, "out of memory");
}

static void XMLCALL
on_doctype(void *arg, const char *name, const char *sysid, const char *pubid, int has_subset)
{
	(void)name;
	(void)sysid;
	(void)pubid;
	(void)has_subset;
	tree_fail(arg, "the document has a DOCTYPE");
}

void
tree_done(struct tree **at)
{
	struct tree *t = *at;
	struct block *b;

	while (t != NULL && (b = t->blocks) != NULL) {
		t->blocks = b->next;
		free(b);
	}
	free(t);
	*at = NULL;
}

struct tree *
tree_read(const struct hr_buf *part, struct hr_err *err)
{
	struct tree *t = calloc(1, sizeof(*t));
	enum XML_Status status;

	if (t == NULL || (t->parser = XML_ParserCreateNS(NULL, SEPARATOR)) == NULL) {
		free(t);
		return hr_err_null(err);
	}
	XML_SetUserData(t->parser, t);
	XML_SetElementHandler(t->parser, on_start, on_end);
	XML_SetCharacterDataHandler(t->parser, on_text);
	XML_SetStartDoctypeDeclHandler(t->parser, on_doctype);
	status = part->len <= INT_MAX
		     ? XML_Parse(t->parser, hr_buf_str(part), (int)part->len, XML_TRUE)
		     : XML_STATUS_ERROR;
	if (status != XML_STATUS_OK && t->fault == NULL)
		t->fault = "the document is damaged: its XML is not well-formed";
	XML_ParserFree(t->parser);
	t->parser = NULL;
	if (tree_check(t, err) < 0)
		tree_done(&t);
	return t;
}

struct tree *
tree_new(const char *name, struct hr_err *err)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (t == NULL || tree_add(t) == NULL) {
		tree_done(&t);
		return hr_err_null(err);
	}
	t->root->name = name;
	return t;
}

struct node *
tree_put(struct tree *t, struct node *parent, const char *name)
{
	struct node *n;

	t->at = parent;
	n = parent != NULL && t->fault == NULL ? tree_add(t) : NULL;
	if (n != NULL)
		n->name = name;
	return n;
}

void
tree_put_text(struct tree *t, struct node *parent, const char *text)
{
	struct node *n = tree_put(t, parent, NULL);

	if (n != NULL && (n->text = tree_copy(t, text, strlen(text))) == NULL)
		tree_fail(t, "out of memory");
}

void
tree_set(struct tree *t, struct node *n, const char *name, const char *value)
{
	if (n != NULL && value != NULL && !tree_add_attr(t, n, name, value))
		tree_fail(t, "out of memory");
}

int
tree_check(const struct tree *t, struct hr_err *err)
{
	return t->fault == NULL ? 0 : hr_err_set(err, HR_E_INVAL, "%s", t->fault);
}

struct node *
tree_root(const struct tree *t)
{
	return t->root;
}

struct tree *
tree_of(const struct parts *ps, const char *name, struct hr_err *err)
{
	const struct hr_buf *part = parts_find(ps, name);

	if (part != NULL)
		return tree_read(part, err);
	(void)hr_err_set(err, HR_E_NOTFOUND, "the document has no part %.100s", name);
	return NULL;
}

int
tree_maybe(const struct parts *ps, const char *name, struct tree **ret, struct hr_err *err)
{
	const struct hr_buf *part = name != NULL ? parts_find(ps, name) : NULL;

	*ret = NULL;
	return part == NULL || (*ret = tree_read(part, err)) != NULL ? 0 : -1;
}

bool
node_is(const struct node *n, const char *name)
{
	return n != NULL && n->name != NULL && strcmp(n->name, name) == 0;
}

const char *
node_attr(const struct node *n, const char *name)
{
	const struct attr *a = n != NULL ? n->attrs : NULL;

	while (a != NULL && strcmp(a->name, name) != 0)
		a = a->next;
	return a != NULL ? a->value : NULL;
}

struct node *
node_child(const struct node *n, const char *name)
{
	struct node *c = n != NULL ? n->first : NULL;

	while (c != NULL && !node_is(c, name))
		c = c->next;
	return c;
}

const struct node *
node_with(const struct node *n, const char *name, const char *attr, const char *value)
{
	const struct node *c = n != NULL ? n->first : NULL;
	const char *v;

	for (; c != NULL && value != NULL; c = c->next)
		if (node_is(c, name) && (v = node_attr(c, attr)) != NULL && strcmp(v, value) == 0)
			return c;
	return NULL;
}

struct node *
node_next(const struct node *n, const struct node *top, bool inside)
{
	if (inside && n->first != NULL)
		return n->first;
	while (n != top && n->next == NULL)
		n = n->parent;
	return n != top ? n->next : NULL;
}

struct node *
node_below(const struct node *n, const char *name)
{
	struct node *c = n != NULL ? n->first : NULL;

	while (c != NULL && !node_is(c, name))
		c = node_next(c, n, true);
	return c;
}
