/* Serves GET /handrail/v1/events: the sandboxes' events, as a page of JSON, or as a stream of
 * server-sent events that resumes where its client left it. A key sees its own sandboxes, or all if
 * it asks for them and has the operator's scope. A stream keeps only the number of the last event
 * it sent: events that a slow client has not read wait in the store, and those dropped there are
 * reported as a gap. */
#include "config.h"

#include "fleet/api/api_int.h"
#include "fleet/fleet_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/json.h"

#define SHOWN 50
#define PAGE_MAX 1000
#define STREAM_PAGE 100
#define PAGE_BYTES (1u << 20) /* approximate bytes of a page */
#define STREAMS_MAX 64
#define STREAMS_OF_KEY 8
#define BEAT_S 15 /* seconds between lines that detect clients which have left */

struct hr_fleet_stream {
	struct hr_fleet_stream *next; /* next stream in the fleet's list */
	struct hr_fleet *f;
	int64_t owner;   /* the requesting key */
	int64_t of;      /* the key whose sandboxes are shown; 0: all keys */
	int64_t after;   /* number of the last event sent; -1: start with the newest ones */
	bool probe;      /* true: send a line to detect a lost client */
	bool over;       /* another key has taken the stream's place */
	uint64_t alerts; /* number of the alerts' changes already sent */
	char id[HR_FLEET_ID];
	char api_key[128];
	struct hr_fleet_console *console; /* NULL: the key itself authenticated the client */
	struct hr_signin signed_in;
};

/* The parameters of a request. */
struct choice {
	int64_t of, after, limit;
	char id[HR_FLEET_ID];
};

/* ---- parameters ---- */

/* Reads a number that is not negative; "" leaves *to alone. Returns -1 if the text is not a
 * number. */
static int
read_number(const char *text, int64_t *to)
{
	char *end;
	long long n;

	if (*text == '\0')
		return 0;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (*end != '\0' || errno != 0 || n < 0 || strspn(text, "0123456789") != strlen(text))
		return -1;
	*to = n;
	return 0;
}

/* Reads the parameters. Returns 0, or -1 after it has answered. */
static int
choose(struct hr_fleet_call *c, struct choice *ret)
{
	HR_BUF(all, HR_FLEET_QUERY_MAX);
	HR_BUF(after, HR_FLEET_QUERY_MAX);
	HR_BUF(limit, HR_FLEET_QUERY_MAX);
	HR_BUF(id, HR_FLEET_QUERY_MAX);
	const char *is_all = hr_fleet_query(&all, c->query, "all");
	const char *is_after = hr_fleet_query(&after, c->query, "after");
	const char *is_limit = hr_fleet_query(&limit, c->query, "limit");
	const char *is_id = hr_fleet_query(&id, c->query, "runtime_id");

	*ret = (struct choice){.of = c->key.id, .after = -1, .limit = SHOWN};
	if (strcmp(is_all, "true") == 0)
		ret->of = 0;
	/* a browser that reconnects names its last event in the header */
	if (read_number(is_after, &ret->after) != 0 ||
	    read_number(c->q->last_event_id, &ret->after) != 0)
		return hr_fleet_say(c->a, 400, "after and Last-Event-ID must be ids of events");
	if (read_number(is_limit, &ret->limit) != 0 || ret->limit < 1 || ret->limit > PAGE_MAX)
		return hr_fleet_say(c->a, 400, "limit must be a number from 1 to 1000");
	if (strlen(is_id) >= sizeof(ret->id))
		return hr_fleet_say(c->a, 404, "Runtime not found");
	if (ret->of == 0 && (c->key.scopes & HR_SCOPE_ADMIN) == 0)
		return hr_fleet_say(c->a, 403, "this key is not for that");
	(void)snprintf(ret->id, sizeof(ret->id), "%s", is_id);
	return 0;
}

static const char *
id_or_all(const char *id)
{
	return *id != '\0' ? id : NULL;
}

/* ---- a page ---- */

static void
put_paged(void *arg, int64_t seq, int64_t at, const char *id, const char *what, const char *detail)
{
	struct hr_buf *b = arg;

	if (b->len >= PAGE_BYTES)
		return;
	hr_json_put_comma(b);
	hr_fleet_put_event(b, seq, at, id, what, detail);
}

