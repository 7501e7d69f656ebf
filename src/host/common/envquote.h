/* Handles variables: names, and values quoted for bash on one line. */
#ifndef HR_HOST_COMMON_ENVQUOTE_H
#define HR_HOST_COMMON_ENVQUOTE_H

#include "base/buf.h"

/* Returns the length of the name in "NAME=value", or 0 if the name is not valid. */
size_t hr_env_name(const char *entry);

/* Appends 'v', with ' as '\''; $'v' if it has a control character. No I/O. */
void hr_env_quote(struct hr_buf *b, const char *value);

#endif
