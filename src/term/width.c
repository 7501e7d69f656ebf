/* Returns the columns of a character. tmux asks the C library, so the table is that library's. */
#include "config.h"

#include "term/term.h"
#include "term/width_table.h"

/* Ranges of the most frequent characters, which need no search. */
enum {
	WIDTH_LATIN = 0xa0,
	WIDTH_LATIN_END = 0x300,
	WIDTH_IDEOGRAPHS = 0x4e00,
	WIDTH_IDEOGRAPHS_END = 0xa000,
};

int
hr_term_width(uint32_t codepoint)
{
	unsigned lo = 0, hi = sizeof(width_runs) / sizeof(width_runs[0]), mid;

	if (codepoint >= WIDTH_LATIN && codepoint < WIDTH_LATIN_END)
		return 1;
	if (codepoint >= WIDTH_IDEOGRAPHS && codepoint < WIDTH_IDEOGRAPHS_END)
		return 2;
	if (codepoint > 0x10ffff)
		return -1;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (width_runs[mid] >> 2 <= codepoint)
			lo = mid;
		else
			hi = mid;
	}
	return (int)(width_runs[lo] & 3) - 1;
}
