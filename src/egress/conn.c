/* Serves one connection of the box: judges it, reads its first bytes, and passes it on. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/tunnel.h"
#include "egress/broker_int.h"
#include "egress/listen.h"

#define PENDING_MS 10000
#define HALF_MS 300000
#define LINGER_MS 60000
#define TLS_FIRST 0x16 /* first byte of a TLS greeting */

enum phase {
	FIRST, /* the first bytes for the server decide, or are checked */
	DNS,
	PROXY,
	PLAIN, /* a request to the proxy, in place of CONNECT */
	SOCKS,
	SOCKS_REQUEST,
	WAITS, /* expects the server, before the answer to a proxy's client */
	PASSES,
};

struct egress_conn {
	struct egress_broker *b;
	struct hr_tunnel *tunnel;
	struct egress_dial *dial;
	struct egress_wait inspected;
	enum phase phase, proxy; /* `proxy`: PROXY, PLAIN or SOCKS if such a client waits */
	enum egress_verdict verdict;
	char name[EGRESS_NAME_MAX + 1]; /* "": an address */
	struct in_addr address;
	int port;
	size_t used;               /* bytes of the client that a handler has read for good */
	struct hr_watch *deadline; /* NULL: not pending */
	union egress_address peer; /* the server; of family 0 until it is connected */
	struct egress_conn *next, **at;
};

/* ---- the life of a connection ---- */

static void
settled(struct egress_conn *c)
{
	struct egress_broker *b = c->b;

	if (c->deadline == NULL)
		return;
	hr_watch_drop(&c->deadline);
	b->pending--;
}

static void
conn_free(void *arg)
{
	struct egress_conn *c = arg;
	struct egress_broker *b = c->b;

	settled(c);
	*c->at = c->next;
	if (c->next != NULL)
		c->next->at = c->at;
	egress_dial_cancel(c->dial);
	egress_inspect_cancel(&c->inspected);
	hr_tunnel_free(c->tunnel);
	free(c);
	egress_broker_less(b);
}

static void
conn_reset(void *arg)
{
	struct egress_conn *c = arg;

	hr_tunnel_reset(c->tunnel);
	c->tunnel = NULL;
	conn_free(c);
}

/* Counts the connection to those before a verdict, of which the oldest one makes room. */
static void
pend(struct egress_conn *c)
{
	struct egress_broker *b = c->b;
	struct egress_conn *i, *oldest = NULL;

	if (c->deadline != NULL)
		return;
	for (i = b->pending == EGRESS_PENDING_MAX ? b->conns : NULL; i != NULL; i = i->next)
		oldest = i->deadline != NULL ? i : oldest;
	if (oldest != NULL)
		conn_reset(oldest);
	c->deadline = hr_loop_timer(b->loop, conn_reset, c, NULL);
	if (c->deadline == NULL)
		return;
	(void)hr_watch_arm(c->deadline, PENDING_MS, NULL);
	b->pending++;
}

static void
report(struct egress_conn *c, bool allow, const char *kind, const char *rule)
{
	egress_log_add(
	    c->b->log, &(const struct egress_event){.allow = allow,
			   .kind = kind,
			   .name = c->name[0] != '\0' ? c->name : NULL,
			   .address = c->name[0] != '\0' ? (struct in_addr){0} : c->address,
			   .port = c->port,
			   .rule = rule});
}

static const char *
kind_of(const struct egress_conn *c)
{
	return c->proxy != FIRST ? "proxy" : "tcp";
}

/* ---- the verdict ---- */

/* Finds the name that an address stands for, and the policy's decision. */
static void
ask_policy(struct egress_conn *c, struct egress_decision *ret)
{
	struct egress_broker *b = c->b;

	ret->verdict = EGRESS_DENY;
	if (c->name[0] == '\0' && egress_names_has(c->address) &&
	    !egress_names_find(b->names, c->address, c->name))
		(void)snprintf(ret->rule, sizeof(ret->rule), "no name has this address");
	else if (c->name[0] != '\0')
		egress_policy_name(b->policy, c->name, c->port, ret);
	else
		egress_policy_address(b->policy, c->address, c->port, ret);
}

static void
decide(struct egress_conn *c, struct egress_decision *ret)
{
	ask_policy(c, ret);
	c->verdict = ret->verdict;
	if (c->verdict != EGRESS_INSPECT)
		report(c, c->verdict == EGRESS_ALLOW, kind_of(c), ret->rule);
}

