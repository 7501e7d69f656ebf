/* br_cast: keeps the viewers' state: the open pages, and the picture of the active one. Chromium
 * sends pictures only while there is a viewer, and only when the view changes. */
#ifndef HR_PLUGINS_BROWSER_CAST_H
#define HR_PLUGINS_BROWSER_CAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "plugins/browser/page/tape.h"

struct browser;
struct hr_watch;

struct br_cast {
	/* set by the viewers' server; NULL: there is no viewer */
	void (*changed)(void *arg); /* called when the state may have changed */
	void *arg;
	char target[64];       /* target of the pictures; "": none */
	int64_t begun;         /* id of the query that started the pictures */
	struct hr_watch *pace; /* timer: to the acknowledgement, then to the end of the burst */
	char ack_session[64];  /* session of the due acknowledgement */
	int64_t ack;           /* number of the due acknowledgement */
	unsigned unacked;      /* number of pictures since the last acknowledgement */
	unsigned burst;        /* number of pictures that came without a rest between, up to 3 */
	struct hr_buf picture; /* base64 of a JPEG; empty: there is none yet */
	uint64_t number;       /* changes with each picture */
	int64_t width, height; /* size of the page in the picture */
};

void br_cast_init(struct br_cast *c);
void br_cast_done(struct br_cast *c);
/* Starts serving viewers, or stops if `changed` is NULL. */
void br_cast_to(struct browser *b, void (*changed)(void *arg), void *arg);
/* Call after anything that may have changed the view. */
void br_cast_follow(struct browser *b);
/* Handles a refused query. If it started the pictures, which Chromium refuses while a new document
 * replaces the page's, the page's next event (there will be one) asks again. */
void br_cast_refused(struct browser *b, int64_t id);
/* Handles Page.screencastFrame. */
void
br_cast_frame(struct browser *b, const char *session, const struct br_tape *t, uint32_t params);
/* Appends members of an object, without the picture: "open":...,"tabs":[...] */
void br_cast_put_state(const struct browser *b, bool busy, struct hr_buf *ret);
/* Appends "picture":{...} or "picture":null. */
void br_cast_put_picture(const struct br_cast *c, struct hr_buf *ret);

#endif
