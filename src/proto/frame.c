/* Encodes and decodes the frames between a worker and the keeper of a shell: encoders append to a
 * buffer, decoders borrow from their input. A payload is a table of its fields, in the order in
 * which they are written. */
#include "config.h"

#include "proto/frame.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "proto/frame_int.h"

/* number of bytes read at once before the length of a frame is known */
#define FIRST_READ (64u << 10)

/* All frame types share one number space; a number must never be reused. */
enum tag {
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
	TAG_WHAT,
	TAG_ROWS,
	TAG_COLUMNS,
	TAG_ID, /* a field of this tag starts a command */
	TAG_LENGTH,
	TAG_STATE,
	TAG_STARTED,
	TAG_ELAPSED,
	TAG_SILENT,
	TAG_CLOCK,
	TAG_WHOLE,
	TAG_EXACT,
	TAG_READY_S,
	TAG_KEPT,
	TAG_MINDER,
	TAG_SPARES,
	TAG_TYPE = 64, /* documented in PROTOCOL from here on: plugins are built elsewhere */
	TAG_ACTION,
	TAG_STATUS,
	TAG_BODY,
};

_Static_assert(
    TAG_KEY == 6 && TAG_WORKING_DIR == 14 && TAG_REASON == 20 && TAG_AGAIN == 27, "see PROTOCOL");

/* ---- the messages ---- */

#define T struct hr_run_request
static const struct hr_frame_field run_fields[] = {
    FIELD(T, command, TAG_COMMAND),
    FIELD(T, is_input, TAG_IS_INPUT),
    FIELD(T, blocking, TAG_BLOCKING),
    FIELD(T, hidden, TAG_HIDDEN),
    SELDOM(T, timeout, TAG_TIMEOUT),
    FIELD(T, key, TAG_KEY),
    SELDOM(T, attempt, TAG_ATTEMPT),
    SELDOM(T, again, TAG_AGAIN),
    SELDOM(T, stays, TAG_STAYS),
    SELDOM(T, whole, TAG_WHOLE),
    SELDOM(T, exact, TAG_EXACT),
    SELDOM(T, ready_s, TAG_READY_S),
};
static const struct hr_frame_layout run_layout = LAYOUT(T, run_fields);
#undef T

#define T struct hr_run_result
static const struct hr_frame_field result_fields[] = {
    FIELD(T, is_error, TAG_IS_ERROR),
    FIELD(T, hidden, TAG_HIDDEN),
    FIELD(T, has_metadata, TAG_HAS_METADATA),
    FIELD(T, exit_code, TAG_EXIT_CODE),
    FIELD(T, pid, TAG_PID),
    SELDOM(T, clock, TAG_CLOCK),
    SELDOM(T, id, TAG_ID),
    SELDOM(T, log_start, TAG_LOG_START),
    SELDOM(T, log_end, TAG_LOG_END),
    FIELD(T, content, TAG_CONTENT),
    FIELD(T, command, TAG_COMMAND),
    FIELD(T, username, TAG_USERNAME),
    FIELD(T, hostname, TAG_HOSTNAME),
    FIELD(T, working_dir, TAG_WORKING_DIR),
    FIELD(T, py_path, TAG_PY_PATH),
    FIELD(T, prefix, TAG_PREFIX),
    FIELD(T, suffix, TAG_SUFFIX),
};
static const struct hr_frame_layout result_layout = LAYOUT(T, result_fields);
#undef T

#define T struct hr_act_request
static const struct hr_frame_field act_fields[] = {
    FIELD(T, type, TAG_TYPE),
    FIELD(T, action, TAG_ACTION),
    FIELD(T, working_dir, TAG_WORKING_DIR),
    FIELD(T, key, TAG_KEY),
    SELDOM(T, again, TAG_AGAIN),
};
static const struct hr_frame_layout act_layout = LAYOUT(T, act_fields);
#undef T

