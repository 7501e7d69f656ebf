/* hr_nearest: what somebody may have meant who mistyped a word. */
#ifndef HR_BASE_TEXT_NEAREST_H
#define HR_BASE_TEXT_NEAREST_H

#include <stddef.h>

/* The word of a list that is nearest to one that is not in it; NULL: more than a third of it would
 * be wrong, or it is longer than 63 bytes. */
const char *hr_nearest(const char *word, const char *const *words, size_t n);

#endif
