/* hr_view, for its files: view.c feeds it, view_take.c finds what is new in it. */
#ifndef HR_SESSION_VIEW_VIEW_INT_H
#define HR_SESSION_VIEW_VIEW_INT_H

#include "session/view/view.h"
#include "term/term.h"

/* 11 300 rows of 1000 columns of 4 bytes, and the scratch of one copy */
#define TEXT_CAP (64u << 20)

struct hr_view {
	struct hr_term *term;
	struct hr_buf
	    held;  /* the tail that may begin HR_READLINE_LEAVES, HR_HOOK_STARTED or HR_HOOK_MORE */
	bool echo; /* dropping */
	bool echo_line;              /* dropping, up to a newline */
	struct hr_buf typed, echoed; /* the line, and what came since; void once it failed */
	bool watch_start;            /* looking for HR_HOOK_STARTED */
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

/* Notes where that happened, for a successor. */
void view_note(struct hr_view *v, enum hr_view_event event);

#endif
