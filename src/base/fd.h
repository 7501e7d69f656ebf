/* hr_fd: close-on-exec descriptors, whole reads and writes, and passing of descriptors. */
#ifndef HR_BASE_FD_H
#define HR_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/clean.h"
#include "base/err.h"

/* Opens /dev/null on each of 0, 1, 2 that is closed, so that no later descriptor gets such a
 * number. */
int hr_fd_open_stdio(struct hr_err *err);

/* Closes every descriptor from `lowest` up that the parent process left open. */
void hr_fd_close_from(int lowest);
/* Makes exec close them instead. Returns 0, or -1 with errno. */
int hr_fd_cloexec_from(int lowest);

int hr_fd_cloexec(int fd, struct hr_err *err);
int hr_fd_nonblock(int fd, bool on, struct hr_err *err);

/* Writes all of len bytes, repeating short calls and EINTR; blocks. Returns 0 or -1. EAGAIN of a
 * non-blocking fd is an error; a closed reader is EPIPE only where SIGPIPE is ignored. */
int hr_fd_write_full(int fd, const void *p, size_t len, struct hr_err *err);
/* Reads len bytes, or fewer at the end of the file; blocks. Returns their number, or -1. */
ssize_t hr_fd_read_full(int fd, void *p, size_t len, struct hr_err *err);
/* Reads once, repeating EINTR: returns bytes, 0 at the end, -1 with errno (EAGAIN: nothing now). */
ssize_t hr_fd_read(int fd, void *p, size_t len);
/* Reads all of len bytes at offset `at`. Returns 0, or -1 with errno (EIO: the file ends
 * before). */
int hr_fd_pread_full(int fd, void *p, size_t len, off_t at);
int hr_fd_pwrite_full(int fd, const void *p, size_t len, off_t at);
/* Writes the same to a new file, whose blocks of zeros become holes: the caller then sets the
 * file's size. Returns 0, or -1 with errno. */
int hr_fd_pwrite_sparse(int fd, const void *p, size_t len, off_t at);

/* Finds the next range of data of a sparse file at or after *hole (0 at first), and sets both to
 * its ends. Returns false with errno: ENXIO after the last one, another one if the file system
 * cannot report them. */
bool hr_fd_next_data(int fd, off_t size, off_t *data, off_t *hole);

/* Connects to a local stream socket, whose queue may be full, as that of a stopped process. Returns
 * a close-on-exec descriptor, or -1 with errno. `limit_s`: seconds after which this call and later
 * sends fail with EAGAIN; 0: no limit. */
int hr_fd_connect(const struct sockaddr_un *to, int limit_s);

/* Accepts a connection of a non-blocking listener, close-on-exec, with `flags` of accept4().
 * Returns -1 with errno, EAGAIN if none waits or the client gave up. Any other error, as EMFILE,
 * leaves the connection in the queue, which would wake the caller again at once; therefore the call
 * then blocks for 100 ms, or until `stop` (-1: none) is readable. */
int hr_fd_accept(int listener, int flags, int stop);

/* Sends one packet (or the start of a stream) with the descriptor `pass` (-1: none), which stays
 * the caller's. Never raises SIGPIPE. A short write is an error: packets are whole. */
int hr_fd_send(int sock, const void *p, size_t len, int pass, struct hr_err *err);
/* Receives one packet. Returns its bytes, 0 at the end, -1 on error (err->sys EAGAIN: nothing now).
 * *ret_pass is the first descriptor of the packet, close-on-exec and owned by the caller, or -1;
 * any others are closed. A packet longer than cap is HR_E_TOOLARGE, its descriptor closed. */
ssize_t hr_fd_recv(int sock, void *p, size_t cap, int *ret_pass, struct hr_err *err);

/* Creates a memory file with these bytes, positioned at its start, for a child's stdin. Returns -1
 * on error. */
int hr_fd_of_bytes(const void *p, size_t len, struct hr_err *err);

/* Returns true if the effective identity may execute the file or enter the directory. */
bool hr_fd_may_run(int fd);

/* Returns true if fd (-1: none) can be read without waiting, as also at its end. */
bool hr_fd_is_readable(int fd);

/* Closes *fd unless it is -1, and sets it to -1. Keeps errno. */
void hr_fd_close(int *fd);

/* Declares a descriptor local to a block, closed when the block is left; -1 at first. */
#define HR_CLOSE HR_CLEAN(hr_fd_close)

#endif
