/* Looking on: the default session, its output as it comes, input and signals for its command. The
 * interface is doc/live.md; nothing of it is part of the original's. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include <json-c/json.h>

#include "actions/shell.h"
#include "base/fd.h"
#include "proto/json.h"
#include "worker/worker.h"

#define BODY_MAX (1u << 20)
#define PIECE_MAX (1u << 20)
#define NUMBER_MAX 32

static void
put_str(struct hr_buf *b, const char *p, size_t len)
{
	(void)hr_json_put_str(b, p, len, HR_JSON_REPLACE); /* cannot refuse */
}

static void
put_state(struct hr_buf *b, const struct hr_session_state *s)
{
	hr_buf_addf(b, "{\"name\":\"default\",\"ready\":%s,\"running\":%s,\"working_dir\":",
	    s->ready ? "true" : "false", s->running ? "true" : "false");
	put_str(b, s->working_dir.p, s->working_dir.len);
	hr_buf_addf(b, ",\"output\":{\"start\":%" PRIu64 ",\"end\":%" PRIu64 "}}", s->log_start,
	    s->log_end);
}

/* The shell's keeper may be about to be replaced: that is a matter of a moment. */
static void
refuse_keeper(struct hr_answer *ret, const struct hr_err *err)
{
	hr_answer_detail(ret, 503, err->msg);
	ret->retry_after_s = 1;
}

void
hr_handle_live_session(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_session_state state;
	struct hr_err err = {0};
	struct hr_buf frame;

	(void)r;
	hr_buf_init(&frame, HR_FRAME_MAX);
	if (hr_shell_state(w->run_dir, &frame, &state, &err) < 0)
		refuse_keeper(ret, &err);
	else
		put_state(&ret->body, &state);
	hr_buf_done(&frame);
}

/* ---- output ---- */

struct following {
	int keeper, signals;
	struct hr_buf frame;
	uint64_t at; /* the next byte's offset; a piece that begins later ends the answer */
};

static void
following_free(void *arg)
{
	struct following *f = arg;

	hr_fd_close(&f->keeper);
	hr_fd_close(&f->signals);
	hr_buf_done(&f->frame);
	free(f);
}

/* 1: a piece; 0: the end; -1: an error. *ret borrows from the frame, and *ret_used of it is to be
 * dropped afterwards. */
static int
next_piece(struct following *f, struct hr_output_piece *ret, size_t *ret_used, struct hr_err *err)
{
	size_t len, need = HR_FRAME_HEADER;
	const char *payload;
	uint32_t type;
	char *room;
	ssize_t n;
	int found;

	for (;;) {
		found = hr_frame_get(hr_buf_str(&f->frame), f->frame.len, &type, &payload, &len,
		    ret_used, &need, err);
		if (found < 0)
			return -1;
		if (found == 1 && type != HR_FRAME_OUTPUT)
			return hr_err_set(err, HR_E_PROTO, "a frame of type %u", type);
		if (found == 1)
			return hr_frame_get_output(payload, len, ret, err) == 0 ? 1 : -1;
		room = hr_buf_reserve(&f->frame, need - f->frame.len + 65536);
		if (room == NULL)
			return hr_buf_check(&f->frame, err);
		n = hr_fd_read(f->keeper, room, need - f->frame.len + 65536);
		if (n <= 0)
			return n == 0 ? 0 : hr_err_sys(err, errno, "the shell's keeper");
		hr_buf_grew(&f->frame, (size_t)n);
	}
}

static void
drop(struct hr_buf *b, size_t n)
{
	memmove(b->p, b->p + n, b->len - n);
	b->len -= n;
}

/* Sleeps until there is output, or a reason to end: false. */
static bool
wait_output(const struct following *f, int client)
{
	struct pollfd p[] = {{.fd = f->keeper, .events = POLLIN},
	    {.fd = client, .events = POLLIN | POLLRDHUP}, {.fd = f->signals, .events = POLLIN}};

	while (poll(p, 3, -1) < 0)
		; /* only EINTR */
	return p[1].revents == 0 && p[2].revents == 0;
}

/* A gap would go unnoticed in plain bytes: the answer ends there, and the client asks again with
 * its offset, for which the next answer's header says where it really begins. */
static int
send_output(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct following *f = arg;
	struct hr_output_piece piece;
	size_t used = 0;
	int r;

	for (;;) {
		while (f->frame.len >= HR_FRAME_HEADER) {
			struct hr_err none = {0};
			const char *payload;
			size_t len, need;
			uint32_t type;

			/* only what is whole already */
			if (hr_frame_get(f->frame.p, f->frame.len, &type, &payload, &len, &used,
				&need, &none) == 0)
				break;
			r = next_piece(f, &piece, &used, err);
			if (r <= 0)
				return r;
			if (piece.offset != f->at)
				return 0;
			if (piece.bytes.len > 0 &&
			    sink->write(sink, piece.bytes.p, piece.bytes.len) < 0)
				return -1;
			f->at += piece.bytes.len;
			drop(&f->frame, used);
		}
		if (!wait_output(f, sink->fd))
			return 0;
		r = next_piece(f, &piece, &used, err);
		if (r <= 0)
			return r;
	}
}

