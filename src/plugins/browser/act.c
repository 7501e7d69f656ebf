#include "config.h"

#include "plugins/browser/act.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "plugins/browser/element.h"
#include "plugins/browser/input.h"
#include "plugins/browser/keys.h"

#define CHOOSER_MS 100000
#define DRAG_MS 2000

static int
raises(struct br_run *run, const char *text)
{
	hr_buf_adds(run->why, text);
	return 1;
}

/* After a call that failed: what a driver raises, or that nothing goes on. */
static int
broken(struct br_run *run, const char *api)
{
	const struct hr_err *err = &run->b->err;

	if (run->b->gone || err->code == HR_E_NOMEM || err->code == HR_E_GONE)
		return -1;
	if (err->code == HR_E_TIMEOUT)
		hr_buf_addf(run->why,
		    "TimeoutError: %s: Timeout 500ms exceeded.\nCall log:\n  - the page did not "
		    "answer\n",
		    api);
	else if (err->code == HR_E_NOTFOUND && strncmp(err->msg, "Target page", 11) == 0)
		hr_buf_addf(run->why, "TargetClosedError: %s: %s", api, err->msg);
	else
		hr_buf_addf(run->why, "Error: %s: %s", api, err->msg);
	return 1;
}

static struct br_tab *
page_of(struct br_run *run)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);

	if (tab == NULL)
		(void)hr_err_set(
		    &run->b->err, HR_E_NOTFOUND, "Target page, context or browser has been closed");
	else if (tab->crashed)
		(void)hr_err_set(&run->b->err, HR_E_NOTFOUND, "Page crashed");
	else
		return tab;
	return NULL;
}

/* ---- on elements ---- */

static int
find(struct br_run *run, const struct hr_span *bid, struct br_element *ret)
{
	struct br_tab *tab = page_of(run);
	int r;

	if (tab == NULL)
		return broken(run, "Locator.count");
	br_limit(run->b, BR_CALL_MS);
	r = br_element_find(run->b, tab, bid->p, bid->len, ret, run->why);
	return r < 0 ? broken(run, "Locator.count") : r;
}

/* Moves the mouse to where the element is. */
static int
go_there(struct br_run *run, const struct br_element *el, struct br_attempt *a, const char *held,
    unsigned modifiers)
{
	struct br_tab *tab;
	double x = 0, y = 0;
	int r;

	do {
		r = br_element_point(run->b, el, a, &x, &y, run->why);
		if (r != 0)
			return r;
		tab = page_of(run);
		if (tab == NULL || br_mouse_move(run->b, tab, x, y, held, modifiers) != 0)
			return -1;
		/* what was under the mouse before may have let it go by moving */
		r = br_element_still(run->b, el, a, x, y, run->why);
	} while (r == 2);
	return r;
}

static int
press_and_release(struct br_run *run, const char *button, unsigned modifiers)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);

	if (tab == NULL)
		return 0;
	if (br_mouse_button(run->b, tab, true, button, modifiers) != 0)
		return -1;
	tab = br_tab_find(run->b, run->page);
	if (tab == NULL)
		return 0; /* the press closed it */
	if (br_mouse_button(run->b, tab, false, button, modifiers) == 0)
		return 0;
	/* or the release did */
	return br_tab_find(run->b, run->page) == NULL ? 0 : -1;
}

static int
click_element(struct br_run *run, const struct br_element *el, const struct hr_span *bid,
    const char *api, const char *button, unsigned modifiers)
{
	struct br_attempt a = {
	    .api = api, .doing = "click", .states = "vse", .words = "visible, enabled and stable"};
	struct br_tab *tab;
	int r;

	br_attempt_begin(&a, run->b, el, bid->p, bid->len);
	tab = page_of(run);
	r = tab == NULL ? -1 : 0;
	if (r == 0 && modifiers != 0)
		r = br_keys_down(run->b, tab, modifiers, true);
	if (r == 0)
		r = go_there(run, el, &a, "none", modifiers);
	if (r == 0)
		r = press_and_release(run, button, modifiers);
	br_attempt_done(&a);
	tab = br_tab_find(run->b, run->page);
	if (tab != NULL && modifiers != 0 && br_keys_down(run->b, tab, modifiers, false) != 0)
		r = -1;
	run->noted = true;
	return r < 0 ? broken(run, api) : r;
}

