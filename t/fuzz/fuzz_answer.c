/* An HTTP answer, whatever its bytes and however they are cut: no crash, what is handed on is
 * within the limits, and cutting changes nothing. The first byte says how it is cut and asked for.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/answer.h"
#include "http/http.h"
#include "fuzz.h"

#define MOST 4096

struct seen {
	size_t bytes, lines;
};

static int
on_body(void *arg, const char *p, size_t len)
{
	struct seen *s = arg;

	must(p != NULL && len > 0);
	s->bytes += len;
	return s->bytes > MOST ? -1 : 0;
}

static void
on_header(void *arg, const char *line, size_t len)
{
	struct seen *s = arg;

	must(len > 0 && len <= HR_HTTP_HEAD_MAX && line[len - 1] == '\n');
	s->lines++;
}

/* -1, or what part it ended in. */
static int
play(const char *p, size_t len, size_t step, bool streams, struct hr_http_answer *a, struct seen *s)
{
	struct hr_http_request req = {.method = "GET",
	    .header = "Retry-After",
	    .on_header = on_header,
	    .header_arg = s,
	    .sink = streams ? on_body : NULL,
	    .sink_arg = s};
	struct hr_http_reader h;
	int r = 0;
	size_t at, n;

	memset(a, 0, sizeof(*a));
	memset(s, 0, sizeof(*s));
	hr_buf_init(&a->body, MOST);
	hr_http_reader_init(&h, &req, a);
	for (at = 0; r == 0 && at < len; at += n) {
		n = len - at < step ? len - at : step;
		r = hr_http_reader_feed(&h, p + at, n, NULL);
	}
	if (r == 0)
		r = hr_http_reader_end(&h, NULL);
	must(r == 0 ? h.part == HR_HTTP_DONE && a->status >= 200 : a->fault != HR_HTTP_NONE);
	must(a->body.len <= MOST && strlen(a->reason) < sizeof(a->reason) &&
	     strlen(a->header) < sizeof(a->header));
	hr_http_reader_done(&h);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data + 1;
	struct hr_http_answer whole, cut;
	struct seen a, b;
	int one, other;

	if (size == 0)
		return 0;
	one = play(p, size - 1, SIZE_MAX, data[0] & 1, &whole, &a);
	other = play(p, size - 1, 1 + (data[0] >> 4), data[0] & 1, &cut, &b);
	must(one == other && whole.status == cut.status && a.lines == b.lines);
	must(one != 0 || (a.bytes == b.bytes && whole.body.len == cut.body.len));
	if (one == 0 && whole.body.len > 0)
		must(memcmp(whole.body.p, cut.body.p, whole.body.len) == 0);
	hr_http_answer_done(&whole);
	hr_http_answer_done(&cut);
	return 0;
}
