/* Implements paths as pathlib's PurePosixPath does. */
#include "config.h"

#include "files/purepath.h"

#include <stdlib.h>
#include <string.h>

#include "files/charset/charset.h"
#include "base/text/utf8.h"

/* Appends the parts of p to the path in b that starts at `root`. */
static void
put_parts(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len, *next;
	size_t n;

	for (; p < end; p = next + 1) {
		next = memchr(p, '/', (size_t)(end - p));
		if (next == NULL)
			next = end;
		n = (size_t)(next - p);
		if (n == 0 || (n == 1 && p[0] == '.'))
			continue;
		if (b->len > 0 && b->p[b->len - 1] != '/')
			hr_buf_addc(b, '/');
		hr_buf_add(b, p, n);
	}
}

void
hr_purepath_put(struct hr_buf *b, const char *p, size_t len)
{
	if (len >= 2 && p[0] == '/' && p[1] == '/' && (len == 2 || p[2] != '/'))
		hr_buf_adds(b, "//");
	else if (len >= 1 && p[0] == '/')
		hr_buf_addc(b, '/');
	put_parts(b, p, len);
	if (b->len == 0)
		hr_buf_addc(b, '.');
}

void
hr_purepath_join(struct hr_buf *b, struct hr_span base, const char *p, size_t len)
{
	if (len > 0 && p[0] == '/') {
		hr_purepath_put(b, p, len);
		return;
	}
	hr_purepath_put(b, base.p, base.len);
	if (b->len == 1 && b->p[0] == '.')
		hr_buf_drop_front(b, 1);
	put_parts(b, p, len);
	if (b->len == 0)
		hr_buf_addc(b, '.');
}

struct hr_span
hr_purepath_suffix(const char *path, size_t len)
{
	const char *end = path + len, *name = end, *dot;

	while (name > path && name[-1] != '/')
		name--;
	dot = memrchr(name, '.', (size_t)(end - name));
	if (dot == NULL || dot == name || dot + 1 == end)
		return (struct hr_span){"", 0};
	return (struct hr_span){dot, (size_t)(end - dot)};
}

char *
hr_purepath_bytes(const char *p, size_t len, struct hr_buf *why)
{
	const char *end = p + len;
	HR_BUF(b, len);
	size_t n;
	int32_t cp;
	char *bytes;

	if (memchr(p, '\0', len) != NULL) {
		if (why != NULL)
			hr_buf_adds(why, "embedded null byte");
		return NULL;
	}
	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (!hr_utf8_is_surrogate(cp)) {
			hr_buf_add(&b, p, n);
		} else if (cp >= 0xDC80 && cp <= 0xDCFF) {
			hr_buf_addc(&b, (char)(cp - 0xDC00));
		} else {
			if (why != NULL)
				(void)hr_charset_check_text(end - len, len, why);
			return NULL;
		}
	}
	bytes = hr_buf_take(&b);
	if (bytes == NULL && why != NULL)
		why->fail = HR_E_NOMEM;
	return bytes;
}

void
hr_purepath_text(struct hr_buf *b, const char *bytes, size_t len)
{
	const char *end = bytes + len;
	size_t n;
	int32_t cp;

	for (; bytes < end; bytes += n) {
		cp = hr_utf8_next(bytes, end, &n);
		if (cp >= 0 && !hr_utf8_is_surrogate(cp)) {
			hr_buf_add(b, bytes, n);
		} else {
			n = 1;
			hr_utf8_add(b, 0xDC00u + (unsigned char)*bytes);
		}
	}
}
