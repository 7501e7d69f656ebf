/* Declares the interfaces between process.c, talk.c, tabs.c, events.c, settle.c and step.c. */
#ifndef HR_PLUGINS_BROWSER_BROWSER_INT_H
#define HR_PLUGINS_BROWSER_BROWSER_INT_H

#include "plugins/browser/browser.h"

/* Handles the complete messages in b->in. */
void br_take(struct browser *b);
/* Fails the queries of a session that is gone. */
void br_unanswered(struct browser *b, const char *session, const char *why);
/* Sends the bytes in b->out. */
void br_flush(struct browser *b);

/* Returns the frame, which may be new; NULL without memory, or if there are too many. */
struct br_frame *br_frame_put(struct br_session *s, const char *id, const char *parent);
/* Removes the frame and all frames below it. */
void br_frame_remove(struct br_session *s, struct br_frame *f);
void br_session_free(struct browser *b, struct br_tab *tab, struct br_session *s);

/* Waits after a program until its effects have settled; `noted`: the program did something to which
 * a page may react. Returns -1 with b->err if Chromium has ended. */
int br_settle(struct browser *b, bool noted);
/* Converts a page's number, which may be any, to ms: 0, or 1 to limit_ms + 1. */
int64_t br_busy_ms(double ms, int64_t limit_ms);
/* Ensures that there is an active tab: the last used, or a new one. */
int br_settle_tab(struct browser *b);

#endif
