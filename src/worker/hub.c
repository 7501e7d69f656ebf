/* Sources and pages. A source is the output of one shell, read from its keeper once, the last bytes
 * of which are kept, and the state of that shell, which is looked at when something was printed. A
 * page has a place in those bytes, a number for each state that it was told, and at most one step
 * of what it is to be told in its buffer: one that reads slowly loses bytes, which it is told, and
 * holds up nobody. Invariant: a timer is armed only while there is a page. */
#include "config.h"

#include "worker/hub.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fastcgi.h>

#include "actions/shell.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/quote.h"
#include "proto/channel.h"
#include "worker/live.h"
#include "worker/worker.h"

#define PAGES_MAX 128
#define RING_MAX (4u << 20) /* of each shell */
#define RING_SLACK (1u << 20)
#define STEP (24u << 10) /* bytes of output in one event */
#define TEXT_MAX (1u << 20)
#define RECORD_MAX 65528
/* A shell's state is looked at so long after it began to print, so that it is not asked for each
 * line, and once more when it has been silent: what ends a command comes around its last bytes. */
#define SOON_MS 100
#define SETTLE_MS 1000
#define SAMPLE_MS 10000
#define ASK_MS 1000
#define TURN_EVENTS 32

enum kind { OF_TIMER, OF_SOURCE, OF_PAGE };

/* A text of which a page is told when it is not the one that it knows. */
struct told {
	struct hr_buf text; /* a whole event */
	uint64_t turn;      /* counts its changes from 1; 0: there is none yet */
};

struct source {
	enum kind kind;
	LIST_ENTRY(source) entry;
	char name[HR_SESSION_NAME_MAX + 1];
	unsigned pages;
	int keeper;
	bool ended;
	struct hr_buf frame, ring;
	uint64_t start; /* offset of the ring's first byte */
	struct told state;
	int64_t soon_ms, settle_ms; /* when to look at it; 0: not */
};

struct page {
	enum kind kind;
	LIST_ENTRY(page) entry;
	struct source *source;
	int fd; /* -1: not yet */
	int request_id;
	struct hr_stay stay;
	bool gone, waits_for_room;
	bool anew; /* its place is one of a count before this */
	struct hr_buf out;
	uint64_t at;
	uint64_t knows_state, knows_server, knows_sample;
};

struct hr_hub {
	struct hr_worker *w;
	int ep, timer;
	enum kind timer_kind;
	LIST_HEAD(, source) sources;
	LIST_HEAD(, page) pages;
	unsigned count;
	struct page *joining;
	struct told server, sample;
	int64_t sample_ms; /* when the next one is due */
	struct hr_buf event, scratch;
};

static const char *
session_of(const struct source *s)
{
	return strcmp(s->name, "default") == 0 ? NULL : s->name;
}

static uint64_t
source_end(const struct source *s)
{
	return s->start + s->ring.len;
}

static void
watch(struct hr_hub *h, int op, int fd, uint32_t events, void *what)
{
	struct epoll_event e = {.events = events, .data.ptr = what};

	if (epoll_ctl(h->ep, op, fd, &e) < 0)
		hr_log(HR_LOG_ERROR, "epoll_ctl: %s", strerror(errno));
}

/* ---- texts that pages are told ---- */

/* Takes what is in the scratch buffer for the event's data, if it is news. */
static void
told_set(struct hr_hub *h, struct told *t, const char *event)
{
	if (h->scratch.fail != HR_OK)
		return; /* the next one may fit */
	hr_buf_reset(&h->event);
	hr_buf_addf(&h->event, "event: %s\ndata: ", event);
	hr_buf_add(&h->event, hr_buf_str(&h->scratch), h->scratch.len);
	hr_buf_adds(&h->event, "\n\n");
	if (h->event.fail != HR_OK || (t->turn > 0 && t->text.len == h->event.len &&
					  memcmp(t->text.p, h->event.p, h->event.len) == 0))
		return;
	hr_buf_reset(&t->text);
	hr_buf_add(&t->text, h->event.p, h->event.len);
	if (t->text.fail == HR_OK)
		t->turn++;
}

