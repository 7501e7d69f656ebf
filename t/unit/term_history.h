/* How many rows a terminal keeps above its screen, as its other figures tell it. */
#ifndef T_UNIT_TERM_HISTORY_H
#define T_UNIT_TERM_HISTORY_H

#include "term/term.h"

static inline unsigned
history_rows(const struct hr_term *t)
{
	unsigned col, row;

	hr_term_cursor(t, &col, &row);
	return (unsigned)(hr_term_cursor_row(t) - hr_term_first_row(t)) - row;
}

#endif
