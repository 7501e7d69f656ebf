/* Returns the picture of the plugin browser, once or as events (doc/live.md). The plugin writes the
 * objects with the rights of the sandbox's user, so each is checked before it is passed on. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "actions/command.h"
#include "actions/plugin.h"
#include "base/fd.h"
#include "worker/live.h"
#include "worker/page.h"
#include "worker/worker.h"

#define PLUGIN "browse_interactive" /* the plugin that takes this action type has the browser */
#define EVENT_MAX (32u << 20)
#define SILENCE_S 90 /* seconds per object; the first may wait for the plugin's start */

struct watching {
	int plugin;
	struct hr_live_end end;
	struct hr_buf frame, event;
};

static void
watching_free(void *arg)
{
	struct watching *v = arg;

	hr_fd_close(&v->plugin);
	hr_fd_close(&v->end.signals);
	hr_buf_done(&v->frame);
	hr_buf_done(&v->event);
	free(v);
}

static int
ask(struct watching *v, struct hr_err *err)
{
	const struct timeval limit = {.tv_sec = SILENCE_S};
	const struct hr_act_request req = {.type = hr_span_of("watch"),
	    .action = hr_span_of(v->end.events ? "{\"once\":false}" : "{\"once\":true}"),
	    .working_dir = hr_span_of(""),
	    .key = hr_span_of("")};
	HR_BUF(frame, 4096);
	int r;

	(void)setsockopt(v->plugin, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	hr_frame_put_act(&frame, &req);
	r = hr_buf_check(&frame, err);
	/* the plugin may refuse before it has read everything; the reason is still readable */
	if (r == 0 && hr_fd_write_full(v->plugin, frame.p, frame.len, err) < 0 && err->sys != EPIPE)
		r = -1;
	return r;
}

/* Accepts one line of JSON: nothing else may become a line of the stream. */
static int
check(const struct hr_span *body, struct hr_err *err)
{
	struct hr_json_facts facts;
	struct hr_json_error e;

	if (hr_json_scan(body->p, body->len, &facts, &e) < 0 ||
	    memchr(body->p, '\n', body->len) != NULL || memchr(body->p, '\r', body->len) != NULL)
		return hr_err_set(
		    err, HR_E_PROTO, "the plugin browser sent something other than JSON");
	return 0;
}

/* Reads the next object into v->event. Returns 1, 0 if the plugin has ended, or -1 with *err
 * set. */
static int
next(struct watching *v, struct hr_err *err)
{
	struct hr_act_answer a;
	const char *payload;
	size_t len, used;
	uint32_t type;
	int r = hr_frame_read(v->plugin, &v->frame, &type, &payload, &len, &used, err);

	if (r <= 0)
		return r;
	if (type == HR_FRAME_REFUSED && hr_frame_get_answer(payload, len, &a, err) == 0)
		return hr_err_set(err, HR_E_NOTFOUND, "the browser is not available: %.*s",
		    (int)(a.reason.len < 150 ? a.reason.len : 150), a.reason.p);
	if (type != HR_FRAME_ANSWER)
		return hr_err_set(err, HR_E_PROTO,
		    "the plugin browser sent a frame of the unknown type %u", type);
	if (hr_frame_get_answer(payload, len, &a, err) < 0 || check(&a.body, err) < 0)
		return -1;
	hr_buf_reset(&v->event);
	hr_buf_adds(&v->event, v->end.events ? "data: " : "");
	hr_buf_add(&v->event, a.body.p, a.body.len);
	hr_buf_adds(&v->event, v->end.events ? "\n\n" : "");
	hr_buf_drop_front(&v->frame, used);
	return hr_buf_check(&v->event, err) < 0 ? -1 : 1;
}

static int
send_events(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct watching *v = arg;
	int r;

	do {
		if (!hr_stay_lasts(v->end.w, &v->end.stay))
			return 0;
		if (sink->write(sink, v->event.p, v->event.len) < 0)
			return -1;
		if (!hr_frame_waits(&v->frame) && !hr_live_wait(v->plugin, &v->end, sink))
			return 0;
		r = next(v, err);
	} while (r > 0);
	return r;
}

static int
begin(struct hr_worker *w, struct watching *v, struct hr_err *err)
{
	int r;

	v->end.signals = hr_command_signals(err);
	if (v->end.signals < 0)
		return -1;
	v->plugin = hr_plugin_connect(w->run_dir, PLUGIN, strlen(PLUGIN), err);
	if (v->plugin < 0 && err->code == HR_E_NOTFOUND)
		return hr_err_set(err, HR_E_NOTFOUND, "this sandbox has no plugin browser");
	if (v->plugin < 0 || ask(v, err) < 0)
		return -1;
	r = next(v, err);
	return r == 0 ? hr_err_set(err, HR_E_GONE, "the browser is restarting") : r < 0 ? -1 : 0;
}

void
hr_handle_live_browser(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct watching *v;
	struct hr_err err = {0};

	if (w->auth.head.count == 0) {
		hr_answer_detail(
		    ret, 403, "looking at the browser needs a session key, and none is set");
		return;
	}
	v = calloc(1, sizeof(*v));
	if (v == NULL) {
		hr_answer_generic(ret);
		return;
	}
	v->plugin = v->end.signals = -1;
	v->end.w = w;
	hr_page_enter(w, r, &v->end.stay);
	v->end.events = strstr(r->accept, "text/event-stream") != NULL;
	hr_buf_init(&v->frame, EVENT_MAX);
	hr_buf_init(&v->event, EVENT_MAX);
	if (begin(w, v, &err) < 0) {
		hr_live_refuse(ret, &err);
		watching_free(v);
		return;
	}
	hr_answer_header(ret, "Cache-Control", "no-store");
	if (v->end.events) {
		ret->content_type = "text/event-stream";
		hr_answer_stream(
		    ret, &(const struct hr_stream){
			     .send = send_events, .done = watching_free, .arg = v, .length = -1});
		return;
	}
	hr_buf_add(&ret->body, v->event.p, v->event.len);
	watching_free(v);
}
