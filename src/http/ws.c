/* Implements a WebSocket over a connection that libcurl makes and then hands over. */
#include "config.h"

#include "http/ws.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text/quote.h"
#include "base/random.h"
#include "http/http_int.h"

#define HEAD_MAX 65536
#define BODY_MAX (1u << 20)
#define OUT_MAX (16u << 20)
#define PIECE 65536
#define STAGED 16384
#define OPEN_TIMEOUT_S 30

struct hr_ws {
	CURL *curl;
	struct curl_slist *connect_to;
	curl_socket_t fd;
	struct hr_wsframes frames;
	struct hr_buf out;
	char staged[STAGED]; /* bytes being sent: TLS requires the same bytes at the same address
				again */
	size_t staged_len;
	struct hr_buf early; /* bytes that came with the head of the answer */
	char protocol[64];
};

void
hr_ws_free(struct hr_ws *w)
{
	if (w == NULL)
		return;
	hr_curl.easy_cleanup(w->curl);
	hr_curl.slist_free_all(w->connect_to);
	hr_wsframes_done(&w->frames);
	hr_buf_done(&w->out);
	hr_buf_done(&w->early);
	free(w);
}

void
hr_ws_refusal_done(struct hr_ws_refusal *r)
{
	hr_buf_done(&r->body);
}

const char *
hr_ws_protocol(const struct hr_ws *w)
{
	return w->protocol;
}

int
hr_ws_fd(const struct hr_ws *w)
{
	return (int)w->fd;
}

size_t
hr_ws_backlog(const struct hr_ws *w)
{
	return w->out.len + w->staged_len;
}

