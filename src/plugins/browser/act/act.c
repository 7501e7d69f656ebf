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
act_new_tab(struct br_run *run, const struct br_call *c)
{
	struct br_tab *tab;

	(void)c;
	br_limit(run->b, BR_CALL_MS);
	tab = br_tab_open(run->b);
	return tab == NULL ? act_broken(run, "BrowserContext.new_page") : to_tab(run, tab);
}

static int
act_tab_close(struct br_run *run, const struct br_call *c)
{
	struct br_tab *tab = act_page(run);

	br_limit(run->b, BR_CALL_MS);
	if (tab == NULL)
		tab = br_tab_find(run->b, run->page); /* even a crashed tab can be closed */
	if (tab != NULL && br_tab_close(run->b, tab) != 0)
		return act_broken(run, "Page.close");
	tab = TAILQ_LAST(&run->b->tabs, br_tabs);
	return tab != NULL ? to_tab(run, tab) : act_new_tab(run, c);
}

static int
act_tab_focus(struct br_run *run, const struct br_call *c)
{
	int64_t i = c->index, n = (int64_t)run->b->ntabs;
	struct br_tab *tab;

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

/* A function works on the page, or on the element of the call's bid. */
static const struct {
	int (*page)(struct br_run *run, const struct br_call *c);
	int (*element)(struct br_run *run, const struct br_call *c, const struct br_element *el);
} functions[BR_FN_COUNT] = {
    [BR_NOOP] = {.page = act_noop},
    [BR_SEND_MSG_TO_USER] = {NULL, NULL}, /* no person sees the chat */
    [BR_REPORT_INFEASIBLE] = {NULL, NULL},
    [BR_SCROLL] = {.page = act_scroll},
    [BR_FILL] = {.element = act_fill},
    [BR_SELECT_OPTION] = {.element = act_select_option},
    [BR_CLICK] = {.element = act_click},
    [BR_DBLCLICK] = {.element = act_click},
    [BR_HOVER] = {.element = act_hover},
    [BR_PRESS] = {.element = act_press},
    [BR_FOCUS] = {.element = act_focus},
    [BR_CLEAR] = {.element = act_clear},
    [BR_DRAG_AND_DROP] = {.element = act_drag_and_drop},
    [BR_UPLOAD_FILE] = {.element = act_upload_file},
    [BR_GOTO] = {.page = act_goto},
    [BR_GO_BACK] = {.page = act_history},
    [BR_GO_FORWARD] = {.page = act_history},
    [BR_NEW_TAB] = {.page = act_new_tab},
    [BR_TAB_CLOSE] = {.page = act_tab_close},
    [BR_TAB_FOCUS] = {.page = act_tab_focus},
};

int
br_act(struct br_run *run, const struct br_call *c)
{
	struct br_element el;
	int r;

	hr_assert(c->fn < BR_FN_COUNT);
	if (functions[c->fn].element != NULL) {
		r = act_find(run, &c->bid, &el);
		if (r != 0)
			return r;
	}
	/* an upload raises it once the page has opened its file chooser */
	if (c->refused != NULL && c->fn != BR_UPLOAD_FILE)
		return act_raises(run, c->refused);
	if (functions[c->fn].element != NULL)
		return functions[c->fn].element(run, c, &el);
	return functions[c->fn].page != NULL ? functions[c->fn].page(run, c) : 0;
}
