/* A value as a word of bash that stays on one line. */
#ifndef HR_HOST_ENVQUOTE_H
#define HR_HOST_ENVQUOTE_H

#include "base/buf.h"

/* 'v', with ' as '\''; $'v' where there is a control character in it. Pure. */
void hr_env_quote(struct hr_buf *b, const char *value);

#endif