#define T struct hr_act_answer
static const struct hr_frame_field answer_fields[] = {
    FIELD(T, status, TAG_STATUS),
    FIELD(T, body, TAG_BODY),
    SELDOM(T, reason, TAG_REASON),
};
static const struct hr_frame_field refused_fields[] = {FIELD(T, reason, TAG_REASON)};
static const struct hr_frame_layout answer_layout = LAYOUT(T, answer_fields);
static const struct hr_frame_layout refused_layout = LAYOUT(T, refused_fields);
#undef T

#define T struct hr_session_state
static const struct hr_frame_field state_fields[] = {
    FIELD(T, ready, TAG_READY),
    FIELD(T, running, TAG_RUNNING),
    FIELD(T, working_dir, TAG_WORKING_DIR),
    FIELD(T, reason, TAG_REASON),
    FIELD(T, log_start, TAG_LOG_START),
    FIELD(T, log_end, TAG_LOG_END),
    FIELD(T, rows, TAG_ROWS),
    FIELD(T, columns, TAG_COLUMNS),
};
static const struct hr_frame_layout state_layout = LAYOUT(T, state_fields);
#undef T

#define T struct hr_follow_request
static const struct hr_frame_field follow_fields[] = {
    FIELD(T, offset, TAG_OFFSET),
    FIELD(T, stays, TAG_STAYS),
    SELDOM(T, command, TAG_ID),
};
static const struct hr_frame_layout follow_layout = LAYOUT(T, follow_fields);
#undef T

#define T struct hr_exec_request
static const struct hr_frame_field exec_fields[] = {
    FIELD(T, command, TAG_COMMAND),
    FIELD(T, working_dir, TAG_WORKING_DIR),
    FIELD(T, limit_s, TAG_LENGTH),
    SELDOM(T, kept, TAG_KEPT),
    SELDOM(T, minder, TAG_MINDER),
};
static const struct hr_frame_layout exec_layout = LAYOUT(T, exec_fields);
#undef T

#define T struct hr_output_piece
static const struct hr_frame_field output_fields[] = {
    FIELD(T, offset, TAG_OFFSET),
    FIELD(T, bytes, TAG_CONTENT),
};
static const struct hr_frame_layout output_layout = LAYOUT(T, output_fields);
#undef T

#define T struct hr_press_request
static const struct hr_frame_field press_fields[] = {
    FIELD(T, what, TAG_WHAT),
    SELDOM(T, signal, TAG_SIGNAL),
    SELDOM(T, rows, TAG_ROWS),
    SELDOM(T, columns, TAG_COLUMNS),
    SELDOM(T, command, TAG_ID),
    SELDOM(T, spares, TAG_SPARES),
    SELDOM(T, text, TAG_CONTENT),
};
static const struct hr_frame_layout press_layout = LAYOUT(T, press_fields);
#undef T

#define T struct hr_command_state
static const struct hr_frame_field command_fields[] = {
    FIELD(T, id, TAG_ID),
    FIELD(T, key, TAG_KEY),
    FIELD(T, text, TAG_COMMAND),
    FIELD(T, length, TAG_LENGTH),
    FIELD(T, end, TAG_STATE),
    FIELD(T, exit_code, TAG_EXIT_CODE),
    FIELD(T, log_start, TAG_LOG_START),
    FIELD(T, log_end, TAG_LOG_END),
    FIELD(T, started, TAG_STARTED),
    FIELD(T, elapsed, TAG_ELAPSED),
    FIELD(T, silent, TAG_SILENT),
};
static const struct hr_frame_layout command_layout = LAYOUT(T, command_fields);
#undef T

/* ---- writing ---- */

void
hr_frame_put_empty(struct hr_buf *b, enum hr_frame_type type)
{
	hr_frame_end(b, hr_frame_begin(b, type));
}

void
hr_frame_put_run(struct hr_buf *b, const struct hr_run_request *r)
{
	hr_frame_put(b, HR_FRAME_RUN, &run_layout, r);
}

void
hr_frame_put_result(struct hr_buf *b, const struct hr_run_result *r)
{
	hr_frame_put(b, HR_FRAME_RESULT, &result_layout, r);
}

