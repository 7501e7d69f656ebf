/* Other processes, by pidfd: a number that was given to another meanwhile harms nobody. */
#include "config.h"

#include "host/common/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/spawn.h"

#define STAT_MAX 4096
#define FIELD_STARTED 20 /* behind the state, which is behind the name */

unsigned long long
hr_proc_started(pid_t pid)
{
	unsigned long long started = 0;
	char path[64], *p;
	struct hr_buf b;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	hr_buf_init(&b, STAT_MAX);
	if (hr_path_read(path, &b, NULL) == 0 && (p = strrchr(b.p, ')')) != NULL) {
		int i;

		for (i = 0; i < FIELD_STARTED && p != NULL; i++)
			p = strchr(p + 1, ' ');
		/* a zombie has ended */
		if (p != NULL && strncmp(strrchr(b.p, ')'), ") Z", 3) != 0)
			started = strtoull(p + 1, NULL, 10);
	}
	hr_buf_done(&b);
	return started;
}

int
hr_proc_watch(pid_t pid, unsigned long long started)
{
	int fd = hr_pidfd_open(pid);

	if (fd >= 0 && hr_proc_started(pid) != started) {
		hr_fd_close(&fd);
		errno = ESRCH;
	}
	return fd;
}

bool
hr_proc_wait(int watch_fd, int timeout_ms)
{
	struct pollfd p = {.fd = watch_fd, .events = POLLIN};
	int n;

	do {
		n = poll(&p, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

void
hr_proc_end(pid_t pid, int watch_fd, int patience_ms)
{
	static const int signals[] = {SIGTERM, SIGTERM, SIGKILL};
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		if (syscall(SYS_pidfd_send_signal, watch_fd, signals[i], NULL, 0) != 0)
			break;
		if (hr_proc_wait(watch_fd, signals[i] == SIGKILL ? -1 : patience_ms))
			break;
	}
	while (waitpid(pid, NULL, WNOHANG) < 0 && errno == EINTR)
		;
}
