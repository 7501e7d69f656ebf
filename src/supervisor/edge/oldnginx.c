/* Ends orphans of a predecessor, which are not this process's children: it finds them by process
 * group. */
#include "config.h"

#include "supervisor/edge/oldnginx.h"

#include <signal.h>
#include <string.h>

#include "base/dir.h"
#include "base/process/pid.h"

void
hr_oldnginx_quit(pid_t master)
{
	static const char title[] = "nginx: ";
	HR_CLOSEDIR DIR *d = opendir("/proc");
	char stat[HR_PID_STAT], line[sizeof(title)];
	pid_t pid;

	while ((pid = hr_pid_next(d)) > 0) {
		if ((pid_t)hr_pid_field(hr_pid_stat(pid, stat), HR_PID_GROUP) != master)
			continue;
		hr_pid_read(pid, "cmdline", line, sizeof(line));
		if (strcmp(line, title) == 0)
			(void)kill(pid, SIGQUIT);
	}
}