/* dblclick as well, which presses once: so does the original. */
static int
do_click(struct br_run *run, const struct br_call *c)
{
	static const char *const buttons[] = {"left", "middle", "right"};
	struct br_element el;
	int r = find(run, &c->bid, &el);

	if (r != 0)
		return r;
	if (c->refused != NULL)
		return raises(run, c->refused);
	return click_element(run, &el, &c->bid, "Locator.click", buttons[c->button], c->modifiers);
}

static int
hover_element(
    struct br_run *run, const struct br_element *el, const struct hr_span *bid, const char *held)
{
	struct br_attempt a = {.api = "Locator.hover",
	    .doing = "hover",
	    .states = "vs",
	    .words = "visible and stable"};
	int r;

	br_attempt_begin(&a, run->b, el, bid->p, bid->len);
	r = go_there(run, el, &a, held, 0);
	br_attempt_done(&a);
	run->noted = true;
	return r < 0 ? broken(run, a.api) : r;
}

static int
do_hover(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	int r = find(run, &c->bid, &el);

	return r != 0 ? r : hover_element(run, &el, &c->bid, "none");
}

static int
type_text(struct br_run *run, const char *session, const char *p, size_t len)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);

	if (len > 0)
		return br_do(run->b, session, "Input.insertText", "{\"text\":$b}", p, len);
	return tab == NULL ? 0 : br_press(run->b, tab, "Delete", 6, run->why);
}

static int
fill_element(struct br_run *run, const struct br_element *el, const struct hr_span *bid,
    const char *api, const char *p, size_t len)
{
	struct br_attempt a = {
	    .api = api, .doing = "fill", .states = "vew", .words = "visible, enabled and editable"};
	struct hr_buf args;
	char *said = NULL;
	int r;

	hr_buf_init(&args, 4096 + 6 * len);
	br_json(&args, "$b", p, len);
	br_attempt_begin(&a, run->b, el, bid->p, bid->len);
	r = hr_buf_check(&args, &run->b->err);
	/* what cannot be filled at all is said before it is waited for */
	if (r == 0)
		r = br_element_ready(run->b, el, &a, run->why);
	if (r == 0) {
		said = br_element_say(run->b, el, "fill", hr_buf_str(&args));
		r = said == NULL ? -1 : 0;
	}
	if (r == 0 && said[0] == '!')
		r = br_attempt_fails(&a, run->why, said + 1);
	else if (r == 0 && strcmp(said, "type") == 0)
		r = type_text(run, el->session, p, len);
	free(said);
	br_attempt_done(&a);
	hr_buf_done(&args);
	run->noted = true;
	return r < 0 ? broken(run, api) : r;
}

static int
do_fill(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	int r = find(run, &c->bid, &el);

	if (r != 0)
		return r;
	if (c->refused != NULL)
		return raises(run, c->refused);
	return fill_element(run, &el, &c->bid, "Locator.fill", c->text.p, c->text.len);
}

static int
do_clear(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	int r = find(run, &c->bid, &el);

	return r != 0 ? r : fill_element(run, &el, &c->bid, "Locator.clear", "", 0);
}

static int
select_options(
    struct br_run *run, const struct br_element *el, struct br_attempt *a, const char *args)
{
	int r;

	for (;;) {
		char *said;

		r = br_element_ready(run->b, el, a, run->why);
		if (r != 0)
			return r;
		said = br_element_say(run->b, el, "select", args);
		if (said == NULL)
			return -1;
		if (said[0] == '!')
			r = br_attempt_fails(a, run->why, said + 1);
		else if (said[0] == '\0')
			r = br_attempt_again(run->b, a, "did not find some options", run->why);
		else
			r = 2;
		free(said);
		if (r != 0)
			return r == 2 ? 0 : r;
	}
}

