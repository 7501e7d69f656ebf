/* hr_pid: reads a process's entries in /proc. */
#ifndef HR_BASE_PROCESS_PID_H
#define HR_BASE_PROCESS_PID_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns the next process except process 1 in /proc, which is open as `d` (NULL: not open); 0 at
 * the end. */
pid_t hr_pid_next(DIR *d);

/* Reads /proc/PID/NAME with one read; "" on failure. */
void hr_pid_read(pid_t pid, const char *name, char *ret, size_t cap);

/* Reads a link of /proc, whose path is formatted. Returns its length, cut at cap; or at most 0 with
 * errno, *ret is then "". */
ssize_t
hr_pid_link(char *ret, size_t cap, const char *form, ...) __attribute__((format(printf, 3, 4)));

/* Returns /proc/PID/stat from its third field on, the state; the name before it may contain any
 * byte. "": there is no such process. Borrowed from text. */
#define HR_PID_STAT 2048
const char *hr_pid_stat(pid_t pid, char text[HR_PID_STAT]);

enum {
	HR_PID_PARENT = 4,
	HR_PID_GROUP = 5,
	HR_PID_FOREGROUND = 8, /* process group that has the terminal */
	HR_PID_USER_TIME = 14,
	HR_PID_SYSTEM_TIME = 15,
	HR_PID_CHILDREN_USER_TIME = 16, /* time of ended children that the process has waited for */
	HR_PID_CHILDREN_SYSTEM_TIME = 17,
	HR_PID_STARTED = 22
};
/* Returns a numeric field of `stat`; 0: the field is missing. */
unsigned long long hr_pid_field(const char *stat, int field);

/* Returns the time when the process was started, in clock ticks since boot, which together with its
 * number identifies one process for ever; 0: there is no such process. */
unsigned long long hr_pid_started(pid_t pid);

/* Returns a pidfd of the process that was started then, which may be a zombie; -1 with errno, ESRCH
 * if there is none. */
int hr_pid_open(pid_t pid, unsigned long long started);

/* Waits for the end of a pidfd's process; timeout_ms -1: for ever. Returns true if it ended in
 * time. */
bool hr_pid_wait(int pidfd, int timeout_ms);

/* Returns false if the process of a pidfd has ended or must not be signalled. */
bool hr_pid_signal(int pidfd, int signo);

/* Returns a copy of descriptor `fd` of the process of a pidfd, if that is a socket that listens;
 * else -1, as with a kernel before 5.6. */
int hr_pid_listener(int pidfd, int fd);

#endif
