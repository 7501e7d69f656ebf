/* Implements relationships, the choice of the converter, and the text functions of all
 * converters. */
#include "config.h"

#include "office/office.h"
#include "base/path.h"
#include "base/text/utf8.h"

#include <stdlib.h>
#include <string.h>

#include "office/office_int.h"

#define NAME_MAX_LEN 4096

/* ---- relationships ---- */

/* Resolves a relationship's target relative to the folder of the part that names it. */
static char *
rel_resolve(const char *part, const char *target)
{
	const char *slash = strrchr(part, '/'), *p, *end;
	HR_BUF(b, NAME_MAX_LEN);

	if (target[0] != '/' && slash != NULL)
		hr_buf_add(&b, part, (size_t)(slash - part));
	for (p = target; *p != '\0'; p = *end != '\0' ? end + 1 : end) {
		end = strchrnul(p, '/');
		if (end - p == 2 && memcmp(p, "..", 2) == 0) {
			while (b.len > 0 && b.p[b.len - 1] != '/')
				b.len--;
			if (b.len > 0)
				b.len--;
		} else if (end > p && !(end - p == 1 && *p == '.')) {
			if (b.len > 0)
				hr_buf_addc(&b, '/');
			hr_buf_add(&b, p, (size_t)(end - p));
		}
	}
	hr_buf_addc(&b, '\0');
	return b.fail == HR_OK ? hr_buf_take(&b) : NULL;
}

static int
rels_add(struct rels *r, const char *part, const struct node *n, struct hr_err *err)
{
	const char *id = node_attr(n, "Id"), *type = node_attr(n, "Type"),
		   *target = node_attr(n, "Target"), *mode = node_attr(n, "TargetMode");
	struct rel *rel;

	if (id == NULL || type == NULL || target == NULL || strlen(target) > NAME_MAX_LEN / 2)
		return 0;
	rel = calloc(1, sizeof(*rel));
	if (rel != NULL)
		rel->target = mode != NULL && strcmp(mode, "External") == 0
				  ? strdup(target)
				  : rel_resolve(part, target);
	if (rel == NULL || rel->target == NULL) {
		free(rel);
		return hr_err_nomem(err);
	}
	rel->id = id;
	rel->type = hr_path_leaf(type);
	rel->next = r->first;
	r->first = rel;
	return 0;
}

int
rels_open(struct rels *r, const struct parts *ps, const char *part, struct hr_err *err)
{
	const char *last = hr_path_leaf(part);
	const struct hr_buf *bytes;
	const struct node *n;
	HR_BUF(name, NAME_MAX_LEN * 2);
	int result = 0;

	*r = (struct rels){NULL, NULL};
	hr_buf_add(&name, part, (size_t)(last - part));
	hr_buf_addf(&name, "_rels/%s.rels", last);
	bytes = name.fail == HR_OK ? parts_find(ps, hr_buf_str(&name)) : NULL;
	if (bytes == NULL)
		return 0;
	r->tree = tree_read(bytes, err);
	if (r->tree == NULL)
		return -1;
	for (n = tree_root(r->tree)->first; n != NULL && result == 0; n = n->next)
		if (node_is(n, "Relationship"))
			result = rels_add(r, part, n, err);
	if (result < 0)
		rels_done(r);
	return result;
}

void
rels_done(struct rels *r)
{
	struct rel *rel;

	while ((rel = r->first) != NULL) {
		r->first = rel->next;
		free(rel->target);
		free(rel);
	}
	tree_done(&r->tree);
}

const char *
rels_target(const struct rels *r, const char *id)
{
	const struct rel *rel = r->first;

	while (rel != NULL && (id == NULL || strcmp(rel->id, id) != 0))
		rel = rel->next;
	return rel != NULL ? rel->target : NULL;
}

const char *
rels_of_type(const struct rels *r, const char *type)
{
	const struct rel *rel;
	const char *found = NULL;

	/* keeps the last match, since the list is in reverse order */
	for (rel = r->first; rel != NULL; rel = rel->next)
		if (strcmp(rel->type, type) == 0)
			found = rel->target;
	return found;
}

/* ---- text ---- */

void
office_add_flat(struct hr_buf *out, const char *p, size_t len, bool marks)
{
	const char *end = p + len;
	/* the parser delivers text in pieces */
	bool blank = out->len > 0 && out->p[out->len - 1] == ' ';

	for (; p < end; p++) {
		if (strchr(" \t\r\n", *p) != NULL && *p != '\0') {
			if (!blank)
				hr_buf_addc(out, ' ');
			blank = true;
			continue;
		}
		blank = false;
		if (marks && (*p == '*' || *p == '_'))
			hr_buf_addc(out, '\\');
		hr_buf_addc(out, *p);
	}
}

void
office_add_rule(struct hr_buf *out, size_t columns)
{
	hr_buf_addc(out, '|');
	while (columns-- > 0 && out->fail == HR_OK)
		hr_buf_adds(out, " --- |");
	hr_buf_addc(out, '\n');
}

void
office_trim(struct hr_buf *out)
{
	if (out->len > 0) {
		out->len = hr_utf8_rstrip(out->p, out->len);
		out->p[out->len] = '\0';
	}
}

/* ---- the converters ---- */

static const struct {
	const char *kind, *part;
	int (*convert)(
	    const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err);
} kinds[] = {
    {"docx", "word/document.xml", docx_convert},
    {"pptx", "ppt/presentation.xml", pptx_convert},
    {"xlsx", "xl/workbook.xml", xlsx_convert},
};

int
hr_office_text(
    const char *kind, const void *bytes, size_t len, struct hr_buf *text, struct hr_err *err)
{
	struct parts *ps = NULL;
	HR_CLEAN(rels_done) struct rels rels = {NULL, NULL};
	const char *part;
	size_t i = 0;
	int r = -1;

	while (i < 3 && strcmp(kinds[i].kind, kind) != 0)
		i++;
	if (i == 3)
		return hr_err_set(err, HR_E_INVAL, "unknown type of document");
	ps = parts_open(bytes, len, err);
	if (ps != NULL && rels_open(&rels, ps, "", err) == 0) {
		part = rels_of_type(&rels, "officeDocument");
		r = kinds[i].convert(ps, part != NULL ? part : kinds[i].part, text, err);
	}
	parts_free(ps);
	if (r == 0 && text->fail == HR_E_TOOLARGE) {
		text->fail = HR_OK; /* no reader sees that much text */
		while (text->len > 0 && (text->p[text->len - 1] & 0x80) != 0)
			text->p[--text->len] = '\0'; /* the byte may be half a character */
	}
	return r == 0 ? hr_buf_check(text, err) : -1;
}
