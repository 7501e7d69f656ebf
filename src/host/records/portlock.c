/* Manages lock files, one per port. A process removes a lock file only while it holds it, so after
 * locking, the name must be checked again. */
#include "config.h"

#include "host/records/portlock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "host/common/exam.h"

#define RANDOM_PICKS 10
#define KERNEL_RANGE "/proc/sys/net/ipv4/ip_local_port_range"
#define SHARED "/tmp/openhands_port_locks" /* directory shared with other programs */

void
hr_port_range(enum hr_port_use use, int *ret_min, int *ret_max)
{
	static const int ranges[2][4][2] = {
	    {{30000, 39999}, {40000, 49999}, {50000, 54999}, {55000, 59999}},
	    {{30000, 34999}, {35000, 39999}, {40000, 44999}, {45000, 49151}},
	};
	static const char wsl[] = "microsoft-standard-WSL2";
	struct utsname u;
	int which = 0;

	if (uname(&u) == 0 && strlen(u.release) >= sizeof(wsl) - 1 &&
	    strcmp(u.release + strlen(u.release) - (sizeof(wsl) - 1), wsl) == 0)
		which = 1;
	*ret_min = ranges[which][use][0];
	*ret_max = ranges[which][use][1];
}

/* Opens the shared directory, which belongs to the first account that used it, and never uses its
 * name again: another account's link in its place could lead to a directory of this one. */
static int
open_directory(const char *path, bool shared, struct hr_err *err)
{
	HR_CLOSE int dir = -1;
	struct stat st;
	int fd;

	if (mkdir(path, shared ? 01777 : 0777) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "create %s", path);
	dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) != 0) {
		if (errno != ENOTDIR && errno != ELOOP)
			return hr_err_sys(err, errno, "%s", path);
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "%s is not a directory but a link or a file, maybe of another account; remove "
		    "it",
		    path);
	}
	if (shared && st.st_uid == geteuid() && (st.st_mode & 07777) != 01777) {
		/* the umask removed bits; only the owner can chmod */
		HR_CLOSE int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (own < 0 || fchmod(own, 01777) != 0)
			return hr_err_sys(err, errno, "mode of %s", path);
	}
	fd = dir;
	dir = -1;
	return fd;
}

/* Returns true if another account made `name` so that it cannot be opened: without rights, as a
 * link, a directory, a socket, a running program, or under a lease. */
