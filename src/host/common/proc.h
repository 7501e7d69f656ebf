/* hr_proc: handles processes known only by the number that another program recorded, and threads
 * beside the caller's. */
#ifndef HR_HOST_COMMON_PROC_H
#define HR_HOST_COMMON_PROC_H

#include <pthread.h>
#include <sys/types.h>

#include "base/err.h"

/* Returns a pidfd of the running process with that number and start time, or -1 with errno set. */
int hr_proc_watch(pid_t pid, unsigned long long started);

/* Ends the process: sends SIGTERM twice, then kills it and its children. Reaps a child of this
 * process. */
void hr_proc_end(pid_t pid, int watch_fd, int patience_ms);

/* Starts a thread with all signals blocked: the caller's threads get them. */
int hr_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg, struct hr_err *err);
/* Does the same for a thread that runs until the process ends. */
int hr_thread_detached(void *(*fn)(void *arg), void *arg, struct hr_err *err);

#endif