static void
source_look(struct hr_hub *h, struct source *s)
{
	const struct hr_shell_place place = {.run_dir = h->w->run_dir, .session = session_of(s)};
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_session_state state;
	struct hr_err err = {0};
	struct hr_buf frame, *b = &h->scratch;
	size_t n = 0, i;

	hr_buf_init(&frame, HR_FRAME_MAX);
	hr_buf_reset(b);
	if (hr_shell_state(&place, &frame, &state, &err) < 0) {
		hr_buf_done(&frame);
		return; /* the keeper's end is seen by itself */
	}
	hr_buf_adds(b, "{\"session\":");
	hr_live_put_state(b, s->name, &state);
	hr_buf_adds(b, ",\"commands\":[");
	hr_buf_reset(&frame);
	if (hr_shell_commands(&place, &frame, list, &n, &err) == 0)
		for (i = 0; i < n; i++) {
			if (i > 0)
				hr_buf_addc(b, ',');
			hr_live_put_command(b, s->name, &list[i]);
		}
	hr_buf_adds(b, "]}");
	hr_buf_done(&frame);
	told_set(h, &s->state, "shell");
}

/* Text of JSON from one line: an event's data is one. */
static void
put_line(struct hr_buf *b, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		hr_buf_addc(b, p[i] == '\n' || p[i] == '\r' ? ' ' : p[i]);
}

static void
server_look(struct hr_hub *h)
{
	struct hr_channel_answer a;
	struct hr_err err = {0};
	struct hr_buf *b = &h->scratch;

	hr_buf_reset(b);
	/* without a look at the disk, which may hang, and all pages with it */
	if (hr_channel_ask(h->w->channel, HR_CHANNEL_READY, "", 0, HR_CHANNEL_READY_ANSWER, ASK_MS,
		&a, &err) < 0)
		return; /* its end is ours as well */
	hr_buf_adds(b, "{\"ready\":");
	put_line(b, a.text, a.len);
	if (hr_channel_ask(h->w->channel, HR_CHANNEL_ALERTS, "", 0, HR_CHANNEL_ALERTS_ANSWER,
		ASK_MS, &a, &err) < 0)
		return;
	hr_buf_adds(b, ",\"alerts\":");
	put_line(b, a.text, a.len);
	hr_buf_addc(b, '}');
	told_set(h, &h->server, "server");
}

static void
sample_take(struct hr_hub *h)
{
	struct hr_buf *b = &h->scratch;
	struct hr_stats_now s;

	hr_buf_reset(b);
	hr_stats_sample(&h->w->stats, h->w->board, &s);
	hr_buf_addf(b,
	    "{\"time\":%" PRId64 ",\"resident_bytes\":%" PRIu64
	    ",\"cpu_percent\":%.1f,\"disk_total\":%" PRIu64 ",\"disk_free\":%" PRIu64
	    ",\"pages\":%u,\"minutes\":",
	    hr_wall_ms() / 1000, s.rss, s.cpu_percent, s.disk_total, s.disk_free, h->count);
	hr_metrics_put_minutes(b, &h->w->board->metrics, hr_now_ns(), hr_wall_ms() / 1000);
	hr_buf_addc(b, '}');
	told_set(h, &h->sample, "sample");
}

/* ---- pages ---- */

static void
page_drop(struct hr_hub *h, struct page *p)
{
	if (p->gone)
		return;
	p->gone = true; /* freed behind the events of this turn, one of which may be its own */
	p->source->pages--;
	h->count--;
	hr_fd_close(&p->fd);
}

