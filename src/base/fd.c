/* Handles descriptors. Invariant: nothing here returns a descriptor without close-on-exec. */
#include "config.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACCEPT_PAUSE_MS 100
#define BLOCK 4096 /* the size of blocks in most file systems */

int
hr_fd_open_stdio(struct hr_err *err)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return hr_err_sys(err, errno, "/dev/null");
	} while (fd <= STDERR_FILENO);
	(void)close(fd);
	return 0;
}

void
hr_fd_close_from(int lowest)
{
	long fd, end;

	if (syscall(SYS_close_range, (unsigned)lowest, ~0u, 0u) == 0)
		return;
	end = sysconf(_SC_OPEN_MAX); /* kernels before 5.9 lack close_range() */
	for (fd = lowest; fd < end; fd++)
		(void)close((int)fd);
}

int
hr_fd_cloexec_from(int lowest)
{
	long fd, end;

	if (syscall(SYS_close_range, (unsigned)lowest, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
		return 0;
	end = sysconf(_SC_OPEN_MAX); /* kernels before 5.11 lack CLOSE_RANGE_CLOEXEC */
	for (fd = lowest; fd < end; fd++)
		if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0 && errno != EBADF)
			return -1;
	return 0;
}

static int
fd_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);
	int want;

	if (flags < 0)
		return -1;
	want = on ? flags | flag : flags & ~flag;
	return want == flags ? 0 : fcntl(fd, set, want);
}

int
hr_fd_cloexec(int fd, struct hr_err *err)
{
	if (fd_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, true) != 0)
		return hr_err_sys(err, errno, "descriptor %d: close-on-exec", fd);
	return 0;
}

int
hr_fd_nonblock(int fd, bool on, struct hr_err *err)
{
	if (fd_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on) != 0)
		return hr_err_sys(err, errno, "descriptor %d: non-blocking", fd);
	return 0;
}

int
hr_fd_write_full(int fd, const void *p, size_t len, struct hr_err *err)
{
	const char *at = p;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return hr_err_sys(err, errno, "write");
		}
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t
hr_fd_read(int fd, void *p, size_t len)
{
	ssize_t n;

	do {
		n = read(fd, p, len);
	} while (n < 0 && errno == EINTR);
	return n;
}

int
hr_fd_pread_full(int fd, void *p, size_t len, off_t at)
{
	char *s = p;
	ssize_t n;

	while (len > 0) {
		n = pread(fd, s, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		s += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int
hr_fd_pwrite_full(int fd, const void *p, size_t len, off_t at)
{
	const char *s = p;
	ssize_t n;

	while (len > 0) {
		n = pwrite(fd, s, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ENOSPC;
		if (n <= 0)
			return -1;
		s += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int
hr_fd_pwrite_sparse(int fd, const void *p, size_t len, off_t at)
{
	static const char zeros[BLOCK];
	const char *s = p;
	size_t begun = 0, i, n; /* the bytes from `begun` to i have data */

	for (i = 0; i < len; i += n) {
		n = BLOCK - ((size_t)at + i) % BLOCK;
		n = n < len - i ? n : len - i;
		if (memcmp(s + i, zeros, n) != 0)
			continue;
		if (hr_fd_pwrite_full(fd, s + begun, i - begun, at + (off_t)begun) != 0)
			return -1;
		begun = i + n;
	}
	return hr_fd_pwrite_full(fd, s + begun, len - begun, at + (off_t)begun);
}

int
hr_fd_accept(int listener, int flags, int stop)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | flags), sys = errno;
	struct pollfd p = {.fd = stop, .events = POLLIN};

	if (fd >= 0)
		return fd;
	if (sys == EINTR || sys == ECONNABORTED)
		sys = EAGAIN;
	/* Any other error, such as EMFILE, lasts until the machine has the resource again, and no
	 * event reports that. */
	if (sys != EAGAIN)
		(void)poll(&p, 1, ACCEPT_PAUSE_MS);
	errno = sys;
	return -1;
}

bool
hr_fd_next_data(int fd, off_t size, off_t *data, off_t *hole)
{
	errno = ENXIO;
	*data = *hole < size ? lseek(fd, *hole, SEEK_DATA) : -1;
	*hole = *data >= 0 && *data < size ? lseek(fd, *data, SEEK_HOLE) : -1;
	*hole = *hole > size ? size : *hole;
	return *hole > *data;
}

int
hr_fd_connect(const struct sockaddr_un *to, int limit_s)
{
	const struct timeval limit = {.tv_sec = limit_s};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		hr_fd_close(&fd);
	while (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		if (errno != EINTR)
			hr_fd_close(&fd);
	return fd;
}

ssize_t
hr_fd_read_full(int fd, void *p, size_t len, struct hr_err *err)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = hr_fd_read(fd, (char *)p + got, len - got);

		if (n < 0)
			return hr_err_sys(err, errno, "read");
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int
hr_fd_send(int sock, const void *p, size_t len, int pass, struct hr_err *err)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (pass >= 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass, sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return hr_err_sys(err, errno, "sendmsg");
	if ((size_t)n != len)
		return hr_err_set(err, HR_E_PROTO, "sent %zd of %zu bytes", n, len);
	return 0;
}

/* Returns the first descriptor of the message and closes the others. */
static int
fd_take_passed(struct msghdr *msg)
{
	struct cmsghdr *c;
	int kept = -1;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t i, n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (kept < 0)
				kept = fd;
			else
				(void)close(fd);
		}
	}
	return kept;
}

ssize_t
hr_fd_recv(int sock, void *p, size_t cap, int *ret_pass, struct hr_err *err)
{
	struct iovec iov = {.iov_base = p, .iov_len = cap};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof(control.room)};
	ssize_t n;
	int pass;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return hr_err_sys(err, errno, "recvmsg");
	pass = fd_take_passed(&msg);
	if ((msg.msg_flags & MSG_TRUNC) != 0) {
		hr_fd_close(&pass);
		return hr_err_set(err, HR_E_TOOLARGE, "a packet of more than %zu bytes", cap);
	}
	if (ret_pass != NULL)
		*ret_pass = pass;
	else
		hr_fd_close(&pass);
	return n;
}

bool
hr_fd_is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

void
hr_fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

bool
hr_fd_may_run(int fd)
{
	return faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

int
hr_fd_of_bytes(const void *p, size_t len, struct hr_err *err)
{
	int fd = memfd_create("handrail", MFD_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "memfd_create");
	if (hr_fd_write_full(fd, p, len, err) != 0)
		hr_fd_close(&fd);
	else
		(void)lseek(fd, 0, SEEK_SET); /* a memory file can always be positioned */
	return fd;
}
