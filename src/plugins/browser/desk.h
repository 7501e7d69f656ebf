/* Connects step.c and desk.c: see struct br_desk. */
#ifndef HR_PLUGINS_BROWSER_DESK_H
#define HR_PLUGINS_BROWSER_DESK_H

#include "plugins/browser/step.h"

void br_desk_save(const struct br_desk *d);
/* Puts one unreported download into the workspace. Returns 0 with *ret as its path, owned by the
 * caller, or NULL if there is none; -1 on an error. */
int br_desk_download(struct br_desk *d, char **ret, struct hr_err *err);

#endif
