#include "config.h"

#include "egress/log.h"
#include "egress/told.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/path.h"
#include "proto/json.h"

#define FILE_MAX (4 << 20)
#define KEPT (64u << 10)
#define TEXT_MAX 1024 /* bytes of a member that the box chooses */
#define LINE_MAX_BYTES 16384
#define RECENT 64
#define SAME_MS 60000
#define NUMBER "{\"seq\":"
/* lines: a box that makes more events must not fill the disk, nor push out what it did before */
#define LINES_AT_ONCE 1000
#define LINES_PER_SECOND 50

/* An event that may be repeated. */
struct recent {
	uint64_t hash; /* 0: unused */
	char *members; /* the entry's text without number, time and count */
	int64_t until; /* hr_now_ms() */
	unsigned more; /* number of repetitions that no line has */
};

struct egress_log {
	struct hr_watch *timer; /* armed while there is a repetition */
	const char *path;
	struct egress_told told;
	int fd;
	off_t size;
	uint64_t seq;
	int64_t allowance;  /* lines, in thousandths */
	int64_t counted;    /* hr_now_ms() of the allowance */
	struct hr_buf kept; /* whole lines */
	struct recent recent[RECENT];
	void (*fn)(void *arg, const char *line, size_t len);
	void *arg;
};

static uint64_t
number(const char *line, size_t len)
{
	size_t skip = sizeof(NUMBER) - 1;

	return len > skip && memcmp(line, NUMBER, skip) == 0 ? strtoull(line + skip, NULL, 10) : 0;
}

static void
open_file(struct egress_log *l)
{
	struct stat st;

	l->fd = hr_path_open_own(l->path, O_RDWR | O_CREAT | O_APPEND, 0600, NULL);
	l->size = l->fd >= 0 && fstat(l->fd, &st) == 0 ? st.st_size : 0;
}

static void
rotate(struct egress_log *l)
{
	char old[4096];

	(void)snprintf(old, sizeof(old), "%s.1", l->path);
	hr_fd_close(&l->fd);
	(void)rename(l->path, old);
	open_file(l);
}

static void
write_line(struct egress_log *l, const char *members, unsigned count)
{
	HR_BUF(b, LINE_MAX_BYTES);
	int64_t now = hr_wall_ms();
	const char *cut;

	/* grows over restarts, too, without a look at the file */
	l->seq = (uint64_t)now * 1000 > l->seq ? (uint64_t)now * 1000 : l->seq + 1;
	hr_buf_addf(&b, NUMBER "%" PRIu64 ",\"time\":%" PRId64 ".%03d,%s,\"count\":%u}\n", l->seq,
	    now / 1000, (int)(now % 1000), members, count);
	if (hr_buf_check(&b, NULL) < 0)
		return;
	if (l->size > FILE_MAX)
		rotate(l);
	/* a full disk must not stop the box */
	if (l->fd >= 0 && hr_fd_write_full(l->fd, b.p, b.len, NULL) == 0)
		l->size += (off_t)b.len;
	if (l->kept.len + b.len > KEPT) {
		cut = memchr(l->kept.p + l->kept.len / 2, '\n', l->kept.len - l->kept.len / 2);
		hr_buf_drop_front(
		    &l->kept, cut != NULL ? (size_t)(cut + 1 - l->kept.p) : l->kept.len);
	}
	hr_buf_add(&l->kept, b.p, b.len);
	l->fn(l->arg, b.p, b.len);
}

/* Writes the repetitions of an event, and starts its next minute. */
static void
write_more(struct egress_log *l, struct recent *r)
{
	unsigned more = r->more;

	r->more = 0;
	r->until = hr_now_ms() + SAME_MS;
	if (more > 0)
		write_line(l, r->members, more);
}

static void
on_timer(void *arg)
{
	struct egress_log *l = arg;
	int64_t now = hr_now_ms(), next = 0;
	size_t i;

	for (i = 0; i < RECENT; i++) {
		if (l->recent[i].more > 0 && l->recent[i].until <= now)
			write_more(l, &l->recent[i]);
		else if (l->recent[i].more > 0 && (next == 0 || l->recent[i].until < next))
			next = l->recent[i].until;
	}
	if (next > 0)
		(void)hr_watch_arm(l->timer, next - now, NULL);
}

void
egress_log_flush(struct egress_log *l)
{
	size_t i;

	for (i = 0; i < RECENT; i++)
		write_more(l, &l->recent[i]);
	hr_watch_disarm(l->timer);
}

static void
put(struct hr_buf *b, const char *name, const char *text)
{
	if (text != NULL)
		hr_json_put_member(b, name, (struct hr_span){text, strnlen(text, TEXT_MAX)});
}

