/* What process.c, talk.c, tabs.c and events.c know of each other. */
#ifndef HR_PLUGINS_BROWSER_BROWSER_INT_H
#define HR_PLUGINS_BROWSER_BROWSER_INT_H

#include "plugins/browser/browser.h"

/* The messages that are whole in b->in. */
void br_take(struct browser *b);
/* Nobody will answer for this session any more. */
void br_unanswered(struct browser *b, const char *session, const char *why);
/* Sends what is in b->out. */
void br_flush(struct browser *b);

/* The one that is there, or a new one; NULL: no memory, or too many. */
struct br_frame *br_frame_put(struct br_session *s, const char *id, const char *parent);
void br_frame_remove(struct br_session *s, struct br_frame *f); /* with all below it */
void br_session_free(struct browser *b, struct br_tab *tab, struct br_session *s);

#endif
