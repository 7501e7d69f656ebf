#include "config.h"

#include "base/process/pid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

pid_t
hr_pid_next(DIR *d)
{
	const struct dirent *e;
	char *end;
	long pid;

	while (d != NULL && (e = readdir(d)) != NULL) {
		pid = strtol(e->d_name, &end, 10);
		if (pid > 1 && *end == '\0')
			return (pid_t)pid;
	}
	return 0;
}

void
hr_pid_read(pid_t pid, const char *name, char *ret, size_t cap)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? hr_fd_read(fd, ret, cap - 1) : -1;
	hr_fd_close(&fd);
	ret[n > 0 ? n : 0] = '\0';
}

const char *
hr_pid_stat(pid_t pid, char text[HR_PID_STAT])
{
	const char *end;

	hr_pid_read(pid, "stat", text, HR_PID_STAT);
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end + 2 : "";
}

unsigned long long
hr_pid_field(const char *stat, int field)
{
	for (; field > 3 && stat != NULL; field--) {
		stat = strchr(stat, ' ');
		stat = stat != NULL ? stat + 1 : NULL;
	}
	return stat != NULL ? strtoull(stat, NULL, 10) : 0;
}

int
hr_pid_listener(int pidfd, int fd)
{
	int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0u), listens = 0;
	socklen_t len = sizeof(listens);

	if (copy >= 0 &&
	    (getsockopt(copy, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || listens == 0))
		hr_fd_close(&copy);
	return copy;
}
