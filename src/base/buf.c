/* Implements growing bytes. Invariant: p == NULL, or room > len and p[len] == '\0'. */
#include "config.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
hr_buf_init(struct hr_buf *b, size_t cap)
{
	memset(b, 0, sizeof(*b));
	b->cap = cap < SIZE_MAX / 2 ? cap : SIZE_MAX / 2;
}

void
hr_buf_done(struct hr_buf *b)
{
	free(b->p);
	b->p = NULL;
	b->len = b->room = 0;
}

void
hr_buf_reset(struct hr_buf *b)
{
	b->len = 0;
	b->fail = HR_OK;
	if (b->p != NULL)
		b->p[0] = '\0';
}

static bool
buf_room_for(struct hr_buf *b, size_t want)
{
	size_t room;
	char *p;

	if (b->fail != HR_OK)
		return false;
	if (want > b->cap || b->len > b->cap - want) {
		b->fail = HR_E_TOOLARGE;
		return false;
	}
	if (b->p != NULL && b->room - b->len > want)
		return true;
	room = b->room < 64 ? 64 : b->room;
	while (room - b->len <= want)
		room *= 2;
	p = realloc(b->p, room);
	if (p == NULL) {
		b->fail = HR_E_NOMEM;
		return false;
	}
	b->p = p;
	b->room = room;
	return true;
}

void
hr_buf_add(struct hr_buf *b, const void *p, size_t len)
{
	if (!buf_room_for(b, len))
		return;
	if (len > 0)
		memcpy(b->p + b->len, p, len);
	b->len += len;
	b->p[b->len] = '\0';
}

void
hr_buf_addc(struct hr_buf *b, char c)
{
	hr_buf_add(b, &c, 1);
}

void
hr_buf_adds(struct hr_buf *b, const char *s)
{
	hr_buf_add(b, s, strlen(s));
}

void
hr_buf_addf(struct hr_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !buf_room_for(b, (size_t)n)) {
		if (b->fail == HR_OK)
			b->fail = HR_E_INVAL;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap); /* the room was reserved above */
	va_end(ap);
	b->len += (size_t)n;
}

char *
hr_buf_reserve(struct hr_buf *b, size_t want)
{
	if (!buf_room_for(b, want))
		return NULL;
	b->p[b->len] = '\0';
	return b->p + b->len;
}

void
hr_buf_grew(struct hr_buf *b, size_t len)
{
	hr_assert(b->p != NULL && len < b->room - b->len);
	b->len += len;
	b->p[b->len] = '\0';
}

void
hr_buf_drop_front(struct hr_buf *b, size_t n)
{
	hr_assert(n <= b->len);
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->len - n + 1);
	b->len -= n;
}

int
hr_buf_check(const struct hr_buf *b, struct hr_err *err)
{
	if (b->fail == HR_OK)
		return 0;
	if (b->fail == HR_E_TOOLARGE)
		return hr_err_set(err, HR_E_TOOLARGE, "more than %zu bytes", b->cap);
	if (b->fail == HR_E_INVAL)
		return hr_err_set(err, HR_E_INVAL, "text cannot be formatted");
	return hr_err_nomem(err);
}

const char *
hr_buf_str(const struct hr_buf *b)
{
	return b->p != NULL ? b->p : "";
}

char *
hr_buf_take(struct hr_buf *b)
{
	char *p;

	if (b->fail != HR_OK)
		return NULL;
	if (b->p == NULL)
		return calloc(1, 1);
	p = b->p;
	b->p = NULL;
	b->len = b->room = 0;
	return p;
}

char *
hr_buf_end(struct hr_buf *b, struct hr_err *err)
{
	char *p = hr_buf_take(b);

	hr_buf_done(b);
	return p != NULL ? p : hr_err_null(err);
}