/* Sends the last answer to the client of a proxy. */
static void
answer(struct egress_conn *c, int status, unsigned char reply, const char *why)
{
	char text[1024], address[INET_ADDRSTRLEN] = "";
	int n;

	settled(c);
	(void)inet_ntop(AF_INET, &c->address, address, sizeof(address));
	if (c->proxy == SOCKS) {
		hr_tunnel_answer(c->tunnel, (unsigned char[10]){5, reply, 0, 1}, 10);
		return;
	}
	n = snprintf(text, sizeof(text),
	    "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
	    "network: %s:%d: %.*s\n",
	    status,
	    status == 403   ? "Forbidden"
	    : status == 502 ? "Bad Gateway"
			    : "Bad Request",
	    c->name[0] != '\0' ? c->name : address, c->port, 320, why);
	hr_tunnel_answer(c->tunnel, text, (size_t)n);
}

/* Reports to a proxy's client that its bytes follow. */
static bool
confirm(struct egress_conn *c)
{
	static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	int r = 0;

	if (c->proxy == PROXY)
		r = hr_tunnel_say(c->tunnel, ok, sizeof(ok) - 1);
	else if (c->proxy == SOCKS)
		r = hr_tunnel_say(c->tunnel, (unsigned char[10]){5, 0, 0, 1}, 10);
	c->phase = FIRST;
	return r == 0;
}

/* ---- the way out ---- */

static void
on_dialled(void *arg, int fd, const union egress_address *server, const char *why, bool refused)
{
	struct egress_conn *c = arg;

	c->dial = NULL;
	/* the rules may have changed since the dial has judged the addresses of a name */
	if (fd >= 0 && c->name[0] != '\0' && !egress_policy_result(c->b->policy, &server->any)) {
		hr_fd_close(&fd);
		refused = true;
		why = "its address is denied";
	}
	if (fd < 0) {
		report(c, false, refused ? kind_of(c) : "error", why);
		if (c->proxy != FIRST)
			answer(c, refused ? 403 : 502, refused ? 2 : 4, why);
		else
			conn_reset(c);
		return;
	}
	if (c->phase == WAITS && !confirm(c)) {
		hr_fd_close(&fd);
		conn_reset(c);
		return;
	}
	c->peer = *server;
	hr_tunnel_lead(c->tunnel, fd);
}

static bool
dial(struct egress_conn *c)
{
	struct egress_broker *b = c->b;

	c->dial = egress_dial(b->loop, &b->resolver, &b->policy, &b->secrets,
	    c->name[0] != '\0' ? c->name : NULL, c->address, c->port, on_dialled, c);
	return c->dial != NULL;
}

static void
on_inspected(void *arg, int fd, const char *why)
{
	struct egress_conn *c = arg;

	if (fd >= 0) {
		/* nginx closes with bytes unread after an early answer, which must arrive */
		hr_tunnel_no_resets(c->tunnel);
		hr_tunnel_lead(c->tunnel, fd);
		return;
	}
	report(c, false, "error", why);
	conn_reset(c);
}

/* ---- the first bytes ---- */

static enum hr_tunnel_look
over(struct egress_conn *c, const char *rule)
{
	report(c, false, kind_of(c), rule);
	conn_reset(c);
	return HR_TUNNEL_OVER;
}

static int
rule_has_secret(void *arg, const struct egress_http_rule *r)
{
	const char *const *h;

	for (h = r->headers; h != NULL && *h != NULL; h++)
		*(bool *)arg = *(bool *)arg || strstr(*h, "${secrets.") != NULL;
	return 0;
}

static int
has_credential(void *arg, const struct egress_credential *c)
{
	(void)c;
	*(bool *)arg = true;
	return 0;
}

/* Returns true if nginx would send a secret without TLS to a port that is for TLS: all but 80,
 * which the rules must name for that. */
static bool
would_show_secret(const struct egress_conn *c)
{
	bool secret = false;

	if (c->verdict == EGRESS_INSPECT && c->port != 80)
		(void)egress_policy_http(
		    c->b->policy, c->name, c->port, rule_has_secret, has_credential, &secret);
	return secret;
}

/* Lets the client's bytes pass, to the server or to nginx. */
static enum hr_tunnel_look
let_pass(struct egress_conn *c, bool tls)
{
	settled(c);
	if (!tls && would_show_secret(c))
		return over(c, "a secret is sent by TLS, or to port 80, alone");
	c->phase = PASSES;
	return c->verdict != EGRESS_INSPECT ||
		       egress_inspect(c->b->inspect, &c->inspected, c->name, c->port, tls)
		   ? HR_TUNNEL_PASS
		   : over(c, "too many hosts have rules for requests");
}

/* Returns true if a connection may have a greeting with this name. One to an address must not evade
 * the rules of a host, and is otherwise judged by the address alone. */
static bool
may_name(const struct egress_conn *c, const char *name)
{
	struct egress_decision d;

	if (name[0] == '\0' || c->name[0] != '\0')
		return name[0] == '\0' || strcmp(name, c->name) == 0;
	egress_policy_name(c->b->policy, name, c->port, &d);
	return !d.ruled || d.verdict == EGRESS_ALLOW;
}

