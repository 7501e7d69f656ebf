/* hr_view: what a client has seen of the terminal, and what is new.
 *
 * Takes the bytes of the PTY, keeps the echo of commands out of them, and gives the text of each
 * observation: everything not handed out before. Pure. */
#ifndef HR_SESSION_VIEW_VIEW_H
#define HR_SESSION_VIEW_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_view;

struct hr_view *hr_view_new(struct hr_err *err);
void hr_view_free(struct hr_view *v);

/* Bytes from the PTY. */
void hr_view_feed(struct hr_view *v, const char *p, size_t len);

/* The line p was given to readline: what follows is its echo, up to the sequence with which
 * readline leaves the terminal to the command. What a background job prints meanwhile is kept if
 * the echo can be told from it. If text stands on the current row a new row is begun, so that the
 * command's output does not run into it. */
void hr_view_expect_echo(struct hr_view *v, const char *p, size_t len);
/* The same for a command that is read without the terminal: there is no echo, and nothing is said
 * of its start. */
void hr_view_expect_more(struct hr_view *v);
/* A line was typed where the terminal itself echoes it: what follows up to a newline is its echo.
 */
void hr_view_expect_line(struct hr_view *v);
void hr_view_end_echo(struct hr_view *v);        /* what comes from now on is output */
bool hr_view_echo_over(const struct hr_view *v); /* readline took the line */
bool hr_view_started(const struct hr_view *v);   /* HR_HOOK_STARTED was seen since */
bool hr_view_more(const struct hr_view *v);      /* HR_HOOK_MORE was: bash asks for its rest */
bool hr_view_readline(const struct hr_view *v);  /* readline waits for input now */

/* Changes if, and only if, the text shown changed. */
uint64_t hr_view_generation(struct hr_view *v);

/* The new text appended to *out, white space at both ends taken off. `echoed` (may be NULL): a text
 * that the terminal may have echoed at the start of it, removed once if it is there. `trace` (may
 * be NULL): a text that set -v printed at the end, removed. *ret_lost: rows never handed out were
 * dropped by the history limit. Nothing is remembered as handed out until hr_view_mark(). */
int hr_view_take(struct hr_view *v, const char *echoed, size_t echoed_len, const char *trace,
    struct hr_buf *out, bool *ret_lost, struct hr_err *err);
int hr_view_mark(struct hr_view *v, struct hr_err *err);

/* The same text as it was printed: white space at both ends stays, and so does the line feed that
 * ends it. */
int hr_view_take_exact(struct hr_view *v, const char *echoed, size_t echoed_len, const char *trace,
    struct hr_buf *out, bool *ret_lost, struct hr_err *err);

/* The echo of a command is known by its place: it begins where readline was given the command, and
 * ends with the sequence with which readline leaves the terminal. Returns how many of these bytes,
 * which are about to be fed, belong to it; *ret_over: it ends with them, that sequence included. */
size_t hr_view_echo_bytes(const struct hr_view *v, const char *p, size_t len, bool *ret_over);
/* Makes `at` the offset of the next byte, for struct hr_view_points: where the caller keeps other
 * bytes than it feeds. */
void hr_view_place(struct hr_view *v, uint64_t at);
/* An empty terminal whose next byte has that offset. */
void hr_view_begin(struct hr_view *v, uint64_t at);

/* An empty terminal; everything counts as handed out. keep_readline: readline may wait already. */
void hr_view_reset(struct hr_view *v, bool keep_readline);

/* A program was ended by a signal: the screen that it had beside the main one is nobody's. */
void hr_view_leave_screen(struct hr_view *v);

/* What the shell itself set on the terminal, or began to print, is void. */
void hr_view_shell_ended(struct hr_view *v);

/* What another view must be fed to be as this one is, without what was handed out before: all from
 * byte `reset` on, and at these points what was called here, in the order of their numbers. Of each
 * kind there is the last since the reset: the echo of an earlier line may be seen. Counted from the
 * first byte that was fed, unless hr_view_place() was called. */
enum hr_view_event {
	HR_VIEW_LINE, /* hr_view_expect_line() */
	HR_VIEW_ECHO,
	HR_VIEW_MORE,
	HR_VIEW_MARK_MAIN, /* on the main screen */
	HR_VIEW_MARK,
	HR_VIEW_EVENTS,
};
struct hr_view_points {
	uint64_t fed, reset;
	struct {
		uint64_t at;
		uint32_t number; /* 0: it was not called */
	} events[HR_VIEW_EVENTS];
	uint32_t last;
	bool readline; /* the reset kept it */
	bool whole;    /* the shell has not ended since the reset */
	uint64_t
	    ended; /* it has, when so many were fed; what its successor prints first never is */
};
void hr_view_points(const struct hr_view *v, struct hr_view_points *ret);
const struct hr_buf *hr_view_typed(const struct hr_view *v); /* the line of HR_VIEW_ECHO */
void hr_view_readline_waits(struct hr_view *v);              /* as after a reset that keeps it */
void hr_view_lose(struct hr_view *v); /* what was printed before cannot be shown */

/* Answers of the terminal to queries (DSR, DA) since the last call. */
size_t hr_view_replies(struct hr_view *v, char *buf, size_t cap);
bool hr_view_application_cursor(const struct hr_view *v);

#endif
