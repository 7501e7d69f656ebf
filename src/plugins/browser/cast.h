/* br_cast: what is told to those who look on: the pages that are open and the picture of the active
 * one. Chromium sends pictures only while somebody looks, and only when what is seen changes. */
#ifndef HR_PLUGINS_BROWSER_CAST_H
#define HR_PLUGINS_BROWSER_CAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "plugins/browser/page/tape.h"

struct browser;
struct hr_watch;

struct br_cast {
	/* given by who serves those who look on; NULL: nobody does */
	void (*changed)(void *arg); /* maybe */
	void *arg;
	char target[64];       /* whose pictures come; "": none do */
	int64_t begun;         /* what asked for them */
	struct hr_watch *pace; /* runs: the picture that came last is not acknowledged yet */
	char ack_session[64];  /* ... */
	int64_t ack;           /* ... and its number */
	unsigned unacked;      /* how many came since the last acknowledgement */
	struct hr_buf picture; /* base64 of a JPEG; empty: none yet */
	uint64_t number;       /* of the picture: it changes with it */
	int64_t width, height; /* of the page on it */
};

void br_cast_init(struct br_cast *c);
void br_cast_done(struct br_cast *c);
/* Somebody looks on from now on, or nobody does (changed NULL). */
void br_cast_to(struct browser *b, void (*changed)(void *arg), void *arg);
/* After anything that may have changed what there is to be seen. */
void br_cast_follow(struct browser *b);
/* A request was refused. If it was for the pictures, which is so while another document takes the
 * place of the page's, the next event of the page, which are some then, asks again. */
void br_cast_refused(struct browser *b, int64_t id);
/* Page.screencastFrame */
void
br_cast_frame(struct browser *b, const char *session, const struct br_tape *t, uint32_t params);
/* Appends the members of an object, without the picture: "open":...,"tabs":[...] */
void br_cast_put_state(const struct browser *b, bool busy, struct hr_buf *ret);
/* "picture":{...} or "picture":null */
void br_cast_put_picture(const struct br_cast *c, struct hr_buf *ret);

#endif