/* Checks the name in a TLS greeting. */
static enum hr_tunnel_look
look_first(struct egress_conn *c, const char *p, size_t len, bool last)
{
	char name[EGRESS_NAME_MAX + 1], rule[2 * EGRESS_NAME_MAX];
	int r;

	if (len == 0 && !last)
		return HR_TUNNEL_MORE;
	if (len == 0 || (unsigned char)p[0] != TLS_FIRST)
		return let_pass(c, false);
	if (c->name[0] == '\0' && !egress_policy_ruled(c->b->policy))
		return let_pass(c, true);
	r = egress_hello_name(p, len, name);
	if (r == 0 && !last) {
		pend(c);
		return HR_TUNNEL_MORE;
	}
	if (r <= 0)
		return over(c, "the TLS greeting is not clear");
	if (!may_name(c, name)) {
		(void)snprintf(rule, sizeof(rule), "the TLS greeting names %s", name);
		return over(c, rule);
	}
	return let_pass(c, true);
}

/* Makes a request to the proxy one to its server, and the only one of the connection: the next one
 * could be for another server. */
static int
make_own(struct egress_conn *c, const char *p, struct egress_target *t)
{
	HR_BUF(head, 2 * HR_TUNNEL_PIECE);
	size_t used = t->used;

	c->proxy = PLAIN;
	hr_buf_add(&head, p, t->verb);
	if (p[t->path] != '/')
		hr_buf_addc(&head, '/');
	hr_buf_add(&head, p + t->path, used - t->path - 2);
	hr_buf_adds(&head, "Connection: close\r\n\r\n");
	t->used = 0;
	return hr_buf_check(&head, NULL) < 0 ? -1
					     : hr_tunnel_replace(c->tunnel, used, head.p, head.len);
}

/* Acts on the target that a proxy's client has named. */
static enum hr_tunnel_look
look_target(struct egress_conn *c, const struct egress_target *t)
{
	struct egress_decision d;

	memcpy(c->name, t->name, sizeof(c->name));
	c->address = t->address;
	c->port = t->port;
	c->used = t->used;
	if (c->name[0] == '\0' && ntohl(c->address.s_addr) >> 24 == IN_LOOPBACKNET) {
		answer(c, 403, 2, "the proxy is for connections to other machines");
		return HR_TUNNEL_OVER;
	}
	decide(c, &d);
	if (c->verdict == EGRESS_DENY) {
		answer(c, 403, 2, d.rule);
		return HR_TUNNEL_OVER;
	}
	if (c->verdict == EGRESS_INSPECT) {
		if (confirm(c))
			return c->proxy == PLAIN ? let_pass(c, false) : HR_TUNNEL_MORE;
	} else if (dial(c)) {
		settled(c);
		c->phase = WAITS;
		return HR_TUNNEL_WAIT;
	}
	conn_reset(c);
	return HR_TUNNEL_OVER;
}

static enum hr_tunnel_look
look_proxy(struct egress_conn *c, const char *p, size_t len, bool last)
{
	struct egress_target t;
	size_t used;
	int r;

	if (c->phase == SOCKS) {
		r = egress_socks_greeting(p, len, &used);
		if (r == 1) {
			c->used = used;
			c->phase = SOCKS_REQUEST;
			if (hr_tunnel_say(c->tunnel, "\5", 2) == 0)
				return HR_TUNNEL_MORE;
		} else if (r == -3) {
			settled(c);
			hr_tunnel_answer(c->tunnel, "\5\xff", 2);
			return HR_TUNNEL_OVER;
		}
	} else {
		r = c->phase == PROXY ? egress_connect_read(p, len, &t)
				      : egress_socks_request(p, len, &t);
		if (r < 0 && c->phase == PROXY) {
			r = egress_absolute_read(p, len, &t);
			if (r == 1 && make_own(c, p, &t) < 0)
				r = -2;
		}
		if (r == 1)
			return look_target(c, &t);
		if (r < 0 && (c->phase == PROXY || r == -2)) {
			answer(c, 400, 7, "this proxy takes CONNECT and requests for http://");
			return HR_TUNNEL_OVER;
		}
	}
	if (r == 0 && !last)
		return HR_TUNNEL_MORE;
	conn_reset(c);
	return HR_TUNNEL_OVER;
}

static enum hr_tunnel_look
look_dns(struct egress_conn *c, const char *p, size_t len)
{
	uint8_t out[2 + EGRESS_DNS_MAX];
	size_t n = len >= 2 ? (size_t)((uint8_t)p[0] << 8 | (uint8_t)p[1]) : 0, answered;

	if (len < 2 || len < 2 + n)
		return HR_TUNNEL_MORE;
	answered = egress_dns_reply(c->b, p + 2, n, out + 2);
	out[0] = (uint8_t)(answered >> 8);
	out[1] = (uint8_t)answered;
	c->used = 2 + n;
	if (answered > 0 && hr_tunnel_say(c->tunnel, out, answered + 2) == 0)
		return HR_TUNNEL_MORE;
	conn_reset(c);
	return HR_TUNNEL_OVER;
}