static void
describe(const struct egress_event *e, struct hr_buf *b)
{
	char address[INET_ADDRSTRLEN];

	hr_buf_addf(b, "\"verdict\":\"%s\"", e->allow ? "allow" : "deny");
	put(b, "kind", e->kind);
	put(b, "name", e->name);
	if (e->address.s_addr != 0)
		put(b, "address", inet_ntop(AF_INET, &e->address, address, sizeof(address)));
	if (e->port != 0)
		hr_buf_addf(b, ",\"port\":%d", e->port);
	put(b, "method", e->method);
	put(b, "path", e->path);
	put(b, "rule", e->rule);
}

/* Takes one line of the allowance. Returns false if there is none. */
static bool
may_write(struct egress_log *l, int64_t now)
{
	l->allowance += (now - l->counted) * LINES_PER_SECOND;
	l->counted = now;
	if (l->allowance > LINES_AT_ONCE * 1000)
		l->allowance = LINES_AT_ONCE * 1000;
	if (l->allowance < 1000)
		return false;
	l->allowance -= 1000;
	return true;
}

void
egress_log_add(struct egress_log *l, const struct egress_event *e)
{
	static const struct egress_event flood = {
	    .kind = "error", .rule = "more events than the log takes"};
	HR_BUF(b, LINE_MAX_BYTES);
	struct recent *r, *oldest = l->recent;
	int64_t now = hr_now_ms();
	uint64_t h;

	if (!e->allow && e->port != 0)
		egress_told_add(&l->told, e);
	describe(e, &b);
	if (hr_buf_check(&b, NULL) < 0)
		return;
	h = hr_hash(HR_HASH, b.p, b.len) | 1;
	for (r = l->recent; r < l->recent + RECENT; r++) {
		if (r->hash == h && strcmp(r->members, b.p) == 0)
			break;
		if (r->until < oldest->until)
			oldest = r;
	}
	if (r < l->recent + RECENT && now < r->until) {
		if (r->more++ == 0)
			on_timer(l);
		return;
	}
	if (e != &flood && !may_write(l, now)) {
		egress_log_add(l, &flood);
		return;
	}
	if (r == l->recent + RECENT) {
		r = oldest;
		write_more(l, r);
		free(r->members);
		r->members = strdup(b.p);
		r->hash = r->members != NULL ? h : 0;
		r->until = now + SAME_MS;
	} else {
		write_more(l, r);
	}
	write_line(l, b.p, 1);
}

/* Reads the end of the file, of which the last lines may be cut or damaged. */
static void
read_end(struct egress_log *l)
{
	off_t at = l->size > (off_t)KEPT / 2 ? l->size - (off_t)KEPT / 2 : 0;
	char *p = hr_buf_reserve(&l->kept, KEPT / 2), *line, *end;
	ssize_t n = p != NULL ? pread(l->fd, p, KEPT / 2, at) : -1;
	uint64_t seq;

	if (n <= 0)
		return;
	hr_buf_grew(&l->kept, (size_t)n);
	if (p[n - 1] != '\n') {
		hr_buf_addc(&l->kept, '\n');
		if (write(l->fd, "\n", 1) == 1)
			l->size++;
	}
	p = l->kept.p;
	if (at > 0 && (line = strchr(p, '\n')) != NULL)
		hr_buf_drop_front(&l->kept, (size_t)(line + 1 - p));
	for (line = l->kept.p; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		seq = number(line, (size_t)(end - line));
		l->seq = seq > l->seq ? seq : l->seq;
	}
}

struct egress_log *
egress_log_open(struct hr_loop *loop, const char *path, const char *told,
    void (*fn)(void *arg, const char *line, size_t len), void *arg, struct hr_err *err)
{
	struct egress_log *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return hr_err_null(err);
	l->path = path;
	l->told.fd = -1;
	l->allowance = LINES_AT_ONCE * 1000;
	l->counted = hr_now_ms();
	l->fn = fn;
	l->arg = arg;
	hr_buf_init(&l->kept, 2 * KEPT);
	l->timer = hr_loop_timer(loop, on_timer, l, err);
	open_file(l);
	if (l->timer == NULL || l->fd < 0) {
		if (l->fd < 0)
			(void)hr_err_sys(err, errno, "open %s", path);
		egress_log_free(l);
		return NULL;
	}
	read_end(l);
	egress_told_open(&l->told, told);
	return l;
}

void
egress_log_free(struct egress_log *l)
{
	size_t i;

	if (l == NULL)
		return;
	for (i = 0; i < RECENT; i++)
		free(l->recent[i].members);
	hr_buf_done(&l->kept);
	hr_watch_free(l->timer);
	egress_told_close(&l->told);
	hr_fd_close(&l->fd);
	free(l);
}

void
egress_log_since(const struct egress_log *l, uint64_t from, struct hr_buf *b)
{
	const char *line = hr_buf_str(&l->kept), *end;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
		if (number(line, (size_t)(end - line)) > from)
			hr_buf_add(b, line, (size_t)(end + 1 - line));
}
