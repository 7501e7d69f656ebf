#include "config.h"

#include "base/loglines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"

void
hr_loglines_init(struct hr_loglines *l)
{
	hr_buf_init(&l->text, HR_LOGLINES_KEPT);
	l->first = l->next = 1;
	l->epoch = hr_wall_ms();
	l->news = -1;
}

void
hr_loglines_done(struct hr_loglines *l)
{
	hr_buf_done(&l->text);
	hr_fd_close(&l->news);
}

/* Returns the length of the line at `at`, including its newline. */
static size_t
line_len(const struct hr_buf *text, size_t at)
{
	const char *nl = memchr(text->p + at, '\n', text->len - at);

	return (size_t)(nl + 1 - (text->p + at)); /* each line has a newline */
}

void
hr_loglines_add(struct hr_loglines *l, const char *line, size_t len)
{
	size_t drop = 0;

	if (len + 1 > HR_LOGLINES_KEPT)
		return;
	while (l->text.len - drop + len + 1 > HR_LOGLINES_KEPT) {
		drop += line_len(&l->text, drop);
		l->first++;
	}
	if (drop > 0)
		hr_buf_drop_front(&l->text, drop);
	hr_buf_add(&l->text, line, len);
	hr_buf_addc(&l->text, '\n');
	l->next++;
	if (l->text.fail != HR_OK) {
		hr_buf_reset(&l->text);
		l->first = l->next;
	}
	if (l->news >= 0)
		(void)eventfd_write(l->news, 1); /* fails only after 2^64 lines */
}

int
hr_loglines_news(struct hr_loglines *l, struct hr_err *err)
{
	if (l->news < 0)
		l->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l->news >= 0 ? l->news : hr_err_sys(err, errno, "eventfd");
}

void
hr_loglines_put(const struct hr_loglines *l, uint64_t from, size_t most, struct hr_buf *b)
{
	const struct hr_buf *t = &l->text;
	uint64_t first = l->first;
	size_t at = 0, n;

	if (from > l->next)
		from = 0;
	for (; at < t->len && (first < from || t->len - at > most); at += line_len(t, at))
		first++;
	hr_buf_addf(b,
	    "{\"first\":%" PRIu64 ",\"next\":%" PRIu64 ",\"epoch\":%" PRId64 ",\"lines\":[", first,
	    l->next, l->epoch);
	for (; at < t->len; at += n) {
		n = line_len(t, at);
		hr_buf_add(b, t->p + at, n - 1);
		if (at + n < t->len)
			hr_buf_addc(b, ',');
	}
	hr_buf_adds(b, "]}");
}
