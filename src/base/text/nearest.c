#include "config.h"

#include "base/text/nearest.h"

#include <string.h>

#define WORD_MAX 63

static size_t
least(size_t a, size_t b, size_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Computes Levenshtein's distance of two short words, counting two swapped letters as one
 * mistake. */
static size_t
distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], n = strlen(b), i, j;

	if (strlen(a) > WORD_MAX || n > WORD_MAX)
		return WORD_MAX;
	for (j = 0; j <= n; j++)
		rows[0][j] = j;
	for (i = 1; a[i - 1] != '\0'; i++) {
		size_t *now = rows[i % 3];
		const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = i;
		for (j = 1; j <= n; j++) {
			now[j] = least(
			    last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return rows[strlen(a) % 3][n];
}

const char *
hr_nearest(const char *word, const char *const *words, size_t n)
{
	/* Allow one mistake per three letters; a four-letter word with two is another word. */
	size_t best = (strlen(word) < 6 ? 1 : strlen(word) / 3) + 1, d, i;
	const char *found = NULL;

	for (i = 0; i < n; i++) {
		d = distance(word, words[i]);
		if (d < best) {
			best = d;
			found = words[i];
		}
	}
	return found;
}
