/* Makes listeners in the network of a box, by a child that enters it: sockets that this process
 * makes stay in the network of the machine. */
#include "config.h"

#include "egress/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loopback.h"
#include "base/process/spawn.h"

static ino_t
network_here(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

/* Enters the sandbox's network and gives it all addresses, as the launcher of a box does, too;
 * refuses the machine's network. The owner of a user namespace must enter that namespace first. */
static int
enter_network(int box, struct hr_err *err)
{
	ino_t machine = network_here();

	if (setns(box, CLONE_NEWNET) != 0 && setns(box, CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return hr_err_sys(err, errno, "enter the network of the sandbox");
	if (machine == 0 || network_here() == machine)
		return hr_err_set(err, HR_E_INVAL, "the sandbox has the network of the machine");
	return hr_loopback_raise(err) < 0 ? -1 : hr_loopback_take_all(err);
}

static int
listen_here(const struct egress_place *at, struct hr_err *err)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)at->port),
	    .sin_addr.s_addr = htonl(INADDR_ANY)};
	HR_CLOSE int fd =
	    socket(AF_INET, (at->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, r;

	if (fd < 0 ||
	    (at->udp ? setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on))
		     : setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on))) < 0 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (!at->udp && listen(fd, SOMAXCONN) < 0))
		return hr_err_sys(
		    err, errno, "listen on port %d in the network of the sandbox", at->port);
	r = fd;
	fd = -1;
	return r;
}

static void __attribute__((noreturn))
in_box(int box, int to, const struct egress_place *v, size_t n)
{
	struct hr_err e = {0};
	size_t i;
	int fd;

	if (enter_network(box, &e) == 0)
		for (i = 0; i < n; i++) {
			fd = listen_here(&v[i], &e);
			if (fd < 0 || hr_fd_send(to, "", 1, fd, &e) < 0)
				break;
			hr_fd_close(&fd);
		}
	if (e.code != HR_OK)
		(void)hr_fd_send(to, e.msg, strlen(e.msg), -1, NULL);
	_exit(0);
}

/* Receives the listeners, or the text of an error. */
static int
receive(int from, size_t n, int *ret, struct hr_err *err)
{
	char text[sizeof(err->msg)];
	ssize_t len;
	size_t i;

	for (i = 0; i < n; i++) {
		len = hr_fd_recv(from, text, sizeof(text) - 1, &ret[i], err);
		if (len > 0 && ret[i] >= 0)
			continue;
		while (i > 0)
			hr_fd_close(&ret[--i]);
		text[len > 0 ? len : 0] = '\0';
		return len < 0 ? -1
			       : hr_err_set(err, HR_E_SYS, "%s",
				     len > 0 ? text : "the child that listens was killed");
	}
	return 0;
}

int
egress_listen(int box, const struct egress_place *v, size_t n, int *ret, struct hr_err *err)
{
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return hr_err_sys(err, errno, "a socket pair");
	pid = fork();
	if (pid == 0) {
		hr_fd_close(&pair[0]);
		in_box(box, pair[1], v, n);
	}
	hr_fd_close(&pair[1]);
	r = pid < 0 ? hr_err_sys(err, errno, "fork") : receive(pair[0], n, ret, err);
	hr_fd_close(&pair[0]);
	if (pid > 0)
		(void)hr_spawn_end(pid, NULL);
	return r;
}

struct sockaddr_in
egress_local(int fd)
{
	struct sockaddr_in a = {0};
	socklen_t n = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &n) != 0 || a.sin_family != AF_INET)
		memset(&a, 0, sizeof(a));
	return a;
}

bool
egress_is_tcp(int fd)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}
