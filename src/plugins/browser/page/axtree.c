/* Joins the trees of all frames in one list of nodes, in order of arrival, each with its bid. Texts
 * stay in the browser's messages. */
#include "config.h"

#include "plugins/browser/page/axtree_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text/utf8.h"

#define BID_MARK "browsergym_id_"

/* ---- frames of a page ---- */

static int
push_frame_id(char ***list, size_t *n, char *id)
{
	char **grown = reallocarray(*list, *n + 1, sizeof(*grown));

	if (grown == NULL || id == NULL) {
		if (grown != NULL)
			*list = grown;
		free(id);
		return -1;
	}
	*list = grown;
	grown[(*n)++] = id;
	return 0;
}

struct stack {
	uint32_t *v;
	size_t n, room;
};

static int
stack_push(struct stack *s, uint32_t i)
{
	if (hr_grow(&s->v, s->n, &s->room, sizeof(*s->v)) < 0)
		return -1;
	s->v[s->n++] = i;
	return 0;
}

static int
walk_frames(const struct br_tape *t, struct stack *s, char ***ret, size_t *ret_n)
{
	uint32_t at, list, i;

	while (s->n > 0) {
		at = s->v[--s->n];
		list = br_tape_at(t, at, "childFrames");
		for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i))
			if (stack_push(s, i) < 0)
				return -1;
		at = br_tape_at(t, br_tape_at(t, at, "frame"), "id");
		if (br_tape_type(t, at) == BR_TAPE_STRING &&
		    push_frame_id(ret, ret_n, br_tape_strdup(t, at)) < 0)
			return -1;
	}
	return 0;
}

int
br_ax_frames(const char *json, size_t len, char ***ret, size_t *ret_n, struct hr_err *err)
{
	struct stack s = {0};
	struct br_tape t;
	uint32_t at = 0;
	int done;

	*ret = NULL;
	*ret_n = 0;
	if (br_tape_parse(&t, json, len, err) < 0)
		return -1;
	if (br_tape_at(&t, at, "result") != BR_TAPE_NONE)
		at = br_tape_at(&t, at, "result");
	if (br_tape_at(&t, at, "frameTree") != BR_TAPE_NONE)
		at = br_tape_at(&t, at, "frameTree");
	done = stack_push(&s, at);
	if (done == 0)
		done = walk_frames(&t, &s, ret, ret_n);
	free(s.v);
	br_tape_done(&t);
	if (done == 0 && *ret_n > 0)
		return 0;
	while (*ret_n > 0)
		free((*ret)[--*ret_n]);
	free(*ret);
	*ret = NULL;
	return done < 0 ? hr_err_nomem(err) : hr_err_set(err, HR_E_PROTO, "no frame tree");
}

/* ---- the list ---- */

struct br_ax *
br_ax_new(void)
{
	return calloc(1, sizeof(struct br_ax));
}

void
br_ax_free(struct br_ax *ax)
{
	size_t i;

	if (ax == NULL)
		return;
	for (i = 0; i < ax->n_frames; i++) {
		br_tape_done(&ax->frames[i].tape);
		free(ax->frames[i].json);
		free(ax->frames[i].id);
	}
	for (i = 0; i < ax->n; i++)
		free(ax->nodes[i].bid);
	free(ax->frames);
	free(ax->nodes);
	free(ax->iframes);
	free(ax);
}

static bool
is_bid_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool
br_ax_marked(const char *p, size_t len, size_t *ret_bid, size_t *ret_rest)
{
	size_t at = strlen(BID_MARK), bid, blank;

	if (len <= at || memcmp(p, BID_MARK, at) != 0)
		return false;
	for (bid = at; at < len && is_bid_char(p[at]);)
		at++;
	*ret_bid = at - bid;
	if (at < len && hr_utf8_is_space(hr_utf8_next(p + at, p + len, &blank)))
		at += blank;
	*ret_rest = at;
	return *ret_bid > 0 && memchr(p + at, '\n', len - at) == NULL;
}

uint32_t
br_ax_roledescription(const struct br_tape *t, uint32_t node)
{
	uint32_t list = br_tape_at(t, node, "properties"), i;

	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i))
		if (br_tape_is(t, br_tape_at(t, i, "name"), "roledescription"))
			return i;
	return BR_TAPE_NONE;
}

/* Takes the bid from a text's mark. Returns 0, with *ret NULL if there is no mark; -1 without
 * memory. */
static int
take_bid(const struct br_tape *t, uint32_t text, char **ret)
{
	size_t bid, rest;
	HR_BUF(b, BR_TAPE_TEXT_MAX);

	br_tape_str(t, text, &b);
	if (b.fail != HR_OK)
		return -1;
	if (!br_ax_marked(hr_buf_str(&b), b.len, &bid, &rest))
		return 0;
	*ret = strndup(b.p + strlen(BID_MARK), bid);
	return *ret != NULL ? 0 : -1;
}