/* As the content of the stream, in records. */
static void
put_out(struct page *p, const char *text, size_t len)
{
	size_t n;

	for (; len > 0; text += n, len -= n) {
		FCGI_Header head = {.version = FCGI_VERSION_1,
		    .type = FCGI_STDOUT,
		    .requestIdB1 = (unsigned char)(p->request_id >> 8),
		    .requestIdB0 = (unsigned char)p->request_id};

		n = len < RECORD_MAX ? len : RECORD_MAX;
		head.contentLengthB1 = (unsigned char)(n >> 8);
		head.contentLengthB0 = (unsigned char)n;
		hr_buf_add(&p->out, (const char *)&head, sizeof(head));
		hr_buf_add(&p->out, text, n);
	}
}

static bool
page_knows(struct page *p, const struct told *t, uint64_t *known)
{
	if (t->turn == *known)
		return true;
	*known = t->turn;
	put_out(p, t->text.p, t->text.len);
	return false;
}

static void
put_output(struct hr_hub *h, struct page *p)
{
	struct source *s = p->source;
	struct hr_buf *b = &h->event;
	uint64_t end = source_end(s);
	size_t n;

	hr_buf_reset(b);
	if (p->anew || p->at < s->start) { /* those are gone, or the count began anew */
		hr_buf_addf(b,
		    "event: gap\nid: %" PRIu64 "\ndata: {\"from\":%" PRIu64 ",\"to\":%" PRIu64
		    "}\n\n",
		    s->start, p->at, s->start);
		p->at = s->start;
		p->anew = false;
	}
	n = end - p->at < STEP ? (size_t)(end - p->at) : STEP;
	if (n > 0) {
		hr_buf_addf(b,
		    "event: output\nid: %" PRIu64 "\ndata: {\"offset\":%" PRIu64 ",\"base64\":\"",
		    p->at + n, p->at);
		hr_quote_base64(b, s->ring.p + (p->at - s->start), n);
		hr_buf_adds(b, "\"}\n\n");
		p->at += n;
	}
	if (b->fail == HR_OK)
		put_out(p, hr_buf_str(b), b->len);
}

/* One step of what it does not know yet; false: it knows all. */
static bool
page_next(struct hr_hub *h, struct page *p)
{
	bool knows = page_knows(p, &p->source->state, &p->knows_state);

	knows &= page_knows(p, &h->server, &p->knows_server);
	knows &= page_knows(p, &h->sample, &p->knows_sample);
	if (!knows)
		return true;
	/* before its place: bytes are on their way to us */
	if (!p->anew && p->at >= source_end(p->source))
		return false;
	put_output(h, p);
	return true;
}

/* In order, so that nginx does not take a part for the whole. What does not fit is not waited for.
 */
static void
page_end(struct page *p)
{
	FCGI_EndRequestRecord end = {.header = {.version = FCGI_VERSION_1,
					 .type = FCGI_END_REQUEST,
					 .requestIdB1 = (unsigned char)(p->request_id >> 8),
					 .requestIdB0 = (unsigned char)p->request_id,
					 .contentLengthB0 = sizeof(end.body)},
	    .body = {.protocolStatus = FCGI_REQUEST_COMPLETE}};
	ssize_t n;

	if (p->gone || p->fd < 0)
		return;
	hr_buf_add(&p->out, (const char *)&end, sizeof(end));
	do
		n = write(p->fd, p->out.p, p->out.len);
	while (n < 0 && errno == EINTR);
}

static void
page_send(struct hr_hub *h, struct page *p)
{
	bool waits = false;
	ssize_t n;

	if (p->gone || p->fd < 0)
		return;
	if (!hr_stay_lasts(h->w, &p->stay)) {
		page_end(p);
		page_drop(h, p);
		return;
	}
	while (p->out.len > 0 || page_next(h, p)) {
		if (p->out.fail != HR_OK) {
			page_drop(h, p); /* it comes again, with its offset */
			return;
		}
		if (p->out.len == 0)
			continue;
		n = write(p->fd, p->out.p, p->out.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			page_drop(h, p);
			return;
		}
		if (n < 0) {
			waits = true;
			break;
		}
		hr_buf_drop_front(&p->out, (size_t)n);
	}
	if (waits != p->waits_for_room)
		watch(h, EPOLL_CTL_MOD, p->fd, EPOLLRDHUP | (waits ? EPOLLOUT : 0), p);
	p->waits_for_room = waits;
}

