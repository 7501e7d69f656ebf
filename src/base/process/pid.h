/* hr_pid: what /proc says of a process. */
#ifndef HR_BASE_PROCESS_PID_H
#define HR_BASE_PROCESS_PID_H

#include <stddef.h>
#include <sys/types.h>

/* What one read of /proc/PID/NAME gives; "" if it cannot be had. */
void hr_pid_read(pid_t pid, const char *name, char *ret, size_t cap);

/* /proc/PID/stat from its third field on, the state; the name before it may hold any byte. "":
 * there is no such process. Borrowed from text. */
#define HR_PID_STAT 2048
const char *hr_pid_stat(pid_t pid, char text[HR_PID_STAT]);

enum {
	HR_PID_PARENT = 4,
	HR_PID_GROUP = 5,
	HR_PID_USER_TIME = 14,
	HR_PID_SYSTEM_TIME = 15,
	HR_PID_STARTED = 22
};
/* A number of that text; 0: it is not there. */
unsigned long long hr_pid_field(const char *stat, int field);

#endif
