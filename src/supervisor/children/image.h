/* hr_image: a program that may be executed but not read, so that the kernel lets no process of its
 * account look into it from its first instruction on: a program makes itself unreadable
 * (PR_SET_DUMPABLE) only when it runs, and may be opened and traced until then. */
#ifndef HR_SUPERVISOR_CHILDREN_IMAGE_H
#define HR_SUPERVISOR_CHILDREN_IMAGE_H

#include "base/err.h"

/* A nameless copy in memory of what is loaded of the program, for hr_spawn; close-on-exec. -1: it
 * is no program of this machine's form, or there is no such memory. */
int hr_image_open(const char *path, struct hr_err *err);

#endif
