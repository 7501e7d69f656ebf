/* hr_kindfile: finds files with third-party back-ends. A shared object is called
 * libhandrail-backend-NAME.so, a program handrail-backend-NAME. */
#ifndef HR_HOST_COMMON_KINDFILE_H
#define HR_HOST_COMMON_KINDFILE_H

#include <stdbool.h>

#define HR_KINDFILE_PROGRAM "handrail-backend-"
#define HR_KINDFILE_NAME 256 /* maximum bytes of a back-end's name */

typedef int hr_kindfile_fn(void *arg, const char *path);

/* Returns the text after "handrail-backend-" in the path's last part, borrowed, or NULL if the file
 * does not have a program's name. */
const char *hr_kindfile_program(const char *path);
/* Copies the name of the back-end out of a path. Returns false if the file has no such name. */
bool hr_kindfile_name(const char *path, char ret[HR_KINDFILE_NAME]);
/* Passes to fn each readable file that may have the back-end `name`: in `dirs` (the value of
 * OH_RUNTIME_PLUGIN_PATH; NULL: none), then in LIBDIR/handrail/backends, the shared object before
 * the program in each. Stops when fn returns non-zero. Returns fn's last result, or 0 if there is
 * no file. */
int hr_kindfile_find(const char *dirs, const char *name, hr_kindfile_fn *fn, void *arg);

#endif
