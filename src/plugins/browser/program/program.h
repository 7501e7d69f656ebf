/* br_program: parses the program text of browse_interactive into calls and their arguments, with
 * the errors of Python and the original's driver. Pure: uses no browser. */
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

/* the bits of Input.dispatchMouseEvent; ControlOrMeta is Control */
enum { BR_ALT = 1, BR_CONTROL = 2, BR_META = 4, BR_SHIFT = 8 };

/* Holds a call with its arguments bound. Members that a function does not use are 0. Spans are
 * borrowed from the program and may contain nulls. */
struct br_call {
	enum br_fn fn;
	struct hr_span bid;    /* bid of the element; drag_and_drop: of the source */
	struct hr_span to_bid; /* drag_and_drop: bid of the target */
	struct hr_span text;   /* fill: value; press: key_comb; goto: url; messages: text */
	double x, y;           /* scroll: deltas; noop: x is milliseconds */
	int64_t index;         /* tab_focus: index, clamped to the type's range */
	enum br_button button;
	unsigned modifiers;
	const struct hr_span *list; /* select_option: options; upload_file: files */
	size_t nlist;
	/* Error of the driver that replaces the action once the element is found ("Error:
	 * Locator.click: button: expected one of (left|right|middle)"); NULL: none. Without an
	 * element it is raised at once; for upload_file once the page opens its file chooser. */
	const char *refused;
	/* drag_and_drop: exception that replaces the search for to_bid, with the button pressed;
	 * NULL: none. */
	const char *to_refused;
};

struct br_program;
struct br_calls;

/* Parses the program. Returns NULL if no call may run: `why` has the exception as in the
 * observation's last_browser_action_error ("ValueError: Received an empty action."), or is empty
 * without memory. */
struct br_program *br_program_parse(const char *text, size_t len, struct hr_buf *why);
void br_program_free(struct br_program *p); /* Accepts NULL. */
size_t br_program_calls(const struct br_program *p);
/* Binds call i, right before it runs. Returns -1 with the exception in `why`, which is empty
 * without memory. *ret is valid as long as p. */
int br_program_bind(struct br_program *p, size_t i, struct br_call *ret, struct hr_buf *why);

/* Checks a whole program before its first call runs: it must not use unknown names. Returns -1 with
 * *why set. */
int br_calls_check(const struct br_calls *c, struct hr_buf *why);

#endif
