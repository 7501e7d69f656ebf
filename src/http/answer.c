/* Lines of the head and of chunks are collected in one buffer; bytes of the body go directly to the
 * sink. */
#include "config.h"

#include "http/answer.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text/percent.h"

/* A body that goes into the answer has so many bytes per millisecond at least. */
#define SLOWEST 16

void
hr_http_reader_init(
    struct hr_http_reader *h, const struct hr_http_request *r, struct hr_http_answer *a)
{
	memset(h, 0, sizeof(*h));
	h->r = r;
	h->a = a;
	hr_buf_init(&h->line, HR_HTTP_HEAD_MAX);
}

void
hr_http_reader_done(struct hr_http_reader *h)
{
	hr_buf_done(&h->line);
}

void
hr_http_keep(char *to, size_t cap, const char *p, size_t len)
{
	for (; len > 0 && isspace((unsigned char)*p); p++)
		len--;
	for (; len > 0 && isspace((unsigned char)p[len - 1]); len--)
		;
	if (len >= cap)
		len = cap - 1;
	memcpy(to, p, len);
	to[len] = '\0';
}

static int
broken(struct hr_http_reader *h, struct hr_err *err, const char *what)
{
	h->a->fault = HR_HTTP_PROTOCOL;
	return hr_err_set(err, HR_E_GONE, "%s", what);
}

/* Parses a line like "HTTP/1.1 404 Not Found". */
static int
status_line(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err)
{
	size_t at = 9;

	if (len < 12 || memcmp(p, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)p[7]) ||
	    p[8] != ' ')
		return broken(h, err, "the answer is not HTTP/1");
	h->a->status = 0;
	for (; at < 12; at++) {
		if (!isdigit((unsigned char)p[at]))
			return broken(h, err, "the answer's status is not a number");
		h->a->status = h->a->status * 10 + p[at] - '0';
	}
	if (len > 12 && p[12] != ' ')
		return broken(h, err, "the answer's status is not a number");
	hr_http_keep(h->a->reason, sizeof(h->a->reason), p + at, len - at);
	h->has_length = h->chunked = false;
	h->part = HR_HTTP_HEAD;
	return 0;
}

/* Parses a number in that base, followed only by blanks or by `stop` and anything. */
static int
number(const char *p, size_t len, int base, char stop, uint64_t *ret)
{
	size_t i = 0;
	uint64_t n = 0;

	for (; i < len && hr_hex_value(p[i]) >= 0; i++) {
		int digit = hr_hex_value(p[i]);

		if (digit >= base || n > (UINT64_MAX >> 8))
			return -1;
		n = n * (uint64_t)base + (uint64_t)digit;
	}
	if (i == 0)
		return -1;
	*ret = n;
	for (; i < len && (p[i] == ' ' || p[i] == '\t'); i++)
		;
	return i == len || (stop != '\0' && p[i] == stop) ? 0 : -1;
}

bool
hr_http_field(const char *p, size_t len, const char *name, char *value, size_t cap)
{
	size_t n = strlen(name);

	if (len <= n || p[n] != ':' || strncasecmp(p, name, n) != 0)
		return false;
	hr_http_keep(value, cap, p + n + 1, len - n - 1);
	return true;
}

static int
head_line(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err)
{
	char value[64];
	uint64_t n;

	if (h->r->header != NULL && hr_http_field(p, len, h->r->header, value, sizeof(value)))
		memcpy(h->a->header, value, sizeof(value));
	if (hr_http_field(p, len, "Content-Length", value, sizeof(value))) {
		if (strlen(value) == sizeof(value) - 1 ||
		    number(value, strlen(value), 10, '\0', &n) != 0 ||
		    (h->has_length && n != h->length))
			return broken(h, err, "the answer's Content-Length is not a number");
		h->has_length = true;
		h->length = n;
	} else if (hr_http_field(p, len, "Transfer-Encoding", value, sizeof(value))) {
		if (strcasecmp(value, "chunked") != 0)
			return broken(h, err, "the answer's Transfer-Encoding is not known");
		h->chunked = true;
	}
	return 0;
}

static void
head_ended(struct hr_http_reader *h)
{
	long s = h->a->status;

	if (s < 200) /* this is an interim answer, and another one follows */
		h->part = HR_HTTP_STATUS_LINE;
	else if (s == 204 || s == 304 || strcmp(h->r->method, "HEAD") == 0)
		h->part = HR_HTTP_DONE;
	else if (h->chunked)
		h->part = HR_HTTP_CHUNK;
	else if (!h->has_length)
		h->part = HR_HTTP_UNTIL_END;
	else
		h->part = h->length > 0 ? HR_HTTP_LENGTH : HR_HTTP_DONE;
	h->left = h->length;
	if (h->chunked || !h->has_length)
		h->length = 0;
}

static int
chunk_line(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err)
{
	if (number(p, len, 16, ';', &h->left) != 0)
		return broken(h, err, "the size of a chunk of the answer is not a number");
	h->part = h->left > 0 ? HR_HTTP_DATA : HR_HTTP_TRAILER;
	return 0;
}

