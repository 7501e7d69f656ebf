/* br_element: an element that a bid names, and what an action waits for before it touches it.
 *
 * 0: done; 1: the action raises an exception, which is in `why`; -1: Chromium cannot be asked any
 * more, see b->err. */
#ifndef HR_PLUGINS_BROWSER_ACT_ELEMENT_H
#define HR_PLUGINS_BROWSER_ACT_ELEMENT_H

#include <stddef.h>

#include "plugins/browser/browser.h"

#define BR_ELEMENT_MS 500 /* until it is what it has to be */

struct br_element {
	char target[BR_ID], session[BR_ID], frame[BR_ID];
	char object[BR_OBJECT];
};

/* One action on one element. */
struct br_attempt {
	const char *api;    /* "Locator.click" */
	const char *doing;  /* "click" */
	const char *states; /* what it has to be: letters of handrail.check() */
	const char *words;  /* the same for people */
	int64_t until_ms;
	unsigned n;
	struct hr_buf log;
};

int br_element_find(struct browser *b, struct br_tab *tab, const char *bid, size_t len,
    struct br_element *ret, struct hr_buf *why);
/* The frame that is the content of an object. "": none. */
int br_content_frame(struct browser *b, const char *session, const char *object, char *ret);
/* The element that holds the frame of this one. 0; 1: none, that frame is the page; -1. */
int br_element_owner(struct browser *b, const struct br_element *el, struct br_element *ret);
/* The element of a backend node in our world. */
int br_element_of_node(struct browser *b, struct br_session *s, const struct br_frame *f,
    int64_t node, char *ret_object);

void br_attempt_begin(struct br_attempt *a, struct browser *b, const struct br_element *el,
    const char *bid, size_t len);
void br_attempt_done(struct br_attempt *a);
/* Puts "Error: <api>: <text>" and the log there; returns 1. */
int br_attempt_fails(const struct br_attempt *a, struct hr_buf *why, const char *text);
/* Once more, after a moment. 1: the time is over, why says it. `reason`: why not this time. */
int
br_attempt_again(struct browser *b, struct br_attempt *a, const char *reason, struct hr_buf *why);
/* Until it is what a->states asks for. */
int br_element_ready(
    struct browser *b, const struct br_element *el, struct br_attempt *a, struct hr_buf *why);
/* That, scrolled into view, with nothing over the point that is to be pressed. */
int br_element_point(struct browser *b, const struct br_element *el, struct br_attempt *a,
    double *ret_x, double *ret_y, struct hr_buf *why);
/* Is it still the one at that point, now that the mouse is there? 2: no, and there is time to try
 * again. */
int br_element_still(struct browser *b, const struct br_element *el, struct br_attempt *a, double x,
    double y, struct hr_buf *why);
/* A function of page.js that answers with a text. NULL: b->err. The caller frees. */
char *br_element_say(
    struct browser *b, const struct br_element *el, const char *function, const char *args);

#endif
