/* hr_image: makes a program that may be executed but not read, so that the kernel keeps other
 * processes of its account from inspecting it from the first instruction on: a program can hide
 * itself (PR_SET_DUMPABLE) only once it runs, and until then may be opened and traced. */
#ifndef HR_SUPERVISOR_CHILDREN_IMAGE_H
#define HR_SUPERVISOR_CHILDREN_IMAGE_H

#include "base/err.h"

/* Copies the loaded part of the program into anonymous memory, for hr_spawn; close-on-exec. Returns
 * -1 if it is not a program for this machine, or memory files are not available. */
int hr_image_open(const char *path, struct hr_err *err);

#endif
