/* Streams the output of a session as plain bytes or as events (doc/live.md). */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actions/command.h"
#include "actions/shell.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "proto/json.h"
#include "base/text/utf8.h"
#include "worker/live.h"
#include "worker/page.h"
#include "worker/worker.h"

#define PIECE_MAX (1u << 20)
#define NUMBER_MAX 32
#define EVENT_MAX (4u << 20)
#define TORN_MAX 3 /* maximum bytes of an incomplete character */

enum form { FORM_BYTES, FORM_BASE64, FORM_TEXT }; /* the last two are event streams */

struct following {
	int keeper;
	struct hr_live_end end;
	struct hr_buf frame, event;
	enum form form;
	struct hr_shell_place place;
	struct hr_follow_request req;
	uint64_t at;   /* offset of the next byte */
	bool returned; /* the client takes the output as its command's result */
	size_t ntorn;  /* FORM_TEXT: bytes before `at` that wait for the rest of their character */
	char torn[TORN_MAX];
};

static void
following_free(void *arg)
{
	struct following *f = arg;

	hr_fd_close(&f->keeper);
	hr_fd_close(&f->end.signals);
	hr_buf_done(&f->frame);
	hr_buf_done(&f->event);
	free(f);
}

/* ---- events ---- */

/* Puts an event; `end` is the offset after p[len): a reconnecting client continues from it. */
static void
put_data(struct following *f, const char *p, size_t len, uint64_t end)
{
	hr_buf_addf(&f->event, "id: %" PRIu64 "\ndata: {\"offset\":%" PRIu64 ",", end, end - len);
	if (f->form == FORM_BASE64) {
		hr_buf_adds(&f->event, "\"base64\":\"");
		hr_quote_base64(&f->event, p, len);
		hr_buf_adds(&f->event, "\"}\n\n");
		return;
	}
	hr_buf_adds(&f->event, "\"text\":");
	(void)hr_json_put_str(
	    &f->event, p, len, HR_JSON_REPLACE); /* HR_JSON_REPLACE accepts all bytes */
	hr_buf_adds(&f->event, "}\n\n");
}

/* Sends an incomplete character that nothing will complete. */
static void
put_torn(struct following *f)
{
	if (f->ntorn > 0)
		put_data(f, f->torn, f->ntorn, f->at);
	f->ntorn = 0;
}

static void
put_gap(struct following *f, uint64_t from, uint64_t to)
{
	put_torn(f);
	hr_buf_addf(&f->event,
	    "event: gap\nid: %" PRIu64 "\ndata: {\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}\n\n", to,
	    from, to);
}

static void
put_text(struct following *f, struct hr_span s)
{
	HR_BUF(whole, s.len + TORN_MAX);
	size_t torn;

	hr_buf_add(&whole, f->torn, f->ntorn);
	hr_buf_add(&whole, s.p, s.len);
	torn = hr_utf8_torn(hr_buf_str(&whole), whole.len);
	if (whole.len > torn)
		put_data(f, whole.p, whole.len - torn, f->at + s.len - torn);
	if (whole.fail != HR_OK)
		f->event.fail = whole.fail;
	else
		memcpy(f->torn, hr_buf_str(&whole) + whole.len - torn, torn);
	f->ntorn = torn;
}

/* ---- sending ---- */

static int
flush_event(struct following *f, struct hr_sink *sink, struct hr_err *err)
{
	int r = hr_buf_check(&f->event, err);

	if (r == 0 && f->event.len > 0)
		r = sink->write(sink, f->event.p, f->event.len);
	hr_buf_reset(&f->event);
	return r;
}

/* Returns 1 to continue, or 0 to end the answer here. Plain bytes cannot mark a gap, so the answer
 * ends before it; the client reconnects with its offset, and a header of the next answer has the
 * real start. */
static int
send_piece(struct following *f, const struct hr_output_piece *piece, struct hr_sink *sink,
    struct hr_err *err)
{
	int r = 0;

	if (f->form == FORM_BYTES) {
		if (piece->offset != f->at)
			return 0;
		if (piece->bytes.len > 0)
			r = sink->write(sink, piece->bytes.p, piece->bytes.len);
		f->at += piece->bytes.len;
		return r < 0 ? -1 : 1;
	}
	if (piece->offset != f->at)
		put_gap(f, f->at, piece->offset);
	f->at = piece->offset;
	if (f->form == FORM_TEXT)
		put_text(f, piece->bytes);
	else if (piece->bytes.len > 0)
		put_data(f, piece->bytes.p, piece->bytes.len, f->at + piece->bytes.len);
	f->at += piece->bytes.len;
	return flush_event(f, sink, err) < 0 ? -1 : 1;
}

