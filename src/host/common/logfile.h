/* hr_logfile: reads lines of a file that another process is writing. */
#ifndef HR_HOST_COMMON_LOGFILE_H
#define HR_HOST_COMMON_LOGFILE_H

#include "host/handrail.h"

#define HR_LOGFILE_NEW ".new" /* ends the path of the log of a process that starts */

/* Renames the log at `path` to its name without HR_LOGFILE_NEW, which it then replaces, and cuts
 * `path` to this name. After an error both are as before. */
int hr_logfile_keep(char *path, struct hr_err *err);

/* Copies the last whole lines of the file, NUL-terminated; "" if there are none. */
void hr_logfile_tail(const char *path, char *ret, size_t cap);

/* Passes all lines to fn; with follow also new ones, until fn returns non-zero, or watch_fd is
 * readable and the file at its end, or stop_fd is readable (-1: none). Woken by inotify. */
int hr_logfile_read(const char *path, int watch_fd, int stop_fd, bool follow, hr_line_fn *fn,
    void *arg, struct hr_err *err);

#endif