static void
source_send(struct hr_hub *h, struct source *s)
{
	struct page *p;

	LIST_FOREACH(p, &h->pages, entry)
	{
		if (p->source == s)
			page_send(h, p);
	}
}

/* ---- sources ---- */

static void
source_arm(struct source *s)
{
	int64_t now = hr_now_ms();

	if (s->soon_ms == 0)
		s->soon_ms = now + SOON_MS;
	s->settle_ms = now + SETTLE_MS;
}

/* -1: the count began anew. */
static int
source_take(struct source *s, const struct hr_output_piece *piece)
{
	if (piece->offset < source_end(s))
		return -1;
	if (piece->offset > source_end(s)) { /* bytes were lost */
		hr_buf_reset(&s->ring);
		s->start = piece->offset;
	}
	hr_buf_add(&s->ring, piece->bytes.p, piece->bytes.len);
	if (s->ring.len > RING_MAX + RING_SLACK) {
		s->start += s->ring.len - RING_MAX;
		hr_buf_drop_front(&s->ring, s->ring.len - RING_MAX);
	}
	return s->ring.fail == HR_OK ? 0 : -1;
}

/* 0: all that there is was taken; -1: its keeper is gone, or spoke nonsense. */
static int
source_read(struct source *s)
{
	struct hr_output_piece piece;
	struct hr_err err = {0};
	size_t len, used;
	const char *payload;
	uint32_t type;
	int r;

	for (;;) {
		r = hr_frame_read(s->keeper, &s->frame, &type, &payload, &len, &used, &err);
		if (r < 0 && err.sys == EAGAIN)
			return 0;
		if (r <= 0 || type != HR_FRAME_OUTPUT ||
		    hr_frame_get_output(payload, len, &piece, &err) < 0)
			return -1;
		if (source_take(s, &piece) < 0)
			return -1;
		hr_buf_drop_front(&s->frame, used);
	}
}

/* Its pages ask again, and find the next keeper. */
static void
source_ended(struct hr_hub *h, struct source *s)
{
	struct page *p;

	if (s->ended)
		return;
	s->ended = true;
	hr_fd_close(&s->keeper);
	LIST_FOREACH(p, &h->pages, entry)
	{
		if (p->source == s) {
			page_send(h, p);
			page_end(p);
			page_drop(h, p);
		}
	}
}

static void
source_free(struct source *s)
{
	hr_fd_close(&s->keeper);
	hr_buf_done(&s->frame);
	hr_buf_done(&s->ring);
	hr_buf_done(&s->state.text);
	free(s);
}

static struct source *
source_open(struct hr_hub *h, const char *session, uint64_t end, struct hr_err *err)
{
	/* of a long log no more than is kept here */
	const struct hr_follow_request req = {
	    .stays = true, .offset = end > RING_MAX ? end - RING_MAX : 0};
	const struct hr_shell_place place = {.run_dir = h->w->run_dir, .session = session};
	const char *name = session != NULL ? session : "default";
	struct source *s;

	LIST_FOREACH(s, &h->sources, entry)
	{
		if (!s->ended && strcmp(s->name, name) == 0)
			return s;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		(void)hr_err_nomem(err);
		return NULL;
	}
	s->kind = OF_SOURCE;
	hr_buf_init(&s->frame, TEXT_MAX + RING_SLACK);
	hr_buf_init(&s->ring, RING_MAX + 2 * RING_SLACK);
	hr_buf_init(&s->state.text, TEXT_MAX);
	(void)snprintf(s->name, sizeof(s->name), "%s", name); /* it fits */
	s->keeper = hr_shell_follow(&place, &req, err);
	if (s->keeper < 0 || hr_fd_nonblock(s->keeper, true, err) < 0) {
		source_free(s);
		return NULL;
	}
	watch(h, EPOLL_CTL_ADD, s->keeper, EPOLLIN, s);
	source_look(h, s);
	LIST_INSERT_HEAD(&h->sources, s, entry);
	return s;
}

