/* Preloaded: stands before libc's calls, see failcalls.h. One thread, as the programs under test.
 */
#define _GNU_SOURCE
#include "failcalls.h"
#include "failcalls_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *const kind_names[] = {"alloc", "sys", "intr", "short"};
static bool armed;
static int paused;
int failcalls_spared;
static enum failcalls_kind armed_kind;
static long count, spoilt_one, live;

void
failcalls_arm(enum failcalls_kind kind, long at)
{
	count = 0;
	armed_kind = kind;
	spoilt_one = at;
	armed = true;
}

long
failcalls_disarm(void)
{
	armed = false;
	return count;
}

void
failcalls_spare(bool on)
{
	paused += on ? 1 : -1;
}

long
failcalls_live(void)
{
	return live;
}

static void
arm_from_environment(void)
{
	const char *text = getenv("FAILCALLS"), *at = text != NULL ? strchr(text, ':') : NULL;
	unsigned i;

	for (i = 0; at != NULL && i < FAILCALLS_KINDS; i++) {
		if (strncmp(text, kind_names[i], (size_t)(at - text)) == 0)
			failcalls_arm((enum failcalls_kind)i, strtol(at + 1, NULL, 10));
	}
	(void)unsetenv("FAILCALLS"); /* programs it starts are left alone */
}

static bool
hit(enum failcalls_kind kind)
{
	return armed && paused == 0 && (kind != FAILCALLS_ALLOC || failcalls_spared == 0) &&
	       armed_kind == kind && ++count == spoilt_one;
}

extern struct wrapped __start_wrapped[] __attribute__((visibility("hidden")));
extern struct wrapped __stop_wrapped[] __attribute__((visibility("hidden")));

void *
failcalls_resolve(struct wrapped *w)
{
	if (w->real == NULL)
		w->real = dlsym(RTLD_NEXT, w->name);
	return w->real;
}

/* Where libevent's code is. */
static struct {
	uintptr_t from, to;
} libevent[4];
static size_t libevents;

static int
note_libevent(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t i;

	(void)size;
	(void)arg;
	if (info->dlpi_name == NULL || strstr(info->dlpi_name, "libevent") == NULL)
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
			continue;
		if (libevents == sizeof(libevent) / sizeof(libevent[0]))
			abort();
		libevent[libevents].from = info->dlpi_addr + part->p_vaddr;
		libevent[libevents].to = info->dlpi_addr + part->p_vaddr + part->p_memsz;
		libevents++;
	}
	return 0;
}

/* All that asks the dynamic linker is done before there can be a signal's handler: its lock takes a
 * handler that comes in the middle of the release for another thread, which waits for ever. Only
 * what a library brings that is opened later is looked for then; no handler calls that. */
static void __attribute__((constructor)) begin(void)
{
	struct wrapped *w;

	for (w = __start_wrapped; w < __stop_wrapped; w++)
		(void)failcalls_resolve(w);
	/* the text about those that are in no library here: told, and then freed */
	(void)dlerror();
	(void)dlerror();
	(void)dl_iterate_phdr(note_libevent, NULL);
	arm_from_environment();
}

/* ---- memory ---- */

void *
malloc(size_t size)
{
	void *p;

	REAL(malloc);
	if (hit(FAILCALLS_ALLOC)) {
		errno = ENOMEM;
		return NULL;
	}
	p = real(size);
	live += p != NULL;
	return p;
}

void *
calloc(size_t n, size_t size)
{
	void *p;

	REAL(calloc);
	if (hit(FAILCALLS_ALLOC)) {
		errno = ENOMEM;
		return NULL;
	}
	p = real(n, size);
	live += p != NULL;
	return p;
}

void *
realloc(void *old, size_t size)
{
	void *p;

	REAL(realloc);
	if (size > 0 && hit(FAILCALLS_ALLOC)) {
		errno = ENOMEM;
		return NULL;
	}
	p = real(old, size);
	live += (old == NULL && p != NULL) - (old != NULL && size == 0);
	return p;
}

void *
reallocarray(void *old, size_t n, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, all);
}

static void *
aligned(size_t align, size_t size)
{
	void *p;

	REAL(memalign);
	if (hit(FAILCALLS_ALLOC)) {
		errno = ENOMEM;
		return NULL;
	}
	p = real(align, size);
	live += p != NULL;
	return p;
}

void *
memalign(size_t align, size_t size)
{
	return aligned(align, size);
}

void *
aligned_alloc(size_t align, size_t size)
{
	return aligned(align, size);
}

int
posix_memalign(void **ret, size_t align, size_t size)
{
	void *p = aligned(align, size);

	if (p == NULL)
		return ENOMEM;
	*ret = p;
	return 0;
}

