/* Frames between a worker and the keeper of a shell: encoders append to a buffer, decoders borrow
 * from their input. Nothing here reads or writes a descriptor. */
#include "config.h"

#include "proto/frame_int.h"

#include <string.h>

_Static_assert(
    TAG_KEY == 6 && TAG_WORKING_DIR == 14 && TAG_REASON == 20 && TAG_AGAIN == 27, "see PROTOCOL");

static void
frame_put_u32(struct hr_buf *b, uint32_t v)
{
	hr_buf_add(b, &v, sizeof(v));
}

/* Returns where the header begins; frame_end() fills the length in. */
size_t
frame_begin(struct hr_buf *b, uint32_t type)
{
	size_t at = b->len;

	frame_put_u32(b, HR_FRAME_MAGIC);
	frame_put_u32(b, type);
	frame_put_u32(b, 0);
	return at;
}

void
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
	frame_put_u32(b, tag);
	frame_put_u32(b, (uint32_t)len);
	hr_buf_add(b, p, len);
}

void
frame_put_span(struct hr_buf *b, uint32_t tag, struct hr_span s)
{
	put_bytes(b, tag, s.p, s.len);
}

void
frame_put_bool(struct hr_buf *b, uint32_t tag, bool v)
{
	char c = v ? 1 : 0;

	put_bytes(b, tag, &c, 1);
}

void
frame_put_i64(struct hr_buf *b, uint32_t tag, int64_t v)
{
	put_bytes(b, tag, (const char *)&v, sizeof(v));
}

/* 1: *ret is the next field and *p_at is behind it; 0: no more; -1: a field passes the end. */
int
frame_field_next(
    const char *p, size_t len, size_t *p_at, struct frame_field *ret, struct hr_err *err)
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

int
frame_field_fixed(const struct frame_field *f, void *ret, size_t size, struct hr_err *err)
{
	if (f->len != size)
		return hr_err_set(
		    err, HR_E_PROTO, "field %u has %u bytes, not %zu", f->tag, f->len, size);
	memcpy(ret, f->p, size);
	return 0;
}

int
frame_field_bool(const struct frame_field *f, bool *ret, struct hr_err *err)
{
	char c = 0;

	if (frame_field_fixed(f, &c, 1, err) < 0)
		return -1;
	*ret = c != 0;
	return 0;
}

void
frame_field_span(const struct frame_field *f, struct hr_span *ret)
{
	ret->p = f->p;
	ret->len = f->len;
}

void
hr_frame_put_run(struct hr_buf *b, const struct hr_run_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_RUN);

	put_bytes(b, TAG_COMMAND, r->command, r->command_len);
	frame_put_bool(b, TAG_IS_INPUT, r->is_input);
	frame_put_bool(b, TAG_BLOCKING, r->blocking);
	frame_put_bool(b, TAG_HIDDEN, r->hidden);
	if (r->has_timeout)
		put_bytes(b, TAG_TIMEOUT, (const char *)&r->timeout, sizeof(r->timeout));
	put_bytes(b, TAG_KEY, r->key, r->key_len);
	if (r->attempt != 0)
		put_bytes(b, TAG_ATTEMPT, (const char *)&r->attempt, sizeof(r->attempt));
	if (r->again)
		frame_put_bool(b, TAG_AGAIN, true);
	if (r->stays)
		frame_put_bool(b, TAG_STAYS, true);
	frame_end(b, at);
}

void
hr_frame_put_result(struct hr_buf *b, const struct hr_run_result *r)
{
	size_t at = frame_begin(b, HR_FRAME_RESULT);

	frame_put_bool(b, TAG_IS_ERROR, r->is_error);
	frame_put_bool(b, TAG_HIDDEN, r->hidden);
	frame_put_bool(b, TAG_HAS_METADATA, r->has_metadata);
	frame_put_i64(b, TAG_EXIT_CODE, r->exit_code);
	frame_put_i64(b, TAG_PID, r->pid);
	frame_put_span(b, TAG_CONTENT, r->content);
	frame_put_span(b, TAG_COMMAND, r->command);
	frame_put_span(b, TAG_USERNAME, r->username);
	frame_put_span(b, TAG_HOSTNAME, r->hostname);
	frame_put_span(b, TAG_WORKING_DIR, r->working_dir);
	frame_put_span(b, TAG_PY_PATH, r->py_path);
	frame_put_span(b, TAG_PREFIX, r->prefix);
	frame_put_span(b, TAG_SUFFIX, r->suffix);
	frame_end(b, at);
}

