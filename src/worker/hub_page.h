/* hr_hub_page: the stream of one page (worker/hub.h): a place in the bytes of its source, a number
 * for each text that it was told, and at most one step of what it is to be told in its buffer, in
 * records of FastCGI. One that reads slowly loses bytes, which it is told, and holds up nobody. */
#ifndef HR_WORKER_HUB_PAGE_H
#define HR_WORKER_HUB_PAGE_H

#include "worker/hub_source.h"
#include "worker/stay.h"

/* What every page is told. */
enum { HR_HUB_SERVER, HR_HUB_SAMPLE, HR_HUB_LOG, HR_HUB_TOLD };

struct hr_hub_page {
	enum hr_hub_kind kind;
	LIST_ENTRY(hr_hub_page) entry;
	struct hr_source *source;
	int fd; /* -1: not yet, or gone */
	int request_id;
	struct hr_stay stay;
	bool gone, waits_for_room;
	bool anew; /* its place is one of a count before this */
	struct hr_buf out;
	uint64_t at;
	uint64_t knows_state, knows[HR_HUB_TOLD];
};

/* Without a connection, whose place is there; the source stays the caller's. NULL: no memory. */
struct hr_hub_page *hr_hub_page_new(struct hr_source *s, uint64_t at);
void hr_hub_page_free(struct hr_hub_page *p);

/* Writes what it does not know yet, without waiting. 0: it knows all; 1: it has to read first; -1:
 * it is to be dropped, and comes again with its offset. */
int hr_hub_page_send(struct hr_hub_page *p, const struct hr_told told[HR_HUB_TOLD]);

/* Ends the answer in order, so that nginx does not take a part for the whole. What does not fit is
 * not waited for. */
void hr_hub_page_end(struct hr_hub_page *p);

#endif
