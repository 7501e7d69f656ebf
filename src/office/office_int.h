/* What the converters of office documents share: parts of the archive, and a part as a tree. */
#ifndef HR_OFFICE_OFFICE_INT_H
#define HR_OFFICE_OFFICE_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- the archive (ooparts.c) ---- */

struct parts;

/* Every XML file of the archive, unpacked. NULL: it is none, or larger than the limits. */
struct parts *parts_open(const void *bytes, size_t len, struct hr_err *err);
void parts_free(struct parts *ps);
/* The bytes of a part, borrowed; NULL: there is none of that name. */
const struct hr_buf *parts_find(const struct parts *ps, const char *name);

/* ---- a part as a tree (ooxml.c) ---- */

struct attr {
	const char *name; /* without its namespace, but "r:..." where it names a relationship */
	const char *value;
	struct attr *next;
};

/* An element, or (name == NULL) a piece of its text; text is kept of `t` and `v` only. */
struct node {
	const char *name; /* without its namespace */
	const char *text;
	struct attr *attrs;
	struct node *parent, *first, *last, *next;
};

struct tree;

/* NULL: not well-formed, has a DOCTYPE (which no such document has), or too large or deep. */
struct tree *tree_read(const struct hr_buf *part, struct hr_err *err);
void tree_done(struct tree **t);
struct node *tree_root(const struct tree *t);
/* The tree of a part; NULL: there is none, or it cannot be read. */
struct tree *tree_of(const struct parts *ps, const char *name, struct hr_err *err);

bool node_is(const struct node *n, const char *name);
const char *node_attr(const struct node *n, const char *name); /* NULL: it has none */
struct node *node_child(const struct node *n, const char *name);
/* The first element of that name below n, in the order of the text. */
struct node *node_below(const struct node *n, const char *name);
/* The one after n in the order of the text, below top; inside: also what is below n. */
struct node *node_next(const struct node *n, const struct node *top, bool inside);

/* ---- relationships of a part (oorels.c) ---- */

struct rel {
	const char *id, *type; /* type: the last component of its URI */
	char *target;          /* the name of a part, or an address outside */
	struct rel *next;
};

struct rels {
	struct tree *tree;
	struct rel *first;
};

/* Those of a part ("": of the archive); a part without any has none. -1: out of memory, broken. */
int rels_open(struct rels *r, const struct parts *ps, const char *part, struct hr_err *err);
void rels_done(struct rels *r);
const char *rels_target(const struct rels *r, const char *id);    /* id may be NULL */
const char *rels_of_type(const struct rels *r, const char *type); /* the first */

/* ---- text ---- */

/* Blanks and newlines in a row become one blank, which may be there already; with marks, `*` and
 * `_` are escaped. */
void office_add_flat(struct hr_buf *out, const char *p, size_t len, bool marks);
/* "| --- | --- |" and a newline. */
void office_add_rule(struct hr_buf *out, size_t columns);
/* Takes blanks and newlines off the end. */
void office_trim(struct hr_buf *out);

/* ---- converters: `part` is the name of the main part ---- */

int docx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);
int pptx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);
int xlsx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);

#endif
