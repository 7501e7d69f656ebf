/* Messages of workers. 'S', 'N' and 'K' carry text, parts of which are handed on as single words of
 * a command line. */
#include "config.h"

#include "supervisor/channel.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "proto/channel.h"
#include "supervisor/ready.h"
#include "supervisor/server.h"

static void
on_full(struct hr_pool_worker *w, const char *p, size_t len)
{
	(void)p;
	(void)len;
	hr_pool_full(w->pool);
}

/* Who asks has hidden itself from the others of its account. */
static void
on_keys(struct hr_pool_worker *w, const char *p, size_t len)
{
	struct hr_buf text;
	uint32_t from = 0;

	if (len == sizeof(from))
		memcpy(&from, p, sizeof(from));
	hr_buf_init(&text, HR_CHANNEL_MAX);
	hr_keys_tell(&w->pool->server->keys, from, HR_CHANNEL_MAX - 1, &text);
	hr_channel_say(w, HR_CHANNEL_KEYS_ANSWER, &text);
	hr_buf_done(&text);
}

static void
on_static(struct hr_pool_worker *w, const char *p, size_t len)
{
	char dir[HR_CHANNEL_MAX];

	if (memchr(p, '\0', len) != NULL) {
		hr_channel_give_static(w, -1, "the directory's name holds a NUL");
		return;
	}
	memcpy(dir, p, len);
	dir[len] = '\0';
	hr_static_sessions_new(&w->pool->server->static_sessions, w, dir);
}

static void
on_session_new(struct hr_pool_worker *w, const char *p, size_t len)
{
	hr_sessions_new(&w->pool->server->sessions, w, p, len);
}

static void
on_session_kill(struct hr_pool_worker *w, const char *p, size_t len)
{
	hr_sessions_kill(&w->pool->server->sessions, w, p, len);
}

static void
on_sessions(struct hr_pool_worker *w, const char *p, size_t len)
{
	struct hr_buf text;

	(void)p;
	(void)len;
	hr_buf_init(&text, HR_CHANNEL_ANSWER_MAX);
	hr_sessions_list(&w->pool->server->sessions, &text);
	hr_channel_say(w, HR_CHANNEL_SESSIONS_ANSWER, &text);
	hr_buf_done(&text);
}

/* A number from 0 to 100, or nothing. */
static bool
percent_of(const char *p, size_t len, unsigned *ret)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < len && i < 3 && p[i] >= '0' && p[i] <= '9'; i++)
		n = 10 * n + (unsigned)(p[i] - '0');
	*ret = n;
	return len > 0 && i == len && n <= 100;
}

static void
on_ready(struct hr_pool_worker *w, const char *p, size_t len)
{
	struct hr_monitor *m = &w->pool->server->monitor;
	struct hr_err err = {0};
	struct hr_buf b;
	unsigned percent;

	hr_buf_init(&b, HR_CHANNEL_ANSWER_MAX);
	hr_buf_addc(&b, HR_CHANNEL_READY_ANSWER);
	hr_monitor_look(m);
	if (percent_of(p, len, &percent))
		hr_monitor_disk(m, percent);
	hr_ready_json(&b, w->pool->server);
	if (hr_buf_check(&b, &err) < 0 || hr_fd_send(w->channel, b.p, b.len, -1, &err) < 0)
		hr_log(HR_LOG_WARNING, "%s: readiness: %s", w->child.name, err.msg);
	hr_buf_done(&b);
}

static void
on_alerts(struct hr_pool_worker *w, const char *p, size_t len)
{
	struct hr_buf text;

	(void)p;
	(void)len;
	hr_buf_init(&text, HR_CHANNEL_ANSWER_MAX);
	hr_alerts_history(&text, &w->pool->server->alerts);
	hr_channel_say(w, HR_CHANNEL_ALERTS_ANSWER, &text);
	hr_buf_done(&text);
}

/* pools, by their index */
#define ACTIONS (1u << 2)
#define ANY (~0u)

static const struct message {
	char type;
	unsigned pools; /* who may send it */
	bool has_text;
	void (*fn)(struct hr_pool_worker *w, const char *p, size_t len);
} messages[] = {
    {HR_CHANNEL_KEYS, ANY, true, on_keys},
    {HR_CHANNEL_FULL, ANY, false, on_full},
    {HR_CHANNEL_STATIC, ACTIONS, true, on_static},
    {HR_CHANNEL_READY, ANY, true, on_ready},
    {HR_CHANNEL_SESSION_NEW, ACTIONS, true, on_session_new},
    {HR_CHANNEL_SESSION_KILL, ACTIONS, true, on_session_kill},
    {HR_CHANNEL_SESSIONS, ANY, false, on_sessions},
    {HR_CHANNEL_ALERTS, ANY, false, on_alerts},
};