static void
put_list(struct hr_buf *b, const struct br_call *c)
{
	size_t i;

	hr_buf_adds(b, "[");
	for (i = 0; i < c->nlist; i++) {
		hr_buf_adds(b, i > 0 ? "," : "");
		br_json(b, "$b", c->list[i].p, c->list[i].len);
	}
	hr_buf_adds(b, "]");
}

static int
do_select_option(struct br_run *run, const struct br_call *c)
{
	struct br_attempt a = {.api = "Locator.select_option",
	    .doing = "select option",
	    .states = "ve",
	    .words = "visible and enabled"};
	struct br_element el;
	struct hr_buf options;
	int r = find(run, &c->bid, &el);

	if (r != 0)
		return r;
	if (c->refused != NULL)
		return raises(run, c->refused);
	hr_buf_init(&options, 64u << 20);
	put_list(&options, c);
	br_attempt_begin(&a, run->b, &el, c->bid.p, c->bid.len);
	r = hr_buf_check(&options, &run->b->err);
	if (r == 0)
		r = select_options(run, &el, &a, hr_buf_str(&options));
	br_attempt_done(&a);
	hr_buf_done(&options);
	run->noted = true;
	return r < 0 ? broken(run, a.api) : r;
}

static int
focus_element(struct br_run *run, const struct br_element *el, bool reset)
{
	struct br_answer *a =
	    br_call_on(run->b, el->session, el->object, "focus", reset ? "true" : "false", true);

	br_answer_free(a);
	run->noted = true;
	return a != NULL ? 0 : -1;
}

static int
do_focus(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	int r = find(run, &c->bid, &el);

	if (r != 0)
		return r;
	return focus_element(run, &el, false) != 0 ? broken(run, "Locator.focus") : 0;
}

static int
do_press(struct br_run *run, const struct br_call *c)
{
	struct br_attempt a = {.api = "Locator.press", .doing = "", .states = "", .words = ""};
	struct br_element el;
	struct br_tab *tab;
	struct hr_buf wrong;
	int r = find(run, &c->bid, &el);

	if (r != 0)
		return r;
	if (c->refused != NULL)
		return raises(run, c->refused);
	hr_buf_init(&wrong, 65536);
	br_attempt_begin(&a, run->b, &el, c->bid.p, c->bid.len);
	r = focus_element(run, &el, true);
	tab = r == 0 ? page_of(run) : NULL;
	r = tab == NULL ? -1 : br_press(run->b, tab, c->text.p, c->text.len, &wrong);
	if (r > 0)
		r = br_attempt_fails(&a, run->why, hr_buf_str(&wrong));
	if (r < 0 && br_tab_find(run->b, run->page) == NULL)
		r = 0; /* the key closed it */
	br_attempt_done(&a);
	hr_buf_done(&wrong);
	return r < 0 ? broken(run, a.api) : r;
}

/* ---- drag and drop ---- */

/* Did the page begin to drag something? */
static int
drag_begun(struct br_run *run, struct br_tab *tab, bool *ret)
{
	struct br_session *s;
	struct br_frame *f;

	*ret = false;
	TAILQ_FOREACH(s, &tab->sessions, entry)
	{
		TAILQ_FOREACH(f, &s->frames, entry)
		{
			struct br_answer *a;

			if (f->ours == 0)
				continue;
			a = br_eval(run->b, s->id, f->ours, "handrail.dragging()", true);
			if (a == NULL)
				return -1;
			*ret = br_tape_type(&a->tape, br_value(a)) == BR_TAPE_TRUE;
			br_answer_free(a);
			/* what was noted may be gone now */
			return 0;
		}
	}
	return 0;
}

static int
drop(struct br_run *run, struct br_tab *tab)
{
	static const char *const steps[] = {"dragEnter", "dragOver", "drop"};
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (br_do(run->b, br_page(tab)->id, "Input.dispatchDragEvent",
			"{\"type\":$s,\"x\":$f,\"y\":$f,\"data\":$r,\"modifiers\":0}", steps[i],
			run->b->mouse_x, run->b->mouse_y, tab->drag) != 0)
			return -1;
		tab = br_tab_find(run->b, run->page);
		if (tab == NULL)
			return 0;
	}
	return 0;
}

