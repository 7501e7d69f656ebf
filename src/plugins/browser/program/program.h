/* br_program: the program text of browse_interactive: the calls found in it and their arguments,
 * with Python's and the original driver's texts where they are wrong. Pure: no browser is asked. */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_PROGRAM_H
#define HR_PLUGINS_BROWSER_PROGRAM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum br_fn {
	BR_NOOP,
	BR_SEND_MSG_TO_USER,
	BR_REPORT_INFEASIBLE,
	BR_SCROLL,
	BR_FILL,
	BR_SELECT_OPTION,
	BR_CLICK,
	BR_DBLCLICK,
	BR_HOVER,
	BR_PRESS,
	BR_FOCUS,
	BR_CLEAR,
	BR_DRAG_AND_DROP,
	BR_UPLOAD_FILE,
	BR_GOTO,
	BR_GO_BACK,
	BR_GO_FORWARD,
	BR_NEW_TAB,
	BR_TAB_CLOSE,
	BR_TAB_FOCUS,
	BR_FN_COUNT
};

enum br_button { BR_LEFT, BR_MIDDLE, BR_RIGHT };

/* bits as Input.dispatchMouseEvent has them; ControlOrMeta is Control */
enum { BR_ALT = 1, BR_CONTROL = 2, BR_META = 4, BR_SHIFT = 8 };

/* One call with its arguments bound. What a function does not take is 0. Spans are borrowed from
 * the program; they may hold nulls. */
struct br_call {
	enum br_fn fn;
	struct hr_span bid;    /* drag_and_drop: the source */
	struct hr_span to_bid; /* drag_and_drop */
	struct hr_span text;   /* fill: value; press: key_comb; goto: url; messages: text */
	double x, y;           /* scroll: deltas; noop: milliseconds in x */
	int64_t index;         /* tab_focus; far out of range: nearest that fits */
	enum br_button button;
	unsigned modifiers;
	const struct hr_span *list; /* select_option: options; upload_file: files */
	size_t nlist;
	/* What the driver answers once the element was found ("Error: Locator.click: button:
	 * expected one of (left|right|middle)"), instead of doing anything; NULL: nothing wrong.
	 * For functions without an element: at once; upload_file: once the page asked for files. */
	const char *refused;
	/* drag_and_drop: the exception in place of looking for to_bid, once the button is down;
	 * NULL: nothing wrong. */
	const char *to_refused;
};

struct br_program;
struct br_calls;

/* NULL: nothing of it may run, `why` has the exception as the observation's
 * last_browser_action_error does ("ValueError: Received an empty action."), or is empty: no memory.
 */
struct br_program *br_program_parse(const char *text, size_t len, struct hr_buf *why);
void br_program_free(struct br_program *p); /* NULL: nothing */
size_t br_program_calls(const struct br_program *p);
/* Call i, just before it is to run. -1: `why` has the exception, or is empty: no memory. *ret is
 * valid as long as p. */
int br_program_bind(struct br_program *p, size_t i, struct br_call *ret, struct hr_buf *why);

/* What is refused of a program as a whole before its first call runs: names that no function has.
 * -1: *why. */
int br_calls_check(const struct br_calls *c, struct hr_buf *why);

#endif