void
free(void *p)
{
	/* the compiler is told that dlsym() calls nothing here */
	static volatile bool seeking;

	if (seeking)
		return; /* dlsym() gives back an old error's text: lost, once */
	seeking = true;
	REAL(free);
	seeking = false;
	live -= p != NULL;
	real(p);
}

/* A sanitizer's own ones do not come by malloc(). */
char *
strndup(const char *text, size_t len)
{
	char *p;

	len = strnlen(text, len);
	p = malloc(len + 1);
	if (p != NULL) {
		memcpy(p, text, len);
		p[len] = '\0';
	}
	return p;
}

char *
strdup(const char *text)
{
	return strndup(text, strlen(text));
}

char *
realpath(const char *path, char *ret)
{
	char whole[PATH_MAX];

	REAL(realpath);
	if (ret != NULL)
		return real(path, ret);
	return real(path, whole) != NULL ? strdup(whole) : NULL;
}

/* ---- system calls ---- */

/* Interruptible calls that fail with EIO and the like, or with EINTR. */
static bool
fails(bool may_wait, int error)
{
	if (hit(FAILCALLS_SYS)) {
		errno = error;
		return true;
	}
	if (may_wait && hit(FAILCALLS_INTR)) {
		errno = EINTR;
		return true;
	}
	return false;
}

/* Packets are whole or not at all. */
static bool
is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type == SOCK_STREAM;
}

static size_t
shorter(int fd, size_t len)
{
	int e = errno;
	bool half = len > 1 && is_stream(fd) && hit(FAILCALLS_SHORT);

	errno = e;
	return half ? len / 2 : len;
}

/* libevent writes each signal to a pipe of its own; it loses it, or ends the process, where that
 * fails as no pipe does. */
static bool
is_libevent(const void *caller)
{
	size_t i;

	for (i = 0; i < libevents; i++) {
		if ((uintptr_t)caller >= libevent[i].from && (uintptr_t)caller < libevent[i].to)
			return true;
	}
	return false;
}

ssize_t
read(int fd, void *p, size_t len)
{
	REAL(read);
	if (is_libevent(__builtin_return_address(0)))
		return real(fd, p, len);
	return fails(true, EIO) ? -1 : real(fd, p, shorter(fd, len));
}

ssize_t __read_chk(int fd, void *p, size_t len, size_t room);
ssize_t
__read_chk(int fd, void *p, size_t len, size_t room)
{
	if (len > room)
		abort();
	return read(fd, p, len);
}

ssize_t
pread(int fd, void *p, size_t len, off_t at)
{
	REAL(pread);
	return fails(true, EIO) ? -1 : real(fd, p, shorter(fd, len), at);
}

ssize_t __pread_chk(int fd, void *p, size_t len, off_t at, size_t room);
ssize_t
__pread_chk(int fd, void *p, size_t len, off_t at, size_t room)
{
	if (len > room)
		abort();
	return pread(fd, p, len, at);
}

ssize_t
write(int fd, const void *p, size_t len)
{
	REAL(write);
	if (is_libevent(__builtin_return_address(0)))
		return real(fd, p, len);
	return fails(true, ENOSPC) ? -1 : real(fd, p, shorter(fd, len));
}

ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
	REAL(pwrite);
	return fails(true, ENOSPC) ? -1 : real(fd, p, shorter(fd, len), at);
}

ssize_t
copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags)
{
	REAL(copy_file_range);
	return fails(true, EIO) ? -1 : real(from, from_at, to, to_at, shorter(to, len), flags);
}

ssize_t
send(int fd, const void *p, size_t len, int flags)
{
	REAL(send);
	return fails(true, EPIPE) ? -1 : real(fd, p, shorter(fd, len), flags);
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
	REAL(sendmsg);
	return fails(true, EPIPE) ? -1 : real(fd, m, flags);
}

ssize_t
recv(int fd, void *p, size_t len, int flags)
{
	REAL(recv);
	if (is_libevent(__builtin_return_address(0)))
		return real(fd, p, len, flags);
	return fails(true, ECONNRESET) ? -1 : real(fd, p, shorter(fd, len), flags);
}

ssize_t __recv_chk(int fd, void *p, size_t len, size_t room, int flags);
ssize_t
__recv_chk(int fd, void *p, size_t len, size_t room, int flags)
{
	if (len > room)
		abort();
	return recv(fd, p, len, flags);
}

ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
	REAL(recvmsg);
	return fails(true, ECONNRESET) ? -1 : real(fd, m, flags);
}

static mode_t
mode_of(int flags, va_list ap)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

int
open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	REAL(open);
	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return fails(false, EMFILE) ? -1 : real(path, flags, mode);
}

int
openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	REAL(openat);
	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return fails(false, EMFILE) ? -1 : real(dir, path, flags, mode);
}

int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	REAL(fcntl);
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fails(false, cmd == F_DUPFD_CLOEXEC ? EMFILE : EINVAL) ? -1 : real(fd, cmd, arg);
}

