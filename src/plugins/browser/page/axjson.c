/* Prints an accessibility tree as JSON: the browser's text, with bids moved from their marks to a
 * member. */
#include "config.h"

#include "plugins/browser/page/axtree_int.h"

#include <string.h>

#include "proto/json.h"

static void
put_raw(struct hr_buf *b, const struct br_tape *t, uint32_t i)
{
	const char *quote = br_tape_type(t, i) == BR_TAPE_STRING ? "\"" : "";
	const char *p;
	size_t len;

	p = br_tape_raw(t, i, &len);
	hr_buf_adds(b, quote);
	hr_buf_add(b, p, len);
	hr_buf_adds(b, quote);
}

/* Appends {"type":type,"value":<text without its mark>}, without a type if there is none; with
 * `property` as the value in {"name":..., "value":...}. Appends nothing and returns false if the
 * text is only a mark. */
static bool
put_cleaned(struct hr_buf *b, const struct br_tape *t, uint32_t value, bool property)
{
	uint32_t type = br_tape_at(t, value, "type");
	size_t bid, rest = 0;
	HR_BUF(text, BR_TAPE_TEXT_MAX);
	bool left;

	br_tape_str(t, br_tape_at(t, value, "value"), &text);
	if (!br_ax_marked(hr_buf_str(&text), text.len, &bid, &rest))
		rest = 0;
	left = text.len > rest;
	if (left) {
		hr_buf_adds(b, property ? "{\"name\":\"roledescription\",\"value\":" : "");
		hr_buf_addc(b, '{');
		if (type != BR_TAPE_NONE) {
			hr_buf_adds(b, "\"type\":");
			put_raw(b, t, type);
			hr_buf_addc(b, ',');
		}
		hr_buf_adds(b, "\"value\":");
		hr_json_put_str(b, text.p + rest, text.len - rest, HR_JSON_REPLACE);
		hr_buf_adds(b, property ? "}}" : "}");
	}
	if (text.fail != HR_OK && b->fail == HR_OK)
		b->fail = text.fail;
	return left;
}

static void
put_properties(struct hr_buf *b, const struct br_tape *t, uint32_t node, uint32_t list)
{
	uint32_t marked = br_ax_roledescription(t, node), i;
	const char *sep = "";
	size_t had;

	hr_buf_addc(b, '[');
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i)) {
		had = b->len;
		hr_buf_adds(b, sep);
		if (i != marked)
			put_raw(b, t, i);
		else if (!put_cleaned(b, t, br_tape_at(t, i, "value"), true) && b->fail == HR_OK) {
			b->len = had;
			continue;
		}
		sep = ",";
	}
	hr_buf_addc(b, ']');
}

static void
put_children(struct hr_buf *b, const struct br_ax *ax, const struct ax_node *n, uint32_t list)
{
	const struct br_tape *t = &ax->frames[n->frame].tape;
	const struct ax_node *joined = n->child > 0 ? &ax->nodes[n->child - 1] : NULL;
	const char *sep = "";
	uint32_t i;

	hr_buf_addc(b, '[');
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i)) {
		hr_buf_adds(b, sep);
		put_raw(b, t, i);
		sep = ",";
	}
	if (joined != NULL) {
		t = &ax->frames[joined->frame].tape;
		i = br_tape_at(t, joined->value, "nodeId");
		hr_buf_adds(b, i != BR_TAPE_NONE ? sep : "");
		put_raw(b, t, i);
	}
	hr_buf_addc(b, ']');
}

static void
put_node(struct hr_buf *b, const struct br_ax *ax, const struct ax_node *n)
{
	const struct ax_frame *f = &ax->frames[n->frame];
	const struct br_tape *t = &f->tape;
	const char *sep = "";
	uint32_t key;
	size_t had;

	hr_buf_addc(b, '{');
	for (key = br_tape_first(t, n->value); key != BR_TAPE_NONE;
	     key = br_tape_next(t, n->value, key + 1)) {
		if (br_tape_is(t, key, "browsergym_id"))
			continue;
		had = b->len;
		hr_buf_adds(b, sep);
		put_raw(b, t, key);
		hr_buf_addc(b, ':');
		if (f->id != NULL && br_tape_is(t, key, "properties"))
			put_properties(b, t, n->value, key + 1);
		else if (f->id != NULL && br_tape_is(t, key, "childIds"))
			put_children(b, ax, n, key + 1);
		else if (f->id == NULL || !br_tape_is(t, key, "description"))
			put_raw(b, t, key + 1);
		else if (!put_cleaned(b, t, key + 1, false) && b->fail == HR_OK) {
			b->len = had;
			continue;
		}
		sep = ",";
	}
	if (n->bid != NULL) {
		hr_buf_addf(b, "%s\"browsergym_id\":", sep);
		hr_json_put_str(b, n->bid, strlen(n->bid), HR_JSON_REPLACE);
	}
	hr_buf_addc(b, '}');
}

void
br_ax_json(const struct br_ax *ax, struct hr_buf *b)
{
	size_t i;

	hr_buf_adds(b, "{\"nodes\":[");
	for (i = 0; i < ax->n && b->fail == HR_OK; i++) {
		hr_buf_adds(b, i > 0 ? "," : "");
		put_node(b, ax, &ax->nodes[i]);
	}
	hr_buf_adds(b, "]}");
}
