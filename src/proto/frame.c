/* Frames between a worker and the keeper of a shell: encoders append to a buffer, decoders borrow
 * from their input. Nothing here reads or writes a descriptor. */
#include "config.h"

#include "proto/frame.h"

#include <string.h>

/* One number space for all frame types; never reuse one. */
enum frame_tag {
	TAG_COMMAND = 1,
	TAG_IS_INPUT,
	TAG_BLOCKING,
	TAG_HIDDEN,
	TAG_TIMEOUT,
	TAG_KEY,
	TAG_IS_ERROR,
	TAG_HAS_METADATA,
	TAG_EXIT_CODE,
	TAG_PID,
	TAG_CONTENT,
	TAG_USERNAME,
	TAG_HOSTNAME,
	TAG_WORKING_DIR,
	TAG_PY_PATH,
	TAG_PREFIX,
	TAG_SUFFIX,
	TAG_READY,
	TAG_RUNNING,
	TAG_REASON,
	TAG_OFFSET,
	TAG_STAYS,
	TAG_SIGNAL,
	TAG_LOG_START,
	TAG_LOG_END,
	TAG_ATTEMPT,
	TAG_AGAIN,
	TAG_TYPE = 64, /* these are written down in PROTOCOL: plugins are built elsewhere */
	TAG_ACTION,
	TAG_STATUS,
	TAG_BODY,
};

_Static_assert(
    TAG_KEY == 6 && TAG_WORKING_DIR == 14 && TAG_REASON == 20 && TAG_AGAIN == 27, "see PROTOCOL");

struct frame_field {
	uint32_t tag;
	uint32_t len;
	const char *p;
};

static void
put_u32(struct hr_buf *b, uint32_t v)
{
	hr_buf_add(b, &v, sizeof(v));
}

/* Returns where the header begins; frame_end() fills the length in. */
static size_t
frame_begin(struct hr_buf *b, uint32_t type)
{
	size_t at = b->len;

	put_u32(b, HR_FRAME_MAGIC);
	put_u32(b, type);
	put_u32(b, 0);
	return at;
}

static void
frame_end(struct hr_buf *b, size_t at)
{
	size_t len;
	uint32_t v;

	if (b->fail != HR_OK)
		return;
	len = b->len - at - HR_FRAME_HEADER;
	if (len > HR_FRAME_MAX) {
		b->fail = HR_E_TOOLARGE;
		return;
	}
	v = (uint32_t)len;
	memcpy(b->p + at + 8, &v, sizeof(v));
}

static void
put_bytes(struct hr_buf *b, uint32_t tag, const char *p, size_t len)
{
	if (len > HR_FRAME_MAX) {
		b->fail = b->fail == HR_OK ? HR_E_TOOLARGE : b->fail;
		return;
	}
	put_u32(b, tag);
	put_u32(b, (uint32_t)len);
	hr_buf_add(b, p, len);
}

static void
put_span(struct hr_buf *b, uint32_t tag, struct hr_span s)
{
	put_bytes(b, tag, s.p, s.len);
}

static void
put_bool(struct hr_buf *b, uint32_t tag, bool v)
{
	char c = v ? 1 : 0;

	put_bytes(b, tag, &c, 1);
}

static void
put_i64(struct hr_buf *b, uint32_t tag, int64_t v)
{
	put_bytes(b, tag, (const char *)&v, sizeof(v));
}

/* 1: *ret is the next field and *p_at is behind it; 0: no more; -1: a field passes the end. */
static int
field_next(const char *p, size_t len, size_t *p_at, struct frame_field *ret, struct hr_err *err)
{
	size_t at = *p_at;

	if (at == len)
		return 0;
	if (len - at < 8)
		return hr_err_set(err, HR_E_PROTO, "a field header is cut");
	memcpy(&ret->tag, p + at, 4);
	memcpy(&ret->len, p + at + 4, 4);
	at += 8;
	if (ret->len > len - at)
		return hr_err_set(err, HR_E_PROTO, "field %u passes the end", ret->tag);
	ret->p = p + at;
	*p_at = at + ret->len;
	return 1;
}

static int
field_fixed(const struct frame_field *f, void *ret, size_t size, struct hr_err *err)
{
	if (f->len != size)
		return hr_err_set(
		    err, HR_E_PROTO, "field %u has %u bytes, not %zu", f->tag, f->len, size);
	memcpy(ret, f->p, size);
	return 0;
}

