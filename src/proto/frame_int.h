/* hr_frame_layout: describes a payload, or a part of one, as a table of its fields in the order in
 * which they are written. Each row names a member of a struct: a number, a bool or a struct
 * hr_span. */
#ifndef HR_PROTO_FRAME_INT_H
#define HR_PROTO_FRAME_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

struct hr_frame_field {
	uint8_t tag;
	bool is_span, is_bool;
	bool seldom;   /* omitted if 0 or empty */
	uint16_t at;   /* offset of the member in its struct */
	uint16_t size; /* bytes of a number, on the wire as in the struct */
};

struct hr_frame_layout {
	size_t n, size;
	const struct hr_frame_field *fields;
};

#define MEMBER(type, member) ((type *)0)->member
#define IS(what, type, member) __builtin_types_compatible_p(typeof(MEMBER(type, member)), what)
#define ROW(type, member, number, rare)                                                            \
	{                                                                                          \
		.tag = (number), .seldom = (rare), .at = offsetof(type, member),                   \
		.size = sizeof(MEMBER(type, member)), .is_span = IS(struct hr_span, type, member), \
		.is_bool = IS(bool, type, member)                                                  \
	}
#define FIELD(type, member, number) ROW(type, member, number, false)
#define SELDOM(type, member, number) ROW(type, member, number, true)
#define LAYOUT(type, rows)                                                                         \
	{                                                                                          \
		.n = sizeof(rows) / sizeof((rows)[0]), .size = sizeof(type), .fields = (rows)      \
	}

/* ---- writing ---- */

/* Starts a frame and returns the offset of its header; hr_frame_end() fills in the length. */
size_t hr_frame_begin(struct hr_buf *b, uint32_t type);
void hr_frame_end(struct hr_buf *b, size_t at);
void hr_frame_put_fields(struct hr_buf *b, const struct hr_frame_layout *l, const void *object);
/* Appends a whole frame. */
void
hr_frame_put(struct hr_buf *b, uint32_t type, const struct hr_frame_layout *l, const void *object);

/* ---- reading ---- */

/* A field as it stands in a payload. */
struct hr_frame_raw {
	uint32_t tag, len;
	const char *p;
};

/* Returns 1 with the next field in *ret and *io_at moved past it, 0 at the end, -1 if a field
 * exceeds the payload. */
int hr_frame_next_field(
    const char *p, size_t len, size_t *io_at, struct hr_frame_raw *ret, struct hr_err *err);
/* Stores a field in the object; skips one that the layout lacks. */
int hr_frame_get_field(const struct hr_frame_layout *l, const struct hr_frame_raw *raw,
    void *object, struct hr_err *err);
/* Sets all numbers to 0 and all spans to "". */
void hr_frame_clear(const struct hr_frame_layout *l, void *object);
int hr_frame_get_fields(
    const struct hr_frame_layout *l, const void *p, size_t len, void *object, struct hr_err *err);

#endif
