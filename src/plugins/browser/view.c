#include "config.h"

#include "plugins/browser/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text/quote.h"
#include "plugins/browser/act/element.h"
#include "plugins/browser/page/snapshot.h"

#define TRIES 5
#define AGAIN_MS 500
#define VIEW_MS 60000 /* ms for the whole view */
#define PING_MS 5000  /* ms for a first reply */
#define CALL_MS 30000 /* ms for a large reply */
#define TREE_MAX (192u << 20)
#define MARK_MS 1000 /* ms for the page's observer; some frames are never painted */
#define MARK_FRAME_MS 200
#define DEPTH_MAX 64
#define CLICKERS "(h => h && h.clickers && h.clickers())(globalThis[Symbol.for('handrail')])"

void
br_view_init(struct br_view *v)
{
	memset(v, 0, sizeof(*v));
	br_props_init(&v->props);
	hr_buf_init(&v->html, TREE_MAX);
	hr_buf_init(&v->focused, 4096);
	hr_buf_init(&v->png, 64u << 20);
	hr_buf_init(&v->why_no_tree, 4096);
}

void
br_view_done(struct br_view *v)
{
	br_ax_free(v->ax);
	br_props_done(&v->props);
	hr_buf_done(&v->html);
	hr_buf_done(&v->focused);
	hr_buf_done(&v->png);
	hr_buf_done(&v->why_no_tree);
}

/* ---- marks ---- */

/* Finds the bid of the element that holds a frame: the prefix for those inside. Returns 0; 1: the
 * frame is left out; -1: an error. */
static int
prefix_of(struct browser *b, const char *target, const char *frame, struct hr_buf *ret)
{
	struct br_element in = {.object = ""}, owner;
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	char content[BR_ID];
	uint32_t v;
	HR_FREE char *bid = NULL;
	int r;

	memcpy(in.target, target, BR_ID);
	memcpy(in.frame, frame, BR_ID);
	r = br_element_owner(b, &in, &owner);
	if (r != 0)
		return r < 0 ? -1 : 0; /* this is the page's own frame */
	/* a viewer in a page replaces another frame */
	if (br_content_frame(b, owner.session, owner.object, content) != 0)
		return -1;
	if (strcmp(content, frame) != 0)
		return 1;
	a = br_call_on(b, owner.session, owner.object, "owner", "");
	if (a == NULL)
		return -1;
	v = br_value(a);
	bid = br_tape_strdup(&a->tape, br_tape_at(&a->tape, v, "bid"));
	r = bid == NULL || br_tape_type(&a->tape, br_tape_at(&a->tape, v, "mute")) == BR_TAPE_TRUE;
	if (bid != NULL)
		hr_buf_adds(ret, bid);
	return r;
}

static int
mark_frame(struct browser *b, const char *target, const char *frame)
{
	struct br_tab *tab;
	struct br_session *s = NULL;
	struct br_frame *f;
	HR_BUF(prefix, 4096);
	HR_BUF(code, 65536);
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	char session[BR_ID];
	int64_t ours;
	int r;

	r = prefix_of(b, target, frame, &prefix);
	tab = br_tab_find(b, target);
	f = r == 0 && tab != NULL ? br_frame_of(tab, frame, &s) : NULL;
	if (f == NULL || f->ours == 0)
		return r < 0 ? -1 : 0;
	ours = f->ours;
	memcpy(session, s->id, sizeof(session));
	br_json(&code, "handrail.mark($s,$d)", hr_buf_str(&prefix),
	    (int64_t)(f == br_top(tab) ? MARK_MS : MARK_FRAME_MS));
	if (f->main != 0) /* runs before the marks, which are queried after it */
		br_tell(b, session, "Runtime.evaluate",
		    "{\"expression\":$s,\"contextId\":$d,\"timeout\":$d}", CLICKERS, f->main,
		    (int64_t)CALL_MS);
	a = br_eval(b, session, ours, hr_buf_str(&code), true);
	return a != NULL ? 0 : -1;
}

