/* Defines the parts that the converters of office documents share: the archive's parts, and a part
 * as a tree. */
#ifndef HR_OFFICE_OFFICE_INT_H
#define HR_OFFICE_OFFICE_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- the archive (ooparts.c) ---- */

struct parts;

/* Unpacks every XML file of the archive. Returns NULL if it is not an archive or exceeds the
 * limits. */
struct parts *parts_open(const void *bytes, size_t len, struct hr_err *err);
void parts_free(struct parts *ps);
/* Returns the bytes of a part, borrowed, or NULL if no part has that name. */
const struct hr_buf *parts_find(const struct parts *ps, const char *name);

/* ---- a part as a tree (ooxml.c) ---- */

struct attr {
	const char *name; /* local name; "r:..." for the name of a relationship */
	const char *value;
	struct attr *next;
};

/* An element, or (name == NULL) a piece of its text, which is kept for `t`, `v`
 * and `instrText` only. */
struct node {
	const char *name; /* local name */
	const char *text;
	struct attr *attrs;
	struct node *parent, *first, *last, *next;
};

struct tree;

/* Returns NULL if the text is malformed, too large or deep, or has a DOCTYPE (which no such
 * document has). */
struct tree *tree_read(const struct hr_buf *part, struct hr_err *err);
void tree_done(struct tree **t);
struct node *tree_root(const struct tree *t);
/* Returns the tree of a part, or NULL if it is missing or cannot be read. */
struct tree *tree_of(const struct parts *ps, const char *name, struct hr_err *err);
/* Reads the tree of a part. Returns 0 with *ret NULL if it is missing or name is NULL. */
int tree_maybe(const struct parts *ps, const char *name, struct tree **ret, struct hr_err *err);

bool node_is(const struct node *n, const char *name);
/* Returns NULL if there is no such attribute. */
const char *node_attr(const struct node *n, const char *name);
struct node *node_child(const struct node *n, const char *name);
/* Returns the first element of that name below n, in document order. */
struct node *node_below(const struct node *n, const char *name);
/* Returns the child of that name whose attribute has that value. */
const struct node *
node_with(const struct node *n, const char *name, const char *attr, const char *value);
/* Returns the node after n in document order, below top; with `inside` children of n come first. */
struct node *node_next(const struct node *n, const struct node *top, bool inside);

/* Returns an empty tree with a root of that name, for elements that a converter makes; names are
 * borrowed. A tree that has had no memory or room refuses all that follows: tree_check(). */
struct tree *tree_new(const char *name, struct hr_err *err);
/* Appends an element to parent. Returns NULL after a failure, or if parent is NULL. */
struct node *tree_put(struct tree *t, struct node *parent, const char *name);
void tree_put_text(struct tree *t, struct node *parent, const char *text);
void tree_set(struct tree *t, struct node *n, const char *name, const char *value);
/* Returns -1 if something could not be put. */
int tree_check(const struct tree *t, struct hr_err *err);

/* ---- relationships of a part (oorels.c) ---- */

struct rel {
	const char *id, *type; /* type: the last component of the relationship's URI */
	char *target;          /* name of a part, or an external address */
	struct rel *next;
};

struct rels {
	struct tree *tree;
	struct rel *first;
};

/* Reads a part's relationships ("": the archive's), perhaps none. Returns -1 without memory, or if
 * they are broken. */
int rels_open(struct rels *r, const struct parts *ps, const char *part, struct hr_err *err);
void rels_done(struct rels *r);
/* Returns the target of the relationship; id may be NULL. */
const char *rels_target(const struct rels *r, const char *id);
/* Returns the first target of that type. */
const char *rels_of_type(const struct rels *r, const char *type);

/* ---- text ---- */

/* Appends text; a run of blanks and newlines becomes one blank, which may already be there. With
 * marks, `*` and `_` are escaped. */
void office_add_flat(struct hr_buf *out, const char *p, size_t len, bool marks);
/* Appends a table rule of that many columns, "| ---
 * --- |", and a newline. */
void office_add_rule(struct hr_buf *out, size_t columns);
/* Cuts trailing white space. */
void office_trim(struct hr_buf *out);

/* ---- a page as Markdown (markdown.c) ---- */

/* Appends the Markdown of the elements below page: h1 to h6, p, ul, ol, li, table and its parts,
 * strong, em, s, sup, sub, br, a (href), and img (alt, type). */
void office_add_markdown(struct hr_buf *out, const struct node *page);

/* ---- styles of a text document (docxstyle.c) ---- */

/* Either is NULL if the document has none. */
struct docx_styles {
	struct tree *styles, *numbering;
};

const struct node *docx_style(const struct docx_styles *s, const char *id);
/* Returns the level of numbering of a paragraph with these properties, NULL for none. */
const struct node *
docx_level(const struct docx_styles *s, const struct node *props, const char *style);
/* Returns the element that a style makes, by its id or name: a heading or a paragraph that is no
 * item of a list. NULL: another style. */
const char *docx_style_tag(const struct docx_styles *s, const char *id);

/* ---- converters: `part` is the name of the main part ---- */

int docx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);
int pptx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);
int xlsx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);

#endif
