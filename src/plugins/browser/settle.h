/* br_settle: after a program, until what it has begun has come to rest. */
#ifndef HR_PLUGINS_BROWSER_SETTLE_H
#define HR_PLUGINS_BROWSER_SETTLE_H

#include "plugins/browser/browser.h"

/* noted: the program did something that a page may answer. -1: b->err, Chromium is gone. */
int br_settle(struct browser *b, bool noted);
/* Sees to it that there is an active tab: that of the latest use, or a new one. */
int br_settle_tab(struct browser *b);

#endif