static int
field_bool(const struct frame_field *f, bool *ret, struct hr_err *err)
{
	char c = 0;

	if (field_fixed(f, &c, 1, err) < 0)
		return -1;
	*ret = c != 0;
	return 0;
}

static void
field_span(const struct frame_field *f, struct hr_span *ret)
{
	ret->p = f->p;
	ret->len = f->len;
}

void
hr_frame_put_run(struct hr_buf *b, const struct hr_run_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_RUN);

	put_bytes(b, TAG_COMMAND, r->command, r->command_len);
	put_bool(b, TAG_IS_INPUT, r->is_input);
	put_bool(b, TAG_BLOCKING, r->blocking);
	put_bool(b, TAG_HIDDEN, r->hidden);
	if (r->has_timeout)
		put_bytes(b, TAG_TIMEOUT, (const char *)&r->timeout, sizeof(r->timeout));
	put_bytes(b, TAG_KEY, r->key, r->key_len);
	if (r->attempt != 0)
		put_bytes(b, TAG_ATTEMPT, (const char *)&r->attempt, sizeof(r->attempt));
	if (r->again)
		put_bool(b, TAG_AGAIN, true);
	frame_end(b, at);
}

void
hr_frame_put_result(struct hr_buf *b, const struct hr_run_result *r)
{
	size_t at = frame_begin(b, HR_FRAME_RESULT);

	put_bool(b, TAG_IS_ERROR, r->is_error);
	put_bool(b, TAG_HIDDEN, r->hidden);
	put_bool(b, TAG_HAS_METADATA, r->has_metadata);
	put_i64(b, TAG_EXIT_CODE, r->exit_code);
	put_i64(b, TAG_PID, r->pid);
	put_span(b, TAG_CONTENT, r->content);
	put_span(b, TAG_COMMAND, r->command);
	put_span(b, TAG_USERNAME, r->username);
	put_span(b, TAG_HOSTNAME, r->hostname);
	put_span(b, TAG_WORKING_DIR, r->working_dir);
	put_span(b, TAG_PY_PATH, r->py_path);
	put_span(b, TAG_PREFIX, r->prefix);
	put_span(b, TAG_SUFFIX, r->suffix);
	frame_end(b, at);
}

void
hr_frame_put_status(struct hr_buf *b)
{
	frame_end(b, frame_begin(b, HR_FRAME_STATUS));
}

void
hr_frame_put_unknown(struct hr_buf *b)
{
	frame_end(b, frame_begin(b, HR_FRAME_UNKNOWN));
}

void
hr_frame_put_state(struct hr_buf *b, const struct hr_session_state *s)
{
	size_t at = frame_begin(b, HR_FRAME_STATE);

	put_bool(b, TAG_READY, s->ready);
	put_bool(b, TAG_RUNNING, s->running);
	put_span(b, TAG_WORKING_DIR, s->working_dir);
	put_span(b, TAG_REASON, s->reason);
	put_i64(b, TAG_LOG_START, (int64_t)s->log_start);
	put_i64(b, TAG_LOG_END, (int64_t)s->log_end);
	frame_end(b, at);
}

void
hr_frame_put_follow(struct hr_buf *b, const struct hr_follow_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_FOLLOW);

	put_i64(b, TAG_OFFSET, (int64_t)r->offset);
	put_bool(b, TAG_STAYS, r->stays);
	frame_end(b, at);
}

void
hr_frame_put_output(struct hr_buf *b, const struct hr_output_piece *o)
{
	size_t at = frame_begin(b, HR_FRAME_OUTPUT);

	put_i64(b, TAG_OFFSET, (int64_t)o->offset);
	put_span(b, TAG_CONTENT, o->bytes);
	frame_end(b, at);
}

void
hr_frame_put_press(struct hr_buf *b, const struct hr_press_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_PRESS);

	put_i64(b, TAG_SIGNAL, r->signal);
	put_span(b, TAG_CONTENT, r->text);
	frame_end(b, at);
}

void
hr_frame_put_act(struct hr_buf *b, const struct hr_act_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_ACT);

	put_span(b, TAG_TYPE, r->type);
	put_span(b, TAG_ACTION, r->action);
	put_span(b, TAG_WORKING_DIR, r->working_dir);
	put_span(b, TAG_KEY, r->key);
	if (r->again)
		put_bool(b, TAG_AGAIN, true);
	frame_end(b, at);
}

void
hr_frame_put_answer(struct hr_buf *b, const struct hr_act_answer *a)
{
	size_t at = frame_begin(b, HR_FRAME_ANSWER);

	put_i64(b, TAG_STATUS, a->status);
	put_span(b, TAG_BODY, a->body);
	frame_end(b, at);
}

