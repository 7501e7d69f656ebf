#include "config.h"

#include "plugins/browser/act/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MAX 8192
#define DEPTH_MAX 64 /* maximum of nested frames */

/* ---- finding ---- */

int
br_content_frame(struct browser *b, const char *session, const char *object, char *ret)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a = br_ask(b, session, "DOM.describeNode", "{\"objectId\":$s}", object);

	if (a == NULL)
		return -1;
	br_copy(&a->tape, br_tape_at(&a->tape, br_at(a, "node"), "frameId"), ret, BR_ID);
	return 0;
}

int
br_element_of_node(struct browser *b, struct br_session *s, const struct br_frame *f, int64_t node,
    char *ret_object)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a = br_ask(b, s->id, "DOM.resolveNode",
	    "{\"backendNodeId\":$d,\"executionContextId\":$d,\"objectGroup\":\"handrail\"}", node,
	    f->ours);

	if (a == NULL)
		return -1;
	br_copy(
	    &a->tape, br_tape_at(&a->tape, br_at(a, "object"), "objectId"), ret_object, BR_OBJECT);
	return 0;
}

/* Searches one document. ret->object is "" if the element is not in it. */
static int
find_in(struct browser *b, const char *bid, size_t len, struct br_element *ret)
{
	struct br_session *s = NULL;
	struct br_tab *tab = br_tab_find(b, ret->target);
	struct br_frame *f = tab != NULL ? br_frame_of(tab, ret->frame, &s) : NULL;
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	HR_BUF(code, 4096 + 6 * len);

	ret->object[0] = '\0';
	if (f == NULL || f->ours == 0)
		return 0;
	memcpy(ret->session, s->id, sizeof(ret->session));
	br_json(&code, "handrail.find($b)", bid, len);
	a = code.fail == HR_OK ? br_eval(b, s->id, f->ours, hr_buf_str(&code), false) : NULL;
	if (a == NULL)
		return b->err.code == HR_E_PROTO ? 0 : -1;
	br_copy(&a->tape, br_tape_at(&a->tape, br_at(a, "result"), "objectId"), ret->object,
	    sizeof(ret->object));
	return 0;
}

static int
not_found(struct hr_buf *why, const char *bid, size_t len)
{
	hr_buf_adds(why, "ValueError: Could not find element with bid \"");
	hr_buf_add(why, bid, len);
	hr_buf_adds(why, "\"");
	return 1;
}

static bool
digits(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return true;
}

/* Raises the driver's error: it looks for the next part of a bid in an element that is not a
 * frame. */
static int
no_frame(struct browser *b, const struct br_element *el, const char *outer, size_t outer_len,
    struct hr_buf *why)
{
	HR_FREE char *shown = br_element_say(b, el, "preview", "");

	if (shown == NULL)
		return -1;
	hr_buf_adds(why, "Error: Locator.count: Error: Selector \"internal:testid=[bid=\"");
	hr_buf_add(why, outer, outer_len);
	hr_buf_adds(why, "\"s] >> :scope\" resolved to ");
	hr_buf_adds(why, shown);
	hr_buf_adds(why, ", <iframe> was expected");
	return 1;
}

int
br_element_find(struct browser *b, struct br_tab *tab, const char *bid, size_t len,
    struct br_element *ret, struct hr_buf *why)
{
	char frame[BR_ID];
	size_t i = 0, outer = 0;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->target, tab->target, sizeof(ret->target));
	if (br_top(tab) != NULL)
		memcpy(ret->frame, br_top(tab)->id, sizeof(ret->frame));
	while (i < len && !digits(bid + i, len - i)) {
		i++;
		while (i < len && ((bid[i] >= 'A' && bid[i] <= 'Z') || (bid[i] & 0xc0) == 0x80))
			i++;
		if (outer > 0 && frame[0] == '\0')
			return no_frame(b, ret, bid, outer, why);
		if (outer > 0)
			memcpy(ret->frame, frame, sizeof(frame));
		if (find_in(b, bid, i, ret) != 0)
			return -1;
		if (ret->object[0] == '\0')
			return not_found(why, bid, len);
		if (br_content_frame(b, ret->session, ret->object, frame) != 0)
			return -1;
		outer = i;
	}
	if (outer > 0 && frame[0] == '\0')
		return no_frame(b, ret, bid, outer, why);
	if (outer > 0)
		memcpy(ret->frame, frame, sizeof(frame));
	if (find_in(b, bid, len, ret) != 0)
		return -1;
	return ret->object[0] == '\0' ? not_found(why, bid, len) : 0;
}

