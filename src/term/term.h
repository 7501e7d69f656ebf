/* hr_term: turns the bytes that a program writes to its terminal into the text that a person would
 * then see. A model of tmux 3.3a's pane: the contract is the output of `capture-pane -J -p -S -`
 * after the same bytes, including its quirks if they are visible in that text. Colours and
 * attributes are not stored.
 *
 * Pure: no clock, no descriptors; the same bytes give the same result however they are cut into
 * hr_term_feed() calls. Not thread safe; one hr_term is one terminal.
 *
 * Rows are numbered from the creation or the last reset: the row at the top of an empty terminal is
 * row 0, and a row keeps its number while it scrolls through the screen and the history. (Only a
 * scroll region below row 0 of the screen renumbers, since it pushes rows in between.) */
#ifndef HR_TERM_TERM_H
#define HR_TERM_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct hr_term;

/* Zero means the default given here. Values out of range are clamped. */
struct hr_term_config {
	unsigned cols;    /* 1000; 2 to 3000 */
	unsigned rows;    /* 1000; 2 to 10000 */
	unsigned history; /* 10000 rows above the screen; 1 to 1000000 */
	size_t max_bytes; /* 64 MiB: all memory of the terminal; at least 64 KiB */
	/* An LF also moves to column 0, as if the tty had sent CR LF (OPOST and ONLCR): for a
	 * reader that gets a program's bytes before the tty, or with output processing off. */
	bool lf_is_crlf;
};

struct hr_term *hr_term_new(const struct hr_term_config *config); /* Returns NULL without memory. */
void hr_term_free(struct hr_term *t);                             /* Does nothing with NULL. */

/* Processes output; cannot fail. Over max_bytes or out of memory the oldest history is dropped
 * first (and counted in hr_term_rows_dropped()); with no history left, characters that need memory
 * are not shown. */
void hr_term_feed(struct hr_term *t, const void *bytes, size_t len);

/* Resets to the state after hr_term_new() and frees memory. Keeps the configuration and the count
 * of hr_term_generation(). */
void hr_term_reset(struct hr_term *t);

/* --- text ---
 *
 * All of these append to *out: rows that the terminal wrapped itself are one line, white space
 * (Unicode's, as Python's str.rstrip() has it) is stripped from the end of each line, lines
 * are joined by LF, and lines after the last one written to are left out. A line of blanks
 * counts as written to, so the text may end in LFs. Errors stay in *out. On the alternate
 * screen "screen" means that one. */
/* Appends the history and the screen. */
void hr_term_text(const struct hr_term *t, struct hr_buf *out);
/* Appends the screen alone. */
void hr_term_text_screen(const struct hr_term *t, struct hr_buf *out);

/* Appends the text from a row on; skips dropped rows. A row that continues a wrapped line starts in
 * mid-line. */
void hr_term_text_from(const struct hr_term *t, uint64_t row, struct hr_buf *out);

/* Appends the same including the white space written at the ends of lines, and an LF for each row
 * up to the cursor's: the text as it was printed. */
void hr_term_text_exact(const struct hr_term *t, uint64_t row, struct hr_buf *out);

/* --- change ---
 *
 * Returns a number that has grown by one if the text of hr_term_text() has changed since the last
 * call: cursor motion, colours, writing the same text again, erasing and rewriting it, and blanks
 * at the very end are no changes. The cost depends on the rows written to since the last call. */
uint64_t hr_term_generation(struct hr_term *t);

/* --- state --- */
uint64_t hr_term_first_row(const struct hr_term *t);  /* Returns the number of the oldest row. */
uint64_t hr_term_cursor_row(const struct hr_term *t); /* Returns the number of the cursor's row. */
/* Counts rows that the limit dropped, not those that were cleared. */
uint64_t hr_term_rows_dropped(const struct hr_term *t);
/* Gets column and row on the screen from 0; col equals cols if the next character wraps. */
void hr_term_cursor(const struct hr_term *t, unsigned *ret_col, unsigned *ret_row);
/* Returns true while the alternate screen is shown. */
bool hr_term_alternate(const struct hr_term *t);
/* Returns true with DECCKM: arrows send ESC O A. */
bool hr_term_application_cursor(const struct hr_term *t);
bool hr_term_bracketed_paste(const struct hr_term *t); /* Returns true with mode 2004. */
size_t hr_term_memory(const struct hr_term *t);        /* Returns the number of bytes allocated. */

/* Moves up to `cap` bytes of answers to queries (DSR, DA, ...) to buf, to be written to the
 * program's input. Answers beyond 256 unread bytes are lost, each as a whole. */
size_t hr_term_replies(struct hr_term *t, char *buf, size_t cap);

/* Returns the columns of a character: 0, 1, 2, or -1 if it is not shown. tmux uses wcwidth() of its
 * C library; this is glibc 2.36's, independent of the locale. */
int hr_term_width(uint32_t codepoint);

#endif