/* Lists the ids of all frames of a tab, parents first. The caller frees the list. */
static char (*frames_of(struct br_tab *tab, size_t *ret_n))[BR_ID]
{
	struct br_session *s;
	struct br_frame *f;
	size_t n = 0;
	char(*ids)[BR_ID];

	TAILQ_FOREACH(s, &tab->sessions, entry)
	n += s->nframes;
	ids = calloc(n + 1, sizeof(*ids));
	*ret_n = 0;
	TAILQ_FOREACH(s, &tab->sessions, entry)
	{
		TAILQ_FOREACH(f, &s->frames, entry)
		{
			if (ids != NULL)
				memcpy(ids[(*ret_n)++], f->id, sizeof(ids[0]));
		}
	}
	return ids;
}

static int
mark(struct browser *b, const char *target)
{
	struct br_tab *tab = br_tab_find(b, target);
	size_t n = 0, i;
	HR_FREE char(*ids)[BR_ID] = NULL;
	int r = 0;

	if (tab == NULL)
		return hr_err_set(&b->err, HR_E_PROTO, "the page was closed");
	ids = frames_of(tab, &n);
	if (ids == NULL)
		return hr_err_nomem(&b->err);
	for (i = 0; i < n && r == 0; i++) {
		r = mark_frame(b, target, ids[i]);
		/* a frame may vanish while others are marked */
		if (r != 0 && i > 0 && b->err.code == HR_E_PROTO)
			r = 0;
	}
	return r;
}

static void
unmark(struct browser *b, const char *target)
{
	struct br_tab *tab = br_tab_find(b, target);
	struct br_session *s;
	struct br_frame *f;

	if (tab == NULL || tab->crashed)
		return;
	/* does not wait: Chromium runs later queries after it */
	TAILQ_FOREACH(s, &tab->sessions, entry)
	{
		TAILQ_FOREACH(f, &s->frames, entry)
		{
			if (f->ours != 0)
				br_tell(b, s->id, "Runtime.evaluate",
				    "{\"expression\":\"handrail.unmark()\",\"contextId\":$d}",
				    f->ours);
		}
	}
}

/* ---- tree ---- */

static int
take_snapshot(struct browser *b, const char *session, struct br_view *v, bool html)
{
	struct br_answer *a = br_ask(b, session, "DOMSnapshot.captureSnapshot",
	    "{\"computedStyles\":[],\"includeDOMRects\":true,\"includePaintOrder\":true}");
	struct br_snapshot *s;
	size_t len = 0;
	HR_FREE char *text = NULL;
	int r;

	if (a == NULL)
		return -1;
	text = br_answer_take(a, &len);
	s = br_snapshot_new(text, len, &b->err);
	r = s != NULL ? br_snapshot_props(s, &v->props, &b->err) : -1;
	if (r == 0 && html)
		r = br_snapshot_html(s, &v->html, &b->err);
	br_snapshot_free(s);
	return r;
}

static int
join_frames(struct browser *b, const char *session, struct br_view *v)
{
	char frame[BR_ID];
	int64_t node;
	size_t i;

	for (i = 0; (node = br_ax_iframe(v->ax, i)) != -1; i++) {
		HR_CLEAN(br_answer_clean)
		struct br_answer *a =
		    br_ask(b, session, "DOM.describeNode", "{\"backendNodeId\":$d}", node);

		if (a == NULL)
			return -1;
		br_copy(&a->tape, br_tape_at(&a->tape, br_at(a, "node"), "frameId"), frame,
		    sizeof(frame));
		br_ax_join(v->ax, i, frame[0] != '\0' ? frame : NULL);
	}
	return 0;
}

