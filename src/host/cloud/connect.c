/* Reads and writes frames of the Connect protocol. */
#include "config.h"

#include "host/cloud/connect.h"

#include <stdint.h>

#define HEAD 5
#define COMPRESSED 1

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
	if ((c->part.p[0] & COMPRESSED) != 0)
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