static void
page(struct hr_fleet_call *c, const struct choice *q)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_fleet_place turn;
	struct hr_err err = {0};
	int r;

	if (!hr_fleet_call_turn(c, &turn))
		return;
	c->a->status = 200;
	hr_buf_adds(&c->a->body, "{\"events\":[");
	(void)pthread_mutex_lock(&f->lock);
	r = f->store->ops->events(f->store, q->of, id_or_all(q->id), q->after, (unsigned)q->limit,
	    put_paged, &c->a->body, &err);
	(void)pthread_mutex_unlock(&f->lock);
	hr_fleet_turn_give(f, &turn);
	hr_buf_adds(&c->a->body, "]}");
	if (r != 0)
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
}

/* ---- a stream ---- */

static unsigned
count_of(const struct hr_fleet *f, int64_t owner)
{
	const struct hr_fleet_stream *s;
	unsigned n = 0;

	for (s = f->streams; s != NULL; s = s->next)
		n += !s->over && (owner == 0 || s->owner == owner);
	return n;
}

/* Returns the oldest stream of the key that has the most streams. */
static struct hr_fleet_stream *
find_one_too_many(const struct hr_fleet *f)
{
	struct hr_fleet_stream *s, *found = NULL;
	unsigned most = 0, n;

	for (s = f->streams; s != NULL; s = s->next) {
		n = !s->over ? count_of(f, s->owner) : 0;
		if (n > 0 && n >= most) {
			most = n;
			found = s;
		}
	}
	return found;
}

/* Returns true if the key may open another stream. Otherwise the key's streams, or all of a full
 * service, probe their clients, which may be gone. If the service is full, a key with fewer streams
 * than another takes one of that key's places; the displaced client reconnects after its last
 * event. Called with the lock. */
static bool
is_room(struct hr_fleet *f, int64_t owner)
{
	unsigned of_key = count_of(f, owner);
	struct hr_fleet_stream *s = find_one_too_many(f);
	bool full = count_of(f, 0) >= STREAMS_MAX;

	if (of_key < STREAMS_OF_KEY && full && s != NULL && count_of(f, s->owner) > of_key + 1) {
		s->over = true;
		full = false;
		(void)pthread_cond_broadcast(&f->changed);
	}
	if (of_key < STREAMS_OF_KEY && !full)
		return true;
	for (s = f->streams; s != NULL; s = s->next)
		s->probe |= s->owner == owner || full;
	(void)pthread_cond_broadcast(&f->changed);
	return false;
}

static void
begin(struct hr_fleet_call *c, const struct choice *q)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_fleet_stream *s = calloc(1, sizeof(*s));

	if (s == NULL || strlen(c->q->api_key) >= sizeof(s->api_key)) {
		free(s);
		(void)hr_fleet_say(c->a, 503, "out of memory");
		return;
	}
	*s = (struct hr_fleet_stream){.f = f, .owner = c->key.id, .of = q->of, .after = q->after};
	(void)snprintf(s->id, sizeof(s->id), "%s", q->id);
	(void)snprintf(s->api_key, sizeof(s->api_key), "%s", c->q->api_key);
	if (c->q->signed_in != NULL) {
		s->console = c->api->console;
		s->signed_in = *c->q->signed_in;
	}
	(void)pthread_mutex_lock(&f->lock);
	if (!is_room(f, s->owner)) {
		(void)hr_fleet_say(c->a, 429, "this key, or the service, has many streams open");
		c->a->retry_after_s = HR_FLEET_BUSY_S;
	} else {
		s->alerts = f->alerts.changes;
		s->next = f->streams;
		f->streams = s;
		c->a->stream = s;
		c->a->status = 200;
		c->a->type = "text/event-stream";
	}
	(void)pthread_mutex_unlock(&f->lock);
	if (c->a->stream == NULL)
		free(s);
}

struct frames {
	struct hr_fleet_stream *s;
	struct hr_buf *b;
	unsigned left; /* room left in the page; 0: there may be more events */
};

