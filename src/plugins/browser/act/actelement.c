/* Implements functions on one element. */
#include "config.h"

#include "plugins/browser/act/act_int.h"

#include <string.h>

#include "plugins/browser/act/input.h"

/* Moves the mouse to the element. */
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
		tab = act_page(run);
		if (tab == NULL || br_mouse_move(run->b, tab, x, y, held, modifiers) != 0)
			return -1;
		/* the move itself may have changed the page under the mouse */
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
		return 0; /* the press closed the tab */
	if (br_mouse_button(run->b, tab, false, button, modifiers) == 0)
		return 0;
	/* the release may also have closed the tab */
	return br_tab_find(run->b, run->page) == NULL ? 0 : -1;
}

int
act_click_element(struct br_run *run, const struct br_element *el, const struct hr_span *bid,
    const char *button, unsigned modifiers)
{
	struct br_attempt a = {.api = "Locator.click",
	    .doing = "click",
	    .states = "vse",
	    .words = "visible, enabled and stable"};
	struct br_tab *tab;
	int r;

	br_attempt_begin(&a, run->b, el, bid->p, bid->len);
	tab = act_page(run);
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
	return r < 0 ? act_broken(run, a.api) : r;
}

/* Clicks once, for dblclick as well, as the original does. */
int
act_click(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	static const char *const buttons[] = {"left", "middle", "right"};

	return act_click_element(run, el, &c->bid, buttons[c->button], c->modifiers);
}

int
act_hover_element(
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
	return r < 0 ? act_broken(run, a.api) : r;
}

int
act_hover(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	return act_hover_element(run, el, &c->bid, "none");
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
	HR_BUF(args, 4096 + 6 * len);
	HR_FREE char *said = NULL;
	int r;

	br_json(&args, "$b", p, len);
	br_attempt_begin(&a, run->b, el, bid->p, bid->len);
	r = hr_buf_check(&args, &run->b->err);
	/* report an element that can never be filled before waiting for it */
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
	br_attempt_done(&a);
	run->noted = true;
	return r < 0 ? act_broken(run, api) : r;
}

int
act_fill(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	return fill_element(run, el, &c->bid, "Locator.fill", c->text.p, c->text.len);
}

int
act_clear(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	return fill_element(run, el, &c->bid, "Locator.clear", "", 0);
}

static int
select_options(
    struct br_run *run, const struct br_element *el, struct br_attempt *a, const char *args)
{
	int r = 0;

	while (r == 0) {
		HR_FREE char *said = NULL;

		r = br_element_ready(run->b, el, a, run->why);
		if (r != 0)
			return r;
		said = br_element_say(run->b, el, "select", args);
		if (said == NULL)
			return -1;
		if (said[0] == '!')
			return br_attempt_fails(a, run->why, said + 1);
		if (said[0] != '\0')
			return 0;
		r = br_attempt_again(run->b, a, "did not find some options", run->why);
	}
	return r;
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

int
act_select_option(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	struct br_attempt a = {.api = "Locator.select_option",
	    .doing = "select option",
	    .states = "ve",
	    .words = "visible and enabled"};
	HR_BUF(options, 64u << 20);
	int r;

	put_list(&options, c);
	br_attempt_begin(&a, run->b, el, c->bid.p, c->bid.len);
	r = hr_buf_check(&options, &run->b->err);
	if (r == 0)
		r = select_options(run, el, &a, hr_buf_str(&options));
	br_attempt_done(&a);
	run->noted = true;
	return r < 0 ? act_broken(run, a.api) : r;
}

static int
focus_element(struct br_run *run, const struct br_element *el, bool reset)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a =
	    br_call_on(run->b, el->session, el->object, "focus", reset ? "true" : "false");

	run->noted = true;
	return a != NULL ? 0 : -1;
}

int
act_focus(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	(void)c;
	return focus_element(run, el, false) != 0 ? act_broken(run, "Locator.focus") : 0;
}

int
act_press(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	struct br_attempt a = {.api = "Locator.press", .doing = "", .states = "", .words = ""};
	struct br_tab *tab;
	HR_BUF(wrong, 65536);
	int r;

	br_attempt_begin(&a, run->b, el, c->bid.p, c->bid.len);
	r = focus_element(run, el, true);
	tab = r == 0 ? act_page(run) : NULL;
	r = tab == NULL ? -1 : br_press(run->b, tab, c->text.p, c->text.len, &wrong);
	if (r > 0)
		r = br_attempt_fails(&a, run->why, hr_buf_str(&wrong));
	if (r < 0 && br_tab_find(run->b, run->page) == NULL)
		r = 0; /* the key has closed the tab */
	br_attempt_done(&a);
	return r < 0 ? act_broken(run, a.api) : r;
}
