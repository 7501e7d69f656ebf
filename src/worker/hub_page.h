/* hr_hub_page: writes the stream of one page (worker/hub.h): an offset in the bytes of its source,
 * the version of each event that it has, and a buffer with at most one unsent event, in FastCGI
 * records. A slow reader loses bytes, is notified of the gap, and delays no other page. */
#ifndef HR_WORKER_HUB_PAGE_H
#define HR_WORKER_HUB_PAGE_H

#include "worker/hub_source.h"
#include "worker/stay.h"

/* The events that every page gets. */
enum { HR_HUB_SERVER, HR_HUB_SAMPLE, HR_HUB_LOG, HR_HUB_TOLD };

struct hr_hub_page {
	enum hr_hub_kind kind;
	LIST_ENTRY(hr_hub_page) entry;
	struct hr_source *source;
	int fd; /* -1: the page is not connected yet, or has left */
	int request_id;
	struct hr_stay stay;
	bool gone, waits_for_room;
	bool anew; /* `at` counts from before the offsets restarted */
	struct hr_buf out;
	uint64_t at;
	uint64_t knows_state, knows[HR_HUB_TOLD];
};

/* Creates a page without a connection at offset `at` of `s`, which remains the caller's. Returns
 * NULL if memory runs out. */
struct hr_hub_page *hr_hub_page_new(struct hr_source *s, uint64_t at);
void hr_hub_page_free(struct hr_hub_page *p);

/* Writes unsent events without blocking. Returns 0 if the page is up to date, 1 if the client must
 * read first, or -1 if the page must be dropped (it reconnects with its offset). */
int hr_hub_page_send(struct hr_hub_page *p, const struct hr_told told[HR_HUB_TOLD]);

/* Ends the answer properly, so that nginx does not take a part for the whole. It never blocks:
 * bytes that do not fit are lost. */
void hr_hub_page_end(struct hr_hub_page *p);

#endif
