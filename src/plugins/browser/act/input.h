/* br_input: controls mouse and keyboard. Functions return 0, or -1 with b->err; br_press also 1
 * with why for an unknown key. */
#ifndef HR_PLUGINS_BROWSER_ACT_INPUT_H
#define HR_PLUGINS_BROWSER_ACT_INPUT_H

#include "plugins/browser/browser.h"

int br_mouse_move(struct browser *b, struct br_tab *tab, double x, double y, const char *held,
    unsigned modifiers);
int br_mouse_button(
    struct browser *b, struct br_tab *tab, bool down, const char *button, unsigned modifiers);
int br_wheel(struct browser *b, struct br_tab *tab, double dx, double dy);
/* Presses `keys`, e.g. "Control+a". */
int
br_press(struct browser *b, struct br_tab *tab, const char *keys, size_t len, struct hr_buf *why);
/* Presses or releases the keys of modifiers (keys.h). */
int br_keys_down(struct browser *b, struct br_tab *tab, unsigned modifiers, bool down);

#endif
