/* Helpers shared by the files of br_act(). A program's function returns 0; 1 if it raised run->why;
 * or -1 if Chromium has ended or memory is short. */
#ifndef HR_PLUGINS_BROWSER_ACT_ACT_INT_H
#define HR_PLUGINS_BROWSER_ACT_ACT_INT_H

#include "plugins/browser/act/act.h"
#include "plugins/browser/act/element.h"

int act_raises(struct br_run *run, const char *text);
/* Handles a failed call: raises the driver's exception, or returns -1 if the browser has failed. */
int act_broken(struct br_run *run, const char *api);
/* Returns the program's current page, or NULL with b->err set. */
struct br_tab *act_page(struct br_run *run);
int act_find(struct br_run *run, const struct hr_span *bid, struct br_element *ret);
int act_click_element(struct br_run *run, const struct br_element *el, const struct hr_span *bid,
    const char *button, unsigned modifiers);
/* `held` is the pressed button, or "none" */
int act_hover_element(
    struct br_run *run, const struct br_element *el, const struct hr_span *bid, const char *held);

int act_click(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_hover(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_fill(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_clear(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_select_option(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_focus(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_press(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_drag_and_drop(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_upload_file(struct br_run *run, const struct br_call *c, const struct br_element *el);
int act_goto(struct br_run *run, const struct br_call *c);
/* Goes back or forward. */
int act_history(struct br_run *run, const struct br_call *c);

#endif
