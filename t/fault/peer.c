/* The other side. Nothing is counted in it: it has a count of its own. */
#include "config.h"

#include "peer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failcalls.h"
#include "fault.h"
#include "proto/frame.h"

static void
name_of(const char *name, struct sockaddr_un *sa)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	(void)snprintf(sa->sun_path, sizeof(sa->sun_path), "%.60s/%.20s", fault_dir(), name);
}

pid_t
peer_start(const char *name, void (*main)(int fd), int *ret_fd)
{
	struct sockaddr_un sa;
	pid_t pid = -1, parent = getpid();
	int fd;

	failcalls_spare(true);
	name_of(name, &sa);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 8) == 0)
		pid = fork();
	if (pid == 0) {
		(void)failcalls_disarm();
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
			main(fd);
		_exit(1);
	}
	if (ret_fd != NULL)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	if (pid < 0)
		fault_wrong("there is no peer");
	failcalls_spare(false);
	return pid;
}

void
peer_stop(pid_t pid)
{
	failcalls_spare(true);
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		(void)waitpid(pid, NULL, 0);
	failcalls_spare(false);
}

int
peer_connect(const char *name)
{
	struct sockaddr_un sa;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	name_of(name, &sa);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

void
peer_send(int fd, const struct hr_buf *b)
{
	size_t at = 0;
	ssize_t n = 0;

	for (; at < b->len && n >= 0; at += (size_t)n)
		n = send(fd, b->p + at, b->len - at, MSG_NOSIGNAL);
}

uint32_t
peer_frame(int fd, struct hr_buf *b, const char **ret_payload, size_t *ret_len)
{
	size_t used, need = HR_FRAME_HEADER;
	uint32_t type = 0;
	ssize_t n;
	char *p;
	int r;

	hr_buf_reset(b);
	do {
		p = hr_buf_reserve(b, need - b->len);
		n = p != NULL ? read(fd, p, need - b->len) : -1;
		if (n <= 0)
			return 0;
		hr_buf_grew(b, (size_t)n);
		r = b->len < need ? 0
				  : hr_frame_get(b->p, b->len, &type, ret_payload, ret_len, &used,
					&need, NULL);
	} while (r == 0);
	return r > 0 ? type : 0;
}
