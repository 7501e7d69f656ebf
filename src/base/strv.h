/* hr_strv: grows a NULL-terminated list of strings, such as arguments or an environment. */
#ifndef HR_BASE_STRV_H
#define HR_BASE_STRV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_strv {
	char **v; /* NULL while empty */
	size_t n, room;
	bool failed; /* out of memory; sticky */
};

void hr_strv_done(struct hr_strv *s);
void hr_strv_add(struct hr_strv *s, const char *text);
void hr_strv_take(struct hr_strv *s, char *text); /* Takes ownership of text; NULL sets `failed`. */
void hr_strv_addf(struct hr_strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends copies of all texts; does nothing with NULL. */
void hr_strv_add_all(struct hr_strv *s, const char *const *texts);
/* Appends the words of a text split at single spaces, as the original does. */
void hr_strv_add_words(struct hr_strv *s, const char *text);
/* Sets "NAME=value", replacing an earlier entry of that name. */
void hr_strv_set_env(struct hr_strv *s, const char *entry);
void
hr_strv_set_envf(struct hr_strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets all of vars (NULL-terminated), or none and HR_E_INVAL if an entry has no name or no "=". */
int hr_strv_set_vars(struct hr_strv *s, const char *const *vars, struct hr_err *err);
void hr_strv_unset_env(struct hr_strv *s, const char *name);
const char *const *hr_strv_list(const struct hr_strv *s); /* Returns the list, never NULL. */

/* Compares two elements of a list of strings by their bytes, for qsort(). */
int hr_strv_compare(const void *a, const void *b);

#endif