char *
br_element_say(
    struct browser *b, const struct br_element *el, const char *function, const char *args)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a = br_call_on(b, el->session, el->object, function, args);
	char *text;

	if (a == NULL)
		return NULL;
	text = br_tape_strdup(&a->tape, br_value(a));
	if (text == NULL)
		(void)hr_err_set(&b->err, HR_E_PROTO, "a script answered with no text");
	return text;
}

/* ---- one attempt ---- */

void
br_attempt_begin(struct br_attempt *a, struct browser *b, const struct br_element *el,
    const char *bid, size_t len)
{
	HR_FREE char *shown = br_element_say(b, el, "preview", "");

	a->until_ms = hr_now_ms() + BR_ELEMENT_MS;
	a->n = 0;
	hr_buf_init(&a->log, LOG_MAX);
	hr_buf_adds(&a->log, "\nCall log:\n  - waiting for get_by_test_id(\"");
	hr_buf_add(&a->log, bid, len);
	hr_buf_adds(&a->log, "\")\n");
	if (shown != NULL)
		hr_buf_addf(&a->log, "    - locator resolved to %s\n", shown);
	if (a->doing[0] != '\0')
		hr_buf_addf(&a->log, "  - attempting %s action\n", a->doing);
}

void
br_attempt_done(struct br_attempt *a)
{
	hr_buf_done(&a->log);
}

int
br_attempt_fails(const struct br_attempt *a, struct hr_buf *why, const char *text)
{
	hr_buf_addf(why, "Error: %s: ", a->api);
	hr_buf_adds(why, text);
	hr_buf_adds(why, hr_buf_str(&a->log));
	return 1;
}

int
br_attempt_again(struct browser *b, struct br_attempt *a, const char *reason, struct hr_buf *why)
{
	static const int delays[] = {0, 20, 100, 100, 500};
	int64_t now = hr_now_ms(), next;
	size_t i = a->n < 4 ? a->n : 4;

	a->n++;
	next = now + delays[i];
	if (now < a->until_ms)
		return br_pause(b, next < a->until_ms ? next : a->until_ms) != 0 ? -1 : 0;
	hr_buf_addf(why, "TimeoutError: %s: Timeout %dms exceeded.", a->api, BR_ELEMENT_MS);
	hr_buf_adds(why, hr_buf_str(&a->log));
	if (a->words[0] != '\0')
		hr_buf_addf(why, "    - waiting for element to be %s\n", a->words);
	hr_buf_addf(why, "      - %s\n    - tried %u times\n", reason, a->n);
	return 1;
}

int
br_element_ready(
    struct browser *b, const struct br_element *el, struct br_attempt *a, struct hr_buf *why)
{
	char args[32], reason[80];
	int r = 0;

	(void)snprintf(args, sizeof(args), "\"%s\"", a->states);
	while (r == 0) {
		HR_FREE char *said = br_element_say(b, el, "check", args);

		if (said == NULL)
			return -1;
		if (said[0] == '\0')
			return 0;
		if (said[0] == '!')
			return br_attempt_fails(a, why, said + 1);
		if (strcmp(said, "detached") == 0)
			(void)snprintf(reason, sizeof(reason), "element was detached from the DOM");
		else
			(void)snprintf(reason, sizeof(reason), "element is not %s", said);
		r = br_attempt_again(b, a, reason, why);
	}
	return r;
}

/* ---- position ---- */

struct quad {
	double x[4], y[4];
};

/* Gets the first box from DevTools, and a point in the first box visible in the window. Returns 0;
 * 1: none is visible; -1: an error. */
static int
quads_of(struct browser *b, const struct br_element *el, struct quad *ret_first, double *ret_x,
    double *ret_y)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a =
	    br_ask(b, el->session, "DOM.getContentQuads", "{\"objectId\":$s}", el->object);
	const struct br_tab *tab = br_tab_find(b, el->target);
	double width = tab != NULL ? (double)tab->width : BR_WIDTH,
	       height = tab != NULL ? (double)tab->height : BR_HEIGHT;
	uint32_t list, one, n;
	bool first = true;
	int r = 1, i;

	if (a == NULL)
		return b->err.code == HR_E_PROTO ? 1 : -1;
	list = br_at(a, "quads");
	for (one = br_tape_first(&a->tape, list); one != BR_TAPE_NONE && r == 1;
	     one = br_tape_next(&a->tape, list, one)) {
		struct quad q = {{0}, {0}};
		double area = 0, x = 0, y = 0;

		n = br_tape_first(&a->tape, one);
		for (i = 0; i < 8; i++, n = br_tape_next(&a->tape, one, n))
			(i % 2 == 0 ? q.x : q.y)[i / 2] = br_tape_number(&a->tape, n, 0);
		if (first)
			*ret_first = q;
		first = false;
		for (i = 0; i < 4; i++) {
			q.x[i] = fmin(fmax(q.x[i], 0), width);
			q.y[i] = fmin(fmax(q.y[i], 0), height);
		}
		for (i = 0; i < 4; i++) {
			int k = (i + 1) % 4;

			area += (q.x[i] * q.y[k] - q.x[k] * q.y[i]) / 2;
			x += q.x[i] / 4;
			y += q.y[i] / 4;
		}
		if (fabs(area) > 0.99) {
			*ret_x = x;
			*ret_y = y;
			r = 0;
		}
	}
	return first ? 1 : r;
}

