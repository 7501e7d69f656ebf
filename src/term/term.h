/* hr_term: the bytes a program writes to its terminal, and the text a person would then see.
 *
 * A model of tmux 3.3a's pane: what `capture-pane -J -p -S -` prints after the same bytes is the
 * contract, accidents included where they can be seen in that text. Colours and attributes are not
 * kept. Pure: no clock, no descriptors; the same bytes give the same result however they are cut
 * into hr_term_feed() calls. Not thread safe; one hr_term is one terminal.
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

/* A zero means the default given here. Values out of range are brought into it. */
struct hr_term_config {
	unsigned cols;    /* 1000; 2 to 3000 */
	unsigned rows;    /* 1000; 2 to 10000 */
	unsigned history; /* 10000 rows above the screen; 1 to 1000000 */
	size_t max_bytes; /* 64 MiB: all memory of the terminal; at least 64 KiB */
	/* Each LF moves to column 0 as well, as if the tty had sent CR LF (OPOST and ONLCR): for a
	 * reader that gets a program's bytes before the tty, or with output processing off. */
	bool lf_is_crlf;
};

struct hr_term *hr_term_new(const struct hr_term_config *config); /* NULL: out of memory */
void hr_term_free(struct hr_term *t);                             /* NULL is allowed */

/* Cannot fail. Over max_bytes or out of memory the oldest history goes first (and is counted in
 * hr_term_rows_dropped()); with no history left, characters that need memory are not shown. */
void hr_term_feed(struct hr_term *t, const void *bytes, size_t len);

/* As after hr_term_new(), memory given back. Keeps the configuration and the count of
 * hr_term_generation(). */
void hr_term_reset(struct hr_term *t);

/* --- text ---
 *
 * All of these append to *out: rows that the terminal wrapped itself are one line, white space
 * (Unicode's, as Python's str.rstrip() has it) is stripped from the end of each line, lines
 * are joined by LF, and lines after the last one written to are left out. A line of blanks
 * counts as written to, so the text may end in LFs. Errors stay in *out. On the alternate
 * screen "screen" means that one. */
void hr_term_text(const struct hr_term *t, struct hr_buf *out);        /* history and screen */
void hr_term_text_screen(const struct hr_term *t, struct hr_buf *out); /* the screen alone */

/* From a row on; rows that are gone are left out. A row that continues a wrapped line starts in
 * mid-line. */
void hr_term_text_from(const struct hr_term *t, uint64_t row, struct hr_buf *out);

/* The same from a row on, but with the white space at the ends of lines that was written there, and
 * with an LF for each row up to the cursor's: the text as it was printed. */
void hr_term_text_exact(const struct hr_term *t, uint64_t row, struct hr_buf *out);

/* --- change ---
 *
 * A number that is one more than at the last call if the text of hr_term_text() is not what it was
 * then, else the same: cursor motion, colours, writing what is there already, and erasing and
 * writing it again change nothing, nor do blanks at the very end. The cost is that of the rows
 * written to since the last call. */
uint64_t hr_term_generation(struct hr_term *t);

/* --- state --- */
uint64_t hr_term_first_row(const struct hr_term *t);    /* oldest row there is */
uint64_t hr_term_cursor_row(const struct hr_term *t);   /* the one that the cursor is in */
uint64_t hr_term_rows_dropped(const struct hr_term *t); /* lost by the limit, not by clearing */
/* Column and row on the screen from 0; col equals cols if the next character wraps. */
void hr_term_cursor(const struct hr_term *t, unsigned *ret_col, unsigned *ret_row);
bool hr_term_alternate(const struct hr_term *t);          /* alternate screen shown */
bool hr_term_application_cursor(const struct hr_term *t); /* DECCKM: arrows are ESC O A */
bool hr_term_bracketed_paste(const struct hr_term *t);    /* mode 2004 */
size_t hr_term_memory(const struct hr_term *t);           /* bytes allocated */

/* Answers to queries (DSR, DA, ...), to be written to the program's input: moves up to `cap` bytes
 * to buf. What does not fit into 256 bytes because nobody fetched it is lost, answer by answer. */
size_t hr_term_replies(struct hr_term *t, char *buf, size_t cap);

/* Columns of a character: 0, 1, 2, or -1 for one that is not shown. tmux uses wcwidth() of its C
 * library; this is glibc 2.36's, whatever the locale. */
int hr_term_width(uint32_t codepoint);

#endif
