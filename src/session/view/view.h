/* hr_view: tracks the part of the terminal's text that a client has not seen yet. Takes the bytes
 * of the PTY, removes the echo of commands, and returns the text of each observation: everything
 * not returned before. Pure. */
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

/* Adds bytes from the PTY. */
void hr_view_feed(struct hr_view *v, const char *p, size_t len);

/* Expects the echo of line p, which readline was given, up to the sequence with which readline
 * leaves the terminal to the command. A background job's output meanwhile is kept if it can be
 * distinguished from the echo. Starts a new row if the current one has text, so that the command's
 * output is separate. */
void hr_view_expect_echo(struct hr_view *v, const char *p, size_t len);
/* Does the same for a command that is read without the terminal: there is no echo and no mark of
 * its start. */
void hr_view_expect_more(struct hr_view *v);
/* Expects the terminal's own echo of a typed line, up to a newline. */
void hr_view_expect_line(struct hr_view *v);
void hr_view_end_echo(struct hr_view *v);        /* Ends the echo: later bytes are output. */
bool hr_view_echo_over(const struct hr_view *v); /* Returns true if readline took the line. */
/* Returns true if HR_HOOK_STARTED has come since the command was given. */
bool hr_view_started(const struct hr_view *v);
/* Returns true if HR_HOOK_MORE has come: bash asks for the rest. */
bool hr_view_more(const struct hr_view *v);
bool hr_view_readline(const struct hr_view *v); /* Returns true if readline waits for input now. */

/* Returns a number that changes if, and only if, the text shown changed. */
uint64_t hr_view_generation(struct hr_view *v);

/* Appends the new text to *out, trimmed at both ends. `echoed` (may be NULL) is a text that the
 * terminal may have echoed at the start of it, removed once if found. `trace` (may be NULL) is a
 * text that set -v printed at the end, removed. *ret_lost is set if the history limit dropped rows
 * never returned. Call hr_view_mark() to mark the text as seen. */
int hr_view_take(struct hr_view *v, const char *echoed, size_t echoed_len, const char *trace,
    struct hr_buf *out, bool *ret_lost, struct hr_err *err);
int hr_view_mark(struct hr_view *v, struct hr_err *err);

/* Appends the same text as printed: untrimmed, with the line feed that ends it. */
int hr_view_take_exact(struct hr_view *v, const char *echoed, size_t echoed_len, const char *trace,
    struct hr_buf *out, bool *ret_lost, struct hr_err *err);

/* Returns how many of these bytes, which are about to be fed, are a command's echo; *ret_over is
 * set if the echo ends with them. The echo starts where readline was given the command, and ends
 * with the sequence with which readline leaves the terminal, included. */
size_t hr_view_echo_bytes(const struct hr_view *v, const char *p, size_t len, bool *ret_over);
/* Sets the offset of the next byte, for struct hr_view_points, if the caller keeps other bytes than
 * it feeds. */
void hr_view_place(struct hr_view *v, uint64_t at);
/* Empties the terminal and sets the offset of its next byte. */
void hr_view_begin(struct hr_view *v, uint64_t at);

/* Empties the terminal; all its text counts as seen. keep_readline: readline may be waiting
 * already. */
void hr_view_reset(struct hr_view *v, bool keep_readline);

/* Leaves the alternate screen of a program that a signal ended. */
void hr_view_leave_screen(struct hr_view *v);
/* Notes that readline has left the terminal, whether or not its end sequence was seen. A replay of
 * the output does not repeat that. */
void hr_view_leave_readline(struct hr_view *v);

/* Voids the shell's own terminal settings, and sequences that it left incomplete. */
void hr_view_shell_ended(struct hr_view *v);

/* The events that bring another view to this one's state, without the text already seen: feed all
 * from byte `reset` on, and repeat these calls at their points, in the order of their numbers. Only
 * the last event of each kind since the reset is known: an earlier line's echo may be seen. Offsets
 * count from the first byte fed, unless hr_view_place() was called. */
enum hr_view_event {
	HR_VIEW_LINE, /* a call of hr_view_expect_line() */
	HR_VIEW_ECHO,
	HR_VIEW_MORE,
	HR_VIEW_MARK_MAIN, /* a call of hr_view_mark() on the main screen */
	HR_VIEW_MARK,
	HR_VIEW_EVENTS,
};
struct hr_view_points {
	uint64_t fed, reset;
	struct {
		uint64_t at;
		uint32_t number; /* number of the call in their order; 0: there was none */
	} events[HR_VIEW_EVENTS];
	uint32_t last;
	bool readline;  /* kept by the reset */
	bool whole;     /* the shell has not ended since the reset */
	uint64_t ended; /* offset of the shell's end; its successor's first output is never fed */
};
void hr_view_points(const struct hr_view *v, struct hr_view_points *ret);
const struct hr_buf *hr_view_typed(const struct hr_view *v); /* Returns the line of HR_VIEW_ECHO. */
/* Sets the state as after a reset that keeps readline's. */
void hr_view_readline_waits(struct hr_view *v);
void hr_view_lose(struct hr_view *v); /* Notes that earlier output is not available. */

/* Moves the terminal's answers to queries (DSR, DA) to buf. */
size_t hr_view_replies(struct hr_view *v, char *buf, size_t cap);
bool hr_view_application_cursor(const struct hr_view *v);

#endif
