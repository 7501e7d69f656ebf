/* Serves GET /handrail/v1/events: one stream with all events for a page (doc/page.md). The hub
 * takes over the connection, and the worker continues with the next request. */
#include "config.h"

#include "worker/hub.h"
#include "worker/live.h"
#include "worker/page.h"
#include "worker/worker.h"

#define TAIL (256u << 10)

/* Returns NULL, or a message about the first mistake. */
static const char *
parse(const struct hr_request *r, struct hr_hub_wish *ret)
{
	const char *id = r->last_event_id, *wrong = NULL;
	HR_BUF(text, 4096);

	ret->tail = TAIL;
	if (hr_request_query(r, "tail", &text) && !hr_live_number(hr_buf_str(&text), &ret->tail))
		wrong = "tail is not a number";
	hr_buf_reset(&text);
	ret->has_offset = hr_request_query(r, "offset", &text);
	if (ret->has_offset && !hr_live_number(hr_buf_str(&text), &ret->offset))
		wrong = "offset is not a number";
	if (id[0] != '\0') {
		ret->has_offset = true;
		if (!hr_live_number(id, &ret->offset))
			wrong = "Last-Event-ID is not a number";
	}
	return wrong;
}

void
hr_handle_events(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_hub_wish wish = {.session = NULL};
	struct hr_shell_place place;
	struct hr_err err = {0};
	const char *wrong;

	if (!hr_live_place(w, r, &place, ret))
		return;
	wrong = parse(r, &wish);
	wish.session = place.session;
	hr_page_enter(w, r, &wish.stay);
	if (w->hub == NULL) {
		hr_answer_detail(
		    ret, 404, "Not Found"); /* the request reached a worker of another pool */
	} else if (wrong != NULL) {
		hr_answer_detail(ret, 400, wrong);
	} else if (hr_hub_join(w->hub, &wish, &err) == 0) {
		ret->held = true;
		ret->content_type = "text/event-stream";
		hr_answer_header(ret, "Cache-Control", "no-store");
	} else if (err.code == HR_E_BUSY) {
		hr_answer_detail(ret, 429, err.msg);
		ret->retry_after_s = 5;
	} else {
		hr_live_refuse(ret, &err);
	}
}
