/* Passes packets between server and keeper, and starts the keeper. */
#include "config.h"

#include "plugins/envd/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process/spawn.h"

#define LISTEN_FD 3

union control {
	char bytes[CMSG_SPACE(ENVD_FDS * sizeof(int))];
	struct cmsghdr align;
};

int
envd_packet_send(int sock, struct envd_packet *p, const int *fds, int flags)
{
	struct iovec iov = {p, sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control = {{0}};
	struct cmsghdr *c;
	int list[ENVD_FDS];
	size_t n = 0, i;
	ssize_t r;

	p->mask = 0;
	for (i = 0; fds != NULL && i < ENVD_FDS; i++) {
		if (fds[i] < 0)
			continue;
		p->mask |= 1u << i;
		list[n++] = fds[i];
	}
	if (n > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), list, n * sizeof(int));
	}
	do
		r = sendmsg(sock, &m, MSG_NOSIGNAL | flags);
	while (r < 0 && errno == EINTR);
	return r == (ssize_t)sizeof(*p) ? 0 : -1;
}

/* Gives each received descriptor its place by the mask; closes any others. */
static void
place_fds(const struct envd_packet *p, const int *list, size_t n, int fds[ENVD_FDS])
{
	size_t i, k = 0;
	int fd;

	for (i = 0; i < ENVD_FDS; i++)
		if ((p->mask & 1u << i) != 0 && k < n)
			fds[i] = list[k++];
	for (; k < n; k++) {
		fd = list[k];
		hr_fd_close(&fd);
	}
}

int
envd_packet_recv(int sock, struct envd_packet *p, int fds[ENVD_FDS], int flags)
{
	struct iovec iov = {p, sizeof(*p)};
	union control control;
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	int list[ENVD_FDS];
	size_t i, n = 0;
	ssize_t r;

	for (i = 0; i < ENVD_FDS; i++)
		fds[i] = -1;
	do
		r = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | flags);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (r == 0 && c == NULL)
		return 0;
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(list, CMSG_DATA(c), n * sizeof(int));
	}
	if (r != (ssize_t)sizeof(*p))
		p->mask = 0;
	place_fds(p, list, n, fds);
	if (r == (ssize_t)sizeof(*p) && (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return 1;
	for (i = 0; i < ENVD_FDS; i++)
		hr_fd_close(&fds[i]);
	errno = EPROTO;
	return -1;
}

/* ---- the way to the keeper ---- */

/* Starts a keeper in a session of its own, so that the end of the server's group leaves it alone.
 */
static int
start_keeper(int listener, struct hr_err *err)
{
	static const char *const argv[] = {"handrail-envd", "--keeper", NULL};
	const struct hr_spawn_fd fds[] = {{listener, LISTEN_FD}, {STDERR_FILENO, STDERR_FILENO}};

	return hr_spawn(&(const struct hr_spawn){.path = "/proc/self/exe",
			    .argv = argv,
			    .fds = fds,
			    .nfds = 2,
			    .setsid = true,
			    .umask = -1},
		   err) > 0
		   ? 0
		   : -1;
}

int
envd_keep_connect(const char *dir, struct hr_err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	HR_CLOSE int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	HR_CLOSE int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	HR_CLOSE int listener = -1;
	int ret;

	/* a path that is too long for an address has a shorter one */
	if (snprintf(at.sun_path, sizeof(at.sun_path), "%s/keeper", dir) >=
	    (int)sizeof(at.sun_path))
		(void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/keeper", folder);
	if (folder < 0 || sock < 0)
		return hr_err_sys(err, errno, "%s", dir);
	if (connect(sock, (const struct sockaddr *)&at, sizeof(at)) != 0) {
		(void)unlinkat(folder, "keeper", 0);
		listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (listener < 0 || bind(listener, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
		    fchmodat(folder, "keeper", 0600, 0) != 0 || listen(listener, 4) != 0)
			return hr_err_sys(err, errno, "%s: the keeper's socket", dir);
		if (start_keeper(listener, err) != 0)
			return -1;
		if (connect(sock, (const struct sockaddr *)&at, sizeof(at)) != 0)
			return hr_err_sys(err, errno, "%s: the keeper", dir);
	}
	ret = sock;
	sock = -1;
	return ret;
}
