/* hr_proc: processes of which only the number is known, as another program wrote it down; and a
 * thread beside the caller's. */
#ifndef HR_HOST_COMMON_PROC_H
#define HR_HOST_COMMON_PROC_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* When it was started, in clock ticks since boot; with the number it names one process for good. 0:
 * there is none. */
unsigned long long hr_proc_started(pid_t pid);

/* A descriptor that is readable once the process has ended; -1: it has, or errno. */
int hr_proc_watch(pid_t pid, unsigned long long started);

/* Waits for the end; true: it ended in time. timeout_ms -1: for ever. */
bool hr_proc_wait(int watch_fd, int timeout_ms);

/* Asks it to end, asks again, kills it and ends its children. Reaps a child of ours. */
void hr_proc_end(pid_t pid, int watch_fd, int patience_ms);

/* Signals are for the caller's threads: this one gets none. */
int hr_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg, struct hr_err *err);

#endif