/* Handles one line, including its end. */
static int
line(struct hr_http_reader *h, struct hr_err *err)
{
	const char *p = h->line.p;
	size_t whole = h->line.len, len = whole - 1;

	if (len > 0 && p[len - 1] == '\r')
		len--;
	if (memchr(p, '\0', len) != NULL)
		return broken(h, err, "there is a NUL in the answer's head");
	switch (h->part) {
	case HR_HTTP_STATUS_LINE:
		if (status_line(h, p, len, err) != 0)
			return -1;
		break;
	case HR_HTTP_HEAD:
		if (len == 0)
			head_ended(h);
		else if (head_line(h, p, len, err) != 0)
			return -1;
		break;
	case HR_HTTP_CHUNK: return chunk_line(h, p, len, err);
	case HR_HTTP_DATA_END:
		h->part = HR_HTTP_CHUNK;
		return len == 0 ? 0 : broken(h, err, "a chunk of the answer is too long");
	default: /* the trailer, HR_HTTP_TRAILER */
		if (len == 0)
			h->part = HR_HTTP_DONE;
		break;
	}
	if (h->r->on_header != NULL)
		h->r->on_header(h->r->header_arg, p, whole);
	return 0;
}

static int
body(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err)
{
	h->got += len;
	h->lines = 0;
	if (h->r->sink != NULL && h->a->status >= 200 && h->a->status <= 299) {
		if (hr_http_drain(h->r, p, len, &h->away) < 0) {
			h->a->fault = HR_HTTP_CANCELLED;
			return hr_err_set(err, HR_E_GONE, "given up");
		}
	} else {
		hr_buf_add(&h->a->body, p, len);
		if (hr_buf_check(&h->a->body, NULL) != 0) {
			h->a->fault = HR_HTTP_OTHER;
			return h->a->body.fail == HR_E_TOOLARGE
				   ? hr_err_set(err, HR_E_TOOLARGE, "the answer is too long")
				   : hr_err_nomem(err);
		}
	}
	return 0;
}

int
hr_http_reader_feed(struct hr_http_reader *h, const char *p, size_t len, struct hr_err *err)
{
	const char *end = p + len, *nl;
	size_t n;

	while (p < end && h->part != HR_HTTP_DONE) {
		if (h->part == HR_HTTP_LENGTH || h->part == HR_HTTP_DATA ||
		    h->part == HR_HTTP_UNTIL_END) {
			n = (size_t)(end - p);
			if (h->part != HR_HTTP_UNTIL_END && n > h->left)
				n = (size_t)h->left;
			if (body(h, p, n, err) != 0)
				return -1;
			p += n;
			if (h->part == HR_HTTP_UNTIL_END || (h->left -= n) > 0)
				continue;
			h->part = h->part == HR_HTTP_DATA ? HR_HTTP_DATA_END : HR_HTTP_DONE;
			continue;
		}
		nl = memchr(p, '\n', (size_t)(end - p));
		n = nl != NULL ? (size_t)(nl + 1 - p) : (size_t)(end - p);
		hr_buf_add(&h->line, p, n);
		h->lines += n;
		p += n;
		if (hr_buf_check(&h->line, NULL) != 0 || h->lines > HR_HTTP_HEADS_MAX)
			return broken(h, err, "the answer's head is too long");
		if (nl == NULL)
			return 0;
		if (line(h, err) != 0)
			return -1;
		hr_buf_reset(&h->line);
	}
	return 0;
}

int
hr_http_reader_end(struct hr_http_reader *h, struct hr_err *err)
{
	if (h->part == HR_HTTP_UNTIL_END)
		h->part = HR_HTTP_DONE;
	if (h->part == HR_HTTP_DONE)
		return 0;
	return broken(h, err,
	    h->part == HR_HTTP_STATUS_LINE ? "the server closed the connection without an answer"
					   : "the connection ended within the answer");
}

int
hr_http_drain(const struct hr_http_request *r, const char *p, size_t len, int64_t *away)
{
	const int64_t since = hr_now_ms();
	int n = r->sink(r->sink_arg, p, len);

	*away += hr_now_ms() - since;
	return n;
}

int64_t
hr_http_late_at(struct hr_http_pace *p, const struct hr_http_request *r,
    const struct hr_http_answer *a, uint64_t sent, bool whole, uint64_t got, int64_t now)
{
	const bool drains = r->sink != NULL && a->status >= 200 && a->status <= 299;
	const int64_t limit = (int64_t)r->timeout_s * 1000;
	const bool first = got > 0 && p->answered == 0;
	int64_t slowest;

	if (limit == 0)
		return 0;
	now -= p->away;
	if (first)
		p->answered = now;
	if (p->moved == 0 || first ||
	    (sent != p->sent && (whole || sent - p->sent >= (uint64_t)r->timeout_s << 10)) ||
	    (got != p->got && !(drains && got - p->got < r->sink_least))) {
		p->moved = now;
		p->sent = sent;
		p->got = got;
	}
	slowest = p->answered + limit + (int64_t)(got / SLOWEST);
	return (p->answered > 0 && !drains && slowest < p->moved + limit ? slowest
									 : p->moved + limit) +
	       p->away;
}
