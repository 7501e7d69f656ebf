/* Dispatches events to pages: one epoll for the timer, the sources (worker/hub_source.h) and the
 * pages (worker/hub_page.h). Invariant: the timer is armed only while there is a page. */
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

#include "actions/shell.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "proto/channel.h"
#include "worker/hub_page.h"
#include "worker/hub_source.h"
#include "worker/worker.h"

#define PAGES_MAX 128
#define SAMPLE_MS 10000
#define ASK_MS 1000
#define LOG_SOON_MS 200 /* ms that merge a burst of log lines into one event */
#define TURN_EVENTS 32

struct hr_hub {
	struct hr_worker *w;
	int ep, timer;
	int news; /* eventfd written with each log line; -1: not received yet */
	enum hr_hub_kind timer_kind, news_kind;
	LIST_HEAD(, hr_source) sources;
	LIST_HEAD(, hr_hub_page) pages;
	unsigned count;
	struct hr_hub_page *joining;
	struct hr_told told[HR_HUB_TOLD];
	int64_t sample_ms;   /* time of the next sample */
	int64_t tree_cpu_ns; /* processor time of the sandbox at the last sample */
	int64_t tree_at_ns;  /* time of the last sample; 0: there is none yet */
	int64_t log_ms;      /* time to request the number of log lines; 0: none is planned */
	struct hr_buf scratch;
};

/* Returns 0, or -1 if no event of fd would arrive. */
static int
watch(struct hr_hub *h, int op, int fd, uint32_t events, void *what, struct hr_err *err)
{
	struct epoll_event e = {.events = events, .data.ptr = what};

	return epoll_ctl(h->ep, op, fd, &e) < 0 ? hr_err_sys(err, errno, "epoll_ctl") : 0;
}

/* ---- events for all pages ---- */

/* Appends JSON on one line, as an event's data must be. */
static void
put_line(struct hr_buf *b, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		hr_buf_addc(b, p[i] == '\n' || p[i] == '\r' ? ' ' : p[i]);
}

/* Sends the number of log lines so far: a page that shows the log fetches them. */
static void
log_look(struct hr_hub *h)
{
	struct hr_buf *b = &h->scratch;
	struct hr_channel_answer a;
	struct hr_err err = {0};
	uint64_t next = 0;
	int64_t epoch = 0;

	h->log_ms = 0;
	if (hr_channel_ask(
		h->w->channel, HR_CHANNEL_LOG, "!", 1, HR_CHANNEL_LOG_ANSWER, ASK_MS, &a, &err) < 0)
		return; /* the end of the channel ends this worker as well */
	/* each answer has the same descriptor, and one copy is enough */
	if (h->news < 0 && a.fd >= 0) {
		if (watch(h, EPOLL_CTL_ADD, a.fd, EPOLLIN | EPOLLET, &h->news_kind, &err) == 0) {
			h->news = a.fd;
			a.fd = -1;
		} else {
			hr_log(HR_LOG_WARNING, "web pages get new log lines late: %s", err.msg);
		}
	}
	hr_fd_close(&a.fd);
	hr_buf_reset(b);
	/* the answer is {"first":N,"next":N,"epoch":N,...} */
	(void)sscanf(
	    a.text, "{\"first\":%*u,\"next\":%" SCNu64 ",\"epoch\":%" SCNd64, &next, &epoch);
	hr_buf_addf(b, "{\"next\":%" PRIu64 ",\"epoch\":%" PRId64 "}", next, epoch);
	hr_told_set(&h->told[HR_HUB_LOG], "log", b);
}

static void
server_look(struct hr_hub *h)
{
	struct hr_channel_answer a;
	struct hr_err err = {0};
	struct hr_buf *b = &h->scratch;

	hr_buf_reset(b);
	/* asks without a look at the disk, which could hang and block all pages */
	if (hr_channel_ask(h->w->channel, HR_CHANNEL_READY, "", 0, HR_CHANNEL_READY_ANSWER, ASK_MS,
		&a, &err) < 0)
		return; /* the end of the channel ends this worker as well */
	hr_buf_adds(b, "{\"ready\":");
	put_line(b, a.text, a.len);
	if (hr_channel_ask(h->w->channel, HR_CHANNEL_ALERTS, "", 0, HR_CHANNEL_ALERTS_ANSWER,
		ASK_MS, &a, &err) < 0)
		return;
	hr_buf_adds(b, ",\"alerts\":");
	put_line(b, a.text, a.len);
	hr_buf_addc(b, '}');
	hr_told_set(&h->told[HR_HUB_SERVER], "server", b);
}

/* Measures the server and all that runs below it, which is the whole sandbox except for processes
 * that left its tree. */
