#include "config.h"

#include "egress/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/text/quote.h"

#define ANSWER_MAX 8192

enum phase { GREETS, LOGS_IN, CONNECTS };

struct egress_talk {
	bool http;
	enum phase phase;
	struct hr_buf login;   /* HTTP: a header line; SOCKS5: a message; empty: none */
	struct hr_buf request; /* the last message */
	size_t n;
	unsigned char got[ANSWER_MAX]; /* the current answer */
	char why[64];
};

static void
forget(struct hr_buf *b)
{
	if (b->p != NULL)
		explicit_bzero(b->p, b->room);
	hr_buf_done(b);
}

void
egress_talk_free(struct egress_talk *t)
{
	if (t == NULL)
		return;
	forget(&t->login);
	forget(&t->request);
	free(t);
}

static void
put_field(struct hr_buf *b, const char *text)
{
	const size_t n = strlen(text);

	if (n > EGRESS_SOCKS_MAX)
		b->fail = HR_E_TOOLARGE;
	hr_buf_addc(b, (char)n);
	hr_buf_add(b, text, n);
}

/* Fills t->login. Room for all of it is made first, so that no copy of a password is left. */
static void
put_login(struct egress_talk *t, const char *user, const char *password)
{
	HR_BUF(plain, 1u << 14);

	(void)hr_buf_reserve(&t->login, 1u << 13);
	(void)hr_buf_reserve(&plain, 1u << 13);
	if (t->http) {
		hr_buf_addf(&plain, "%s:%s", user, password);
		hr_buf_adds(&t->login, "Proxy-Authorization: Basic ");
		hr_quote_base64(&t->login, hr_buf_str(&plain), plain.len);
		hr_buf_adds(&t->login, "\r\n");
		if (plain.fail != 0)
			t->login.fail = plain.fail;
		explicit_bzero(plain.p, plain.p != NULL ? plain.room : 0);
		return;
	}
	hr_buf_addc(&t->login, 1);
	put_field(&t->login, user);
	put_field(&t->login, password);
}

struct egress_talk *
egress_talk_new(const struct egress_proxy *p, const char *password)
{
	struct egress_talk *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->http = p->http;
	hr_buf_init(&t->login, 1u << 14);
	hr_buf_init(&t->request, 1u << 14);
	if (password != NULL)
		put_login(t, p->user, password);
	if (hr_buf_check(&t->login, NULL) == 0)
		return t;
	egress_talk_free(t);
	return NULL;
}

static int
fail(struct egress_talk *t, const char **ret_why, const char *text, unsigned code)
{
	(void)snprintf(t->why, sizeof(t->why), "egressProxy: %s", text);
	if (code > 0)
		(void)snprintf(t->why, sizeof(t->why), "egressProxy: %s %u", text, code);
	*ret_why = t->why;
	return -1;
}

/* Sends a message, for which a new connection has room. */
static int
say(struct egress_talk *t, int fd, const void *p, size_t n, const char **ret_why)
{
	t->n = 0;
	return send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n
		   ? 0
		   : fail(t, ret_why, "the connection was closed", 0);
}

int
egress_talk_start(struct egress_talk *t, int fd, const struct sockaddr *to, const char **ret_why)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)to;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)to;
	const bool v6 = to->sa_family == AF_INET6;
	const void *address = v6 ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr;
	const uint16_t port = v6 ? in6->sin6_port : in->sin_port;
	char text[INET6_ADDRSTRLEN], host[INET6_ADDRSTRLEN + 10];

	hr_buf_reset(&t->request);
	if (t->http) {
		(void)inet_ntop(to->sa_family, address, text, sizeof(text));
		(void)snprintf(
		    host, sizeof(host), v6 ? "[%s]:%u" : "%s:%u", text, (unsigned)ntohs(port));
		(void)hr_buf_reserve(&t->request, t->login.len + 256);
		hr_buf_addf(&t->request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", host, host);
		hr_buf_add(&t->request, hr_buf_str(&t->login), t->login.len);
		hr_buf_adds(&t->request, "\r\n");
	} else {
		hr_buf_add(&t->request, "\5\1\0", 3);
		hr_buf_addc(&t->request, v6 ? 4 : 1);
		hr_buf_add(&t->request, address, v6 ? 16 : 4);
		hr_buf_add(&t->request, &port, sizeof(port));
	}
	if (hr_buf_check(&t->request, NULL) < 0)
		return fail(t, ret_why, "no memory", 0);
	t->phase = t->http ? CONNECTS : GREETS;
	if (t->http)
		return say(t, fd, t->request.p, t->request.len, ret_why);
	return t->login.len > 0 ? say(t, fd, "\5\2\0\2", 4, ret_why)
				: say(t, fd, "\5\1\0", 3, ret_why);
}

static int
http_answer(struct egress_talk *t, const char **ret_why)
{
	static const char start[] = "HTTP/1.";
	unsigned status = 0;
	size_t i;

	if (t->n < 4 || memcmp(t->got + t->n - 4, "\r\n\r\n", 4) != 0)
		return 0;
	for (i = 9; i < 12 && i < t->n && t->got[i] >= '0' && t->got[i] <= '9'; i++)
		status = status * 10 + t->got[i] - '0';
	if (i < 12 || memcmp(t->got, start, sizeof(start) - 1) != 0)
		return fail(t, ret_why, "the answer is not one of HTTP", 0);
	return status / 100 == 2 ? 1
				 : fail(t, ret_why, "the connection was refused, status", status);
}

static int
socks_answer(struct egress_talk *t, int fd, const char **ret_why)
{
	const unsigned char *a = t->got;
	size_t want = 2;

	if (t->phase == CONNECTS)
		want = t->n < 5 ? 5 : a[3] == 1 ? 10 : a[3] == 4 ? 22 : 7 + (size_t)a[4];
	if (t->n < want)
		return 0;
	if (t->phase == CONNECTS)
		return a[0] != 5   ? fail(t, ret_why, "the answer is not one of SOCKS5", 0)
		       : a[1] == 0 ? 1
				   : fail(t, ret_why, "the connection was refused, reply", a[1]);
	if (t->phase == LOGS_IN ? a[1] != 0 : a[0] != 5 || (a[1] != 0 && a[1] != 2))
		return fail(t, ret_why, "username and password were refused", 0);
	if (t->phase == GREETS && a[1] == 2) {
		t->phase = LOGS_IN;
		return t->login.len > 0 ? say(t, fd, t->login.p, t->login.len, ret_why)
					: fail(t, ret_why, "a username is required", 0);
	}
	t->phase = CONNECTS;
	return say(t, fd, t->request.p, t->request.len, ret_why);
}

int
egress_talk(struct egress_talk *t, int fd, const char **ret_why)
{
	ssize_t n;
	int r = 0;

	/* read a byte at a time: the byte after the proxy's answer is the server's */
	while (r == 0 && (n = recv(fd, t->got + t->n, 1, MSG_DONTWAIT)) > 0) {
		t->n++;
		r = t->http ? http_answer(t, ret_why) : socks_answer(t, fd, ret_why);
		if (r == 0 && t->n == sizeof(t->got))
			r = fail(t, ret_why, "the answer is too long", 0);
	}
	if (r != 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return r;
	return fail(t, ret_why, "the connection was closed", 0);
}