static int
send_output(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct following *f = arg;
	struct hr_output_piece piece;
	size_t used = 0;
	int r;

	for (;;) {
		while (hr_frame_waits(&f->frame)) {
			r = hr_shell_piece(f->keeper, &f->frame, &piece, &used, err);
			if (r > 0 && !hr_stay_lasts(f->end.w, &f->end.stay))
				return 0;
			if (r > 0)
				r = send_piece(f, &piece, sink, err);
			if (r <= 0)
				return r;
			hr_buf_drop_front(&f->frame, used);
		}
		if (!hr_live_wait(f->keeper, &f->end, sink))
			return 0;
		r = hr_shell_piece(f->keeper, &f->frame, &piece, &used, err);
		if (r < 0)
			return r;
		if (r == 0)
			break;
	}
	if (f->returned) /* do this before the client sees the end and runs another command */
		(void)hr_shell_returned(&f->place, f->at);
	if (!f->req.stays) /* a reconnecting client may still get the rest */
		put_torn(f);
	return flush_event(f, sink, err);
}

/* ---- start ---- */

static int
first_piece(struct following *f, struct hr_err *err)
{
	struct hr_output_piece first;
	size_t used;
	int r;

	f->keeper = hr_shell_follow(&f->place, &f->req, err);
	if (f->keeper < 0)
		return -1;
	r = hr_shell_piece(f->keeper, &f->frame, &first, &used, err);
	if (r == 0)
		return hr_err_set(err, HR_E_GONE, "the shell's keeper closed the connection");
	if (r < 0)
		return -1;
	f->at = first.offset;
	return 0;
}

static int
begin(struct following *f, bool resumed, struct hr_err *err)
{
	const uint64_t wanted = f->req.offset;

	f->end.signals = hr_command_signals(err);
	if (f->end.signals < 0)
		return -1;
	if (first_piece(f, err) < 0)
		return -1;
	if (resumed && f->at < wanted) {
		/* we sent that number, so the keeper is a new one, and all of its output is new */
		hr_fd_close(&f->keeper);
		hr_buf_reset(&f->frame);
		f->req.offset = 0;
		if (first_piece(f, err) < 0)
			return -1;
		put_gap(f, wanted, f->at);
	} else if (f->form != FORM_BYTES && f->at > wanted) {
		put_gap(f, wanted, f->at);
	}
	return 0;
}

/* Parses the query and the headers. Returns NULL, or a message about the first mistake. */
static const char *
parse(const struct hr_request *r, struct following *f, bool *ret_resumed)
{
	const char *id = r->last_event_id, *wrong = NULL;
	HR_BUF(text, 4096);
	uint64_t command = 0;

	f->req.offset = 0;
	if (strstr(r->accept, "text/event-stream") != NULL)
		f->form = FORM_BASE64;
	f->req.stays = f->form != FORM_BYTES;
	if (hr_request_query(r, "offset", &text) &&
	    !hr_live_number(hr_buf_str(&text), &f->req.offset))
		wrong = "offset is not a number";
	if (f->form != FORM_BYTES && id[0] != '\0') {
		*ret_resumed = true;
		if (!hr_live_number(id, &f->req.offset))
			wrong = "Last-Event-ID is not a number";
	}
	hr_buf_reset(&text);
	if (hr_request_query(r, "follow", &text))
		f->req.stays = strcmp(hr_buf_str(&text), "true") == 0;
	hr_buf_reset(&text);
	if (hr_request_query(r, "command", &text)) {
		if (!hr_live_number(hr_buf_str(&text), &command))
			wrong = "command is not a number";
		f->req.command = (int64_t)command;
	}
	hr_buf_reset(&text);
	if (hr_request_query(r, "returned", &text))
		f->returned = strcmp(hr_buf_str(&text), "true") == 0;
	hr_buf_reset(&text);
	if (f->form != FORM_BYTES && hr_request_query(r, "encoding", &text)) {
		if (strcmp(hr_buf_str(&text), "text") == 0)
			f->form = FORM_TEXT;
		else if (strcmp(hr_buf_str(&text), "base64") != 0)
			wrong = "encoding is text or base64";
	}
	return wrong;
}

void
hr_handle_live_output(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct following *f = calloc(1, sizeof(*f));
	struct hr_err err = {0};
	char number[NUMBER_MAX];
	bool resumed = false;
	const char *wrong;

	if (f == NULL) {
		hr_answer_generic(ret);
		return;
	}
	f->keeper = f->end.signals = -1;
	f->end.w = w;
	hr_page_enter(w, r, &f->end.stay);
	hr_buf_init(&f->frame, PIECE_MAX);
	hr_buf_init(&f->event, EVENT_MAX);
	if (!hr_live_place(w, r, &f->place, ret)) {
		following_free(f);
		return;
	}
	wrong = parse(r, f, &resumed);
	if (wrong != NULL) {
		hr_answer_detail(ret, 400, wrong);
		following_free(f);
		return;
	}
	f->end.events = f->form != FORM_BYTES;
	if (begin(f, resumed, &err) < 0) {
		hr_live_refuse(ret, &err);
		following_free(f);
		return;
	}
	ret->content_type =
	    f->form == FORM_BYTES ? "application/octet-stream" : "text/event-stream";
	(void)snprintf(number, sizeof(number), "%" PRIu64, f->at);
	hr_answer_header(ret, "X-Handrail-Offset", number);
	hr_answer_header(ret, "Cache-Control", "no-store");
	hr_answer_stream(
	    ret, &(const struct hr_stream){
		     .send = send_output, .done = following_free, .arg = f, .length = -1});
}