static int
take_trees(struct browser *b, const char *session, struct br_view *v)
{
	struct br_answer *a = br_ask(b, session, "Page.getFrameTree", "{}");
	char **frames = NULL, *text;
	size_t n = 0, i, len = 0;
	int r;

	if (a == NULL)
		return -1;
	text = br_answer_take(a, &len);
	r = br_ax_frames(text, len, &frames, &n, &b->err);
	free(text);
	if (r != 0)
		return -1;
	v->ax = br_ax_new();
	if (v->ax == NULL)
		r = hr_err_nomem(&b->err);
	for (i = 0; i < n && r == 0; i++) {
		a = br_ask(
		    b, session, "Accessibility.getFullAXTree", "{\"frameId\":$s}", frames[i]);
		if (a == NULL) {
			r = -1;
			break;
		}
		text = br_answer_take(a, &len);
		r = br_ax_add_take(v->ax, frames[i], text, len, &b->err);
	}
	for (i = 0; i < n; i++)
		free(frames[i]);
	free(frames);
	return r == 0 ? join_frames(b, session, v) : -1;
}

/* ---- focus ---- */

/* Finds the focused frame inside this one: *frame becomes its id, or "". Returns 0, or -1. */
static int
inner_frame(struct browser *b, const char *session, int64_t ours, char *frame)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a = br_eval(b, session, ours, "handrail.active()", false);
	char object[BR_OBJECT];

	if (a == NULL)
		return -1;
	br_copy(
	    &a->tape, br_tape_at(&a->tape, br_at(a, "result"), "objectId"), object, sizeof(object));
	frame[0] = '\0';
	return object[0] != '\0' ? br_content_frame(b, session, object, frame) : 0;
}

static int
take_focus(struct browser *b, const char *target, struct br_view *v)
{
	char frame[BR_ID], session[BR_ID];
	struct br_session *s = NULL;
	struct br_frame *f;
	struct br_tab *tab;
	uint32_t found;
	int64_t ours;
	bool inner = true;
	int depth;

	v->has_focus = true;
	hr_buf_reset(&v->focused);
	memcpy(frame, target, sizeof(frame));
	for (depth = 0; depth < DEPTH_MAX && inner && frame[0] != '\0'; depth++) {
		HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
		HR_FREE char *bid = NULL;

		tab = br_tab_find(b, target);
		f = tab != NULL ? br_frame_of(tab, frame, &s) : NULL;
		if (f == NULL || f->ours == 0)
			return 0;
		ours = f->ours;
		memcpy(session, s->id, sizeof(session));
		a = br_eval(b, session, ours, "handrail.focused()", true);
		if (a == NULL)
			return -1;
		found = br_value(a);
		if (br_tape_type(&a->tape, found) != BR_TAPE_OBJECT)
			return 0;
		bid = br_tape_strdup(&a->tape, br_tape_at(&a->tape, found, "bid"));
		inner =
		    br_tape_type(&a->tape, br_tape_at(&a->tape, found, "frame")) == BR_TAPE_TRUE;
		hr_buf_reset(&v->focused);
		v->has_focus = bid != NULL;
		hr_buf_adds(&v->focused, bid != NULL ? bid : "");
		if (inner && inner_frame(b, session, ours, frame) != 0)
			return -1;
	}
	return 0;
}

/* ---- the whole view ---- */

static void
begin_picture(struct browser *b, const char *session, struct br_asking *ret)
{
	br_ask_begin(b, ret, session, "Page.captureScreenshot",
	    "{\"format\":\"png\",\"optimizeForSpeed\":true}");
}

/* Takes the picture; the view survives without one. */
static void
end_picture(struct browser *b, struct br_asking *asking, struct br_view *v)
{
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	const char *p;
	size_t len = 0;

	br_limit(b, PING_MS);
	a = br_ask_end(b, asking);
	p = a != NULL ? br_tape_raw(&a->tape, br_at(a, "data"), &len) : NULL;
	if (p == NULL || !hr_quote_unbase64(&v->png, p, len))
		hr_buf_reset(&v->png);
}

static void
forget(struct br_view *v)
{
	br_ax_free(v->ax);
	v->ax = NULL;
	br_props_done(&v->props);
	hr_buf_reset(&v->html);
}

