/* Handles messages from workers: a table of the messages, their permitted senders, and their
 * handlers. 'S', 'N' and 'K' carry text, parts of which become single arguments of a command
 * line. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/channel.h"
#include "supervisor/ready.h"
#include "supervisor/server.h"

static void
on_full(struct hr_server *s, struct hr_pool_worker *w, const char *p, size_t len)
{
	(void)s;
	(void)p;
	(void)len;
	hr_pool_full(w->pool);
}

/* Sends sums of the keys to a worker, which other processes of its account cannot inspect. */
static void
put_keys(struct hr_server *s, const char *p, size_t len, struct hr_buf *ret)
{
	uint32_t from = 0;

	if (len == sizeof(from))
		memcpy(&from, p, sizeof(from));
	hr_keys_tell(&s->site.keys, from, HR_CHANNEL_MAX - 1, ret);
}

static void
on_static(struct hr_server *s, struct hr_pool_worker *w, const char *p, size_t len)
{
	char dir[HR_CHANNEL_MAX];

	if (memchr(p, '\0', len) != NULL) {
		hr_channel_give_static(&w->channel, -1, "the directory's name contains a NUL byte");
		return;
	}
	memcpy(dir, p, len);
	dir[len] = '\0';
	hr_static_sessions_new(&s->static_sessions, w, dir);
}

static void
on_session_new(struct hr_server *s, struct hr_pool_worker *w, const char *p, size_t len)
{
	hr_sessions_new(&s->sessions, w, p, len);
}

static void
on_session_kill(struct hr_server *s, struct hr_pool_worker *w, const char *p, size_t len)
{
	hr_sessions_kill(&s->sessions, w, p, len);
}

static void
put_sessions(struct hr_server *s, const char *p, size_t len, struct hr_buf *ret)
{
	(void)p;
	(void)len;
	hr_sessions_list(&s->sessions, ret);
}

/* Parses a number from 0 to 100, or nothing. */
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
put_ready(struct hr_server *s, const char *p, size_t len, struct hr_buf *ret)
{
	struct hr_monitor *m = &s->monitor;
	unsigned percent;

	hr_monitor_look(m);
	if (percent_of(p, len, &percent))
		hr_monitor_disk(m, percent);
	hr_ready_json(ret, s);
}

static void
put_alerts(struct hr_server *s, const char *p, size_t len, struct hr_buf *ret)
{
	(void)p;
	(void)len;
	hr_alerts_history(ret, &s->alerts);
}

/* Sends log lines from a number on (invalid: 0, all). The form with '!' returns the number of the
 * next line, and a descriptor that becomes readable when there are more lines. */
static void
on_log(struct hr_server *s, struct hr_pool_worker *w, const char *p, size_t len)
{
	char number[32] = "";
	struct hr_err err = {0};
	HR_BUF(text, HR_CHANNEL_ANSWER_MAX);
	int news = -1;

	if (len < sizeof(number))
		memcpy(number, p, len);
	/* leaves room for the rest of the response */
	hr_loglines_put(&s->log_lines, strtoull(number, NULL, 10),
	    number[0] == '!' ? 0 : HR_CHANNEL_ANSWER_MAX - 256, &text);
	if (number[0] == '!') {
		news = hr_loglines_news(&s->log_lines, &err);
		if (news < 0)
			hr_log(HR_LOG_WARNING, "web pages get new log lines late: %s", err.msg);
	}
	hr_channel_give(&w->channel, HR_CHANNEL_LOG_ANSWER, &text, news);
}

/* masks of pools, by index */
#define ACTIONS (1u << 2)
#define ANY (~0u)

static const struct message {
	char type;
	unsigned pools; /* mask of the pools whose workers may send it */
	bool has_text;
	void (*fn)(struct hr_server *s, struct hr_pool_worker *w, const char *p, size_t len);
	/* type of an immediate answer, in place of `fn` */
	char answer;
	void (*put)(struct hr_server *s, const char *p, size_t len, struct hr_buf *ret);
} messages[] = {
    {HR_CHANNEL_KEYS, ANY, true, NULL, HR_CHANNEL_KEYS_ANSWER, put_keys},
    {HR_CHANNEL_FULL, ANY, false, on_full, 0, NULL},
    {HR_CHANNEL_STATIC, ACTIONS, true, on_static, 0, NULL},
    {HR_CHANNEL_READY, ANY, true, NULL, HR_CHANNEL_READY_ANSWER, put_ready},
    {HR_CHANNEL_SESSION_NEW, ACTIONS, true, on_session_new, 0, NULL},
    {HR_CHANNEL_SESSION_KILL, ACTIONS, true, on_session_kill, 0, NULL},
    {HR_CHANNEL_SESSIONS, ANY, false, NULL, HR_CHANNEL_SESSIONS_ANSWER, put_sessions},
    {HR_CHANNEL_ALERTS, ANY, false, NULL, HR_CHANNEL_ALERTS_ANSWER, put_alerts},
    {HR_CHANNEL_LOG, ANY, true, on_log, 0, NULL},
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

bool
hr_server_request(void *server, struct hr_pool_worker *w, const char *packet, size_t len)
{
	const struct message *m = message_find(w, packet, len);
	HR_BUF(text, HR_CHANNEL_ANSWER_MAX);

	if (m == NULL)
		return false;
	if (m->fn != NULL) {
		m->fn(server, w, packet + 1, len - 1);
		return true;
	}
	m->put(server, packet + 1, len - 1, &text);
	hr_channel_give(&w->channel, m->answer, &text, -1);
	return true;
}
