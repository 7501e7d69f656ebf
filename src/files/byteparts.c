/* Writes the head of each range, its bytes and the end. */
#include "config.h"

#include "files/byteparts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/random.h"
#include "base/text/quote.h"
#include "files/filebody.h"

#define BOUNDARY 30 /* random bytes, as Go takes */
#define STARLETTE_BOUNDARY 13

struct body {
	int fd;
	bool starlette;
	char boundary[2 * BOUNDARY + 1];
	const char *type; /* borrowed */
	off_t size;
	size_t n;
	struct hr_bytepart part[];
};

static void
put_head(struct hr_buf *b, const struct body *k, size_t i)
{
	const struct hr_bytepart *p = &k->part[i];
	HR_BUF(range, 128);

	hr_buf_addf(&range, "Content-Range: bytes %lld-%lld/%lld\r\n", (long long)p->from,
	    (long long)(p->from + p->len - 1), (long long)k->size);
	hr_buf_addf(b, "%s--%s\r\n", i == 0 ? "" : "\r\n", k->boundary);
	if (k->starlette)
		hr_buf_addf(b, "Content-Type: %s\r\n%s\r\n", k->type, hr_buf_str(&range));
	else
		hr_buf_addf(b, "%sContent-Type: %s\r\n\r\n", hr_buf_str(&range), k->type);
}

static void
put_end(struct hr_buf *b, const struct body *k)
{
	hr_buf_addf(b, "\r\n--%s--%s", k->boundary, k->starlette ? "" : "\r\n");
}

static int
send_all(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	const struct body *k = arg;
	HR_BUF(text, 4096);
	void *body;
	size_t i;
	int fd, r;

	for (i = 0; i < k->n; i++) {
		hr_buf_reset(&text);
		put_head(&text, k, i);
		if (hr_buf_check(&text, err) < 0 || sink->write(sink, text.p, text.len) < 0)
			return -1;
		fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return hr_err_sys(err, errno, "cannot read the file");
		body = hr_filebody_new(fd, k->part[i].from, k->part[i].len);
		if (body == NULL)
			return hr_err_nomem(err);
		r = hr_filebody_send(body, sink, err);
		hr_filebody_free(body);
		if (r < 0)
			return -1;
	}
	hr_buf_reset(&text);
	put_end(&text, k);
	return hr_buf_check(&text, err) == 0 ? sink->write(sink, text.p, text.len) : -1;
}

static void
body_free(void *arg)
{
	struct body *k = arg;

	hr_fd_close(&k->fd);
	free(k);
}

const char *
hr_byteparts_start(int *fd, off_t size, const char *type, const struct hr_bytepart *parts, size_t n,
    bool starlette, struct hr_stream *ret)
{
	static char content_type[sizeof("multipart/byteranges; boundary=") + 2 * BOUNDARY];
	struct body *k = calloc(1, sizeof(*k) + n * sizeof(*parts));
	unsigned char random[BOUNDARY];
	HR_BUF(text, (n + 1) * 1024);
	size_t i;

	if (k == NULL || hr_random(random, sizeof(random), NULL) < 0) {
		free(k);
		return NULL;
	}
	*k = (struct body){.starlette = starlette, .type = type, .size = size, .n = n};
	memcpy(k->part, parts, n * sizeof(*parts));
	hr_quote_hex(k->boundary, random, starlette ? STARLETTE_BOUNDARY : BOUNDARY);
	*ret = (struct hr_stream){.send = send_all, .done = body_free, .arg = k};
	for (i = 0; i < n; i++) {
		put_head(&text, k, i);
		ret->length += parts[i].len;
	}
	put_end(&text, k);
	if (hr_buf_check(&text, NULL) < 0) {
		free(k);
		return NULL;
	}
	ret->length += (int64_t)text.len;
	k->fd = *fd;
	*fd = -1;
	(void)snprintf(
	    content_type, sizeof(content_type), "multipart/byteranges; boundary=%s", k->boundary);
	return content_type;
}
