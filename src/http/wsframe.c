/* Handles frames of a WebSocket. Only a client's frames are masked; a control frame may come
 * between the fragments of a message. */
#include "config.h"

#include "http/wsframe.h"

#include <sha1.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "base/text/quote.h"

#define HEAD_MAX 14 /* maximum head of a frame */
#define MASK 4

void
hr_ws_accept(const char *key, char *ret)
{
	static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t digest[SHA1_DIGEST_LENGTH];
	HR_BUF(b, 64);
	SHA1_CTX ctx;

	SHA1Init(&ctx);
	SHA1Update(&ctx, (const uint8_t *)key, strlen(key));
	SHA1Update(&ctx, (const uint8_t *)magic, sizeof(magic) - 1);
	SHA1Final(digest, &ctx);
	hr_quote_base64(&b, digest, sizeof(digest));
	(void)snprintf(ret, 64, "%s", hr_buf_str(&b));
}

void
hr_wsframe_put(
    struct hr_buf *b, enum hr_ws_op op, const unsigned char mask[4], const void *p, size_t len)
{
	const unsigned masked = mask != NULL ? 0x80 : 0;
	const unsigned char *from = p;
	char *to;
	size_t i;

	hr_buf_addc(b, (char)(0x80 | (unsigned)op));
	if (len < 126) {
		hr_buf_addc(b, (char)(masked | len));
	} else if (len <= 0xffff) {
		hr_buf_addc(b, (char)(masked | 126));
		hr_buf_addc(b, (char)(len >> 8));
		hr_buf_addc(b, (char)len);
	} else {
		int shift;

		hr_buf_addc(b, (char)(masked | 127));
		for (shift = 56; shift >= 0; shift -= 8)
			hr_buf_addc(b, (char)((uint64_t)len >> shift));
	}
	if (mask == NULL) {
		hr_buf_add(b, p, len);
		return;
	}
	hr_buf_add(b, mask, MASK);
	to = hr_buf_reserve(b, len);
	if (to == NULL)
		return;
	for (i = 0; i < len; i++)
		to[i] = (char)(from[i] ^ mask[i & 3]);
	hr_buf_grew(b, len);
}

void
hr_wsframes_init(struct hr_wsframes *f)
{
	memset(f, 0, sizeof(*f));
	f->most = HR_WS_MESSAGE_MAX;
	hr_buf_init(&f->in, HR_WS_MESSAGE_MAX + HEAD_MAX);
	hr_buf_init(&f->message, HR_WS_MESSAGE_MAX);
}

void
hr_wsframes_done(struct hr_wsframes *f)
{
	hr_buf_done(&f->in);
	hr_buf_done(&f->message);
}

struct head {
	bool final;
	int op;
	size_t len, size; /* length of the payload; of the head itself */
};

/* Parses the head at `at`. Returns 1 with the whole frame there, or 0 if it is not complete yet. */
static int
read_head(struct head *h, const struct hr_wsframes *f, size_t at, struct hr_err *err)
{
	const size_t have = f->in.len - at;
	const unsigned char *p;
	uint64_t len;
	size_t more;

	if (have < 2)
		return 0;
	p = (const unsigned char *)f->in.p + at;
	len = p[1] & 0x7f;
	more = len == 126 ? 2 : len == 127 ? 8 : 0;
	h->final = (p[0] & 0x80) != 0;
	h->op = p[0] & 0x0f;
	h->size = 2 + more + (f->server ? MASK : 0);
	if ((p[0] & 0x70) != 0 || ((p[1] & 0x80) != 0) != f->server)
		return hr_err_set(err, HR_E_PROTO, "a frame with unknown reserved bits");
	if (h->op >= 8 && (!h->final || len > HR_WS_CONTROL_MAX || h->op > HR_WS_PONG))
		return hr_err_set(err, HR_E_PROTO, "a control frame that is none");
	if (h->op > HR_WS_BINARY && h->op < 8)
		return hr_err_set(err, HR_E_PROTO, "a frame of an unknown type");
	if (have < h->size)
		return 0;
	if (more > 0)
		for (len = 0, p += 2; more > 0; more--)
			len = len << 8 | *p++;
	if (len > f->most)
		return hr_err_set(
		    err, HR_E_TOOLARGE, "a frame of %llu bytes", (unsigned long long)len);
	h->len = (size_t)len;
	return have - h->size >= h->len;
}

static void
unmask(char *payload, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		payload[i] = (char)(payload[i] ^ payload[(ssize_t)(i % MASK) - MASK]);
}

/* Adds a part of a message. Returns 0 to continue, 1 if fn stopped. */
static int
fragment(struct hr_wsframes *f, const struct head *h, const char *p, hr_ws_message_fn *fn,
    void *arg, struct hr_err *err)
{
	int stop;

	if ((h->op == 0) != (f->op != 0))
		return hr_err_set(err, HR_E_PROTO, "a WebSocket fragment has no message");
	/* the common case avoids one copy */
	if (h->final && f->op == 0)
		return fn(arg, (enum hr_ws_op)h->op, p, h->len) != 0;
	if (f->op == 0)
		f->op = h->op;
	if (f->message.len + h->len > f->most)
		return hr_err_set(err, HR_E_TOOLARGE, "a message of too many fragments");
	hr_buf_add(&f->message, p, h->len);
	if (hr_buf_check(&f->message, err) != 0)
		return -1;
	if (!h->final)
		return 0;
	stop = fn(arg, (enum hr_ws_op)f->op, hr_buf_str(&f->message), f->message.len) != 0;
	f->op = 0;
	hr_buf_reset(&f->message);
	return stop;
}

int
hr_wsframes_feed(struct hr_wsframes *f, const char *p, size_t len, hr_ws_message_fn *fn, void *arg,
    struct hr_err *err)
{
	struct head h = {.len = 0};
	size_t n, at;
	int r = 0;

	while (r == 0) {
		/* Never keeps more than one frame. */
		n = f->in.cap - f->in.len < len ? f->in.cap - f->in.len : len;
		hr_buf_add(&f->in, p, n);
		p += n;
		len -= n;
		if (hr_buf_check(&f->in, err) != 0)
			return -1;
		at = 0;
		while (r == 0 && (r = read_head(&h, f, at, err)) == 1) {
			char *payload = f->in.p + at + h.size;

			if (f->server)
				unmask(payload, h.len);
			r = h.op >= 8 ? fn(arg, (enum hr_ws_op)h.op, payload, h.len) != 0
				      : fragment(f, &h, payload, fn, arg, err);
			at += h.size + h.len;
		}
		hr_buf_drop_front(&f->in, at); /* once: a client may send many tiny frames */
		if (len == 0)
			break;
	}
	return r;
}
