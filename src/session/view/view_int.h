/* Shares hr_view between its files: view.c feeds it, view_take.c finds what is new in it. */
#ifndef HR_SESSION_VIEW_VIEW_INT_H
#define HR_SESSION_VIEW_VIEW_INT_H

#include "session/view/view.h"
#include "term/term.h"

/* holds 11 300 rows of 1000 columns of 4 bytes, and the scratch of one copy */
#define TEXT_CAP (64u << 20)

struct hr_view {
	struct hr_term *term;
	struct hr_buf
	    held;  /* the tail that may begin HR_READLINE_LEAVES, HR_HOOK_STARTED or HR_HOOK_MORE */
	bool echo; /* true: the echo is being dropped */
	bool echo_line; /* true: the echo is being dropped, up to a newline */
	/* the line, and the bytes that came since; void once it failed */
	struct hr_buf typed, echoed;
	bool watch_start; /* true: look for HR_HOOK_STARTED */
	bool started;
	size_t watch_more; /* bytes in which to look for HR_HOOK_MORE */
	bool more;
	struct hr_buf shown;
	struct hr_buf shown_screen; /* the alternate screen at the last mark */
	struct hr_buf row_text;
	uint64_t mark_row, mark_dropped;
	bool marked;
	struct hr_view_points points;
	bool lost;
};

/* Notes the place of an event, for a successor. */
void view_note(struct hr_view *v, enum hr_view_event event);

#endif
