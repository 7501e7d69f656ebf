/* hr_proc: processes of which only the number is known, as another program wrote it down; and a
 * thread beside the caller's. */
#ifndef HR_HOST_COMMON_PROC_H
#define HR_HOST_COMMON_PROC_H

#include <pthread.h>
#include <sys/types.h>

#include "base/err.h"

/* Returns a pidfd of the process that was started then and runs; -1 with errno. */
int hr_proc_watch(pid_t pid, unsigned long long started);

/* Asks it to end, asks again, kills it and ends its children. Reaps a child of ours. */
void hr_proc_end(pid_t pid, int watch_fd, int patience_ms);

/* Signals are for the caller's threads: this one gets none. */
int hr_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg, struct hr_err *err);

#endif