/* From where the mouse is pressed to the other element. */
static int
drag_to(struct br_run *run, const struct hr_span *to)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);
	struct br_element el;
	uint64_t before = tab != NULL ? tab->dragged : 0;
	bool begun = false;
	int r = find(run, to, &el);

	if (r != 0)
		return r;
	tab = page_of(run);
	if (tab == NULL ||
	    br_do(run->b, br_page(tab)->id, "Input.setInterceptDrags", "{\"enabled\":true}") != 0)
		return broken(run, "Locator.hover");
	r = hover_element(run, &el, to, "left");
	tab = br_tab_find(run->b, run->page);
	if (r != 0 || tab == NULL)
		return r;
	if (drag_begun(run, tab, &begun) != 0)
		return broken(run, "Mouse.up");
	br_limit(run->b, DRAG_MS);
	while (begun && (tab = br_tab_find(run->b, run->page)) != NULL && tab->dragged == before)
		if (br_wait(run->b, run->b->until_ms) != 0)
			break;
	br_limit(run->b, BR_CALL_MS);
	tab = br_tab_find(run->b, run->page);
	if (tab == NULL)
		return 0;
	br_tell(run->b, br_page(tab)->id, "Input.setInterceptDrags", "{\"enabled\":false}");
	if (tab->dragged != before && tab->drag != NULL)
		r = drop(run, tab);
	else
		r = br_mouse_button(run->b, tab, false, "left", 0);
	return r < 0 ? broken(run, "Mouse.up") : r;
}

static int
do_drag_and_drop(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	struct br_tab *tab;
	int r = find(run, &c->bid, &el);

	if (r == 0)
		r = hover_element(run, &el, &c->bid, "none");
	if (r != 0)
		return r;
	tab = page_of(run);
	if (tab == NULL || br_mouse_button(run->b, tab, true, "left", 0) != 0)
		return broken(run, "Mouse.down");
	if (c->to_refused != NULL)
		return raises(run, c->to_refused);
	return drag_to(run, &c->to_bid);
}

/* ---- files ---- */

/* Absolute names as a list of JSON. */
static int
files_of(struct br_run *run, const struct br_call *c, struct hr_buf *ret)
{
	size_t i;

	hr_buf_adds(ret, "[");
	for (i = 0; i < c->nlist; i++) {
		char *name = strndup(c->list[i].p, c->list[i].len),
		     *path = name != NULL ? hr_path_join(run->dir, name) : NULL;

		free(name);
		if (path == NULL)
			return hr_err_nomem(&run->b->err);
		if (access(path, F_OK) != 0) {
			hr_buf_addf(run->why, "Error: FileChooser.set_files: %s, access '%s'",
			    errno == EACCES ? "EACCES: permission denied"
					    : "ENOENT: no such file or directory",
			    path);
			free(path);
			return 1;
		}
		hr_buf_adds(ret, i > 0 ? "," : "");
		br_json(ret, "$s", path);
		free(path);
	}
	hr_buf_adds(ret, "]");
	return hr_buf_check(ret, &run->b->err);
}

static int
give_files(struct br_run *run, const struct br_call *c)
{
	static const char api[] = "FileChooser.set_files";
	struct br_tab *tab = page_of(run);
	struct br_element el = {.object = ""};
	struct br_session *s;
	int64_t node;
	struct hr_buf list;
	char *said = NULL, args[32];
	int r;

	if (c->refused != NULL)
		return raises(run, c->refused);
	if (tab == NULL)
		return broken(run, api);
	node = tab->chooser_node;
	s = br_session_find(run->b, tab->chooser_session, &tab);
	if (s == NULL || TAILQ_EMPTY(&s->frames))
		return raises(run, "Error: FileChooser.set_files: the element has gone");
	memcpy(el.session, s->id, sizeof(el.session));
	hr_buf_init(&list, 64u << 20);
	r = files_of(run, c, &list);
	if (r == 0)
		r = br_element_of_node(run->b, s, TAILQ_FIRST(&s->frames), node, el.object);
	(void)snprintf(args, sizeof(args), "%zu", c->nlist);
	if (r == 0 && (said = br_element_say(run->b, &el, "files", args)) == NULL)
		r = -1;
	if (r == 0 && said[0] == '!') {
		hr_buf_addf(run->why, "Error: %s: %s", api, said + 1);
		r = 1;
	} else if (r == 0 && c->nlist > 0) {
		r = br_do(run->b, el.session, "DOM.setFileInputFiles",
		    "{\"files\":$r,\"backendNodeId\":$d}", hr_buf_str(&list), node);
	}
	free(said);
	hr_buf_done(&list);
	return r < 0 ? broken(run, api) : r;
}

