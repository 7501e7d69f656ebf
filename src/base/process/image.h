/* hr_image: copies of programs in memory, which no process can change. */
#ifndef HR_BASE_PROCESS_IMAGE_H
#define HR_BASE_PROCESS_IMAGE_H

#include <sys/types.h>

#include "base/err.h"

/* Copies the loaded part of the program into sealed anonymous memory of that name and mode, for
 * hr_spawn; close-on-exec. With mode 0100 no account may read it, not even its owner: then the
 * kernel keeps other processes of the account from inspecting the program from the first
 * instruction on, while a program can hide itself (PR_SET_DUMPABLE) only once it runs. Returns -1
 * if it is not a program for this machine, or memory files are not available. */
int hr_image_open(const char *path, const char *name, mode_t mode, struct hr_err *err);

#endif