static bool
is_of_others(int dir, const char *name, int e)
{
	struct stat st;

	return e == ELOOP || e == EISDIR || e == ENXIO || e == ETXTBSY || e == EWOULDBLOCK ||
	       (e == EACCES && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Locks the file. Returns 1 if the file still has that name; 0 if another process has it; or -1. */
static int
lock_named(int dir, const char *name, int *ret_fd)
{
	struct stat by_fd, by_name;
	int fd, e;

	for (;;) {
		fd =
		    openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
		if (fd < 0) {
			e = errno;
			if (is_of_others(dir, name, e))
				return 0;
			errno = e;
			return -1;
		}
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			e = errno;
			hr_fd_close(&fd);
			if (e == EINTR)
				continue;
			errno = e;
			return e == EWOULDBLOCK ? 0 : -1;
		}
		if (fstat(fd, &by_fd) == 0 &&
		    fstatat(dir, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
		    by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev) {
			*ret_fd = fd;
			return 1;
		}
		hr_fd_close(&fd); /* the file was removed before it was locked */
	}
}

int
hr_portlock_acquire(struct hr_portlock *l, const char *dir, int port, struct hr_err *err)
{
	char text[16];
	struct stat st;
	size_t n;
	int r;

	if (l->fd >= 0 && l->port == port)
		return 0;
	hr_portlock_release(l);
	(void)snprintf(l->name, sizeof(l->name), "port_%d.lock", port);
	l->dir = open_directory(dir != NULL ? dir : SHARED, dir == NULL, err);
	if (l->dir < 0)
		return -1;
	r = lock_named(l->dir, l->name, &l->fd);
	if (r <= 0)
		(void)(r == 0 ? hr_err_set(err, HR_E_UNAVAILABLE,
				    "Could not acquire lock for port %d", port)
			      : hr_err_sys(
				    err, errno, "lock %s/%s", dir != NULL ? dir : SHARED, l->name));
	if (r <= 0) {
		hr_fd_close(&l->dir);
		return -1;
	}
	l->port = port;
	n = (size_t)snprintf(text, sizeof(text), "%d\n", port);
	/* The text is information for people; only the lock counts. Another account's file may be a
	 * second name of any file. Truncation to zero would make ext4 flush the file at close,
	 * although it is removed by then. */
	if (fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_nlink == 1 && hr_fd_write_full(l->fd, text, n, NULL) == 0 &&
	    st.st_size > (off_t)n)
		(void)!ftruncate(l->fd, (off_t)n);
	return 0;
}

void
hr_portlock_release(struct hr_portlock *l)
{
	if (l->fd < 0)
		return;
	(void)unlinkat(l->dir, l->name, 0); /* removes the file while the lock is held: see above */
	hr_fd_close(&l->fd);
	hr_fd_close(&l->dir);
	l->port = 0;
}

/* Returns a socket bound to the port, not listening, or -1 if the port is in use. */
static int
bind_port(const char *address, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd, on = 1;

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		a.sin_addr.s_addr = htonl(INADDR_ANY);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		hr_fd_close(&fd);
	return fd;
}

static int
random_in(int min, int max)
{
	uint32_t r = 0;

	/* hr_random() cannot fail for so few bytes once the kernel has entropy; r = 0 gives a port,
	 * too */
	(void)hr_random(&r, sizeof(r), NULL);
	return min + (int)(r % (uint32_t)(max - min + 1));
}

/* Reads the range of the ports that the kernel chooses for sockets. */
static void
read_kernel_range(int range[2])
{
	HR_BUF(b, 64);

	if (hr_path_read(KERNEL_RANGE, &b, NULL) < 0 ||
	    sscanf(hr_buf_str(&b), "%d %d", &range[0], &range[1]) != 2) {
		range[0] = 32768; /* Linux's default */
		range[1] = 60999;
	}
}

/* Picks a port that the kernel gives to no client's connection: one below the kernel's range, or in
 * it one at an odd distance from its first, because connect() takes those only when all others are
 * in use. */
static int
pick_port(int min, int max, const int kernel[2])
{
	int port;

	if (min < kernel[0] && max >= kernel[0])
		max = kernel[0] - 1;
	port = random_in(min, max);
	if (port >= kernel[0] && port <= kernel[1] && (port - kernel[0]) % 2 == 0 && min < max)
		port += port < max ? 1 : -1;
	return port;
}

static int
try_port(struct hr_portlock *l, const char *dir, int port, const char *address, int *ret_bound,
    struct hr_err *err)
{
	int fd;

	if (hr_portlock_acquire(l, dir, port, err) < 0)
		return -1;
	fd = bind_port(address, port);
	if (fd < 0) {
		hr_portlock_release(l);
		return hr_err_set(
		    err, HR_E_UNAVAILABLE, "port %d is in use: choose another one", port);
	}
	if (ret_bound != NULL)
		*ret_bound = fd;
	else
		hr_fd_close(&fd);
	return 0;
}

int
hr_portlock_find(struct hr_portlock *l, const char *dir, int min, int max, int attempts,
    const char *address, int *ret_bound, struct hr_err *err)
{
	int picks = attempts / 2 < RANDOM_PICKS ? attempts / 2 : RANDOM_PICKS;
	int left = attempts - picks, kernel[2], start, port, i;
	struct hr_err e = {0};

	read_kernel_range(kernel);
	start = random_in(min, max - left > min ? max - left : min);
	for (i = 0; i < attempts; i++) {
		port = i < picks ? pick_port(min, max, kernel)
				 : min + (start - min + i - picks) % (max - min + 1);
		if (try_port(l, dir, port, address, ret_bound, &e) == 0)
			return 0;
		if (e.code != HR_E_UNAVAILABLE) /* the next port would fail in the same way */
			return hr_err_pass(err, &e);
	}
	return hr_err_set(err, HR_E_UNAVAILABLE, "no free port from %d to %d", min, max);
}

void
hr_portlock_examine(const char *address, hr_finding_fn *fn, void *arg)
{
	struct hr_portlock lock = HR_PORTLOCK_NONE;
	struct hr_err e = {0};
	int min, max;

	hr_port_range(HR_PORT_SERVER, &min, &max);
	if (hr_portlock_find(&lock, NULL, min, max, 20, address, NULL, &e) == 0)
		hr_exam_say(fn, arg, true, "ports", "free between %d and %d", min, max);
	else
		hr_exam_say(fn, arg, false, "ports",
		    "%s; \"handrail ps\" lists the sandboxes that may use them, \"handrail down "
		    "NAME\" ends one",
		    e.msg);
	hr_portlock_release(&lock);
}