void
hr_frame_put_refused(struct hr_buf *b, const char *reason)
{
	size_t at = frame_begin(b, HR_FRAME_REFUSED);

	put_bytes(b, TAG_REASON, reason, strlen(reason));
	frame_end(b, at);
}

int
hr_frame_get(const void *p, size_t len, uint32_t *ret_type, const char **ret_payload,
    size_t *ret_len, size_t *ret_used, size_t *ret_need, struct hr_err *err)
{
	const char *s = p;
	uint32_t magic, type, size;

	if (len < HR_FRAME_HEADER) {
		*ret_need = HR_FRAME_HEADER;
		return 0;
	}
	memcpy(&magic, s, 4);
	memcpy(&type, s + 4, 4);
	memcpy(&size, s + 8, 4);
	if (magic != HR_FRAME_MAGIC)
		return hr_err_set(err, HR_E_PROTO, "not a frame of this version");
	if (type < HR_FRAME_RUN || (type > HR_FRAME_UNKNOWN && type < HR_FRAME_ACT) ||
	    type > HR_FRAME_REFUSED)
		return hr_err_set(err, HR_E_PROTO, "unknown frame type %u", type);
	if (size > HR_FRAME_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "a frame of %u bytes", size);
	if (len - HR_FRAME_HEADER < size) {
		*ret_need = HR_FRAME_HEADER + (size_t)size;
		return 0;
	}
	*ret_type = type;
	*ret_payload = s + HR_FRAME_HEADER;
	*ret_len = size;
	*ret_used = HR_FRAME_HEADER + (size_t)size;
	return 1;
}

static int
run_field(const struct frame_field *f, struct hr_run_request *r, struct hr_err *err)
{
	switch (f->tag) {
	case TAG_COMMAND:
		r->command = f->p;
		r->command_len = f->len;
		return 0;
	case TAG_IS_INPUT: return field_bool(f, &r->is_input, err);
	case TAG_BLOCKING: return field_bool(f, &r->blocking, err);
	case TAG_HIDDEN: return field_bool(f, &r->hidden, err);
	case TAG_TIMEOUT:
		r->has_timeout = true;
		return field_fixed(f, &r->timeout, sizeof(r->timeout), err);
	case TAG_KEY:
		r->key = f->p;
		r->key_len = f->len;
		return 0;
	case TAG_ATTEMPT: return field_fixed(f, &r->attempt, sizeof(r->attempt), err);
	case TAG_AGAIN: return field_bool(f, &r->again, err);
	default: return 0;
	}
}

int
hr_frame_get_run(const void *p, size_t len, struct hr_run_request *ret, struct hr_err *err)
{
	struct hr_run_request r = {.command = "", .key = ""};
	struct frame_field f;
	size_t at = 0;
	int more;

	while ((more = field_next(p, len, &at, &f, err)) > 0)
		if (run_field(&f, &r, err) < 0)
			return -1;
	if (more < 0)
		return -1;
	if (r.command_len > 0 && memchr(r.command, '\0', r.command_len) != NULL)
		return hr_err_set(err, HR_E_PROTO, "a command with a null byte");
	*ret = r;
	return 0;
}

static int
result_field(const struct frame_field *f, struct hr_run_result *r, struct hr_err *err)
{
	switch (f->tag) {
	case TAG_IS_ERROR: return field_bool(f, &r->is_error, err);
	case TAG_HIDDEN: return field_bool(f, &r->hidden, err);
	case TAG_HAS_METADATA: return field_bool(f, &r->has_metadata, err);
	case TAG_EXIT_CODE: return field_fixed(f, &r->exit_code, sizeof(r->exit_code), err);
	case TAG_PID: return field_fixed(f, &r->pid, sizeof(r->pid), err);
	case TAG_CONTENT: field_span(f, &r->content); return 0;
	case TAG_COMMAND: field_span(f, &r->command); return 0;
	case TAG_USERNAME: field_span(f, &r->username); return 0;
	case TAG_HOSTNAME: field_span(f, &r->hostname); return 0;
	case TAG_WORKING_DIR: field_span(f, &r->working_dir); return 0;
	case TAG_PY_PATH: field_span(f, &r->py_path); return 0;
	case TAG_PREFIX: field_span(f, &r->prefix); return 0;
	case TAG_SUFFIX: field_span(f, &r->suffix); return 0;
	default: return 0;
	}
}

