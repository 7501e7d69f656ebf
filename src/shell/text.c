/* Trimming, counting and cutting. Counting looks at the bytes once, eight at a time where they are
 * ASCII, since observations of many megabytes pass through here. */
#include "config.h"

#include "shell/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char hr_shell_truncated_mark[] = "\n[... Observation truncated due to length ...]\n";

/* Length of the code point at s: 1 for a byte that begins no valid UTF-8 sequence. Surrogates are
 * let through, as the reference's strings may hold them. */
static size_t
point_length(const unsigned char *s, size_t len)
{
	size_t n, i;
	unsigned char low = 0x80, high = 0xBF;

	if (s[0] < 0xC2 || s[0] > 0xF4)
		return 1;
	n = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	if (s[0] == 0xE0)
		low = 0xA0;
	else if (s[0] == 0xF0)
		low = 0x90;
	else if (s[0] == 0xF4)
		high = 0x8F;
	if (len < n || s[1] < low || s[1] > high)
		return 1;
	for (i = 2; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 1;
	return n;
}

static bool
is_wide_space(unsigned cp)
{
	return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* Bytes of the white space character at s, 0 if there is none. */
static size_t
space_length(const unsigned char *s, size_t len)
{
	size_t n;

	if (s[0] < 0x80)
		return s[0] == ' ' || (s[0] >= 0x09 && s[0] <= 0x0D) ||
		       (s[0] >= 0x1C && s[0] <= 0x1F);
	n = point_length(s, len);
	if (n == 2)
		return is_wide_space((s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu)) ? n : 0;
	if (n == 3)
		return is_wide_space((s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu))
			   ? n
			   : 0;
	return 0;
}

size_t
hr_shell_lstrip(const char *s, size_t len)
{
	size_t at = 0, n;

	while (at < len && (n = space_length((const unsigned char *)s + at, len - at)) > 0)
		at += n;
	return at;
}

size_t
hr_shell_rstrip(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;

	while (len > 0) {
		size_t n = 1;

		/* All white space beyond ASCII has two or three bytes. */
		while (n < 3 && n < len && (u[len - n] & 0xC0) == 0x80)
			n++;
		if (space_length(u + len - n, n) != n)
			break;
		len -= n;
	}
	return len;
}

const char *
hr_shell_strip(const char *s, size_t len, size_t *ret_len)
{
	size_t from;

	len = hr_shell_rstrip(s, len);
	from = hr_shell_lstrip(s, len);
	*ret_len = len - from;
	return s + from;
}

/* Passes over at most `points` code points from `at`; *ret_points: how many there were. */
static size_t
skip_points(const char *s, size_t len, size_t at, size_t points, size_t *ret_points)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = 0;

	while (at < len && n < points) {
		uint64_t w;

		while (len - at >= sizeof(w) && points - n >= sizeof(w)) {
			memcpy(&w, s + at, sizeof(w));
			if (w & UINT64_C(0x8080808080808080))
				break;
			at += sizeof(w);
			n += sizeof(w);
		}
		if (at < len && n < points) {
			at += point_length(u + at, len - at);
			n++;
		}
	}
	*ret_points = n;
	return at;
}

size_t
hr_shell_count(const char *s, size_t len)
{
	size_t n;

	(void)skip_points(s, len, 0, len, &n);
	return n;
}

bool
hr_shell_truncation(const char *s, size_t len, size_t *ret_head, size_t *ret_tail)
{
	size_t n, total, head;

	if (len <= HR_SHELL_CONTENT_MAX)
		return false;
	total = hr_shell_count(s, len);
	if (total <= HR_SHELL_CONTENT_MAX)
		return false;
	head = skip_points(s, len, 0, HR_SHELL_CONTENT_KEEP, &n);
	*ret_tail =
	    skip_points(s, len, head, total - HR_SHELL_CONTENT_KEEP - HR_SHELL_CONTENT_KEEP, &n);
	*ret_head = head;
	return true;
}
