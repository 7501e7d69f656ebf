/* Maps a call to its function; also holds the functions on tabs and the helpers of all files. */
#include "config.h"

#include "plugins/browser/act/act_int.h"

#include <string.h>

#include "plugins/browser/act/input.h"

int
act_raises(struct br_run *run, const char *text)
{
	hr_buf_adds(run->why, text);
	return 1;
}

/* Handles a failed call: raises the driver's exception, or returns -1 if the browser has failed. */
int
act_broken(struct br_run *run, const char *api)
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

struct br_tab *
act_page(struct br_run *run)
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

int
act_find(struct br_run *run, const struct hr_span *bid, struct br_element *ret)
{
	struct br_tab *tab = act_page(run);
	int r;

	if (tab == NULL)
		return act_broken(run, "Locator.count");
	br_limit(run->b, BR_CALL_MS);
	r = br_element_find(run->b, tab, bid->p, bid->len, ret, run->why);
	return r < 0 ? act_broken(run, "Locator.count") : r;
}

/* ---- actions on the page ---- */

static int
act_noop(struct br_run *run, const struct br_call *c)
{
	int64_t until;

	if (c->refused != NULL)
		return act_raises(run, c->refused);
	if (!(c->x > 0))
		return 0;
	until = hr_now_ms() + (int64_t)(c->x < 1e9 ? c->x : 1e9);
	if (until > run->b->step_ms)
		until = run->b->step_ms;
	return br_pause(run->b, until) != 0 ? act_broken(run, "Page.wait_for_timeout") : 0;
}

static int
act_scroll(struct br_run *run, const struct br_call *c)
{
	static const char api[] = "Mouse.wheel";
	struct br_tab *tab = act_page(run);
	struct br_frame *top;

	if (c->refused != NULL)
		return act_raises(run, c->refused);
	if (tab == NULL)
		return act_broken(run, api);
	br_limit(run->b, BR_CALL_MS);
	run->noted = true;
	if (br_wheel(run->b, tab, c->x, c->y) != 0)
		return act_broken(run, api);
	tab = act_page(run);
	top = tab != NULL ? br_top(tab) : NULL;
	if (top != NULL && top->ours != 0)
		br_answer_free(
		    br_eval(run->b, br_page(tab)->id, top->ours, "handrail.rest()", true));
	return 0; /* if the page navigated away, a later wait covers it */
}

/* ---- tabs ---- */

static int
to_tab(struct br_run *run, struct br_tab *tab)
{
	memcpy(run->page, tab->target, sizeof(run->page));
	br_use(run->b, tab);
	return br_tab_front(run->b, tab) != 0 ? act_broken(run, "Page.bring_to_front") : 0;
}

static int
act_new_tab(struct br_run *run)
{
	struct br_tab *tab;

	br_limit(run->b, BR_CALL_MS);
	tab = br_tab_open(run->b);
	return tab == NULL ? act_broken(run, "BrowserContext.new_page") : to_tab(run, tab);
}

static int
act_tab_close(struct br_run *run)
{
	struct br_tab *tab = act_page(run);

	br_limit(run->b, BR_CALL_MS);
	if (tab == NULL)
		tab = br_tab_find(run->b, run->page); /* even a crashed tab can be closed */
	if (tab != NULL && br_tab_close(run->b, tab) != 0)
		return act_broken(run, "Page.close");
	tab = TAILQ_LAST(&run->b->tabs, br_tabs);
	return tab != NULL ? to_tab(run, tab) : act_new_tab(run);
}

static int
act_tab_focus(struct br_run *run, const struct br_call *c)
{
	int64_t i = c->index, n = (int64_t)run->b->ntabs;
	struct br_tab *tab;

	if (c->refused != NULL)
		return act_raises(run, c->refused);
	if (i < 0)
		i += n;
	TAILQ_FOREACH(tab, &run->b->tabs, entry)
	{
		if (i-- == 0)
			break;
	}
	if (tab == NULL)
		return act_raises(run, "IndexError: list index out of range");
	br_limit(run->b, BR_CALL_MS);
	return to_tab(run, tab);
}

int
br_act(struct br_run *run, const struct br_call *c)
{
	switch (c->fn) {
	case BR_NOOP: return act_noop(run, c);
	case BR_SEND_MSG_TO_USER:
	case BR_REPORT_INFEASIBLE:
		/* no person sees the chat */
		return c->refused != NULL ? act_raises(run, c->refused) : 0;
	case BR_SCROLL: return act_scroll(run, c);
	case BR_FILL: return act_fill(run, c);
	case BR_SELECT_OPTION: return act_select_option(run, c);
	case BR_CLICK:
	case BR_DBLCLICK: return act_click(run, c);
	case BR_HOVER: return act_hover(run, c);
	case BR_PRESS: return act_press(run, c);
	case BR_FOCUS: return act_focus(run, c);
	case BR_CLEAR: return act_clear(run, c);
	case BR_DRAG_AND_DROP: return act_drag_and_drop(run, c);
	case BR_UPLOAD_FILE: return act_upload_file(run, c);
	case BR_GOTO: return act_goto(run, c);
	case BR_GO_BACK: return act_history(run, -1, "Page.go_back");
	case BR_GO_FORWARD: return act_history(run, 1, "Page.go_forward");
	case BR_NEW_TAB: return act_new_tab(run);
	case BR_TAB_CLOSE: return act_tab_close(run);
	case BR_TAB_FOCUS: return act_tab_focus(run, c);
	default: break;
	}
	hr_assert(!"a function of the set");
}
