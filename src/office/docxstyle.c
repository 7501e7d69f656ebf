/* Finds the styles and the numbering of paragraphs of a text document. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "office/office_int.h"

#define LINKS 4 /* styles of numbering that name one another */

const struct node *
docx_style(const struct docx_styles *s, const char *id)
{
	return s->styles != NULL ? node_with(tree_root(s->styles), "style", "styleId", id) : NULL;
}

/* Finds the level of a numbering; a style of numbering may stand in for it. */
static const struct node *
find_level(const struct docx_styles *s, const char *id, const char *level)
{
	const struct node *root = s->numbering != NULL ? tree_root(s->numbering) : NULL, *num, *abs;
	const char *style;
	unsigned i;

	for (i = 0; i < LINKS; i++) {
		num = node_with(root, "num", "numId", id);
		abs = node_with(root, "abstractNum", "abstractNumId",
		    node_attr(node_child(num, "abstractNumId"), "val"));
		style = node_attr(node_child(abs, "numStyleLink"), "val");
		if (style == NULL)
			return node_with(abs, "lvl", "ilvl", level);
		num = node_child(node_child(docx_style(s, style), "pPr"), "numPr");
		id = node_attr(node_child(num, "numId"), "val");
	}
	return NULL;
}

/* Finds the level of a numbering that names the style of a paragraph. */
static const struct node *
find_level_of_style(const struct docx_styles *s, const char *style)
{
	const struct node *n = s->numbering != NULL ? tree_root(s->numbering)->first : NULL, *lvl;
	const char *named;

	for (; style != NULL && n != NULL; n = n->next)
		for (lvl = n->first; lvl != NULL; lvl = lvl->next) {
			named = node_attr(node_child(lvl, "pStyle"), "val");
			if (named != NULL && strcmp(named, style) == 0)
				return lvl;
		}
	return NULL;
}

const struct node *
docx_level(const struct docx_styles *s, const struct node *props, const char *style)
{
	const struct node *own = node_child(props, "numPr"), *lvl;
	const char *id = node_attr(node_child(own, "numId"), "val"),
		   *level = node_attr(node_child(own, "ilvl"), "val");

	if (id != NULL && level != NULL)
		return find_level(s, id, level);
	lvl = find_level_of_style(s, style);
	return lvl == NULL && id != NULL ? find_level(s, id, "0") : lvl;
}

const char *
docx_style_tag(const struct docx_styles *s, const char *id)
{
	const char *name = node_attr(node_child(docx_style(s, id), "name"), "val");
	static const char *const tags[] = {"h1", "h2", "h3", "h4", "h5", "h6"},
				 *const plain[] = {"footnote text", "endnote text",
				     "annotation text", "Footnote", "Endnote"};
	size_t i;

	if (id != NULL && strncmp(id, "Heading", 7) == 0 && id[7] >= '1' && id[7] <= '6' &&
	    id[8] == '\0')
		return tags[id[7] - '1'];
	if (name != NULL && strncasecmp(name, "heading ", 8) == 0 && name[8] >= '1' &&
	    name[8] <= '6' && name[9] == '\0')
		return tags[name[8] - '1'];
	if ((id != NULL && strcmp(id, "Heading") == 0) ||
	    (name != NULL && strcasecmp(name, "heading") == 0))
		return "h1";
	for (i = 0; name != NULL && i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcasecmp(name, plain[i]) == 0)
			return "p";
	return NULL;
}
