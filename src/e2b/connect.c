/* Reads and writes frames and errors of the Connect protocol. */
#include "config.h"

#include "e2b/connect.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quote.h"

#define HEAD HR_CONNECT_HEAD

void
hr_connect_init(struct hr_connect *c, hr_connect_fn *fn, void *arg)
{
	*c = (struct hr_connect){.fn = fn, .arg = arg};
	hr_buf_init(&c->part, HEAD + HR_CONNECT_FRAME_MAX);
}

void
hr_connect_done(struct hr_connect *c)
{
	hr_buf_done(&c->part);
}

static uint32_t
length_at(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return (uint32_t)u[1] << 24 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 8 | u[4];
}

/* Sets *ret to the number of bytes missing from the frame or its head. */
static int
lacks(const struct hr_connect *c, size_t *ret, struct hr_err *err)
{
	uint32_t n;

	*ret = HEAD - c->part.len;
	if (c->part.len < HEAD)
		return 0;
	n = length_at(c->part.p);
	if ((c->part.p[0] & HR_CONNECT_COMPRESSED) != 0)
		return hr_err_set(
		    err, HR_E_PROTO, "a frame is compressed, which was not requested");
	if (n > HR_CONNECT_FRAME_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "a frame of %u bytes is too long", n);
	*ret = HEAD + n - c->part.len;
	return 0;
}

int
hr_connect_feed(struct hr_connect *c, const char *p, size_t len, struct hr_err *err)
{
	size_t want, n;
	int stop;

	for (;;) {
		if (lacks(c, &want, err) != 0)
			return -1;
		if (want > 0 && len == 0)
			return 0;
		if (c->ended)
			return hr_err_set(err, HR_E_PROTO, "a frame follows the last one");
		n = want < len ? want : len;
		hr_buf_add(&c->part, p, n);
		if (hr_buf_check(&c->part, err) != 0)
			return -1;
		p += n;
		len -= n;
		if (n < want)
			return 0;
		if (lacks(c, &want, err) != 0)
			return -1;
		if (want > 0)
			continue;
		c->ended = (c->part.p[0] & HR_CONNECT_END) != 0;
		stop = c->fn(
		    c->arg, (unsigned char)c->part.p[0], c->part.p + HEAD, c->part.len - HEAD);
		hr_buf_reset(&c->part);
		if (stop != 0)
			return 1;
	}
}

void
hr_connect_put(struct hr_buf *b, unsigned flags, const char *p, size_t len)
{
	const char head[HEAD] = {
	    (char)flags, (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len};

	hr_buf_add(b, head, sizeof(head));
	hr_buf_add(b, p, len);
}

/* ---- errors ---- */

static const struct {
	const char *word;
	int status;
} codes[] = {
    [HR_CONNECT_OK] = {"ok", 200},
    [HR_CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [HR_CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
    [HR_CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
    [HR_CONNECT_NOT_FOUND] = {"not_found", 404},
    [HR_CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [HR_CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
    [HR_CONNECT_UNIMPLEMENTED] = {"unimplemented", 501},
    [HR_CONNECT_INTERNAL] = {"internal", 500},
    [HR_CONNECT_UNKNOWN] = {"unknown", 500},
    [HR_CONNECT_UNAVAILABLE] = {"unavailable", 503},
    [HR_CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [HR_CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
};

int
hr_connect_fail(struct hr_connect_error *e, enum hr_connect_code code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
hr_connect_status(enum hr_connect_code code)
{
	return codes[code].status;
}

void
hr_connect_put_error(struct hr_buf *b, const struct hr_connect_error *e)
{
	hr_buf_addf(b, "{\"code\":\"%s\",\"message\":", codes[e->code].word);
	hr_quote_json(b, e->text, strlen(e->text));
	hr_buf_addc(b, '}');
}

void
hr_connect_put_end(struct hr_buf *b, const struct hr_connect_error *e)
{
	HR_BUF(text, 4 * sizeof(e->text) + 100);

	hr_buf_addc(&text, '{');
	if (e != NULL) {
		hr_buf_adds(&text, "\"error\":");
		hr_connect_put_error(&text, e);
	}
	hr_buf_addc(&text, '}');
	hr_connect_put(b, HR_CONNECT_END, hr_buf_str(&text), text.len);
}

bool
hr_connect_has(struct hr_span rest)
{
	return rest.len >= HEAD && rest.len - HEAD >= length_at(rest.p);
}

int
hr_connect_take(struct hr_span *rest, bool packed, unsigned *flags, struct hr_span *data,
    struct hr_connect_error *e)
{
	size_t len;

	if (rest->len < HEAD)
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
		    "protocol error: incomplete envelope: unexpected EOF");
	len = length_at(rest->p);
	*flags = (unsigned char)rest->p[0];
	if (len > rest->len - HEAD)
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
		    "protocol error: promised %zu bytes in enveloped message, got %zu bytes", len,
		    rest->len - HEAD);
	*data = (struct hr_span){rest->p + HEAD, len};
	rest->p += HEAD + len;
	rest->len -= HEAD + len;
	if ((*flags & HR_CONNECT_COMPRESSED) != 0 && !packed)
		return hr_connect_fail(e, HR_CONNECT_INTERNAL,
		    "protocol error: sent compressed message without compression support");
	if ((*flags & ~(unsigned)HR_CONNECT_COMPRESSED) != 0)
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
		    "protocol error: invalid envelope flags %u", *flags);
	return 0;
}