void
hr_frame_put_act(struct hr_buf *b, const struct hr_act_request *r)
{
	hr_frame_put(b, HR_FRAME_ACT, &act_layout, r);
}

void
hr_frame_put_answer(struct hr_buf *b, const struct hr_act_answer *a)
{
	hr_frame_put(b, HR_FRAME_ANSWER, &answer_layout, a);
}

void
hr_frame_put_refused(struct hr_buf *b, const char *reason)
{
	const struct hr_act_answer a = {.reason = hr_span_of(reason)};

	hr_frame_put(b, HR_FRAME_REFUSED, &refused_layout, &a);
}

void
hr_frame_put_state(struct hr_buf *b, const struct hr_session_state *s)
{
	hr_frame_put(b, HR_FRAME_STATE, &state_layout, s);
}

void
hr_frame_put_follow(struct hr_buf *b, const struct hr_follow_request *r)
{
	hr_frame_put(b, HR_FRAME_FOLLOW, &follow_layout, r);
}

void
hr_frame_put_exec(struct hr_buf *b, const struct hr_exec_request *r)
{
	hr_frame_put(b, HR_FRAME_EXEC, &exec_layout, r);
}

void
hr_frame_put_returned(struct hr_buf *b, uint64_t offset)
{
	const struct hr_follow_request r = {.offset = offset};

	hr_frame_put(b, HR_FRAME_RETURNED, &follow_layout, &r);
}

void
hr_frame_put_output(struct hr_buf *b, const struct hr_output_piece *o)
{
	hr_frame_put(b, HR_FRAME_OUTPUT, &output_layout, o);
}

void
hr_frame_put_press(struct hr_buf *b, const struct hr_press_request *r)
{
	hr_frame_put(b, HR_FRAME_PRESS, &press_layout, r);
}

void
hr_frame_put_list(struct hr_buf *b, const struct hr_command_state *v, size_t n)
{
	size_t at = hr_frame_begin(b, HR_FRAME_LIST);

	for (; n > 0; n--, v++)
		hr_frame_put_fields(b, &command_layout, v);
	hr_frame_end(b, at);
}

/* ---- reading ---- */

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
		return hr_err_set(err, HR_E_PROTO, "the frame has another version");
	if (type < HR_FRAME_RUN || (type > HR_FRAME_LIST && type < HR_FRAME_EXEC) ||
	    type > HR_FRAME_REFUSED)
		return hr_err_set(err, HR_E_PROTO, "unknown frame type %u", type);
	if (size > HR_FRAME_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "a frame of %u bytes is too long", size);
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

bool
hr_frame_waits(const struct hr_buf *b)
{
	struct hr_err none = {0};
	const char *payload;
	size_t len, used, need;
	uint32_t type;

	return hr_frame_get(hr_buf_str(b), b->len, &type, &payload, &len, &used, &need, &none) != 0;
}

int
hr_frame_read(int fd, struct hr_buf *b, uint32_t *ret_type, const char **ret_payload,
    size_t *ret_len, size_t *ret_used, struct hr_err *err)
{
	size_t need = HR_FRAME_HEADER, want;
	ssize_t n;
	char *p;
	int r;

	while ((r = hr_frame_get(hr_buf_str(b), b->len, ret_type, ret_payload, ret_len, ret_used,
		    &need, err)) == 0) {
		want = need - b->len > FIRST_READ ? need - b->len : FIRST_READ;
		p = hr_buf_reserve(b, want);
		if (p == NULL)
			return hr_buf_check(b, err);
		n = hr_fd_read(fd, p, want);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return 0;
		if (n < 0)
			return hr_err_sys(err, errno, "read");
		hr_buf_grew(b, (size_t)n);
	}
	return r;
}

static int
get(const struct hr_frame_layout *l, const void *p, size_t len, void *object, struct hr_err *err)
{
	hr_frame_clear(l, object);
	return hr_frame_get_fields(l, p, len, object, err);
}

