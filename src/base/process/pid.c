#include "config.h"

#include "base/process/pid.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process/spawn.h"

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

ssize_t
hr_pid_link(char *ret, size_t cap, const char *form, ...)
{
	char path[64];
	va_list ap;
	ssize_t n;

	va_start(ap, form);
	(void)vsnprintf(path, sizeof(path), form, ap);
	va_end(ap);
	n = readlink(path, ret, cap - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n;
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

unsigned long long
hr_pid_started(pid_t pid)
{
	char text[HR_PID_STAT];

	return hr_pid_field(hr_pid_stat(pid, text), HR_PID_STARTED);
}

int
hr_pid_open(pid_t pid, unsigned long long started)
{
	int fd, why;

	/* a damaged record must never name init */
	if (pid <= 1) {
		errno = ESRCH;
		return -1;
	}
	fd = hr_pidfd_open(pid);
	if (fd < 0)
		return -1;
	/* checked after opening: the pidfd cannot change to another process */
	errno = 0;
	if (started > 0 && hr_pid_started(pid) == started)
		return fd;
	/* nothing is known about the process if its file is there and cannot be read */
	why = errno == 0 || errno == ENOENT ? ESRCH : errno;
	hr_fd_close(&fd);
	errno = why;
	return -1;
}

bool
hr_pid_wait(int pidfd, int timeout_ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int n;

	do {
		n = poll(&p, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

bool
hr_pid_signal(int pidfd, int signo)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0u) == 0;
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