static int
do_upload_file(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	struct br_tab *tab;
	uint64_t before;
	int r = find(run, &c->bid, &el);

	if (r != 0)
		return r;
	tab = page_of(run);
	if (tab == NULL || br_do(run->b, el.session, "Page.setInterceptFileChooserDialog",
			       "{\"enabled\":true}") != 0)
		return broken(run, "Locator.click");
	before = (tab = br_tab_find(run->b, run->page)) != NULL ? tab->chooser : 0;
	r = click_element(run, &el, &c->bid, "Locator.click", "left", 0);
	br_limit(run->b, CHOOSER_MS);
	while (r == 0 && (tab = br_tab_find(run->b, run->page)) != NULL && tab->chooser == before)
		if (br_wait(run->b, run->b->until_ms) != 0) {
			if (run->b->err.code != HR_E_TIMEOUT)
				return broken(run, "Locator.click");
			r = raises(run,
			    "TimeoutError: Timeout 100000ms exceeded while waiting for event "
			    "\"filechooser\"\n=========================== logs "
			    "===========================\nwaiting for event \"filechooser\"\n"
			    "============================================================");
		}
	br_limit(run->b, BR_CALL_MS);
	br_tell(run->b, el.session, "Page.setInterceptFileChooserDialog", "{\"enabled\":false}");
	return r != 0 ? r : give_files(run, c);
}

/* ---- on the page ---- */

static void
navigation_log(struct br_run *run, const struct hr_span *url)
{
	hr_buf_adds(run->why, "\nCall log:\n  - navigating to \"");
	hr_buf_add(run->why, url->p, url->len);
	hr_buf_adds(run->why, "\", waiting until \"load\"\n");
}

/* Until a document behind that many, or one in its place, has loaded. 0; 1: the time is over; -1.
 */
static int
wait_load(struct br_run *run, uint64_t commits)
{
	for (;;) {
		struct br_tab *tab = br_tab_find(run->b, run->page);
		struct br_frame *top = tab != NULL ? br_top(tab) : NULL;

		if (tab == NULL || tab->crashed) {
			(void)page_of(run);
			return -1;
		}
		/* and what it does when it has, such as to say that it is shown, is done */
		if (top != NULL && top->load && tab->commits != commits)
			return br_do(run->b, br_page(tab)->id, "Runtime.evaluate",
				   "{\"expression\":\"0\"}") != 0 &&
				       run->b->gone
				   ? -1
				   : 0;
		if (br_wait(run->b, run->b->until_ms) != 0)
			return run->b->err.code == HR_E_TIMEOUT ? 1 : -1;
	}
}

/* Ends a navigation that no document has come of: nobody would wait for another one. A document
 * that has come goes on loading. */
static void
stop_loading(struct br_run *run, uint64_t commits)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);

	if (tab != NULL && tab->commits == commits)
		br_tell(run->b, br_page(tab)->id, "Page.stopLoading", "{}");
}

/* What Chromium answers when it has begun: 0, 2: there is nothing to wait for, 1: it raised. */
static int
navigation_begun(struct br_run *run, const struct br_answer *a, const struct hr_span *url)
{
	char text[128];

	br_text_at(a, "errorText", text, sizeof(text));
	if (text[0] == '\0')
		return br_at(a, "loaderId") == BR_TAPE_NONE ? 2 : 0;
	if (br_tape_type(&a->tape, br_at(a, "isDownload")) == BR_TAPE_TRUE) {
		hr_buf_adds(run->why, "Error: Page.goto: Download is starting");
	} else {
		hr_buf_addf(run->why, "Error: Page.goto: %s at ", text);
		hr_buf_add(run->why, url->p, url->len);
	}
	navigation_log(run, url);
	return 1;
}