/* 0 to 2^63; 0 where there is none, -1 for what is no number. */
static int
offset_of(const struct hr_request *r, uint64_t *ret, struct hr_buf *text)
{
	char *end;

	*ret = 0;
	if (!hr_request_query(r, "offset", text))
		return 0;
	errno = 0;
	*ret = strtoull(hr_buf_str(text), &end, 10);
	return errno == 0 && *end == '\0' && text->len > 0 && text->p[0] >= '0' &&
		       text->p[0] <= '9' && *ret <= INT64_MAX
		   ? 0
		   : -1;
}

static int
begin(struct hr_worker *w, struct following *f, const struct hr_follow_request *req,
    struct hr_err *err)
{
	struct hr_output_piece first;
	sigset_t set;
	size_t used;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGUSR1);
	/* both are blocked; whoever waits for requests sees them afterwards, too */
	f->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (f->signals < 0)
		return hr_err_sys(err, errno, "signalfd");
	f->keeper = hr_shell_follow(w->run_dir, req, err);
	if (f->keeper < 0)
		return -1;
	r = next_piece(f, &first, &used, err);
	if (r == 0)
		return hr_err_set(err, HR_E_GONE, "the shell's keeper closed the connection");
	if (r < 0)
		return -1;
	f->at = first.offset;
	return 0;
}

void
hr_handle_live_output(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct following *f = calloc(1, sizeof(*f));
	struct hr_follow_request req = {0};
	struct hr_err err = {0};
	char number[NUMBER_MAX];
	struct hr_buf text;
	int bad;

	hr_buf_init(&text, 4096);
	bad = offset_of(r, &req.offset, &text);
	hr_buf_reset(&text);
	if (hr_request_query(r, "follow", &text))
		req.stays = strcmp(hr_buf_str(&text), "true") == 0;
	hr_buf_done(&text);
	if (bad < 0 || f == NULL) {
		hr_answer_detail(ret, f == NULL ? 500 : 400, "offset is not a number");
		free(f);
		return;
	}
	f->keeper = f->signals = -1;
	hr_buf_init(&f->frame, PIECE_MAX);
	if (begin(w, f, &req, &err) < 0) {
		refuse_keeper(ret, &err);
		following_free(f);
		return;
	}
	ret->content_type = "application/octet-stream";
	(void)snprintf(number, sizeof(number), "%" PRIu64, f->at);
	hr_answer_header(ret, "X-Handrail-Offset", number);
	hr_answer_stream(
	    ret, &(const struct hr_stream){
		     .send = send_output, .done = following_free, .arg = f, .length = -1});
}

/* ---- input and signals ---- */

static const struct {
	const char *name;
	int number;
} signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"KILL", SIGKILL},
    {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"CONT", SIGCONT}, {"STOP", SIGSTOP},
    {"TSTP", SIGTSTP}};

static int
signal_number(struct json_object *v)
{
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (hr_json_str_is(v, signals[i].name))
			return signals[i].number;
	return 0;
}

static void
press(struct hr_worker *w, const struct hr_press_request *req, struct hr_answer *ret)
{
	struct hr_session_state state;
	struct hr_err err = {0};
	struct hr_buf frame;

	hr_buf_init(&frame, HR_FRAME_MAX);
	if (hr_shell_press(w->run_dir, req, &frame, &state, &err) < 0) {
		refuse_keeper(ret, &err);
	} else if (state.reason.len > 0) {
		ret->status = 409;
		hr_buf_adds(&ret->body, "{\"detail\":");
		put_str(&ret->body, state.reason.p, state.reason.len);
		hr_buf_addc(&ret->body, '}');
	} else {
		put_state(&ret->body, &state);
	}
	hr_buf_done(&frame);
}

/* The member of that name in a body that is an object; NULL: answered. */
static struct json_object *
member(struct hr_worker *w, const struct hr_request *r, const char *name,
    struct json_object **ret_body, struct hr_answer *ret)
{
	struct json_object *v = NULL;
	struct hr_json_error e;

	*ret_body = NULL;
	if (hr_worker_body(w, r, BODY_MAX, ret) < 0)
		return NULL;
	if (hr_json_decode(hr_buf_str(&w->body), w->body.len, ret_body, &e) < 0 ||
	    hr_json_type(*ret_body) != HR_PY_DICT ||
	    !json_object_object_get_ex(*ret_body, name, &v) || hr_json_type(v) != HR_PY_STR) {
		hr_answer_detail(ret, 400, "the body has to be an object with a string in it");
		return NULL;
	}
	return v;
}

void
hr_handle_live_input(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_press_request req = {0};
	struct json_object *body, *v = member(w, r, "text", &body, ret);

	if (v != NULL) {
		req.text.p = hr_json_str(v, &req.text.len);
		press(w, &req, ret);
	}
	json_object_put(body);
}

void
hr_handle_live_signal(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct json_object *body, *v = member(w, r, "signal", &body, ret);
	const struct hr_press_request req = {
	    .signal = v != NULL ? signal_number(v) : 0, .text = {"", 0}};

	if (v != NULL && req.signal == 0)
		hr_answer_detail(ret, 400, "no signal of that name");
	else if (v != NULL)
		press(w, &req, ret);
	json_object_put(body);
}
