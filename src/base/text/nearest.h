/* hr_nearest: finds the word that a mistyped one probably meant. */
#ifndef HR_BASE_TEXT_NEAREST_H
#define HR_BASE_TEXT_NEAREST_H

#include <stddef.h>

/* Returns the word of a list that is nearest to `word`, or NULL if more than a third would be wrong
 * or `word` is longer than 63 bytes. */
const char *hr_nearest(const char *word, const char *const *words, size_t n);

#endif
