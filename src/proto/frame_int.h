/* Inside of hr_frame: frame.c has what actions need, frame_live.c what those need who look on. */
#ifndef HR_PROTO_FRAME_INT_H
#define HR_PROTO_FRAME_INT_H

#include "proto/frame.h"

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
	TAG_WHAT,
	TAG_ROWS,
	TAG_COLUMNS,
	TAG_ID, /* begins a command */
	TAG_LENGTH,
	TAG_STATE,
	TAG_STARTED,
	TAG_ELAPSED,
	TAG_SILENT,
	TAG_TYPE = 64, /* these are written down in PROTOCOL: plugins are built elsewhere */
	TAG_ACTION,
	TAG_STATUS,
	TAG_BODY,
};

struct frame_field {
	uint32_t tag;
	uint32_t len;
	const char *p;
};

/* Returns where the header begins; frame_end() fills the length in. */
size_t frame_begin(struct hr_buf *b, uint32_t type);
void frame_end(struct hr_buf *b, size_t at);
void frame_put_span(struct hr_buf *b, uint32_t tag, struct hr_span s);
void frame_put_bool(struct hr_buf *b, uint32_t tag, bool v);
void frame_put_i64(struct hr_buf *b, uint32_t tag, int64_t v);

/* 1: *ret is the next field and *p_at is behind it; 0: no more; -1: a field passes the end. */
int frame_field_next(
    const char *p, size_t len, size_t *p_at, struct frame_field *ret, struct hr_err *err);
int frame_field_fixed(const struct frame_field *f, void *ret, size_t size, struct hr_err *err);
int frame_field_bool(const struct frame_field *f, bool *ret, struct hr_err *err);
void frame_field_span(const struct frame_field *f, struct hr_span *ret);

#endif
