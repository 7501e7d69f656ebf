/* Locks files with a bound for the wait. */
#ifndef HR_HOST_COMMON_LOCK_H
#define HR_HOST_COMMON_LOCK_H

/* Takes flock()'s lock of an open file: LOCK_EX or LOCK_SH. Blocks for up to patience_ms. Returns
 * 0, or an error number: EWOULDBLOCK if another process still holds the lock. */
int hr_lock_in_time(int fd, int how, int patience_ms);

#endif
