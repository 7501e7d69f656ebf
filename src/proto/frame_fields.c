/* Writes fields from a struct by a table and reads them back. */
#include "config.h"

#include "proto/frame_int.h"

#include <string.h>

#include "proto/frame.h"

/* ---- writing ---- */

static void
put_u32(struct hr_buf *b, uint32_t v)
{
	hr_buf_add(b, &v, sizeof(v));
}

size_t
hr_frame_begin(struct hr_buf *b, uint32_t type)
{
	size_t at = b->len;

	put_u32(b, HR_FRAME_MAGIC);
	put_u32(b, type);
	put_u32(b, 0);
	return at;
}

void
hr_frame_end(struct hr_buf *b, size_t at)
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
put_field(struct hr_buf *b, const struct hr_frame_field *f, const void *object)
{
	static const char zeros[sizeof(int64_t)];
	struct hr_span s = {(const char *)object + f->at, f->size};

	if (f->is_span)
		memcpy(&s, s.p, sizeof(s));
	if (f->seldom && (f->is_span ? s.len == 0 : memcmp(s.p, zeros, s.len) == 0))
		return;
	if (s.len > HR_FRAME_MAX) {
		b->fail = b->fail == HR_OK ? HR_E_TOOLARGE : b->fail;
		return;
	}
	put_u32(b, f->tag);
	put_u32(b, (uint32_t)s.len);
	hr_buf_add(b, s.p, s.len);
}

void
hr_frame_put_fields(struct hr_buf *b, const struct hr_frame_layout *l, const void *object)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		put_field(b, &l->fields[i], object);
}

void
hr_frame_put(struct hr_buf *b, uint32_t type, const struct hr_frame_layout *l, const void *object)
{
	size_t at = hr_frame_begin(b, type);

	hr_frame_put_fields(b, l, object);
	hr_frame_end(b, at);
}

/* ---- reading ---- */

int
hr_frame_next_field(
    const char *p, size_t len, size_t *io_at, struct hr_frame_raw *ret, struct hr_err *err)
{
	size_t at = *io_at;

	*ret = (struct hr_frame_raw){0}; /* GCC 14 cannot see that hr_err_set() returns -1 */
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
	*io_at = at + ret->len;
	return 1;
}

int
hr_frame_get_field(const struct hr_frame_layout *l, const struct hr_frame_raw *raw, void *object,
    struct hr_err *err)
{
	const struct hr_frame_field *f;

	for (f = l->fields; f < l->fields + l->n && f->tag != raw->tag; f++)
		;
	if (f == l->fields + l->n)
		return 0; /* an unknown tag is skipped */
	if (f->is_span) {
		*(struct hr_span *)((char *)object + f->at) = (struct hr_span){raw->p, raw->len};
		return 0;
	}
	if (raw->len != f->size)
		return hr_err_set(err, HR_E_PROTO, "field %u has %u bytes, not %u", raw->tag,
		    raw->len, (unsigned)f->size);
	if (f->is_bool)
		*(bool *)((char *)object + f->at) = raw->p[0] != 0;
	else
		memcpy((char *)object + f->at, raw->p, f->size);
	return 0;
}

void
hr_frame_clear(const struct hr_frame_layout *l, void *object)
{
	size_t i;

	memset(object, 0, l->size);
	for (i = 0; i < l->n; i++)
		if (l->fields[i].is_span)
			((struct hr_span *)((char *)object + l->fields[i].at))->p = "";
}

int
hr_frame_get_fields(
    const struct hr_frame_layout *l, const void *p, size_t len, void *object, struct hr_err *err)
{
	struct hr_frame_raw raw;
	size_t at = 0;
	int more;

	while ((more = hr_frame_next_field(p, len, &at, &raw, err)) > 0)
		if (hr_frame_get_field(l, &raw, object, err) < 0)
			return -1;
	return more;
}
