/* A process on the other side of a socket, which lets no call fail: those of the driver do. */
#ifndef HR_T_FAULT_PEER_H
#define HR_T_FAULT_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Runs `main` with the socket, listening as `name` in fault_dir(), in a process of its own, which
 * must not return, until peer_stop(). *ret_fd, where it is not NULL: the socket for the caller, who
 * closes it; otherwise only the peer has it. */
pid_t peer_start(const char *name, void (*main)(int fd), int *ret_fd);
void peer_stop(pid_t pid);

/* For the peer: a connection to `name`; -1: none to be had. */
int peer_connect(const char *name);
/* Sends all of b. */
void peer_send(int fd, const struct hr_buf *b);
/* Reads one frame, its bytes in b. The type; 0: the other side went, or says what is none. */
uint32_t peer_frame(int fd, struct hr_buf *b, const char **ret_payload, size_t *ret_len);

#endif