static void
put_sandbox(struct hr_hub *h, struct hr_buf *b)
{
	struct hr_stats_tree t;
	int64_t now = hr_now_ns();
	int64_t used, passed = now - h->tree_at_ns;

	hr_stats_tree(atomic_load(&h->w->board->supervisor_pid), &t);
	used = t.cpu_ns - h->tree_cpu_ns;
	hr_buf_addf(b,
	    "{\"processes\":%u,\"memory_bytes\":%" PRIu64 ",\"cpu_percent\":", t.processes,
	    t.anonymous);
	if (h->tree_at_ns == 0 || passed <= 0)
		hr_buf_adds(b, "null}");
	else /* less than before means that a process was not waited for */
		hr_buf_addf(b, "%.1f}", used > 0 ? 100.0 * (double)used / (double)passed : 0);
	h->tree_cpu_ns = t.cpu_ns;
	h->tree_at_ns = now;
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
	    ",\"pages\":%u,\"sandbox\":",
	    hr_wall_ms() / 1000, s.rss, s.cpu_percent, s.disk_total, s.disk_free, h->count);
	put_sandbox(h, b);
	hr_buf_adds(b, ",\"minutes\":");
	hr_metrics_put_minutes(b, &h->w->board->metrics, hr_now_ns(), hr_wall_ms() / 1000);
	hr_buf_addc(b, '}');
	hr_told_set(&h->told[HR_HUB_SAMPLE], "sample", b);
}

/* ---- pages ---- */

static void
page_drop(struct hr_hub *h, struct hr_hub_page *p)
{
	if (p->gone)
		return;
	p->gone =
	    true; /* freed after this batch of events, which may still hold one for this page */
	p->source->pages--;
	h->count--;
	hr_fd_close(&p->fd);
}

static void
page_send(struct hr_hub *h, struct hr_hub_page *p)
{
	struct hr_err err = {0};
	bool waits;
	int r;

	if (p->gone || p->fd < 0)
		return;
	if (!hr_stay_lasts(h->w, &p->stay)) {
		hr_hub_page_end(p);
		page_drop(h, p);
		return;
	}
	r = hr_hub_page_send(p, h->told);
	if (r < 0) {
		page_drop(h, p);
		return;
	}
	waits = r > 0;
	if (waits != p->waits_for_room &&
	    watch(h, EPOLL_CTL_MOD, p->fd, EPOLLRDHUP | (waits ? EPOLLOUT : 0), p, &err) < 0) {
		hr_log(HR_LOG_ERROR, "cannot send events to a web page, closing it: %s", err.msg);
		page_drop(h, p);
		return;
	}
	p->waits_for_room = waits;
}

static void
source_send(struct hr_hub *h, struct hr_source *s)
{
	struct hr_hub_page *p;

	LIST_FOREACH(p, &h->pages, entry)
	{
		if (p->source == s)
			page_send(h, p);
	}
}

/* Drops the pages of an ended source: they reconnect and find the next keeper. */
static void
source_ended(struct hr_hub *h, struct hr_source *s)
{
	struct hr_hub_page *p;

	if (s->ended)
		return;
	s->ended = true;
	hr_fd_close(&s->keeper);
	LIST_FOREACH(p, &h->pages, entry)
	{
		if (p->source == s) {
			page_send(h, p);
			hr_hub_page_end(p);
			page_drop(h, p);
		}
	}
}

/* Returns the source of this session, or opens one. */
static struct hr_source *
source_of(struct hr_hub *h, const char *session, uint64_t end, struct hr_err *err)
{
	const char *name = session != NULL ? session : "default";
	struct hr_source *s;

	LIST_FOREACH(s, &h->sources, entry)
	{
		if (!s->ended && strcmp(s->name, name) == 0)
			return s;
	}
	s = hr_source_open(h->w->run_dir, session, end, err);
	if (s == NULL)
		return NULL;
	if (watch(h, EPOLL_CTL_ADD, s->keeper, EPOLLIN, s, err) < 0) {
		hr_source_free(s);
		return NULL;
	}
	hr_source_look(s, h->w->run_dir);
	LIST_INSERT_HEAD(&h->sources, s, entry);
	return s;
}

/* ---- events ---- */