int
hr_frame_get_run(const void *p, size_t len, struct hr_run_request *ret, struct hr_err *err)
{
	if (get(&run_layout, p, len, ret, err) < 0)
		return -1;
	if (memchr(ret->command.p, '\0', ret->command.len) != NULL)
		return hr_err_set(err, HR_E_PROTO, "a command has a null byte");
	return 0;
}

int
hr_frame_get_result(const void *p, size_t len, struct hr_run_result *ret, struct hr_err *err)
{
	if (get(&result_layout, p, len, ret, err) < 0)
		return -1;
	if (ret->clock >= HR_CLOCKS)
		return hr_err_set(err, HR_E_PROTO, "unknown clock %u", (unsigned)ret->clock);
	return 0;
}

int
hr_frame_get_act(const void *p, size_t len, struct hr_act_request *ret, struct hr_err *err)
{
	return get(&act_layout, p, len, ret, err);
}

int
hr_frame_get_answer(const void *p, size_t len, struct hr_act_answer *ret, struct hr_err *err)
{
	hr_frame_clear(&answer_layout, ret);
	ret->status = 200;
	return hr_frame_get_fields(&answer_layout, p, len, ret, err);
}

int
hr_frame_get_state(const void *p, size_t len, struct hr_session_state *ret, struct hr_err *err)
{
	return get(&state_layout, p, len, ret, err);
}

int
hr_frame_get_follow(const void *p, size_t len, struct hr_follow_request *ret, struct hr_err *err)
{
	return get(&follow_layout, p, len, ret, err);
}

int
hr_frame_get_exec(const void *p, size_t len, struct hr_exec_request *ret, struct hr_err *err)
{
	if (get(&exec_layout, p, len, ret, err) < 0)
		return -1;
	if (memchr(ret->command.p, '\0', ret->command.len) != NULL ||
	    memchr(ret->working_dir.p, '\0', ret->working_dir.len) != NULL ||
	    memchr(ret->kept.p, '\0', ret->kept.len) != NULL ||
	    memchr(ret->minder.p, '\0', ret->minder.len) != NULL)
		return hr_err_set(err, HR_E_PROTO, "a command has a null byte");
	if (ret->limit_s < 0 || ret->limit_s > HR_EXEC_LIMIT_MAX)
		return hr_err_set(err, HR_E_PROTO, "the limit of a command is not valid");
	return 0;
}

int
hr_frame_get_output(const void *p, size_t len, struct hr_output_piece *ret, struct hr_err *err)
{
	return get(&output_layout, p, len, ret, err);
}

static bool
is_size(int64_t n)
{
	return n >= 1 && n <= HR_TERMINAL_MAX;
}

int
hr_frame_get_press(const void *p, size_t len, struct hr_press_request *ret, struct hr_err *err)
{
	const struct hr_press_request *r = ret;

	if (get(&press_layout, p, len, ret, err) < 0)
		return -1;
	if (r->what < HR_PRESS_TEXT || r->what > HR_PRESS_END ||
	    (r->what == HR_PRESS_SIGNAL && (r->signal < 1 || r->signal > 64)) ||
	    (r->what == HR_PRESS_SIZE && (!is_size(r->rows) || !is_size(r->columns))) ||
	    (r->what == HR_PRESS_KEYS && r->text.len > 0 && r->text.p[r->text.len - 1] != '\0'))
		return hr_err_set(err, HR_E_PROTO, "a request to press a key is not valid");
	return 0;
}

int
hr_frame_get_list(const void *p, size_t len, struct hr_command_state ret[HR_COMMANDS_MAX],
    size_t *ret_n, struct hr_err *err)
{
	struct hr_frame_raw raw;
	size_t at = 0, n = 0;
	int more;

	while ((more = hr_frame_next_field(p, len, &at, &raw, err)) > 0) {
		if (raw.tag == TAG_ID) {
			if (n == HR_COMMANDS_MAX)
				return hr_err_set(err, HR_E_PROTO, "too many commands");
			hr_frame_clear(&command_layout, &ret[n++]);
		}
		if (n > 0 && hr_frame_get_field(&command_layout, &raw, &ret[n - 1], err) < 0)
			return -1;
	}
	*ret_n = n;
	return more;
}