void
hr_frame_put_unknown(struct hr_buf *b)
{
	frame_end(b, frame_begin(b, HR_FRAME_UNKNOWN));
}

void
hr_frame_put_act(struct hr_buf *b, const struct hr_act_request *r)
{
	size_t at = frame_begin(b, HR_FRAME_ACT);

	frame_put_span(b, TAG_TYPE, r->type);
	frame_put_span(b, TAG_ACTION, r->action);
	frame_put_span(b, TAG_WORKING_DIR, r->working_dir);
	frame_put_span(b, TAG_KEY, r->key);
	if (r->again)
		frame_put_bool(b, TAG_AGAIN, true);
	frame_end(b, at);
}

void
hr_frame_put_answer(struct hr_buf *b, const struct hr_act_answer *a)
{
	size_t at = frame_begin(b, HR_FRAME_ANSWER);

	frame_put_i64(b, TAG_STATUS, a->status);
	frame_put_span(b, TAG_BODY, a->body);
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
	if (type < HR_FRAME_RUN || (type > HR_FRAME_LIST && type < HR_FRAME_ACT) ||
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
	case TAG_IS_INPUT: return frame_field_bool(f, &r->is_input, err);
	case TAG_BLOCKING: return frame_field_bool(f, &r->blocking, err);
	case TAG_HIDDEN: return frame_field_bool(f, &r->hidden, err);
	case TAG_TIMEOUT:
		r->has_timeout = true;
		return frame_field_fixed(f, &r->timeout, sizeof(r->timeout), err);
	case TAG_KEY:
		r->key = f->p;
		r->key_len = f->len;
		return 0;
	case TAG_ATTEMPT: return frame_field_fixed(f, &r->attempt, sizeof(r->attempt), err);
	case TAG_AGAIN: return frame_field_bool(f, &r->again, err);
	case TAG_STAYS: return frame_field_bool(f, &r->stays, err);
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

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0)
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
	case TAG_IS_ERROR: return frame_field_bool(f, &r->is_error, err);
	case TAG_HIDDEN: return frame_field_bool(f, &r->hidden, err);
	case TAG_HAS_METADATA: return frame_field_bool(f, &r->has_metadata, err);
	case TAG_EXIT_CODE: return frame_field_fixed(f, &r->exit_code, sizeof(r->exit_code), err);
	case TAG_PID: return frame_field_fixed(f, &r->pid, sizeof(r->pid), err);
	case TAG_CONTENT: frame_field_span(f, &r->content); return 0;
	case TAG_COMMAND: frame_field_span(f, &r->command); return 0;
	case TAG_USERNAME: frame_field_span(f, &r->username); return 0;
	case TAG_HOSTNAME: frame_field_span(f, &r->hostname); return 0;
	case TAG_WORKING_DIR: frame_field_span(f, &r->working_dir); return 0;
	case TAG_PY_PATH: frame_field_span(f, &r->py_path); return 0;
	case TAG_PREFIX: frame_field_span(f, &r->prefix); return 0;
	case TAG_SUFFIX: frame_field_span(f, &r->suffix); return 0;
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

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0)
		if (result_field(&f, &r, err) < 0)
			return -1;
	if (more < 0)
		return -1;
	*ret = r;
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

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0)
		switch (f.tag) {
		case TAG_AGAIN:
			if (frame_field_bool(&f, &r.again, err) < 0)
				return -1;
			break;
		case TAG_TYPE: frame_field_span(&f, &r.type); break;
		case TAG_ACTION: frame_field_span(&f, &r.action); break;
		case TAG_WORKING_DIR: frame_field_span(&f, &r.working_dir); break;
		case TAG_KEY: frame_field_span(&f, &r.key); break;
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

	while ((more = frame_field_next(p, len, &at, &f, err)) > 0) {
		if (f.tag == TAG_BODY)
			frame_field_span(&f, &a.body);
		else if (f.tag == TAG_REASON)
			frame_field_span(&f, &a.reason);
		else if (f.tag == TAG_STATUS &&
			 frame_field_fixed(&f, &a.status, sizeof(a.status), err) < 0)
			return -1;
	}
	if (more < 0)
		return -1;
	*ret = a;
	return 0;
}