/* Tests whether the page responds: one with an endless script does not. */
static int
ping(struct browser *b, const char *target)
{
	struct br_tab *tab = br_tab_find(b, target);
	struct br_frame *top = tab != NULL ? br_top(tab) : NULL;
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;

	if (top == NULL || top->ours == 0)
		return hr_err_set(&b->err, HR_E_PROTO, "the page has no document yet");
	a = br_eval(b, br_page(tab)->id, top->ours, "0", true);
	return a != NULL ? 0 : -1;
}

static int
take_all(struct browser *b, const char *target, struct br_view *v, bool html)
{
	struct br_tab *tab = br_tab_find(b, target);
	char session[BR_ID];

	if (tab == NULL)
		return hr_err_set(&b->err, HR_E_PROTO, "the page was closed");
	memcpy(session, br_page(tab)->id, sizeof(session));
	if (mark(b, target) != 0 || take_snapshot(b, session, v, html) != 0 ||
	    take_trees(b, session, v) != 0)
		return -1;
	return take_focus(b, target, v);
}

/* Returns true if a retry may succeed. */
static bool
passes(const struct browser *b)
{
	return !b->gone && (b->err.code == HR_E_PROTO || b->err.code == HR_E_NOTFOUND);
}

/* Takes the view once. */
static int
take_once(struct browser *b, const char *target, struct br_view *v, bool html)
{
	struct br_asking picture;
	struct br_tab *tab;
	int r;

	br_limit(b, PING_MS);
	if (br_tab_front(b, b->active) < 0 || ping(b, target) < 0)
		return -1;
	tab = br_tab_find(b, target);
	if (tab == NULL)
		return hr_err_set(&b->err, HR_E_PROTO, "the page was closed");
	v->hangs = false;
	br_limit(b, CALL_MS);
	forget(v);
	/* starts early: it takes some frames of the page, as the marks do */
	begin_picture(b, br_page(tab)->id, &picture);
	r = take_all(b, target, v, html);
	unmark(b, target);
	if (r == 0)
		end_picture(b, &picture, v);
	else
		br_ask_give_up(b, &picture);
	return r;
}

/* Prepares a retry after a failure. Returns false if a retry is pointless. */
static bool
try_again(struct browser *b, const char *target, struct br_view *v)
{
	struct br_tab *tab = br_tab_find(b, target);

	if (b->err.code == HR_E_TIMEOUT && !v->hangs) {
		/* terminates an endless script, once */
		v->hangs = true;
		if (tab != NULL)
			br_tell(b, br_page(tab)->id, "Runtime.terminateExecution", "{}");
		return true;
	}
	return passes(b) && br_pause(b, hr_now_ms() + AGAIN_MS) == 0;
}

static int
take_tree(struct browser *b, struct br_view *v, bool html)
{
	int64_t end = hr_now_ms() + VIEW_MS;
	char target[BR_ID];
	int i;

	for (i = 0; i < TRIES && b->active != NULL && hr_now_ms() < end; i++) {
		memcpy(target, b->active->target, sizeof(target));
		if (take_once(b, target, v, html) == 0)
			return 0;
		if (!try_again(b, target, v))
			break;
	}
	return -1;
}

int
br_view_take(struct browser *b, struct br_view *v, bool html)
{
	struct br_tab *tab;
	int r = take_tree(b, v, html);

	if (b->gone)
		return hr_err_set(&b->err, HR_E_GONE, "%s", b->why);
	v->hangs = r != 0 && b->err.code == HR_E_TIMEOUT;
	if (r != 0) {
		hr_buf_adds(&v->why_no_tree, b->err.msg);
		hr_log(HR_LOG_WARNING, "cannot read a page's accessibility tree: %s", b->err.msg);
		forget(v);
	}
	tab = b->active;
	if (r != 0 && tab != NULL && !tab->crashed && !v->hangs) {
		struct br_asking picture;

		begin_picture(b, br_page(tab)->id, &picture);
		end_picture(b, &picture, v);
	}
	return b->gone ? -1 : 0;
}