short
hr_ws_events(const struct hr_ws *w)
{
	return hr_ws_backlog(w) > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* ---- bytes ---- */

int
hr_ws_flush(struct hr_ws *w, struct hr_err *err)
{
	CURLcode code = CURLE_OK;
	size_t n;

	while (hr_ws_backlog(w) > 0) {
		if (w->staged_len == 0) {
			w->staged_len = w->out.len < STAGED ? w->out.len : STAGED;
			memcpy(w->staged, w->out.p, w->staged_len);
			hr_buf_drop_front(&w->out, w->staged_len);
		}
		n = 0;
		code = hr_curl.easy_send(w->curl, w->staged, w->staged_len, &n);
		if (code == CURLE_AGAIN)
			return 0;
		if (code != CURLE_OK)
			return hr_err_set(err, HR_E_GONE, "the connection ended: %s",
			    hr_curl.easy_strerror(code));
		w->staged_len -= n;
		memmove(w->staged, w->staged + n, w->staged_len);
	}
	return 0;
}

/* Returns the bytes received; 0: none at present; -1: the connection has ended. */
static ssize_t
receive(struct hr_ws *w, char *p, size_t room)
{
	size_t n = 0;
	CURLcode code = hr_curl.easy_recv(w->curl, p, room, &n);

	if (code == CURLE_AGAIN)
		return 0;
	return code == CURLE_OK && n > 0 ? (ssize_t)n : -1;
}

int
hr_ws_send(struct hr_ws *w, enum hr_ws_op op, const void *p, size_t len, struct hr_err *err)
{
	unsigned char mask[4];

	if (hr_random(mask, sizeof(mask), err) != 0)
		return -1;
	hr_wsframe_put(&w->out, op, mask, p, len);
	return hr_buf_check(&w->out, err) == 0 ? hr_ws_flush(w, err) : -1;
}

/* ---- messages ---- */

struct inbox {
	struct hr_ws *w;
	hr_ws_message_fn *fn;
	void *arg;
};

static int
on_message(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	struct inbox *in = arg;

	switch (op) {
	case HR_WS_PING: return hr_ws_send(in->w, HR_WS_PONG, p, len, NULL) != 0;
	case HR_WS_PONG: return 0;
	case HR_WS_CLOSE: return 1;
	default: return in->fn(in->arg, op, p, len);
	}
}

int
hr_ws_receive(struct hr_ws *w, hr_ws_message_fn *fn, void *arg, struct hr_err *err)
{
	struct inbox in = {w, fn, arg};
	char piece[PIECE];
	ssize_t n;
	int r = 0;

	if (w->early.len > 0) {
		r = hr_wsframes_feed(&w->frames, w->early.p, w->early.len, on_message, &in, err);
		hr_buf_reset(&w->early);
	}
	if (r != 0)
		return r;
	/* One read suffices: a TLS record is shorter than a piece, so that poll reports the
	 * rest. */
	n = receive(w, piece, sizeof(piece));
	if (n <= 0)
		return n < 0 ? 1 : 0;
	return hr_wsframes_feed(&w->frames, piece, (size_t)n, on_message, &in, err);
}

/* ---- opening ---- */

/* Waits until the connection is ready, `end` passes, or the caller gives up. */
static int
wait_until(const struct hr_ws *w, short events, int watch_fd, int64_t end, struct hr_err *err)
{
	struct pollfd p[2] = {
	    {.fd = (int)w->fd, .events = events}, {.fd = watch_fd, .events = POLLIN}};
	int64_t left = end - hr_now_ms();
	int n;

	while ((n = poll(p, 2, left > 0 ? (int)left : 0)) < 0 && errno == EINTR)
		;
	if (n < 0)
		return hr_err_sys(err, errno, "wait for a connection");
	if (p[1].revents != 0)
		return hr_err_set(err, HR_E_GONE, "given up");
	return n > 0 ? 0 : hr_err_set(err, HR_E_TIMEOUT, "no answer in time");
}

static int
put_request(struct hr_ws *w, const struct hr_http_request *req, const char *protocols, char key[32],
    struct hr_err *err)
{
	const char *host = strstr(req->url, "://");
	const char *const *h;
	unsigned char raw[16];
	HR_BUF(b, 64);
	size_t n;

	if (host == NULL)
		return hr_err_set(err, HR_E_INVAL, "no address: %.100s", req->url);
	if (hr_random(raw, sizeof(raw), err) != 0)
		return -1;
	hr_quote_base64(&b, raw, sizeof(raw));
	(void)snprintf(key, 32, "%s", hr_buf_str(&b));
	host += 3;
	n = strcspn(host, "/");
	hr_buf_addf(&w->out,
	    "GET %s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
	    host[n] != '\0' ? host + n : "/", (int)n, host, key);
	if (protocols != NULL)
		hr_buf_addf(&w->out, "Sec-WebSocket-Protocol: %s\r\n", protocols);
	for (h = req->headers; h != NULL && *h != NULL; h++)
		hr_buf_addf(&w->out, "%s\r\n", *h);
	hr_buf_adds(&w->out, "\r\n");
	return hr_buf_check(&w->out, err);
}

/* Returns a header's value in the head of an answer, or "" if it is missing. */
static void
header(const char *head, const char *name, char *ret, size_t cap)
{
	size_t n = strlen(name), len;
	const char *line;

	*ret = '\0';
	for (line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		line += strspn(line, " \t");
		len = strcspn(line, "\r\n");
		(void)snprintf(ret, cap, "%.*s", (int)len, line);
		return;
	}
}

/* Reads the body of a refusal as far as it arrives: the connection ends after it. */
static void
read_body(struct hr_ws *w, const struct hr_http_request *req, const char *head, int64_t end,
    struct hr_ws_refusal *ret)
{
	char length[32], piece[4096];
	unsigned long long want;
	ssize_t n = 0;

	header(head, "Content-Length", length, sizeof(length));
	want = length[0] != '\0' ? strtoull(length, NULL, 10) : BODY_MAX;
	want = want < BODY_MAX ? want : BODY_MAX;
	while (ret->body.len < want && n >= 0) {
		n = receive(w, piece, sizeof(piece));
		if (n > 0)
			hr_buf_add(&ret->body, piece, (size_t)n);
		else if (n == 0 && wait_until(w, POLLIN, req->watch_fd, end, NULL) != 0)
			break;
		if (hr_buf_check(&ret->body, NULL) != 0)
			break;
	}
}

static int
check_answer(struct hr_ws *w, const struct hr_http_request *req, const char *head, const char *key,
    int64_t end, struct hr_ws_refusal *ret, struct hr_err *err)
{
	char want[64], got[64];

	if (sscanf(head, "HTTP/1.%*d %ld", &ret->status) != 1) {
		ret->fault = HR_HTTP_PROTOCOL;
		return hr_err_set(err, HR_E_PROTO, "the server talks no HTTP");
	}
	if (ret->status != 101) {
		hr_buf_add(&ret->body, w->early.p, w->early.len);
		read_body(w, req, head, end, ret);
		return hr_err_set(err, HR_E_PROTO, "the server answered %ld", ret->status);
	}
	hr_ws_accept(key, want);
	header(head, "Sec-WebSocket-Accept", got, sizeof(got));
	if (strcmp(want, got) != 0) {
		ret->fault = HR_HTTP_PROTOCOL;
		return hr_err_set(err, HR_E_PROTO, "the server does not accept a WebSocket");
	}
	header(head, "Sec-WebSocket-Protocol", w->protocol, sizeof(w->protocol));
	return 0;
}

/* Sends the request and reads up to the end of the answer's head. */
static int
talk(struct hr_ws *w, const struct hr_http_request *req, const char *key, int64_t end,
    struct hr_ws_refusal *ret, struct hr_err *err)
{
	char piece[4096], *stop = NULL;
	HR_BUF(head, HEAD_MAX);
	ssize_t n;
	int r = 0;

	ret->fault = HR_HTTP_READ;
	while (r == 0 && stop == NULL) {
		r = hr_ws_flush(w, err);
		n = r == 0 ? receive(w, piece, sizeof(piece)) : 0;
		if (n < 0)
			r = hr_err_set(err, HR_E_GONE, "the server closed the connection");
		else if (n == 0 && r == 0)
			r = wait_until(w, hr_ws_events(w), req->watch_fd, end, err);
		hr_buf_add(&head, piece, n > 0 ? (size_t)n : 0);
		if (r == 0)
			r = hr_buf_check(&head, err);
		if (r == 0 && head.len > 0)
			stop = memmem(head.p, head.len, "\r\n\r\n", 4);
	}
	if (r == 0) {
		hr_buf_add(&w->early, stop + 4, head.len - (size_t)(stop + 4 - head.p));
		stop[2] = '\0';
		ret->fault = HR_HTTP_NONE;
		r = hr_buf_check(&w->early, err);
		if (r == 0)
			r = check_answer(w, req, head.p, key, end, ret, err);
	}
	return r;
}

static int
connect_websocket(struct hr_ws *w, const struct hr_http_request *req, unsigned timeout_s,
    struct hr_ws_refusal *ret, struct hr_err *err)
{
	char text[CURL_ERROR_SIZE] = "";
	CURLcode code;
	int bad = 0;

	bad |= hr_http_set_peer(w->curl, req, &w->connect_to) != 0;
	bad |= hr_curl.easy_setopt(w->curl, CURLOPT_ERRORBUFFER, text) != CURLE_OK;
	bad |= hr_curl.easy_setopt(w->curl, CURLOPT_CONNECT_ONLY, 1L) != CURLE_OK;
	bad |= hr_curl.easy_setopt(w->curl, CURLOPT_HTTPPROXYTUNNEL, 1L) != CURLE_OK;
	bad |= hr_curl.easy_setopt(w->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) !=
	       CURLE_OK;
	bad |= hr_curl.easy_setopt(w->curl, CURLOPT_CONNECTTIMEOUT, (long)timeout_s) != CURLE_OK;
	if (bad != 0)
		return hr_err_nomem(err);
	code = hr_curl.easy_perform(w->curl);
	(void)hr_curl.easy_setopt(w->curl, CURLOPT_ERRORBUFFER, NULL);
	if (code != CURLE_OK) {
		ret->fault = hr_http_fault_of(code, w->curl);
		return hr_err_set(
		    err, HR_E_GONE, "%s", text[0] != '\0' ? text : hr_curl.easy_strerror(code));
	}
	if (hr_curl.easy_getinfo(w->curl, CURLINFO_ACTIVESOCKET, &w->fd) != CURLE_OK ||
	    w->fd == CURL_SOCKET_BAD)
		return hr_err_set(err, HR_E_SYS, "libcurl gives no connection");
	return 0;
}

struct hr_ws *
hr_ws_open(const struct hr_http_request *req, const char *protocols, struct hr_ws_refusal *ret,
    struct hr_err *err)
{
	unsigned timeout_s = req->timeout_s > 0 ? req->timeout_s : OPEN_TIMEOUT_S;
	int64_t end = hr_now_ms() + (int64_t)timeout_s * 1000;
	struct hr_ws *w = calloc(1, sizeof(*w));
	char key[32];

	memset(ret, 0, sizeof(*ret));
	hr_buf_init(&ret->body, BODY_MAX);
	ret->fault = HR_HTTP_OTHER;
	if (hr_curl_load(err) != 0) {
		free(w);
		return NULL;
	}
	if (w == NULL || (w->curl = hr_curl.easy_init()) == NULL) {
		free(w);
		return hr_err_null(err);
	}
	hr_wsframes_init(&w->frames);
	hr_buf_init(&w->out, OUT_MAX);
	hr_buf_init(&w->early, HEAD_MAX);
	if (connect_websocket(w, req, timeout_s, ret, err) == 0 &&
	    put_request(w, req, protocols, key, err) == 0 && talk(w, req, key, end, ret, err) == 0)
		return w;
	hr_ws_free(w);
	return NULL;
}