/* Finds the position of an element's document in the window. */
static int
offset_of(struct browser *b, const char *session, const char *object, const struct quad *q,
    double *ret_x, double *ret_y)
{
	HR_CLEAN(br_answer_clean) struct br_answer *a = br_call_on(b, session, object, "box", "");
	uint32_t list, i;
	double left, top;
	int k;

	if (a == NULL)
		return -1;
	list = br_value(a);
	i = br_tape_first(&a->tape, list);
	left = br_tape_number(&a->tape, i, 0);
	i = br_tape_next(&a->tape, list, i);
	top = br_tape_number(&a->tape, i, 0);
	*ret_x = q->x[0];
	*ret_y = q->y[0];
	for (k = 1; k < 4; k++) {
		*ret_x = fmin(*ret_x, q->x[k]);
		*ret_y = fmin(*ret_y, q->y[k]);
	}
	*ret_x -= left;
	*ret_y -= top;
	return 0;
}

/* Tests whether a press at this point reaches the element: *ret is "", or the element that would
 * get the press; the caller frees it. */
static int
hit(struct browser *b, const struct br_element *el, double x, double y, char **ret)
{
	HR_BUF(args, 256);

	br_json(&args, "$f,$f", x, y);
	*ret = br_element_say(b, el, "hit", hr_buf_str(&args));
	return *ret != NULL ? 0 : -1;
}

int
br_element_owner(struct browser *b, const struct br_element *el, struct br_element *ret)
{
	struct br_tab *tab = br_tab_find(b, el->target);
	struct br_session *s = NULL, *up = NULL;
	struct br_frame *f = tab != NULL ? br_frame_of(tab, el->frame, &s) : NULL;
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	int64_t node;

	if (f == NULL)
		return hr_err_set(&b->err, HR_E_PROTO, "the frame has gone");
	if (f == br_top(tab))
		return 1;
	*ret = *el;
	/* a frame of the parent process holds another process's top document */
	memcpy(ret->frame, f->parent[0] != '\0' ? f->parent : s->above, sizeof(ret->frame));
	f = br_frame_of(tab, ret->frame, &up);
	if (f == NULL)
		return hr_err_set(&b->err, HR_E_PROTO, "the frame has gone");
	memcpy(ret->session, up->id, sizeof(ret->session));
	a = br_ask(b, ret->session, "DOM.getFrameOwner", "{\"frameId\":$s}", el->frame);
	if (a == NULL)
		return -1;
	node = br_tape_int(&a->tape, br_at(a, "backendNodeId"), 0);
	/* the page may have removed the frame meanwhile */
	tab = br_tab_find(b, el->target);
	f = tab != NULL ? br_frame_of(tab, ret->frame, &up) : NULL;
	if (f == NULL)
		return hr_err_set(&b->err, HR_E_NOTFOUND, "the frame has gone");
	return br_element_of_node(b, up, f, node, ret->object);
}

/* Finds the element's position in the window. Returns 0; 1: it is outside; -1: an error. */
static int
place(struct browser *b, const struct br_element *el, double *x, double *y, double *off_x,
    double *off_y)
{
	struct quad first = {{0}, {0}};
	int r = quads_of(b, el, &first, x, y);

	if (r != 0)
		return r;
	return offset_of(b, el->session, el->object, &first, off_x, off_y);
}

/* Finds the corner of an element's process in the window, the origin of its coordinates. Returns 0;
 * 1: it is outside; -1: an error. */
