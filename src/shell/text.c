/* Counts and cuts text. Counting reads the bytes once, eight at a time while they are ASCII, since
 * observations of many megabytes pass here. */
#include "config.h"

#include "shell/text.h"

#include <stdint.h>
#include <string.h>

#include "base/text/swar.h"
#include "base/text/utf8.h"

const char hr_shell_truncated_mark[] = "\n[... Observation truncated due to length ...]\n";

/* Skips at most `points` code points from `at`; *ret_points is the number skipped. */
static size_t
skip_points(const char *s, size_t len, size_t at, size_t points, size_t *ret_points)
{
	size_t n = 0, step;
	uint64_t w;

	while (at < len && n < points) {

		while (len - at >= sizeof(w) && points - n >= sizeof(w)) {
			memcpy(&w, s + at, sizeof(w));
			if ((w & HR_SWAR_HIGH) != 0)
				break;
			at += sizeof(w);
			n += sizeof(w);
		}
		if (at < len && n < points) {
			at += hr_utf8_next(s + at, s + len, &step) < 0 ? 1 : step;
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
