/* What the files of br_act() share. A function of a program: 0; 1: it raised, run->why; -1:
 * Chromium is gone, or there is no memory. */
#ifndef HR_PLUGINS_BROWSER_ACT_ACT_INT_H
#define HR_PLUGINS_BROWSER_ACT_ACT_INT_H

#include "plugins/browser/act/act.h"
#include "plugins/browser/act/element.h"

int act_raises(struct br_run *run, const char *text);
/* After a call that failed: what a driver raises, or that nothing goes on. */
int act_broken(struct br_run *run, const char *api);
/* The page that the program is at; NULL: b->err. */
struct br_tab *act_page(struct br_run *run);
int act_find(struct br_run *run, const struct hr_span *bid, struct br_element *ret);
int act_click_element(struct br_run *run, const struct br_element *el, const struct hr_span *bid,
    const char *button, unsigned modifiers);
/* held: the button that is pressed, or "none" */
int act_hover_element(
    struct br_run *run, const struct br_element *el, const struct hr_span *bid, const char *held);

int act_click(struct br_run *run, const struct br_call *c);
int act_hover(struct br_run *run, const struct br_call *c);
int act_fill(struct br_run *run, const struct br_call *c);
int act_clear(struct br_run *run, const struct br_call *c);
int act_select_option(struct br_run *run, const struct br_call *c);
int act_focus(struct br_run *run, const struct br_call *c);
int act_press(struct br_run *run, const struct br_call *c);
int act_drag_and_drop(struct br_run *run, const struct br_call *c);
int act_upload_file(struct br_run *run, const struct br_call *c);
int act_goto(struct br_run *run, const struct br_call *c);
int act_history(struct br_run *run, int step, const char *api);

#endif