int
hr_frame_get_result(const void *p, size_t len, struct hr_run_result *ret, struct hr_err *err)
{
	static const struct hr_span none = {"", 0};
	struct hr_run_result r = {.content = none,
	    .command = none,
	    .username = none,
	    .hostname = none,
	    .working_dir = none,
	    .py_path = none,
	    .prefix = none,
	    .suffix = none};
	struct frame_field f;
	size_t at = 0;
	int more;

	while ((more = field_next(p, len, &at, &f, err)) > 0)
		if (result_field(&f, &r, err) < 0)
			return -1;
	if (more < 0)
		return -1;
	*ret = r;
	return 0;
}

static int
state_field(const struct frame_field *f, struct hr_session_state *s, struct hr_err *err)
{
	switch (f->tag) {
	case TAG_READY: return field_bool(f, &s->ready, err);
	case TAG_RUNNING: return field_bool(f, &s->running, err);
	case TAG_WORKING_DIR: field_span(f, &s->working_dir); return 0;
	case TAG_REASON: field_span(f, &s->reason); return 0;
	case TAG_LOG_START: return field_fixed(f, &s->log_start, sizeof(s->log_start), err);
	case TAG_LOG_END: return field_fixed(f, &s->log_end, sizeof(s->log_end), err);
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

	while ((more = field_next(p, len, &at, &f, err)) > 0)
		if (state_field(&f, &s, err) < 0)
			return -1;
	if (more < 0)
		return -1;
	*ret = s;
	return 0;
}

int
hr_frame_get_act(const void *p, size_t len, struct hr_act_request *ret, struct hr_err *err)
{
	static const struct hr_span none = {"", 0};
	struct hr_act_request r = {.type = none, .action = none, .working_dir = none, .key = none};
	struct frame_field f;
	size_t at = 0;
	int more;

	while ((more = field_next(p, len, &at, &f, err)) > 0)
		switch (f.tag) {
		case TAG_AGAIN:
			if (field_bool(&f, &r.again, err) < 0)
				return -1;
			break;
		case TAG_TYPE: field_span(&f, &r.type); break;
		case TAG_ACTION: field_span(&f, &r.action); break;
		case TAG_WORKING_DIR: field_span(&f, &r.working_dir); break;
		case TAG_KEY: field_span(&f, &r.key); break;
		default: break;
		}
	if (more < 0)
		return -1;
	*ret = r;
	return 0;
}

int
hr_frame_get_answer(const void *p, size_t len, struct hr_act_answer *ret, struct hr_err *err)
{
	struct hr_act_answer a = {.status = 200, .body = {"", 0}, .reason = {"", 0}};
	struct frame_field f;
	size_t at = 0;
	int more;

	while ((more = field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_BODY)
			field_span(&f, &a.body);
		else if (f.tag == TAG_REASON)
			field_span(&f, &a.reason);
		else if (f.tag == TAG_STATUS &&
			 field_fixed(&f, &a.status, sizeof(a.status), err) < 0)
			return -1;
	}
	if (more < 0)
		return -1;
	*ret = a;
	return 0;
}

int
hr_frame_get_follow(const void *p, size_t len, struct hr_follow_request *ret, struct hr_err *err)
{
	struct hr_follow_request r = {0};
	struct frame_field f;
	size_t at = 0;
	int more, bad = 0;

	while (bad == 0 && (more = field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_OFFSET)
			bad = field_fixed(&f, &r.offset, sizeof(r.offset), err);
		else if (f.tag == TAG_STAYS)
			bad = field_bool(&f, &r.stays, err);
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

	while (bad == 0 && (more = field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_OFFSET)
			bad = field_fixed(&f, &r.offset, sizeof(r.offset), err);
		else if (f.tag == TAG_CONTENT)
			field_span(&f, &r.bytes);
	}
	if (bad < 0 || more < 0)
		return -1;
	*ret = r;
	return 0;
}

int
hr_frame_get_press(const void *p, size_t len, struct hr_press_request *ret, struct hr_err *err)
{
	struct hr_press_request r = {.text = {"", 0}};
	struct frame_field f;
	size_t at = 0;
	int more, bad = 0;

	while (bad == 0 && (more = field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_SIGNAL)
			bad = field_fixed(&f, &r.signal, sizeof(r.signal), err);
		else if (f.tag == TAG_CONTENT)
			field_span(&f, &r.text);
	}
	if (bad < 0 || more < 0)
		return -1;
	if (r.signal < 0 || r.signal > 64)
		return hr_err_set(err, HR_E_PROTO, "signal %lld", (long long)r.signal);
	*ret = r;
	return 0;
}
