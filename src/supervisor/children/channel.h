/* hr_channel: our end of the channel to a worker (proto/PROTOCOL): one packet a message, either
 * way. What a message means is the business of whoever gets it. */
#ifndef HR_SUPERVISOR_CHILDREN_CHANNEL_H
#define HR_SUPERVISOR_CHILDREN_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_buf;
struct hr_loop;
struct hr_watch;

/* One packet, not empty. false: it may not be sent; the channel is closed. */
typedef bool hr_channel_fn(void *arg, const char *packet, size_t len);

/* fn, arg and name are the owner's to fill before. */
struct hr_channel {
	int fd; /* -1: closed */
	struct hr_watch *watch;
	const char *name; /* for log lines */
	hr_channel_fn *fn;
	void *arg;
};

/* A pair: *ret_child is for the worker, close-on-exec, the caller's. */
int hr_channel_open(struct hr_channel *c, struct hr_loop *loop, int *ret_child, struct hr_err *err);
/* Our end of a channel that an earlier image of us opened; taken over on success. */
int hr_channel_adopt(struct hr_channel *c, struct hr_loop *loop, int fd, struct hr_err *err);
void hr_channel_close(struct hr_channel *c); /* closed: nothing */

/* text as it is, behind the type; a text that failed to be made is logged. With a descriptor, of
 * which the caller keeps its copy; -1: none. */
void hr_channel_give(struct hr_channel *c, char type, const struct hr_buf *text, int fd);

/* Answers 'S': socket is passed (the caller keeps its copy), or with reason none is. */
void hr_channel_give_static(struct hr_channel *c, int socket, const char *reason);

#endif
