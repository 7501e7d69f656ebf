/* What step.c and desk.c share: see struct br_desk. */
#ifndef HR_PLUGINS_BROWSER_DESK_H
#define HR_PLUGINS_BROWSER_DESK_H

#include "plugins/browser/step.h"

void br_desk_save(const struct br_desk *d);
/* A file that nobody was told of yet, put into the workspace. 0: *ret is its path there, the
 * caller's, or NULL: there is none; -1. */
int br_desk_download(struct br_desk *d, char **ret, struct hr_err *err);

#endif
