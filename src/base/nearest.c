#include "config.h"

#include "base/nearest.h"

#include <string.h>

#define WORD_MAX 63

static size_t
least(size_t a, size_t b, size_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Levenshtein's distance of two short words. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1], n = strlen(b), before, old, i, j;

	if (strlen(a) > WORD_MAX || n > WORD_MAX)
		return WORD_MAX;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; a[i - 1] != '\0'; i++) {
		before = row[0];
		row[0] = i;
		for (j = 1; j <= n; j++) {
			old = row[j];
			row[j] = least(row[j] + 1, row[j - 1] + 1, before + (a[i - 1] != b[j - 1]));
			before = old;
		}
	}
	return row[n];
}

const char *
hr_nearest(const char *word, const char *const *words, size_t n)
{
	size_t best = strlen(word) / 3 + 2, d, i;
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
