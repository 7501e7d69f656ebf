/* Frames of those who look on: state, commands, output, what is pressed. */
#include "config.h"

#include "proto/frame_int.h"

#include <string.h>

void
hr_frame_put_status(struct hr_buf *b)
{
	frame_end(b, frame_begin(b, HR_FRAME_STATUS));
}

void
hr_frame_put_state(struct hr_buf *b, const struct hr_session_state *s)
{
	size_t at = frame_begin(b, HR_FRAME_STATE);

	frame_put_bool(b, TAG_READY, s->ready);
	frame_put_bool(b, TAG_RUNNING, s->running);
	frame_put_span(b, TAG_WORKING_DIR, s->working_dir);
	frame_put_span(b, TAG_REASON, s->reason);
	frame_put_i64(b, TAG_LOG_START, (int64_t)s->log_start);
	frame_put_i64(b, TAG_LOG_END, (int64_t)s->log_end);
	frame_put_i64(b, TAG_ROWS, s->rows);
	frame_put_i64(b, TAG_COLUMNS, s->columns);
	frame_end(b, at);
}

void
hr_frame_put_follow(struct hr_buf *b, const struct hr_follow_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_FOLLOW);

	frame_put_i64(b, TAG_OFFSET, (int64_t)r->offset);
	frame_put_bool(b, TAG_STAYS, r->stays);
	frame_end(b, at);
}

void
hr_frame_put_output(struct hr_buf *b, const struct hr_output_piece *o)
{
	size_t at = frame_begin(b, HR_FRAME_OUTPUT);

	frame_put_i64(b, TAG_OFFSET, (int64_t)o->offset);
	frame_put_span(b, TAG_CONTENT, o->bytes);
	frame_end(b, at);
}

void
hr_frame_put_press(struct hr_buf *b, const struct hr_press_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_PRESS);

	frame_put_i64(b, TAG_WHAT, r->what);
	switch (r->what) {
	case HR_PRESS_SIGNAL: frame_put_i64(b, TAG_SIGNAL, r->signal); break;
	case HR_PRESS_SIZE:
		frame_put_i64(b, TAG_ROWS, r->rows);
		frame_put_i64(b, TAG_COLUMNS, r->columns);
		break;
	default: frame_put_span(b, TAG_CONTENT, r->text); break;
	}
	frame_end(b, at);
}

void
hr_frame_put_commands(struct hr_buf *b)
{
	frame_end(b, frame_begin(b, HR_FRAME_COMMANDS));
}

void
hr_frame_put_list(struct hr_buf *b, const struct hr_command_state *v, size_t n)
{
	size_t at = frame_begin(b, HR_FRAME_LIST);

	for (; n > 0; n--, v++) {
		frame_put_i64(b, TAG_ID, v->id);
		frame_put_span(b, TAG_KEY, v->key);
		frame_put_span(b, TAG_COMMAND, v->text);
		frame_put_i64(b, TAG_LENGTH, v->length);
		frame_put_i64(b, TAG_STATE, v->end);
		frame_put_i64(b, TAG_EXIT_CODE, v->exit_code);
		frame_put_i64(b, TAG_LOG_START, (int64_t)v->log_start);
		frame_put_i64(b, TAG_LOG_END, (int64_t)v->log_end);
		frame_put_i64(b, TAG_STARTED, v->started);
		frame_put_i64(b, TAG_ELAPSED, v->elapsed);
		frame_put_i64(b, TAG_SILENT, v->silent);
	}
	frame_end(b, at);
}

static int
state_field(const struct frame_field *f, struct hr_session_state *s, struct hr_err *err)
{
	switch (f->tag) {
	case TAG_READY: return frame_field_bool(f, &s->ready, err);
	case TAG_RUNNING: return frame_field_bool(f, &s->running, err);
	case TAG_WORKING_DIR: frame_field_span(f, &s->working_dir); return 0;
	case TAG_REASON: frame_field_span(f, &s->reason); return 0;
	case TAG_LOG_START: return frame_field_fixed(f, &s->log_start, sizeof(s->log_start), err);
	case TAG_LOG_END: return frame_field_fixed(f, &s->log_end, sizeof(s->log_end), err);
	case TAG_ROWS: return frame_field_fixed(f, &s->rows, sizeof(s->rows), err);
	case TAG_COLUMNS: return frame_field_fixed(f, &s->columns, sizeof(s->columns), err);
	default: return 0;
	}
}

int
hr_frame_get_state(const void *p, size_t len, struct hr_session_state *ret, struct hr_err *err)
{
	struct hr_session_state s = {.working_dir = {"", 0}, .reason = {"", 0}};
	struct frame_field f;
	size_t at = 0;
	int more;

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0)
		if (state_field(&f, &s, err) < 0)
			return -1;
	if (more < 0)
		return -1;
	*ret = s;
	return 0;
}

