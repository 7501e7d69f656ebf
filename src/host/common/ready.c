/* Waits for the readiness of a server that this process starts. */
#include "config.h"

#include "host/common/ready.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/common/logfile.h"

#define READY_TIMEOUT_MS 120000
#define LAST_WORDS 600

int
hr_ready_open(int dir, const char *leaf, char name[HR_READY_NAME], struct hr_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(a);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;

	/* the path of the directory may be longer than an address */
	if (dir >= 0)
		(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%.40s", dir, leaf);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
	    bind(fd, (struct sockaddr *)&a, dir >= 0 ? sizeof(a) : sizeof(sa_family_t)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) != 0) {
		(void)hr_err_sys(err, errno, "a socket for readiness");
		hr_fd_close(&fd);
		return -1;
	}
	len -= (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
	if (dir < 0)
		(void)snprintf(name, HR_READY_NAME, "@%.*s", (int)len, a.sun_path + 1);
	return fd;
}

static int
died(const char *log, struct hr_err *err)
{
	char tail[LAST_WORDS];

	hr_logfile_tail(log, tail, sizeof(tail));
	return hr_err_set(err, HR_E_DISCONNECTED, "Server process died%s%s",
	    tail[0] != '\0' ? "; its last output:\n" : "", tail);
}

/* Returns true if the waiting datagrams contain the server's "READY=1". Any account can send one,
 * so the sender's pid from the kernel must be the server's, which is not reused while it is
 * watched. */
static bool
read_ready(int fd, pid_t pid)
{
	char text[512], room[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec part = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct cmsghdr *c;
	struct ucred who;
	ssize_t n;

	for (;;) {
		struct msghdr m = {.msg_iov = &part,
		    .msg_iovlen = 1,
		    .msg_control = room,
		    .msg_controllen = sizeof(room)};

		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
		if (n < 0)
			return false;
		text[n] = '\0';
		c = CMSG_FIRSTHDR(&m);
		if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		if (who.pid == pid && who.uid == geteuid() && strstr(text, "READY=1") != NULL)
			return true;
	}
}

int
hr_ready_wait(int fd, pid_t pid, int watch, const char *log, struct hr_err *err)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = watch, .events = POLLIN}};
	int64_t end = hr_now_ms() + READY_TIMEOUT_MS, left;

	if (watch < 0)
		return died(log, err);
	while ((left = end - hr_now_ms()) > 0) {
		if (poll(p, 2, (int)left) < 0 && errno != EINTR)
			return hr_err_sys(err, errno, "wait for the server");
		if (read_ready(fd, pid))
			return 0;
		if (p[1].revents != 0)
			return died(log, err);
	}
	return hr_err_set(err, HR_E_RUNTIME_TIMEOUT, "the server was not ready within %d seconds",
	    READY_TIMEOUT_MS / 1000);
}