/* ---- turns ---- */

static void
arm(struct hr_hub *h)
{
	int64_t at = h->count > 0 ? h->sample_ms : 0;
	struct itimerspec t = {{0, 0}, {0, 0}};
	const struct source *s;

	LIST_FOREACH(s, &h->sources, entry)
	{
		if (s->pages == 0)
			continue;
		if (s->soon_ms != 0 && s->soon_ms < at)
			at = s->soon_ms;
		if (s->settle_ms != 0 && s->settle_ms < at)
			at = s->settle_ms;
	}
	t.it_value.tv_sec = at / 1000;
	t.it_value.tv_nsec = at % 1000 * 1000000;
	(void)timerfd_settime(h->timer, TFD_TIMER_ABSTIME, &t, NULL); /* ours: cannot fail */
}

static void
look_at_server(struct hr_hub *h)
{
	struct page *p;

	server_look(h);
	sample_take(h);
	h->sample_ms = hr_now_ms() + SAMPLE_MS;
	LIST_FOREACH(p, &h->pages, entry)
	{
		page_send(h, p);
	}
}

static void
timer_fired(struct hr_hub *h)
{
	int64_t now;
	struct source *s;
	uint64_t times;

	(void)!read(h->timer, &times, sizeof(times)); /* was readable; not blocking */
	now = hr_now_ms();
	LIST_FOREACH(s, &h->sources, entry)
	{
		bool soon = s->soon_ms != 0 && s->soon_ms <= now;
		bool settle = s->settle_ms != 0 && s->settle_ms <= now;

		if (soon)
			s->soon_ms = 0;
		if (settle)
			s->settle_ms = 0;
		if ((soon || settle) && !s->ended && s->pages > 0) {
			source_look(h, s);
			source_send(h, s);
		}
	}
	if (h->count > 0 && h->sample_ms <= now)
		look_at_server(h);
}

static void
sweep(struct hr_hub *h)
{
	struct source *s, *next_s;
	struct page *p, *next_p;

	for (p = LIST_FIRST(&h->pages); p != NULL; p = next_p) {
		next_p = LIST_NEXT(p, entry);
		if (!p->gone)
			continue;
		LIST_REMOVE(p, entry);
		hr_buf_done(&p->out);
		free(p);
	}
	for (s = LIST_FIRST(&h->sources); s != NULL; s = next_s) {
		next_s = LIST_NEXT(s, entry);
		if (s->pages > 0)
			continue;
		LIST_REMOVE(s, entry);
		source_free(s);
	}
}