static enum hr_tunnel_look
look(void *arg, const char *p, size_t len, bool last)
{
	struct egress_conn *c = arg;
	enum hr_tunnel_look r;

	/* a client may send several requests, or the first bytes for the server, at once */
	do {
		c->used = 0;
		switch (c->phase) {
		case FIRST: return look_first(c, p, len, last);
		case DNS: r = look_dns(c, p, len); break;
		case PROXY:
		case SOCKS:
		case SOCKS_REQUEST: r = look_proxy(c, p, len, last); break;
		default: return c->phase == WAITS ? HR_TUNNEL_WAIT : HR_TUNNEL_PASS;
		}
		if (r == HR_TUNNEL_OVER)
			return r;
		hr_tunnel_skip(c->tunnel, c->used);
		len -= c->used;
	} while (r == HR_TUNNEL_MORE && c->used > 0 && len > 0);
	return r;
}

/* ---- new connections ---- */

static void
reset_socket(int fd)
{
	const struct linger none = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	hr_fd_close(&fd);
}

static struct egress_conn *
conn_new(struct egress_broker *b, int fd)
{
	struct egress_conn *c = NULL;

	if (b->tunnels == EGRESS_TUNNELS_MAX)
		egress_log_add(b->log, &(const struct egress_event){.kind = "error",
					   .rule = "the sandbox has too many connections"});
	else
		c = calloc(1, sizeof(*c));
	if (c != NULL) {
		c->b = b;
		c->inspected.fn = on_inspected;
		c->inspected.arg = c;
		c->tunnel = hr_tunnel_new(b->loop,
		    &(const struct hr_tunnel_with){.client = fd,
			.look = look,
			.ended = conn_free,
			.arg = c,
			.linger_ms = LINGER_MS,
			.half_ms = HALF_MS,
			.resets = true},
		    NULL);
	}
	if (c == NULL || c->tunnel == NULL) {
		free(c);
		reset_socket(fd);
		return NULL;
	}
	c->next = b->conns;
	c->at = &b->conns;
	if (c->next != NULL)
		c->next->at = &c->next;
	b->conns = c;
	b->tunnels++;
	b->peak = b->tunnels > b->peak ? b->tunnels : b->peak;
	return c;
}

void
egress_conn_accept(struct egress_broker *b, int fd)
{
	struct sockaddr_in to = egress_local(fd);
	bool loopback = ntohl(to.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	struct egress_decision d;
	struct egress_conn *c;

	c = conn_new(b, fd);
	if (c == NULL)
		return;
	c->address = to.sin_addr;
	c->port = ntohs(to.sin_port);
	if (c->port == EGRESS_PORT_DNS)
		c->phase = DNS;
	else if (loopback && c->port == EGRESS_PORT_PROXY)
		c->phase = c->proxy = PROXY;
	else if (loopback && c->port == EGRESS_PORT_SOCKS)
		c->phase = c->proxy = SOCKS;
	if (c->phase != FIRST) {
		pend(c);
		return;
	}
	if (!loopback)
		decide(c, &d);
	if (loopback || c->verdict == EGRESS_DENY || (c->verdict == EGRESS_ALLOW && !dial(c)))
		conn_reset(c);
	else if (c->verdict == EGRESS_INSPECT)
		pend(c);
}

void
egress_conn_out(struct egress_broker *b, int fd, const char *name, int port)
{
	struct egress_conn *c = conn_new(b, fd);

	if (c == NULL)
		return;
	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	c->port = port;
	c->phase = PASSES;
	if (!dial(c))
		conn_reset(c);
}

int
egress_conn_judge(struct egress_broker *b)
{
	struct egress_conn *c, *next;
	struct egress_decision d;
	int n = 0;

	for (c = b->conns; c != NULL; c = next) {
		next = c->next;
		if (c->verdict ==
		    EGRESS_DENY) /* not decided yet, or a way of nginx, which ends it */
			continue;
		ask_policy(c, &d);
		if (d.verdict != EGRESS_DENY && c->peer.any.sa_family != 0 && c->name[0] != '\0' &&
		    !egress_policy_result(b->policy, &c->peer.any)) {
			d.verdict = EGRESS_DENY;
			(void)snprintf(d.rule, sizeof(d.rule), "its address is denied");
		}
		if (d.verdict == EGRESS_ALLOW || d.verdict == c->verdict)
			continue;
		report(c, false, kind_of(c), d.rule);
		conn_reset(c);
		n++;
	}
	return n;
}
