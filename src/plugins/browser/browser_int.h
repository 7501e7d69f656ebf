/* What process.c, talk.c and tabs.c know of each other. */
#ifndef HR_PLUGINS_BROWSER_BROWSER_INT_H
#define HR_PLUGINS_BROWSER_BROWSER_INT_H

#include "plugins/browser/browser.h"

/* The messages that are whole in b->in. */
void br_take(struct browser *b);
/* Nobody will answer for this session any more. */
void br_unanswered(struct browser *b, const char *session, const char *why);
/* Sends what is in b->out. */
void br_flush(struct browser *b);

#endif
