#include "config.h"

#include "worker/hub_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include <fastcgi.h>

#include "base/fd.h"
#include "base/text/quote.h"

#define STEP (24u << 10) /* maximum bytes of output per event */
#define STEP_TEXT (2 * STEP)
#define RECORD_MAX 65528

struct hr_hub_page *
hr_hub_page_new(struct hr_source *s, uint64_t at)
{
	struct hr_hub_page *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->kind = HR_HUB_PAGE;
	p->source = s;
	p->fd = -1;
	p->at = at;
	hr_buf_init(&p->out, 3 * HR_TOLD_MAX + RECORD_MAX);
	return p;
}

void
hr_hub_page_free(struct hr_hub_page *p)
{
	if (p == NULL)
		return;
	hr_fd_close(&p->fd);
	hr_buf_done(&p->out);
	free(p);
}

/* Appends stream content in FastCGI records. */
static void
put_out(struct hr_hub_page *p, const char *text, size_t len)
{
	size_t n;

	for (; len > 0; text += n, len -= n) {
		FCGI_Header head = {.version = FCGI_VERSION_1,
		    .type = FCGI_STDOUT,
		    .requestIdB1 = (unsigned char)(p->request_id >> 8),
		    .requestIdB0 = (unsigned char)p->request_id};

		n = len < RECORD_MAX ? len : RECORD_MAX;
		head.contentLengthB1 = (unsigned char)(n >> 8);
		head.contentLengthB0 = (unsigned char)n;
		hr_buf_add(&p->out, (const char *)&head, sizeof(head));
		hr_buf_add(&p->out, text, n);
	}
}

static bool
page_knows(struct hr_hub_page *p, const struct hr_told *t, uint64_t *known)
{
	if (t->turn == *known)
		return true;
	*known = t->turn;
	put_out(p, t->text.p, t->text.len);
	return false;
}

static void
put_output(struct hr_hub_page *p)
{
	const struct hr_source *s = p->source;
	uint64_t end = hr_source_end(s);
	HR_BUF(b, STEP_TEXT);
	size_t n;

	if (p->anew || p->at < s->start) { /* those bytes were dropped, or the offsets restarted */
		hr_buf_addf(&b,
		    "event: gap\nid: %" PRIu64 "\ndata: {\"from\":%" PRIu64 ",\"to\":%" PRIu64
		    "}\n\n",
		    s->start, p->at, s->start);
		p->at = s->start;
		p->anew = false;
	}
	n = end - p->at < STEP ? (size_t)(end - p->at) : STEP;
	if (n > 0) {
		hr_buf_addf(&b,
		    "event: output\nid: %" PRIu64 "\ndata: {\"offset\":%" PRIu64 ",\"base64\":\"",
		    p->at + n, p->at);
		hr_quote_base64(&b, s->ring.p + (p->at - s->start), n);
		hr_buf_adds(&b, "\"}\n\n");
		p->at += n;
	}
	if (b.fail == HR_OK)
		put_out(p, hr_buf_str(&b), b.len);
	else
		p->out.fail = b.fail;
}

/* Appends the next unsent event. Returns false if the page is up to date. */
static bool
page_next(struct hr_hub_page *p, const struct hr_told told[HR_HUB_TOLD])
{
	bool knows = page_knows(p, &p->source->state, &p->knows_state);
	size_t i;

	for (i = 0; i < HR_HUB_TOLD; i++)
		knows &= page_knows(p, &told[i], &p->knows[i]);
	if (!knows)
		return true;
	/* the page's offset may be ahead while bytes are on their way */
	if (!p->anew && p->at >= hr_source_end(p->source))
		return false;
	put_output(p);
	return true;
}

int
hr_hub_page_send(struct hr_hub_page *p, const struct hr_told told[HR_HUB_TOLD])
{
	ssize_t n;

	while (p->out.len > 0 || page_next(p, told)) {
		if (p->out.fail != HR_OK)
			return -1;
		if (p->out.len == 0)
			continue;
		n = write(p->fd, p->out.p, p->out.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 1 : -1;
		hr_buf_drop_front(&p->out, (size_t)n);
	}
	return 0;
}

void
hr_hub_page_end(struct hr_hub_page *p)
{
	FCGI_EndRequestRecord end = {.header = {.version = FCGI_VERSION_1,
					 .type = FCGI_END_REQUEST,
					 .requestIdB1 = (unsigned char)(p->request_id >> 8),
					 .requestIdB0 = (unsigned char)p->request_id,
					 .contentLengthB0 = sizeof(end.body)},
	    .body = {.protocolStatus = FCGI_REQUEST_COMPLETE}};
	ssize_t n;

	if (p->gone || p->fd < 0)
		return;
	hr_buf_add(&p->out, (const char *)&end, sizeof(end));
	do
		n = write(p->fd, p->out.p, p->out.len);
	while (n < 0 && errno == EINTR);
}