static void
happened(struct hr_hub *h, const struct epoll_event *e)
{
	struct source *s = e->data.ptr;
	struct page *p = e->data.ptr;

	switch (*(enum kind *)e->data.ptr) {
	case OF_TIMER: timer_fired(h); break;
	case OF_SOURCE:
		if (s->ended)
			break;
		source_arm(s);
		if (source_read(s) < 0)
			source_ended(h, s);
		else
			source_send(h, s);
		break;
	case OF_PAGE:
		if ((e->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
			page_drop(h, p);
		else
			page_send(h, p);
		break;
	}
}

void
hr_hub_turn(struct hr_hub *h)
{
	struct epoll_event e[TURN_EVENTS];
	int i, n;

	do
		n = epoll_wait(h->ep, e, TURN_EVENTS, 0);
	while (n < 0 && errno == EINTR);
	for (i = 0; i < n; i++)
		happened(h, &e[i]);
	sweep(h);
	arm(h);
}

/* ---- joining ---- */

/* Where it begins. */
static uint64_t
begin_at(const struct hr_hub_wish *wish, const struct hr_session_state *state)
{
	uint64_t end = state->log_end;

	if (wish->has_offset)
		return wish->offset;
	return end - state->log_start > wish->tail ? end - wish->tail : state->log_start;
}

int
hr_hub_join(struct hr_hub *h, const struct hr_hub_wish *wish, struct hr_err *err)
{
	const struct hr_shell_place place = {.run_dir = h->w->run_dir, .session = wish->session};
	struct hr_session_state state;
	struct hr_buf frame;
	struct source *s = NULL;
	struct page *p;
	int r;

	if (h->count >= PAGES_MAX)
		return hr_err_set(err, HR_E_BUSY, "%d pages look on already", PAGES_MAX);
	hr_buf_init(&frame, HR_FRAME_MAX);
	r = hr_shell_state(&place, &frame, &state, err);
	hr_buf_done(&frame); /* the numbers are not in it */
	if (r == 0)
		s = source_open(h, wish->session, state.log_end, err);
	if (s == NULL)
		return -1;
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		sweep(h); /* the source may have been opened for it alone */
		return hr_err_nomem(err);
	}
	p->kind = OF_PAGE;
	p->source = s;
	p->fd = -1;
	p->stay = wish->stay;
	hr_buf_init(&p->out, 3 * TEXT_MAX + RECORD_MAX);
	p->at = begin_at(wish, &state);
	p->anew = p->at > state.log_end;
	s->pages++;
	h->count++;
	LIST_INSERT_HEAD(&h->pages, p, entry);
	h->joining = p;
	return 0;
}

void
hr_hub_connect(struct hr_hub *h, int fd, int request_id)
{
	struct page *p = h->joining;

	h->joining = NULL;
	if (p == NULL) {
		hr_fd_close(&fd);
		return;
	}
	if (fd < 0 || p->gone || hr_fd_nonblock(fd, true, NULL) < 0) {
		hr_fd_close(&fd);
		page_drop(h, p);
		sweep(h);
		return;
	}
	p->fd = fd;
	p->request_id = request_id;
	watch(h, EPOLL_CTL_ADD, fd, EPOLLRDHUP, p);
	if (h->count == 1 || h->server.turn == 0)
		h->sample_ms = hr_now_ms(); /* what was said to others before is old */
	page_send(h, p);
	sweep(h);
	arm(h);
}

/* ---- the whole ---- */

struct hr_hub *
hr_hub_new(struct hr_worker *w, struct hr_err *err)
{
	struct hr_hub *h = calloc(1, sizeof(*h));

	if (h == NULL) {
		(void)hr_err_nomem(err);
		return NULL;
	}
	h->w = w;
	h->timer_kind = OF_TIMER;
	hr_buf_init(&h->event, TEXT_MAX);
	hr_buf_init(&h->scratch, TEXT_MAX);
	hr_buf_init(&h->server.text, TEXT_MAX);
	hr_buf_init(&h->sample.text, TEXT_MAX);
	h->ep = epoll_create1(EPOLL_CLOEXEC);
	h->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->ep < 0 || h->timer < 0) {
		(void)hr_err_sys(err, errno, "cannot hold streams");
		hr_hub_free(h);
		return NULL;
	}
	watch(h, EPOLL_CTL_ADD, h->timer, EPOLLIN, &h->timer_kind);
	return h;
}

void
hr_hub_free(struct hr_hub *h)
{
	struct page *p;

	if (h == NULL)
		return;
	LIST_FOREACH(p, &h->pages, entry)
	{
		page_end(p);
		page_drop(h, p);
	}
	sweep(h);
	hr_fd_close(&h->ep);
	hr_fd_close(&h->timer);
	hr_buf_done(&h->event);
	hr_buf_done(&h->scratch);
	hr_buf_done(&h->server.text);
	hr_buf_done(&h->sample.text);
	free(h);
}

int
hr_hub_fd(const struct hr_hub *h)
{
	return h->ep;
}

unsigned
hr_hub_count(const struct hr_hub *h)
{
	return h->count;
}
