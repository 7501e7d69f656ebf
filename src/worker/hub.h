/* hr_hub: the streams of the pages (GET /handrail/v1/events, doc/page.md), all held by one worker
 * of the pool "page": however many look on, the output of a shell is read once. No FastCGI but the
 * records that a stream is made of. */
#ifndef HR_WORKER_HUB_H
#define HR_WORKER_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/stay.h"

struct hr_hub;
struct hr_worker;

/* What one page asks for. */
struct hr_hub_wish {
	const char *session; /* NULL: the default one */
	uint64_t offset;     /* from this byte on; */
	bool has_offset;     /* else */
	uint64_t tail;       /* from so many before the end */
	struct hr_stay stay;
};

/* Nothing happens in it, and no timer runs, while there is no stream. */
struct hr_hub *hr_hub_new(struct hr_worker *w, struct hr_err *err);
void hr_hub_free(struct hr_hub *h); /* ends every stream; NULL: nothing */

/* Readable when hr_hub_turn() has something to do. That never waits for a page; for the keeper and
 * for the supervisor, which answer at once, seconds at most. */
int hr_hub_fd(const struct hr_hub *h);
void hr_hub_turn(struct hr_hub *h);
unsigned hr_hub_count(const struct hr_hub *h); /* of streams */

/* One more stream, without a connection yet. HR_E_NOTFOUND: there is no such session; HR_E_BUSY:
 * there are too many streams. */
int hr_hub_join(struct hr_hub *h, const struct hr_hub_wish *wish, struct hr_err *err);
/* The connection for it, on which the head of the answer was sent, and which is ours now. -1: there
 * is none any more. Does nothing if nobody waits for one. */
void hr_hub_connect(struct hr_hub *h, int fd, int request_id);

#endif