static int
corner_of(struct browser *b, const struct br_element *el, double *ret_x, double *ret_y)
{
	struct br_element at = *el, up;
	struct br_session *s = NULL;
	struct br_tab *tab = br_tab_find(b, el->target);
	int depth, r;

	*ret_x = *ret_y = 0;
	for (depth = 0; depth < DEPTH_MAX; depth++) {
		struct quad q = {{0}, {0}};
		double x, y;

		if (tab == NULL || strcmp(at.session, br_page(tab)->id) == 0)
			break;
		s = br_session_find(b, at.session, &tab);
		if (s == NULL)
			return hr_err_set(&b->err, HR_E_NOTFOUND, "the frame has gone");
		memcpy(at.frame, TAILQ_FIRST(&s->frames)->id, sizeof(at.frame));
		r = br_element_owner(b, &at, &up);
		if (r == 0)
			r = quads_of(b, &up, &q, &x, &y);
		if (r != 0)
			return r;
		*ret_x += q.x[0];
		*ret_y += q.y[0];
		at = up;
		tab = br_tab_find(b, el->target);
	}
	return 0;
}

/* Finds the position of an element in an out-of-process frame. */
static int
point_in_other(struct browser *b, const struct br_element *el, bool given, double x, double y,
    double ox, double oy, double *ret_x, double *ret_y, struct hr_buf *reason)
{
	double left, top;
	HR_FREE char *taker = NULL;
	int r = corner_of(b, el, &left, &top);

	if (r != 0) {
		if (r > 0)
			hr_buf_adds(reason, "element is outside of the viewport");
		return r;
	}
	if (given) {
		x = *ret_x - left;
		y = *ret_y - top;
	}
	if (hit(b, el, x - ox, y - oy, &taker) != 0)
		return -1;
	hr_buf_adds(reason, taker);
	*ret_x = x + left;
	*ret_y = y + top;
	return taker[0] != '\0';
}

/* Finds a point in the window at which a press reaches the element; with `given` tests the point in
 * *ret_x and *ret_y. Returns 0; 1 with `reason`; -1: an error. */
static int
point_now(struct browser *b, const struct br_element *el, bool given, double *ret_x, double *ret_y,
    struct hr_buf *reason)
{
	struct br_element at = *el, up;
	double x = 0, y = 0, ox = 0, oy = 0;
	struct br_tab *tab = br_tab_find(b, el->target);
	int r, depth;

	r = place(b, el, &x, &y, &ox, &oy);
	if (r != 0) {
		if (r > 0)
			hr_buf_adds(reason, "element is outside of the viewport");
		return r;
	}
	if (tab != NULL && strcmp(el->session, br_page(tab)->id) != 0)
		return point_in_other(b, el, given, x, y, ox, oy, ret_x, ret_y, reason);
	if (given) {
		x = *ret_x;
		y = *ret_y;
	}
	*ret_x = x;
	*ret_y = y;
	for (depth = 0; depth < DEPTH_MAX; depth++) {
		HR_FREE char *taker = NULL;
		double qx, qy;

		if (hit(b, &at, x - ox, y - oy, &taker) != 0)
			return -1;
		hr_buf_adds(reason, taker);
		if (taker[0] != '\0')
			return 1;
		r = br_element_owner(b, &at, &up);
		if (r != 0)
			return r < 0 ? -1 : 0;
		at = up;
		r = place(b, &at, &qx, &qy, &ox, &oy);
		if (r != 0)
			return r < 0 ? -1 : 0;
	}
	return 0;
}

static int
scroll(struct browser *b, const struct br_element *el, unsigned attempt)
{
	static const char *const blocks[] = {"\"end\"", "\"center\"", "\"start\""};
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;

	if (attempt == 0) {
		if (br_do(b, el->session, "DOM.scrollIntoViewIfNeeded", "{\"objectId\":$s}",
			el->object) == 0)
			return 0;
		/* an element without a position is reported later */
		return b->err.code == HR_E_PROTO ? 0 : -1;
	}
	a = br_call_on(b, el->session, el->object, "scroll", blocks[(attempt - 1) % 3]);
	return a != NULL ? 0 : -1;
}

int
br_element_point(struct browser *b, const struct br_element *el, struct br_attempt *a,
    double *ret_x, double *ret_y, struct hr_buf *why)
{
	HR_BUF(reason, LOG_MAX);
	int r = 0;

	while (r == 0) {
		r = br_element_ready(b, el, a, why);
		if (r != 0)
			return r;
		if (scroll(b, el, a->n) != 0)
			return -1;
		hr_buf_reset(&reason);
		r = point_now(b, el, false, ret_x, ret_y, &reason);
		if (r <= 0)
			return r;
		r = br_attempt_again(b, a, hr_buf_str(&reason), why);
	}
	return r;
}

int
br_element_still(struct browser *b, const struct br_element *el, struct br_attempt *a, double x,
    double y, struct hr_buf *why)
{
	HR_BUF(reason, LOG_MAX);
	int r;

	r = point_now(b, el, true, &x, &y, &reason);
	if (r > 0)
		r = br_attempt_again(b, a, hr_buf_str(&reason), why) == 0 ? 2 : 1;
	return r;
}
