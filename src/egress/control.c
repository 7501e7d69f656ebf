/* Answers the caller's side on DIR/control: a line of JSON for each request. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/process/pid.h"
#include "base/tunnel.h"
#include "egress/broker_int.h"
#include "proto/json.h"

#define LINE_MAX_BYTES (256u << 10)
#define LINGER_MS 10000

struct egress_client {
	struct egress_broker *b;
	struct hr_tunnel *tunnel;
	int fd; /* the tunnel's */
	bool follows;
	struct egress_client *next; /* the viewers' list */
};

static void
client_free(void *arg)
{
	struct egress_client *c = arg, **at;

	for (at = &c->b->viewers; *at != NULL; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	hr_tunnel_free(c->tunnel);
	free(c);
}

/* Sends each listener in a packet of its own. */
static void
hand_over(struct egress_client *c)
{
	struct egress_broker *b = c->b;
	size_t i;
	char byte;

	/* A keeper that lives would start another broker; the next box has its own network. */
	if (recv(b->held->peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0 ||
	    hr_pid_wait(b->held->box, 0))
		return;
	for (i = 0; i < b->nlisteners; i++)
		if (hr_fd_send(c->fd, "L", 1, b->listeners[i]->fd, NULL) < 0)
			return;
	egress_broker_retire(b);
}

static void
put_status(const struct egress_broker *b, struct hr_buf *out)
{
	size_t i;

	hr_buf_addf(out, "{\"ok\":true,\"pid\":%ld,\"tunnels\":%zu,\"names\":%zu,\"ports\":[",
	    (long)getpid(), b->tunnels, egress_names_count(b->names));
	for (i = 0; i < b->nlisteners; i++)
		hr_buf_addf(out, "%s%d", i > 0 ? "," : "", b->listeners[i]->port);
	hr_buf_adds(out, "]}\n");
}

static void
put_error(struct hr_buf *out, const char *text)
{
	hr_buf_addc(out, '{');
	hr_json_put_named(out, "error", text);
	hr_buf_adds(out, "}\n");
}

/* Appends the answer to a request. Returns false if nothing follows. */
static bool
act(struct egress_client *c, struct json_object *o, struct hr_buf *out)
{
	struct egress_broker *b = c->b;
	const char *op = hr_json_text_or(o, "op", "");
	struct hr_err e = {0};
	int cut;

	if (strcmp(op, "status") == 0) {
		put_status(b, out);
	} else if (strcmp(op, "reload") == 0) {
		cut = egress_broker_reload(b, &e);
		if (cut < 0)
			put_error(out, e.msg);
		else if (cut > 0)
			hr_buf_addf(out, "{\"ok\":true,\"cut\":%d}\n", cut);
		else
			hr_buf_adds(out, "{\"ok\":true}\n");
	} else if (strcmp(op, "log") == 0 && c->follows) {
		put_error(out, "this connection follows the log already");
	} else if (strcmp(op, "log") == 0) {
		egress_log_flush(b->log);
		egress_log_since(b->log, (uint64_t)hr_json_int_at(o, "from"), out);
		if (!hr_json_true_at(o, "follow"))
			return false;
		c->follows = true;
		c->next = b->viewers;
		b->viewers = c;
	} else if (strcmp(op, "handover") == 0) {
		hand_over(c);
		return false;
	} else {
		put_error(out, "op must be reload, status or log");
	}
	return true;
}

static enum hr_tunnel_look
look(void *arg, const char *p, size_t len, bool last)
{
	struct egress_client *c = arg;
	const char *end;

	(void)last;
	while ((end = memchr(p, '\n', len)) != NULL) {
		size_t n = (size_t)(end - p);
		HR_PUT struct json_object *o = NULL;
		HR_BUF(out, LINE_MAX_BYTES);

		(void)hr_json_decode(p, n, &o, NULL);
		if (!act(c, o, &out)) {
			hr_tunnel_answer(c->tunnel, hr_buf_str(&out), out.len);
			return HR_TUNNEL_OVER;
		}
		hr_tunnel_skip(c->tunnel, n + 1);
		len -= n + 1;
		if (hr_tunnel_say(c->tunnel, hr_buf_str(&out), out.len) < 0) {
			client_free(c);
			return HR_TUNNEL_OVER;
		}
	}
	return HR_TUNNEL_MORE;
}

void
egress_control_accept(struct egress_broker *b, int fd)
{
	struct egress_client *c = calloc(1, sizeof(*c));

	if (c != NULL) {
		c->b = b;
		c->fd = fd;
		c->tunnel = hr_tunnel_new(b->loop,
		    &(const struct hr_tunnel_with){.client = fd,
			.look = look,
			.ended = client_free,
			.arg = c,
			.linger_ms = LINGER_MS,
			.half_ms = LINGER_MS,
			.room = LINE_MAX_BYTES},
		    NULL);
	}
	if (c == NULL || c->tunnel == NULL) {
		free(c);
		hr_fd_close(&fd);
	}
}

void
egress_control_line(void *broker, const char *line, size_t len)
{
	struct egress_broker *b = broker;
	struct egress_client *c, *next;

	for (c = b->viewers; c != NULL; c = next) {
		next = c->next;
		/* a viewer that reads nothing loses its connection, not the box its broker */
		if (hr_tunnel_say(c->tunnel, line, len) < 0)
			client_free(c);
	}
}