static void
put_frame(void *arg, int64_t seq, int64_t at, const char *id, const char *what, const char *detail)
{
	struct frames *t = arg;

	if (t->left == 0)
		return;
	hr_buf_addf(t->b, "id: %lld\ndata: ", (long long)seq);
	hr_fleet_put_event(t->b, seq, at, id, what, detail);
	hr_buf_adds(t->b, "\n\n");
	t->s->after = seq;
	t->left = t->b->len < PAGE_BYTES ? t->left - 1 : 0;
}

/* Returns false if the key was revoked or expired, or the sign-in ended. Called with the lock. */
static bool
may_listen(const struct hr_fleet_stream *s)
{
	struct hr_fleet_key k;
	struct hr_err err = {0};

	return (s->console == NULL || hr_fleet_console_knows(s->console, &s->signed_in)) &&
	       s->f->store->ops->key_find(s->f->store, s->api_key, &k, &err) == 1 &&
	       (k.scopes & (s->of == 0 ? HR_SCOPE_ADMIN : HR_SCOPE_READ)) != 0;
}

/* Appends new events, if any. Other keys' events are skipped once: the next search starts after
 * them, and no gap is reported for those that the store has dropped. `late`: enough time has passed
 * for another process's events to arrive. Called with the lock. */
static int
tell(struct hr_fleet_stream *s, bool late, struct hr_buf *b)
{
	const struct hr_store_ops *ops = s->f->store->ops;
	struct frames t = {s, b, s->after < 0 ? SHOWN : STREAM_PAGE};
	struct hr_err err = {0};
	int64_t lost, last;

	/* alerts are not events of the store, because the store may be the broken part */
	if (s->console != NULL && s->of == 0 && s->alerts != s->f->alerts.changes) {
		s->alerts = s->f->alerts.changes;
		hr_buf_adds(b, "event: alerts\ndata: {}\n\n");
	}
	if (ops->event_ends(s->f->store, &lost, &last, &err) != 0)
		goto fail;
	if (s->after > last && ops->watch != NULL && !late)
		return 0; /* the client comes from a process that knew more events */
	/* the client fell behind, or comes from another store */
	if (s->after >= 0 && (s->after > last || lost > s->after)) {
		s->after = s->after > last ? last : lost;
		hr_buf_addf(b, "event: gap\nid: %lld\ndata: {}\n\n", (long long)s->after);
	}
	if (s->after != last && ops->events(s->f->store, s->of, id_or_all(s->id), s->after, t.left,
				    put_frame, &t, &err) != 0)
		goto fail;
	/* events newer than `last` may have been sent, too */
	if ((t.left > 0 || s->after < 0) && s->after < last)
		s->after = last;
	return 0;
fail:
	hr_log(HR_LOG_ERROR, "cannot continue a stream of events: %s", err.msg);
	return -1;
}

bool
hr_fleet_stream_next(struct hr_fleet_stream *s, struct hr_buf *b)
{
	struct hr_fleet *f = s->f;
	struct timespec until = {.tv_sec = hr_now_ms() / 1000 + BEAT_S};
	bool late = false, goes_on;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		goes_on = !f->leaving && !s->over && may_listen(s) && tell(s, late, b) == 0;
		if (!goes_on || b->len > 0)
			break;
		if (s->probe || late) {
			hr_buf_addf(b, ":\nid: %lld\n\n", (long long)s->after);
			s->probe = false;
			break;
		}
		late = pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT;
	}
	(void)pthread_mutex_unlock(&f->lock);
	return goes_on && hr_buf_check(b, NULL) == 0;
}

void
hr_fleet_stream_end(struct hr_fleet_stream *s)
{
	struct hr_fleet_stream **at;

	if (s == NULL)
		return;
	(void)pthread_mutex_lock(&s->f->lock);
	for (at = &s->f->streams; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	(void)pthread_mutex_unlock(&s->f->lock);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

void
hr_fleet_call_events(struct hr_fleet_call *c)
{
	struct choice q;

	if (choose(c, &q) != 0)
		return;
	if (strstr(c->q->accept, "text/event-stream") == NULL)
		page(c, &q);
	else
		begin(c, &q);
}