static const struct message *
message_find(const struct hr_pool_worker *w, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const struct message *m = &messages[i];

		if (m->type == p[0] && (m->pools & 1u << w->pool->index) != 0 &&
		    (m->has_text || len == 1))
			return m;
	}
	return NULL;
}

static void
channel_readable(void *arg)
{
	struct hr_pool_worker *w = arg;
	char packet[HR_CHANNEL_MAX];
	const struct message *m;
	struct hr_err err = {0};
	ssize_t n = hr_fd_recv(w->channel, packet, sizeof(packet), NULL, &err);

	if (n < 0 && err.sys == EAGAIN)
		return;
	m = n > 0 ? message_find(w, packet, (size_t)n) : NULL;
	if (m != NULL) {
		m->fn(w, packet + 1, (size_t)n - 1);
		return;
	}
	/* the worker then ends after its request, and another one takes its place */
	if (n > 0)
		hr_log(HR_LOG_ERROR, "%s sent a message of %zd bytes that it may not send (0x%02x)",
		    w->child.name, n, (unsigned char)packet[0]);
	hr_channel_close(w);
}

int
hr_channel_open(struct hr_pool_worker *w, int *ret_child, struct hr_err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return hr_err_sys(err, errno, "channel");
	w->channel = pair[0];
	/* only our end: a worker may wait for its answer, we never wait for a worker */
	if (hr_fd_nonblock(pair[0], true, err) == 0)
		w->channel_watch =
		    hr_loop_readable(w->pool->server->loop, pair[0], channel_readable, w, err);
	if (w->channel_watch == NULL) {
		hr_fd_close(&w->channel);
		hr_fd_close(&pair[1]);
		return -1;
	}
	*ret_child = pair[1];
	return 0;
}

int
hr_channel_adopt(struct hr_pool_worker *w, int fd, struct hr_err *err)
{
	w->channel_watch = hr_loop_readable(w->pool->server->loop, fd, channel_readable, w, err);
	if (w->channel_watch == NULL)
		return -1;
	w->channel = fd;
	return 0;
}

void
hr_channel_close(struct hr_pool_worker *w)
{
	hr_watch_free(w->channel_watch);
	w->channel_watch = NULL;
	hr_fd_close(&w->channel);
}

struct hr_pool_worker *
hr_channel_find(const struct hr_server *s, int slot, pid_t pid)
{
	struct hr_pool_worker *w;
	unsigned i;

	for (i = 0; i < HR_SERVER_POOLS; i++) {
		LIST_FOREACH(w, &s->pools[i].workers, entry)
		{
			if (w->slot == slot && w->child.pid == pid && w->channel >= 0)
				return w;
		}
	}
	return NULL;
}

void
hr_channel_say(struct hr_pool_worker *w, char type, const struct hr_buf *text)
{
	struct hr_err err = {0};
	struct hr_buf b;

	hr_buf_init(&b, HR_CHANNEL_ANSWER_MAX);
	hr_buf_addc(&b, type);
	hr_buf_add(&b, hr_buf_str(text), text->len);
	if (hr_buf_check(text, &err) < 0 || hr_buf_check(&b, &err) < 0 ||
	    hr_fd_send(w->channel, b.p, b.len, -1, &err) < 0)
		hr_log(HR_LOG_WARNING, "%s: answer '%c': %s", w->child.name, type, err.msg);
	hr_buf_done(&b);
}

void
hr_channel_give_static(struct hr_pool_worker *w, int sock, const char *reason)
{
	struct hr_err err = {0};
	struct hr_buf b;

	hr_buf_init(&b, HR_CHANNEL_ANSWER_MAX);
	hr_buf_addc(&b, HR_CHANNEL_STATIC_ANSWER);
	if (reason != NULL)
		hr_buf_adds(&b, reason);
	if (hr_buf_check(&b, &err) < 0 ||
	    hr_fd_send(w->channel, b.p, b.len, reason == NULL ? sock : -1, &err) < 0)
		hr_log(HR_LOG_WARNING, "%s: static session: %s", w->child.name, err.msg);
	hr_buf_done(&b);
}
