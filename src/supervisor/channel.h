/* hr_channel: what workers ask of the supervisor (proto/PROTOCOL): a table of messages, who may
 * send each, and what is done. One packet a message; anything else closes the channel. */
#ifndef HR_SUPERVISOR_CHANNEL_H
#define HR_SUPERVISOR_CHANNEL_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_buf;
struct hr_server;
struct hr_pool_worker;

/* A pair: w keeps one end, watched; *ret_child is for the worker, close-on-exec, the caller's. */
int hr_channel_open(struct hr_pool_worker *w, int *ret_child, struct hr_err *err);
/* Our end of the channel of a worker that an earlier image of us started; w keeps it on success. */
int hr_channel_adopt(struct hr_pool_worker *w, int fd, struct hr_err *err);
void hr_channel_close(struct hr_pool_worker *w); /* closed: nothing */

/* The worker on that slot if it is still the same process, or NULL. */
struct hr_pool_worker *hr_channel_find(const struct hr_server *s, int slot, pid_t pid);

/* text as it is, behind the type; a text that failed to be made is logged. */
void hr_channel_say(struct hr_pool_worker *w, char type, const struct hr_buf *text);

/* Answers 'S': socket is passed (the caller keeps its copy), or with reason none is. */
void hr_channel_give_static(struct hr_pool_worker *w, int socket, const char *reason);

#endif
