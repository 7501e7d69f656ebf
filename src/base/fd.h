/* hr_fd: descriptors with care: close-on-exec from birth, whole reads and writes, passing. */
#ifndef HR_BASE_FD_H
#define HR_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/clean.h"
#include "base/err.h"

/* Opens /dev/null on each of 0, 1, 2 that is closed, so that no later descriptor lands there. */
int hr_fd_open_stdio(struct hr_err *err);

/* Closes every descriptor from `lowest` up: what the program that started us left open. */
void hr_fd_close_from(int lowest);
/* They are closed by exec instead. -1 with errno. */
int hr_fd_cloexec_from(int lowest);

int hr_fd_cloexec(int fd, struct hr_err *err);
int hr_fd_nonblock(int fd, bool on, struct hr_err *err);

/* Blocking: all of len bytes, short calls and EINTR repeated. On a non-blocking fd EAGAIN is an
 * error. write_full: 0 or -1; a closed reader is EPIPE only where SIGPIPE is ignored. */
int hr_fd_write_full(int fd, const void *p, size_t len, struct hr_err *err);
/* The bytes read: less than len only at the end of the file; -1 on error. */
ssize_t hr_fd_read_full(int fd, void *p, size_t len, struct hr_err *err);
/* One read, EINTR repeated: bytes, 0 at the end, -1 with errno (EAGAIN: nothing now). */
ssize_t hr_fd_read(int fd, void *p, size_t len);
/* All of len bytes at that place of a file: 0, or -1 with errno (EIO: it ends before). */
int hr_fd_pread_full(int fd, void *p, size_t len, off_t at);
int hr_fd_pwrite_full(int fd, const void *p, size_t len, off_t at);

/* A connection to the local stream socket of that name, close-on-exec; -1 with errno. */
int hr_fd_connect(const struct sockaddr_un *to);

/* Accepts a connection of a listener that does not block: close-on-exec, with `flags` of accept4().
 * -1 with errno, EAGAIN where none waits or it was given up. Any other error, as EMFILE, leaves the
 * connection in the queue, which would wake the caller again at once: then it blocks for 100 ms, or
 * until `stop` (-1: none) is readable. */
int hr_fd_accept(int listener, int flags, int stop);

/* One packet (or the start of a stream) with a descriptor beside it; pass -1: none. The sender
 * keeps `pass`. Never raises SIGPIPE. A short write is an error: packets are whole. */
int hr_fd_send(int sock, const void *p, size_t len, int pass, struct hr_err *err);
/* One packet: bytes, 0 at the end, -1 on error (err->sys EAGAIN: nothing now). *ret_pass: the
 * descriptor that came with it, close-on-exec and the caller's, or -1; more than one are closed.
 * A packet longer than cap is HR_E_TOOLARGE, its descriptor closed. */
ssize_t hr_fd_recv(int sock, void *p, size_t cap, int *ret_pass, struct hr_err *err);

/* A file in memory that reads as these bytes from its start, for a child's stdin; -1. */
int hr_fd_of_bytes(const void *p, size_t len, struct hr_err *err);

/* Whether our effective identity may run that, or enter the directory. */
bool hr_fd_may_run(int fd);

/* Closes *fd unless it is -1, and makes it -1. errno is kept. */
void hr_fd_close(int *fd);

/* A descriptor of a block's own, closed where the block is left; -1 at the beginning. */
#define HR_CLOSE HR_CLEAN(hr_fd_close)

#endif
