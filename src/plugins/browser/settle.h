/* br_settle: waits after a program until its effects have settled. */
#ifndef HR_PLUGINS_BROWSER_SETTLE_H
#define HR_PLUGINS_BROWSER_SETTLE_H

#include "plugins/browser/browser.h"

/* noted: the program did something a page may react to. Returns -1: b->err, Chromium has ended. */
int br_settle(struct browser *b, bool noted);
/* Makes sure that there is an active tab: the last used, or a new one. */
int br_settle_tab(struct browser *b);

#endif
