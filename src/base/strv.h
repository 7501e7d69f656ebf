/* hr_strv: a growing NULL-terminated list of texts, such as arguments or an environment. */
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
void hr_strv_take(struct hr_strv *s, char *text); /* text becomes its own; NULL is a failure */
void hr_strv_addf(struct hr_strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hr_strv_add_all(struct hr_strv *s, const char *const *texts); /* NULL: nothing */
/* text split at single spaces, as the original splits. */
void hr_strv_add_words(struct hr_strv *s, const char *text);
/* "NAME=value", in the place of an earlier one of that name. */
void hr_strv_set_env(struct hr_strv *s, const char *entry);
void
hr_strv_set_envf(struct hr_strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* All of vars, NULL-terminated, or none: HR_E_INVAL where one has no name or no "=". */
int hr_strv_set_vars(struct hr_strv *s, const char *const *vars, struct hr_err *err);
void hr_strv_unset_env(struct hr_strv *s, const char *name);
const char *const *hr_strv_list(const struct hr_strv *s); /* never NULL */

#endif
