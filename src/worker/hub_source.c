/* Reads a shell's output for all pages. Invariant: the ring holds the last bytes of one run of
 * offsets, without a gap. */
#include "config.h"

#include "worker/hub_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "proto/frame.h"
#include "worker/live.h"

/* Delays of the look at a shell's state: SOON_MS after output starts, so that there is not one per
 * line, and SETTLE_MS after the last output, because a command ends around its last bytes. */
#define SOON_MS 100
#define SETTLE_MS 1000

void
hr_told_init(struct hr_told *t)
{
	hr_buf_init(&t->text, HR_TOLD_MAX);
	t->turn = 0;
	t->lost = false;
}

void
hr_told_done(struct hr_told *t)
{
	hr_buf_done(&t->text);
}

void
hr_told_set(struct hr_told *t, const char *event, const struct hr_buf *data)
{
	struct hr_buf b;

	hr_buf_init(&b, HR_TOLD_MAX);
	hr_buf_addf(&b, "event: %s\ndata: ", event);
	hr_buf_add(&b, hr_buf_str(data), data->len);
	hr_buf_adds(&b, "\n\n");
	if (data->fail != HR_OK)
		b.fail = data->fail;
	if (b.fail != HR_OK && !t->lost) /* the next event may fit */
		hr_log(HR_LOG_WARNING, "web pages miss an event of type \"%s\": %s", event,
		    b.fail == HR_E_NOMEM ? "out of memory" : "it is too large");
	t->lost = b.fail != HR_OK;
	if (b.fail != HR_OK ||
	    (t->turn > 0 && t->text.len == b.len && memcmp(t->text.p, b.p, b.len) == 0)) {
		hr_buf_done(&b);
		return;
	}
	hr_buf_done(&t->text);
	t->text = b;
	t->turn++;
}

struct hr_source *
hr_source_new(const char *name)
{
	struct hr_source *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->kind = HR_HUB_SOURCE;
	s->keeper = -1;
	hr_buf_init(&s->frame, HR_TOLD_MAX + HR_SOURCE_SLACK);
	hr_buf_init(&s->ring, HR_SOURCE_RING + 2 * HR_SOURCE_SLACK);
	hr_told_init(&s->state);
	(void)snprintf(
	    s->name, sizeof(s->name), "%s", name); /* the caller has checked the length */
	return s;
}

void
hr_source_free(struct hr_source *s)
{
	if (s == NULL)
		return;
	hr_fd_close(&s->keeper);
	hr_buf_done(&s->frame);
	hr_buf_done(&s->ring);
	hr_told_done(&s->state);
	free(s);
}

struct hr_source *
hr_source_open(const char *run_dir, const char *session, uint64_t end, struct hr_err *err)
{
	/* skip the part of a long log that the ring could not hold */
	const struct hr_follow_request req = {
	    .stays = true, .offset = end > HR_SOURCE_RING ? end - HR_SOURCE_RING : 0};
	const struct hr_shell_place place = {.run_dir = run_dir, .session = session};
	struct hr_source *s = hr_source_new(session != NULL ? session : "default");

	if (s == NULL)
		return hr_err_null(err);
	s->keeper = hr_shell_follow(&place, &req, err);
	if (s->keeper < 0 || hr_fd_nonblock(s->keeper, true, err) < 0) {
		hr_source_free(s);
		return NULL;
	}
	return s;
}

uint64_t
hr_source_end(const struct hr_source *s)
{
	return s->start + s->ring.len;
}

int
hr_source_take(struct hr_source *s, const struct hr_output_piece *piece)
{
	if (piece->offset < hr_source_end(s))
		return -1;
	if (piece->offset > hr_source_end(s)) { /* bytes were lost */
		hr_buf_reset(&s->ring);
		s->start = piece->offset;
	}
	hr_buf_add(&s->ring, piece->bytes.p, piece->bytes.len);
	if (s->ring.len > HR_SOURCE_RING + HR_SOURCE_SLACK) {
		s->start += s->ring.len - HR_SOURCE_RING;
		hr_buf_drop_front(&s->ring, s->ring.len - HR_SOURCE_RING);
	}
	return s->ring.fail == HR_OK ? 0 : -1;
}

int
hr_source_read(struct hr_source *s)
{
	struct hr_output_piece piece;
	struct hr_err err = {0};
	size_t used;
	int r;

	for (;;) {
		r = hr_shell_piece(s->keeper, &s->frame, &piece, &used, &err);
		if (r < 0 && err.sys == EAGAIN)
			return 0;
		if (r <= 0 || hr_source_take(s, &piece) < 0)
			return -1;
		hr_buf_drop_front(&s->frame, used);
	}
}

void
hr_source_look(struct hr_source *s, const char *run_dir)
{
	const struct hr_shell_place place = {.run_dir = run_dir,
	    .session = strcmp(s->name, "default") == 0 ? NULL : s->name,
	    .limit_s = HR_SOURCE_LIMIT_S};
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_session_state state;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(b, HR_TOLD_MAX);
	size_t n = 0, i;

	if (hr_shell_state(&place, &frame, &state, &err) < 0)
		return; /* hr_source_read() notices the keeper's end */
	hr_buf_adds(&b, "{\"session\":");
	hr_live_put_state(&b, s->name, &state);
	hr_buf_adds(&b, ",\"commands\":[");
	hr_buf_reset(&frame);
	if (hr_shell_commands(&place, &frame, list, &n, &err) == 0)
		for (i = 0; i < n; i++) {
			hr_buf_adds(&b, i > 0 ? "," : "");
			hr_live_put_command(&b, s->name, &list[i]);
		}
	hr_buf_adds(&b, "]}");
	hr_told_set(&s->state, "shell", &b);
}

void
hr_source_printed(struct hr_source *s, int64_t now_ms)
{
	if (s->soon_ms == 0)
		s->soon_ms = now_ms + SOON_MS;
	s->settle_ms = now_ms + SETTLE_MS;
}

bool
hr_source_due(struct hr_source *s, int64_t now_ms)
{
	bool soon = s->soon_ms != 0 && s->soon_ms <= now_ms;
	bool settle = s->settle_ms != 0 && s->settle_ms <= now_ms;

	if (soon)
		s->soon_ms = 0;
	if (settle)
		s->settle_ms = 0;
	return soon || settle;
}
