/* hr_hub: serves the event streams of pages (GET /handrail/v1/events, doc/page.md), all held by one
 * worker of the pool "page", so that a shell's output is read once for any number of viewers. The
 * hub uses no FastCGI except the record format of a stream. */
#ifndef HR_WORKER_HUB_H
#define HR_WORKER_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/stay.h"

struct hr_hub;
struct hr_worker;

/* The parameters of a page's request. */
struct hr_hub_wish {
	const char *session; /* NULL: the default session */
	uint64_t offset;     /* first byte, if has_offset */
	bool has_offset;     /* true: `offset` counts, not `tail` */
	uint64_t tail;       /* bytes before the end to start at */
	struct hr_stay stay;
};

/* Creates a hub, which does nothing and runs no timer while it has no stream. */
struct hr_hub *hr_hub_new(struct hr_worker *w, struct hr_err *err);
void hr_hub_free(struct hr_hub *h); /* Frees the hub and ends every stream; h may be NULL. */

/* Returns a descriptor that is readable when hr_hub_turn() has work. hr_hub_turn() never waits for
 * a page; it waits at most seconds for the keeper and the supervisor, which answer at once. */
int hr_hub_fd(const struct hr_hub *h);
void hr_hub_turn(struct hr_hub *h);
unsigned hr_hub_count(const struct hr_hub *h); /* Returns the number of streams. */

/* Adds a stream that has no connection yet. Fails with HR_E_NOTFOUND if the session does not exist,
 * and with HR_E_BUSY if there are too many streams. */
int hr_hub_join(struct hr_hub *h, const struct hr_hub_wish *wish, struct hr_err *err);
/* Takes ownership of the stream's connection, on which the head of the answer was already sent. fd
 * -1: the connection was lost. Does nothing if no stream waits for a connection. */
void hr_hub_connect(struct hr_hub *h, int fd, int request_id);

#endif
