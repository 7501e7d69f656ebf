/* Orphans of a predecessor are not this process's children: it finds them by process group. */
#include "config.h"

#include "supervisor/edge/oldnginx.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/process/pid.h"

void
hr_oldnginx_quit(pid_t master)
{
	static const char title[] = "nginx: ";
	HR_CLOSEDIR DIR *d = opendir("/proc");
	char stat[HR_PID_STAT], line[sizeof(title)];
	struct dirent *e;
	pid_t pid;

	while (d != NULL && (e = readdir(d)) != NULL) {
		pid = (pid_t)strtol(e->d_name, NULL, 10); /* 0: not a number */
		if (pid <= 0 || (pid_t)hr_pid_field(hr_pid_stat(pid, stat), HR_PID_GROUP) != master)
			continue;
		hr_pid_read(pid, "cmdline", line, sizeof(line));
		if (strcmp(line, title) == 0)
			(void)kill(pid, SIGQUIT);
	}
}