static void
arm(struct hr_hub *h)
{
	int64_t at = h->count > 0 ? h->sample_ms : 0;
	struct itimerspec t = {{0, 0}, {0, 0}};
	const struct hr_source *s;

	if (h->log_ms != 0 && h->log_ms < at)
		at = h->log_ms;
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
	/* timerfd_settime() cannot fail with these arguments */
	(void)timerfd_settime(h->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void
pages_send(struct hr_hub *h)
{
	struct hr_hub_page *p;

	LIST_FOREACH(p, &h->pages, entry)
	{
		page_send(h, p);
	}
}

static void
look_at_server(struct hr_hub *h)
{
	server_look(h);
	log_look(h);
	sample_take(h);
	h->sample_ms = hr_now_ms() + SAMPLE_MS;
	pages_send(h);
}

static void
timer_fired(struct hr_hub *h)
{
	int64_t now;
	struct hr_source *s;
	uint64_t times;

	(void)!read(
	    h->timer, &times, sizeof(times)); /* the timer was readable and does not block */
	now = hr_now_ms();
	LIST_FOREACH(s, &h->sources, entry)
	{
		if (hr_source_due(s, now) && !s->ended && s->pages > 0) {
			hr_source_look(s, h->w->run_dir);
			source_send(h, s);
		}
	}
	if (h->count > 0 && h->sample_ms <= now) {
		look_at_server(h);
	} else if (h->log_ms != 0 && h->log_ms <= now) {
		log_look(h);
		pages_send(h);
	}
}

static void
sweep(struct hr_hub *h)
{
	struct hr_source *s, *next_s;
	struct hr_hub_page *p, *next_p;

	for (p = LIST_FIRST(&h->pages); p != NULL; p = next_p) {
		next_p = LIST_NEXT(p, entry);
		if (!p->gone)
			continue;
		LIST_REMOVE(p, entry);
		hr_hub_page_free(p);
	}
	for (s = LIST_FIRST(&h->sources); s != NULL; s = next_s) {
		next_s = LIST_NEXT(s, entry);
		if (s->pages > 0)
			continue;
		LIST_REMOVE(s, entry);
		hr_source_free(s);
	}
}

static void
happened(struct hr_hub *h, const struct epoll_event *e)
{
	struct hr_source *s = e->data.ptr;
	struct hr_hub_page *p = e->data.ptr;

	switch (*(enum hr_hub_kind *)e->data.ptr) {
	case HR_HUB_TIMER: timer_fired(h); break;
	case HR_HUB_NEWS:
		if (h->count > 0 && h->log_ms == 0)
			h->log_ms = hr_now_ms() + LOG_SOON_MS;
		break;
	case HR_HUB_SOURCE:
		if (s->ended)
			break;
		hr_source_printed(s, hr_now_ms());
		if (hr_source_read(s) < 0)
			source_ended(h, s);
		else
			source_send(h, s);
		break;
	case HR_HUB_PAGE:
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

/* Returns the first offset for the page. */
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
	const struct hr_shell_place place = {
	    .run_dir = h->w->run_dir, .session = wish->session, .limit_s = HR_SOURCE_LIMIT_S};
	struct hr_session_state state;
	HR_BUF(frame, HR_FRAME_MAX);
	struct hr_source *s;
	struct hr_hub_page *p;

	if (h->count >= PAGES_MAX)
		return hr_err_set(err, HR_E_BUSY, "%d pages watch already; close one", PAGES_MAX);
	if (hr_shell_state(&place, &frame, &state, err) < 0)
		return -1;
	s = source_of(h, wish->session, state.log_end, err);
	if (s == NULL)
		return -1;
	p = hr_hub_page_new(s, begin_at(wish, &state));
	if (p == NULL) {
		sweep(h); /* frees the source if it was opened only for this page */
		return hr_err_nomem(err);
	}
	p->stay = wish->stay;
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
	struct hr_hub_page *p = h->joining;
	struct hr_err err = {0};

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
	if (watch(h, EPOLL_CTL_ADD, fd, EPOLLRDHUP, p, &err) < 0) {
		hr_log(HR_LOG_ERROR, "cannot send events to a new web page: %s", err.msg);
		page_drop(h, p);
		sweep(h);
		return;
	}
	if (h->count == 1 || h->told[HR_HUB_SERVER].turn == 0)
		h->sample_ms = hr_now_ms(); /* the figures sent to earlier pages are old */
	page_send(h, p);
	sweep(h);
	arm(h);
}

/* ---- life cycle ---- */

struct hr_hub *
hr_hub_new(struct hr_worker *w, struct hr_err *err)
{
	struct hr_hub *h = calloc(1, sizeof(*h));
	size_t i;

	if (h == NULL)
		return hr_err_null(err);
	h->w = w;
	h->timer_kind = HR_HUB_TIMER;
	h->news_kind = HR_HUB_NEWS;
	h->news = -1;
	hr_buf_init(&h->scratch, HR_TOLD_MAX);
	for (i = 0; i < HR_HUB_TOLD; i++)
		hr_told_init(&h->told[i]);
	h->ep = epoll_create1(EPOLL_CLOEXEC);
	h->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->ep < 0 || h->timer < 0)
		(void)hr_err_sys(err, errno, "cannot hold streams");
	else if (watch(h, EPOLL_CTL_ADD, h->timer, EPOLLIN, &h->timer_kind, err) == 0)
		return h;
	hr_hub_free(h);
	return NULL;
}

void
hr_hub_free(struct hr_hub *h)
{
	struct hr_hub_page *p;
	size_t i;

	if (h == NULL)
		return;
	LIST_FOREACH(p, &h->pages, entry)
	{
		hr_hub_page_end(p);
		page_drop(h, p);
	}
	sweep(h);
	hr_fd_close(&h->ep);
	hr_fd_close(&h->timer);
	hr_fd_close(&h->news);
	hr_buf_done(&h->scratch);
	for (i = 0; i < HR_HUB_TOLD; i++)
		hr_told_done(&h->told[i]);
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
