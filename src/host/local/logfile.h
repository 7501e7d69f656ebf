/* hr_logfile: lines of a file that another process goes on writing. */
#ifndef HR_HOST_LOCAL_LOGFILE_H
#define HR_HOST_LOCAL_LOGFILE_H

#include "host/handrail.h"

/* The end of the file, whole lines, NUL-terminated; "" if there is none. */
void hr_logfile_tail(const char *path, char *ret, size_t cap);

/* All lines; with follow also those to come, until fn returns non-zero, or watch_fd is readable and
 * the file at its end, or stop_fd is readable (-1: none). Woken by inotify. */
int hr_logfile_read(const char *path, int watch_fd, int stop_fd, bool follow, hr_line_fn *fn,
    void *arg, struct hr_err *err);

#endif