static int
timed_out(struct br_run *run, const char *api, uint64_t commits)
{
	hr_buf_addf(run->why, "TimeoutError: %s: Timeout %dms exceeded.", api, BR_GOTO_MS);
	stop_loading(run, commits);
	return 1;
}

static int
do_goto(struct br_run *run, const struct br_call *c)
{
	static const char api[] = "Page.goto";
	const struct hr_span *url = &c->text;
	struct br_tab *tab = page_of(run);
	struct br_answer *a;
	uint64_t commits;
	int r;

	if (c->refused != NULL)
		return raises(run, c->refused);
	if (tab == NULL)
		return broken(run, api);
	br_limit(run->b, BR_GOTO_MS);
	run->noted = true;
	commits = tab->commits;
	a = br_ask(run->b, br_page(tab)->id, "Page.navigate", "{\"url\":$b,\"frameId\":$s}", url->p,
	    url->len, tab->target);
	if (a == NULL && run->b->err.code == HR_E_PROTO) {
		hr_buf_addf(run->why, "Error: Page.goto: Protocol error (Page.navigate): %s",
		    run->b->err.msg);
		navigation_log(run, url);
		return 1;
	}
	if (a != NULL) {
		r = navigation_begun(run, a, url);
		br_answer_free(a);
		if (r != 0)
			return r == 2 ? 0 : r;
		r = wait_load(run, commits);
	} else {
		r = run->b->err.code == HR_E_TIMEOUT ? 1 : -1;
	}
	if (r > 0) {
		(void)timed_out(run, api, commits);
		navigation_log(run, url);
	}
	return r < 0 ? broken(run, api) : r;
}

static int
history(struct br_run *run, int step, const char *api)
{
	struct br_tab *tab = page_of(run);
	struct br_answer *a;
	uint32_t list, i;
	int64_t at, entry = -1;
	uint64_t moves, commits;
	int r;

	if (tab == NULL)
		return broken(run, api);
	br_limit(run->b, BR_GOTO_MS);
	a = br_ask(run->b, br_page(tab)->id, "Page.getNavigationHistory", "{}");
	if (a == NULL)
		return broken(run, api);
	at = br_tape_int(&a->tape, br_at(a, "currentIndex"), 0) + step;
	list = br_at(a, "entries");
	for (i = br_tape_first(&a->tape, list); i != BR_TAPE_NONE && at >= 0;
	     i = br_tape_next(&a->tape, list, i))
		if (at-- == 0)
			entry = br_tape_int(&a->tape, br_tape_at(&a->tape, i, "id"), -1);
	br_answer_free(a);
	if (entry < 0)
		return 0;
	tab = page_of(run);
	if (tab == NULL)
		return broken(run, api);
	moves = tab->moves;
	commits = tab->commits;
	run->noted = true;
	if (br_do(run->b, br_page(tab)->id, "Page.navigateToHistoryEntry", "{\"entryId\":$d}",
		entry) != 0)
		return broken(run, api);
	while ((tab = br_tab_find(run->b, run->page)) != NULL && tab->moves == moves) {
		r = br_wait(run->b, run->b->until_ms);
		if (r != 0)
			return run->b->err.code == HR_E_TIMEOUT ? timed_out(run, api, commits)
								: broken(run, api);
	}
	/* within one document it is there already */
	r = wait_load(run, UINT64_MAX);
	return r < 0 ? broken(run, api) : r > 0 ? timed_out(run, api, commits) : 0;
}

static int
do_noop(struct br_run *run, const struct br_call *c)
{
	int64_t until;

	if (c->refused != NULL)
		return raises(run, c->refused);
	if (!(c->x > 0))
		return 0;
	until = hr_now_ms() + (int64_t)(c->x < 1e9 ? c->x : 1e9);
	if (until > run->b->step_ms)
		until = run->b->step_ms;
	return br_pause(run->b, until) != 0 ? broken(run, "Page.wait_for_timeout") : 0;
}