int
poll(struct pollfd *p, nfds_t n, int timeout)
{
	REAL(poll);
	return fails(true, ENOMEM) ? -1 : real(p, n, timeout);
}

int __poll_chk(struct pollfd *p, nfds_t n, int timeout, size_t room);
int
__poll_chk(struct pollfd *p, nfds_t n, int timeout, size_t room)
{
	if (n > room / sizeof(*p))
		abort();
	return poll(p, n, timeout);
}

pid_t
waitpid(pid_t pid, int *status, int options)
{
	REAL(waitpid);
	if ((options & WNOHANG) == 0 && hit(FAILCALLS_INTR)) {
		errno = EINTR;
		return -1;
	}
	return real(pid, status, options);
}

int
flock(int fd, int operation)
{
	REAL(flock);
	return fails((operation & LOCK_NB) == 0, ENOLCK) ? -1 : real(fd, operation);
}

/* The others only fail: name, may it wait, error, parameters, arguments. */
#define CALL(type, name, waits, error, params, args)                                               \
	type name params                                                                           \
	{                                                                                          \
		REAL(name);                                                                        \
		return fails(waits, error) ? -1 : real args;                                       \
	}

CALL(int, pipe2, false, EMFILE, (int p[2], int flags), (p, flags))
CALL(int, socket, false, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, socketpair, false, EMFILE, (int domain, int type, int protocol, int s[2]),
    (domain, type, protocol, s))
CALL(int, accept4, true, EMFILE, (int fd, struct sockaddr *a, socklen_t *len, int flags),
    (fd, a, len, flags))
CALL(int, connect, true, ECONNREFUSED, (int fd, const struct sockaddr *a, socklen_t len),
    (fd, a, len))
CALL(int, bind, false, EADDRINUSE, (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len))
CALL(int, listen, false, EADDRINUSE, (int fd, int backlog), (fd, backlog))
CALL(pid_t, fork, false, EAGAIN, (void), ())

/* A child with memory of its own does not count its calls here, and this function may return. */
pid_t
vfork(void)
{
	return fork();
}

CALL(int, mkfifo, false, ENOSPC, (const char *path, mode_t mode), (path, mode))
CALL(int, mkfifoat, false, ENOSPC, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(int, mkdir, false, ENOSPC, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, false, ENOSPC, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(int, rename, false, ENOSPC, (const char *from, const char *to), (from, to))
CALL(int, renameat, false, ENOSPC, (int from_dir, const char *from, int to_dir, const char *to),
    (from_dir, from, to_dir, to))
CALL(int, renameat2, false, ENOSPC,
    (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
    (from_dir, from, to_dir, to, flags))
CALL(int, linkat, false, ENOSPC,
    (int from_dir, const char *from, int to_dir, const char *to, int flags),
    (from_dir, from, to_dir, to, flags))
CALL(int, stat, false, EIO, (const char *path, struct stat *st), (path, st))
CALL(int, fstat, false, EIO, (int fd, struct stat *st), (fd, st))
CALL(int, fstatat, false, EIO, (int dir, const char *path, struct stat *st, int flags),
    (dir, path, st, flags))
CALL(int, fallocate, true, ENOSPC, (int fd, int mode, off_t at, off_t len), (fd, mode, at, len))
CALL(ssize_t, readlink, false, EIO, (const char *path, char *p, size_t len), (path, p, len))
CALL(int, fchmod, false, EPERM, (int fd, mode_t mode), (fd, mode))
CALL(int, chmod, false, EPERM, (const char *path, mode_t mode), (path, mode))
CALL(ssize_t, flistxattr, false, EIO, (int fd, char *names, size_t len), (fd, names, len))
CALL(ssize_t, fgetxattr, false, EIO, (int fd, const char *name, void *p, size_t len),
    (fd, name, p, len))
CALL(int, fsetxattr, false, ENOSPC,
    (int fd, const char *name, const void *p, size_t len, int flags), (fd, name, p, len, flags))
CALL(int, fremovexattr, false, EIO, (int fd, const char *name), (fd, name))
CALL(int, fchown, false, EPERM, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
CALL(int, chown, false, EPERM, (const char *path, uid_t uid, gid_t gid), (path, uid, gid))
CALL(int, fsync, true, EIO, (int fd), (fd))
CALL(int, ftruncate, false, ENOSPC, (int fd, off_t len), (fd, len))
CALL(int, memfd_create, false, EMFILE, (const char *name, unsigned flags), (name, flags))
CALL(int, epoll_create1, false, EMFILE, (int flags), (flags))
CALL(
    int, epoll_ctl, false, ENOMEM, (int e, int op, int fd, struct epoll_event *ev), (e, op, fd, ev))
CALL(int, epoll_wait, true, EBADF, (int e, struct epoll_event *ev, int n, int ms), (e, ev, n, ms))