static int
node_bid(const struct ax_frame *f, uint32_t node, char **ret)
{
	const struct br_tape *t = &f->tape;
	uint32_t i;

	*ret = NULL;
	i = br_tape_at(t, node, "browsergym_id");
	if (f->id == NULL) {
		if (br_tape_type(t, i) == BR_TAPE_STRING && (*ret = br_tape_strdup(t, i)) == NULL)
			return -1;
		return 0;
	}
	i = br_ax_roledescription(t, node);
	if (take_bid(t, br_tape_at(t, br_tape_at(t, i, "value"), "value"), ret) < 0)
		return -1;
	if (*ret != NULL)
		return 0;
	return take_bid(t, br_tape_at(t, br_tape_at(t, node, "description"), "value"), ret);
}

static int
add_node(struct br_ax *ax, uint32_t value)
{
	struct ax_frame *f = &ax->frames[ax->n_frames - 1];
	struct ax_node n = {.frame = (uint32_t)(ax->n_frames - 1), .value = value};

	if (hr_grow(&ax->nodes, ax->n, &ax->room, sizeof(*ax->nodes)) < 0 ||
	    node_bid(f, value, &n.bid) < 0)
		return -1;
	ax->nodes[ax->n++] = n;
	return 0;
}

static int
add_iframe(struct br_ax *ax, size_t i)
{
	if (hr_grow(&ax->iframes, ax->n_iframes, &ax->room_iframes, sizeof(*ax->iframes)) < 0)
		return -1;
	ax->iframes[ax->n_iframes++] = i;
	return 0;
}

static int
add_nodes(struct br_ax *ax, uint32_t list)
{
	struct ax_frame *f = &ax->frames[ax->n_frames - 1];
	const struct br_tape *t = &f->tape;
	uint32_t i;

	f->first = ax->n;
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i)) {
		if (br_tape_type(t, i) != BR_TAPE_OBJECT)
			continue;
		if (add_node(ax, i) < 0)
			return -1;
		if (f->id != NULL &&
		    br_tape_is(t, br_tape_at(t, br_tape_at(t, i, "role"), "value"), "Iframe") &&
		    add_iframe(ax, ax->n - 1) < 0)
			return -1;
		f->n++;
	}
	return 0;
}

/* Finds the list of nodes in the browser's reply. */
static uint32_t
find_nodes(const struct br_tape *t)
{
	uint32_t at = br_tape_at(t, 0, "result");

	if (at == BR_TAPE_NONE)
		at = 0;
	return br_tape_type(t, at) == BR_TAPE_LIST ? at : br_tape_at(t, at, "nodes");
}

int
br_ax_add_take(struct br_ax *ax, const char *frame_id, char *json, size_t len, struct hr_err *err)
{
	struct ax_frame *grown = reallocarray(ax->frames, ax->n_frames + 1, sizeof(*grown));
	struct ax_frame f = {.json = json};
	uint32_t list;

	if (grown != NULL)
		ax->frames = grown;
	if (grown == NULL || (frame_id != NULL && (f.id = strdup(frame_id)) == NULL)) {
		free(json);
		return hr_err_nomem(err);
	}
	if (br_tape_parse(&f.tape, json, len, err) < 0) {
		free(f.id);
		free(json);
		return -1;
	}
	ax->frames[ax->n_frames++] = f;
	list = find_nodes(&f.tape);
	if (br_tape_type(&f.tape, list) != BR_TAPE_LIST) {
		ax->no_nodes = true;
		return frame_id == NULL ? 0 : hr_err_set(err, HR_E_PROTO, "a tree without nodes");
	}
	return add_nodes(ax, list) < 0 ? hr_err_nomem(err) : 0;
}

int64_t
br_ax_iframe(const struct br_ax *ax, size_t i)
{
	const struct ax_node *n;
	const struct br_tape *t;

	if (i >= ax->n_iframes)
		return -1;
	n = &ax->nodes[ax->iframes[i]];
	t = &ax->frames[n->frame].tape;
	return br_tape_int(t, br_tape_at(t, n->value, "backendDOMNodeId"), 0);
}

void
br_ax_join(struct br_ax *ax, size_t i, const char *frame_id)
{
	size_t k;

	for (k = 0; frame_id != NULL && i < ax->n_iframes && k < ax->n_frames; k++)
		if (ax->frames[k].id != NULL && strcmp(ax->frames[k].id, frame_id) == 0 &&
		    ax->frames[k].n > 0)
			ax->nodes[ax->iframes[i]].child = ax->frames[k].first + 1;
}
