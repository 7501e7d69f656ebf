/* hr_channel: serves the supervisor's end of the channel to a worker (proto/PROTOCOL): one packet
 * per message, in both directions. The owner interprets the messages. */
#ifndef HR_SUPERVISOR_CHILDREN_CHANNEL_H
#define HR_SUPERVISOR_CHILDREN_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_buf;
struct hr_loop;
struct hr_watch;

/* Handles one packet that is not empty. Returns false if it is not permitted: the channel is then
 * closed. */
typedef bool hr_channel_fn(void *arg, const char *packet, size_t len);

/* The owner sets fn, arg and name first. */
struct hr_channel {
	int fd; /* -1: the channel is closed */
	struct hr_watch *watch;
	const char *name; /* name in log lines */
	hr_channel_fn *fn;
	void *arg;
};

/* Makes a pair: *ret_child is for the worker, close-on-exec, owned by the caller. */
int hr_channel_open(struct hr_channel *c, struct hr_loop *loop, int *ret_child, struct hr_err *err);
/* Adopts the end of a channel that a previous image of this process opened; takes ownership of fd
 * on success. */
int hr_channel_adopt(struct hr_channel *c, struct hr_loop *loop, int fd, struct hr_err *err);
void hr_channel_close(struct hr_channel *c); /* Closes the channel; no effect if it is closed. */

/* Sends type, then text; a text that failed is logged. fd is sent along, and stays the caller's;
 * -1: none. */
void hr_channel_give(struct hr_channel *c, char type, const struct hr_buf *text, int fd);

/* Answers 'S': passes the socket (the caller keeps its copy), or the reason why there is none. */
void hr_channel_give_static(struct hr_channel *c, int socket, const char *reason);

#endif