static int
do_scroll(struct br_run *run, const struct br_call *c)
{
	static const char api[] = "Mouse.wheel";
	struct br_tab *tab = page_of(run);
	struct br_frame *top;

	if (c->refused != NULL)
		return raises(run, c->refused);
	if (tab == NULL)
		return broken(run, api);
	br_limit(run->b, BR_CALL_MS);
	run->noted = true;
	if (br_wheel(run->b, tab, c->x, c->y) != 0)
		return broken(run, api);
	tab = page_of(run);
	top = tab != NULL ? br_top(tab) : NULL;
	if (top != NULL && top->ours != 0)
		br_answer_free(
		    br_eval(run->b, br_page(tab)->id, top->ours, "handrail.rest()", true));
	return 0; /* where it has gone elsewhere, what comes is waited for later */
}

/* ---- tabs ---- */

static int
to_tab(struct br_run *run, struct br_tab *tab)
{
	memcpy(run->page, tab->target, sizeof(run->page));
	br_use(run->b, tab);
	return br_tab_front(run->b, tab) != 0 ? broken(run, "Page.bring_to_front") : 0;
}

static int
do_new_tab(struct br_run *run)
{
	struct br_tab *tab;

	br_limit(run->b, BR_CALL_MS);
	tab = br_tab_open(run->b);
	return tab == NULL ? broken(run, "BrowserContext.new_page") : to_tab(run, tab);
}

static int
do_tab_close(struct br_run *run)
{
	struct br_tab *tab = page_of(run);

	br_limit(run->b, BR_CALL_MS);
	if (tab == NULL)
		tab = br_tab_find(run->b, run->page); /* a crashed one can be closed */
	if (tab != NULL && br_tab_close(run->b, tab) != 0)
		return broken(run, "Page.close");
	tab = TAILQ_LAST(&run->b->tabs, br_tabs);
	return tab != NULL ? to_tab(run, tab) : do_new_tab(run);
}

static int
do_tab_focus(struct br_run *run, const struct br_call *c)
{
	int64_t i = c->index, n = (int64_t)run->b->ntabs;
	struct br_tab *tab;

	if (c->refused != NULL)
		return raises(run, c->refused);
	if (i < 0)
		i += n;
	TAILQ_FOREACH(tab, &run->b->tabs, entry)
	{
		if (i-- == 0)
			break;
	}
	if (tab == NULL)
		return raises(run, "IndexError: list index out of range");
	br_limit(run->b, BR_CALL_MS);
	return to_tab(run, tab);
}

int
br_act(struct br_run *run, const struct br_call *c)
{
	switch (c->fn) {
	case BR_NOOP: return do_noop(run, c);
	case BR_SEND_MSG_TO_USER:
	case BR_REPORT_INFEASIBLE:
		/* to a chat that nobody sees */
		return c->refused != NULL ? raises(run, c->refused) : 0;
	case BR_SCROLL: return do_scroll(run, c);
	case BR_FILL: return do_fill(run, c);
	case BR_SELECT_OPTION: return do_select_option(run, c);
	case BR_CLICK:
	case BR_DBLCLICK: return do_click(run, c);
	case BR_HOVER: return do_hover(run, c);
	case BR_PRESS: return do_press(run, c);
	case BR_FOCUS: return do_focus(run, c);
	case BR_CLEAR: return do_clear(run, c);
	case BR_DRAG_AND_DROP: return do_drag_and_drop(run, c);
	case BR_UPLOAD_FILE: return do_upload_file(run, c);
	case BR_GOTO: return do_goto(run, c);
	case BR_GO_BACK: return history(run, -1, "Page.go_back");
	case BR_GO_FORWARD: return history(run, 1, "Page.go_forward");
	case BR_NEW_TAB: return do_new_tab(run);
	case BR_TAB_CLOSE: return do_tab_close(run);
	case BR_TAB_FOCUS: return do_tab_focus(run, c);
	default: break;
	}
	hr_assert(!"a function of the set");
}
