/* br_settle: waits after a program until its effects have settled. */
#ifndef HR_PLUGINS_BROWSER_SETTLE_H
#define HR_PLUGINS_BROWSER_SETTLE_H

#include "plugins/browser/browser.h"

/* Waits; `noted`: the program did something to which a page may react. Returns -1 with b->err if
 * Chromium has ended. */
int br_settle(struct browser *b, bool noted);
/* Ensures that there is an active tab: the last used, or a new one. */
int br_settle_tab(struct browser *b);

#endif
