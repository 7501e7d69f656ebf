/* Variables: their names, and a value as a word of bash that stays on one line. */
#ifndef HR_HOST_COMMON_ENVQUOTE_H
#define HR_HOST_COMMON_ENVQUOTE_H

#include "base/buf.h"

/* The length of the name in "NAME=value"; 0: that is no name of a variable. */
size_t hr_env_name(const char *entry);

/* 'v', with ' as '\''; $'v' where there is a control character in it. Pure. */
void hr_env_quote(struct hr_buf *b, const char *value);

#endif