int
hr_frame_get_follow(const void *p, size_t len, struct hr_follow_request *ret, struct hr_err *err)
{
	struct hr_follow_request r = {0};
	struct frame_field f;
	size_t at = 0;
	int more, bad = 0;

	while (bad == 0 && (more = frame_field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_OFFSET)
			bad = frame_field_fixed(&f, &r.offset, sizeof(r.offset), err);
		else if (f.tag == TAG_STAYS)
			bad = frame_field_bool(&f, &r.stays, err);
	}
	if (bad < 0 || more < 0)
		return -1;
	*ret = r;
	return 0;
}

int
hr_frame_get_output(const void *p, size_t len, struct hr_output_piece *ret, struct hr_err *err)
{
	struct hr_output_piece r = {.bytes = {"", 0}};
	struct frame_field f;
	size_t at = 0;
	int more, bad = 0;

	while (bad == 0 && (more = frame_field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_OFFSET)
			bad = frame_field_fixed(&f, &r.offset, sizeof(r.offset), err);
		else if (f.tag == TAG_CONTENT)
			frame_field_span(&f, &r.bytes);
	}
	if (bad < 0 || more < 0)
		return -1;
	*ret = r;
	return 0;
}

static int
press_field(const struct frame_field *f, struct hr_press_request *r, struct hr_err *err)
{
	switch (f->tag) {
	case TAG_WHAT: return frame_field_fixed(f, &r->what, sizeof(r->what), err);
	case TAG_SIGNAL: return frame_field_fixed(f, &r->signal, sizeof(r->signal), err);
	case TAG_ROWS: return frame_field_fixed(f, &r->rows, sizeof(r->rows), err);
	case TAG_COLUMNS: return frame_field_fixed(f, &r->columns, sizeof(r->columns), err);
	case TAG_CONTENT: frame_field_span(f, &r->text); return 0;
	default: return 0;
	}
}

static bool
is_size(int64_t n)
{
	return n >= 1 && n <= HR_TERMINAL_MAX;
}

int
hr_frame_get_press(const void *p, size_t len, struct hr_press_request *ret, struct hr_err *err)
{
	struct hr_press_request r = {.text = {"", 0}};
	struct frame_field f;
	size_t at = 0;
	int more;

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0)
		if (press_field(&f, &r, err) < 0)
			return -1;
	if (more < 0)
		return -1;
	if (r.what < HR_PRESS_TEXT || r.what > HR_PRESS_END ||
	    (r.what == HR_PRESS_SIGNAL && (r.signal < 1 || r.signal > 64)) ||
	    (r.what == HR_PRESS_SIZE && (!is_size(r.rows) || !is_size(r.columns))) ||
	    (r.what == HR_PRESS_KEYS && r.text.len > 0 && r.text.p[r.text.len - 1] != '\0'))
		return hr_err_set(err, HR_E_PROTO, "a press that is none");
	*ret = r;
	return 0;
}

static int
command_field(const struct frame_field *f, struct hr_command_state *c, struct hr_err *err)
{
	switch (f->tag) {
	case TAG_ID: return frame_field_fixed(f, &c->id, sizeof(c->id), err);
	case TAG_KEY: frame_field_span(f, &c->key); return 0;
	case TAG_COMMAND: frame_field_span(f, &c->text); return 0;
	case TAG_LENGTH: return frame_field_fixed(f, &c->length, sizeof(c->length), err);
	case TAG_STATE: return frame_field_fixed(f, &c->end, sizeof(c->end), err);
	case TAG_EXIT_CODE: return frame_field_fixed(f, &c->exit_code, sizeof(c->exit_code), err);
	case TAG_LOG_START: return frame_field_fixed(f, &c->log_start, sizeof(c->log_start), err);
	case TAG_LOG_END: return frame_field_fixed(f, &c->log_end, sizeof(c->log_end), err);
	case TAG_STARTED: return frame_field_fixed(f, &c->started, sizeof(c->started), err);
	case TAG_ELAPSED: return frame_field_fixed(f, &c->elapsed, sizeof(c->elapsed), err);
	case TAG_SILENT: return frame_field_fixed(f, &c->silent, sizeof(c->silent), err);
	default: return 0;
	}
}

int
hr_frame_get_list(const void *p, size_t len, struct hr_command_state ret[HR_COMMANDS_MAX],
    size_t *ret_n, struct hr_err *err)
{
	struct frame_field f;
	size_t at = 0, n = 0;
	int more;

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_ID) {
			if (n == HR_COMMANDS_MAX)
				return hr_err_set(err, HR_E_PROTO, "too many commands");
			ret[n++] = (struct hr_command_state){.key = {"", 0}, .text = {"", 0}};
		}
		if (n > 0 && command_field(&f, &ret[n - 1], err) < 0)
			return -1;
	}
	*ret_n = n;
	return more;
}
