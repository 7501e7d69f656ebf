/* br_element: finds an element named by a bid, and waits for the conditions of an action. Functions
 * return 0; 1 if the action raises the exception in `why`; -1 if Chromium does not respond any
 * more, see b->err. */
#ifndef HR_PLUGINS_BROWSER_ACT_ELEMENT_H
#define HR_PLUGINS_BROWSER_ACT_ELEMENT_H

#include <stddef.h>

#include "plugins/browser/browser.h"

#define BR_ELEMENT_MS 500 /* ms to wait until the element meets the conditions */

struct br_element {
	char target[BR_ID], session[BR_ID], frame[BR_ID];
	char object[BR_OBJECT];
};

/* An action on an element. */
struct br_attempt {
	const char *api;    /* "Locator.click" */
	const char *doing;  /* "click" */
	const char *states; /* required states: letters of handrail.check() */
	const char *words;  /* the required states in words, for messages */
	int64_t until_ms;
	unsigned n;
	struct hr_buf log;
};

int br_element_find(struct browser *b, struct br_tab *tab, const char *bid, size_t len,
    struct br_element *ret, struct hr_buf *why);
/* Finds the frame that is the content of an object, or "" if there is none. */
int br_content_frame(struct browser *b, const char *session, const char *object, char *ret);
/* Finds the element that holds this one's frame. Returns 0; 1: that frame is the page; -1: an
 * error. */
int br_element_owner(struct browser *b, const struct br_element *el, struct br_element *ret);
/* Resolves a backend node to an object in handrail's world. */
int br_element_of_node(struct browser *b, struct br_session *s, const struct br_frame *f,
    int64_t node, char *ret_object);

void br_attempt_begin(struct br_attempt *a, struct browser *b, const struct br_element *el,
    const char *bid, size_t len);
void br_attempt_done(struct br_attempt *a);
/* Puts "Error: <api>: <text>" and the log into why. Returns 1. */
int br_attempt_fails(const struct br_attempt *a, struct hr_buf *why, const char *text);
/* Pauses before a retry; `reason` says why the last try failed. Returns 1 with why set on
 * timeout. */
int
br_attempt_again(struct browser *b, struct br_attempt *a, const char *reason, struct hr_buf *why);
/* Waits until the element has the states in a->states. */
int br_element_ready(
    struct browser *b, const struct br_element *el, struct br_attempt *a, struct hr_buf *why);
/* Waits as br_element_ready() does, scrolls the element into view, and waits until nothing covers
 * the point to be pressed. */
int br_element_point(struct browser *b, const struct br_element *el, struct br_attempt *a,
    double *ret_x, double *ret_y, struct hr_buf *why);
/* Tests whether the element is still at that point, with the mouse there. Returns 2 if it is not,
 * and time is left to retry. */
int br_element_still(struct browser *b, const struct br_element *el, struct br_attempt *a, double x,
    double y, struct hr_buf *why);
/* Calls a function of page.js that returns a string, which the caller frees. Returns NULL with
 * b->err set. */
char *br_element_say(
    struct browser *b, const struct br_element *el, const char *function, const char *args);

#endif
