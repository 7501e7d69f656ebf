#include "config.h"

#include "session/view/echo.h"

#include <string.h>
#include <sys/types.h>

/* A line up to this length certainly fits into one row of the terminal and one write of
 * readline. */
#define LINE_MAX_BYTES 900
#define TAB 8

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t
skip_blanks(const char *s, size_t len, size_t at)
{
	while (at < len && is_blank(s[at]))
		at++;
	return at;
}

size_t
hr_echo_length(const char *text, size_t len, const char *typed, size_t typed_len)
{
	size_t i = 0, j = 0, from;

	while (j < typed_len) {
		unsigned char c = (unsigned char)typed[j];

		if (is_blank(typed[j])) {
			j = skip_blanks(typed, typed_len, j);
			from = i;
			i = skip_blanks(text, len, i);
			if (i == from)
				return 0;
		} else if (c < 0x20 || c == 0x7f) {
			if (len - i < 2 || text[i] != '^' || text[i + 1] != (char)(c ^ 0x40))
				return 0;
			i += 2;
			j++;
		} else {
			/* invalid UTF-8 and single combining characters are not shown */
			if (i < len && text[i] == typed[j])
				i++;
			else if (c < 0x80)
				return 0;
			j++;
		}
	}
	return i;
}

/* Draws a line as readline does, with the newline that ends it: readline moves to column 0 for each
 * line after the first that is not empty. Returns -1 if the line is not that simple. */
static ssize_t
draw_line(const char *line, size_t len, bool first, char *ret)
{
	size_t n = 0, i, col = 0;

	if (!first && len > 0)
		ret[n++] = '\r';
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return -1;
		do
			ret[n++] = c == '\t' ? ' ' : line[i];
		while (++col % TAB != 0 && c == '\t');
		if (n > LINE_MAX_BYTES)
			return -1;
	}
	memcpy(ret + n, "\r\n", 2);
	return (ssize_t)n + 2;
}

/* Returns true for lines of plain text. Cursor movement more likely comes from readline drawing a
 * second time. */
static bool
is_plain(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] == '\r' && (i + 1 == len || p[i + 1] != '\n'))
			return false;
		if ((unsigned char)p[i] < 0x20 && p[i] != '\r' && p[i] != '\n' && p[i] != '\t')
			return false;
	}
	return true;
}

bool
hr_echo_remove(
    const char *bytes, size_t len, const char *typed, size_t typed_len, struct hr_buf *rest)
{
	const char *p = bytes, *end = bytes + len, *line = typed, *last = typed + typed_len, *hit,
		   *nl;
	char drawn[LINE_MAX_BYTES + TAB + 8];
	size_t was = rest->len;
	ssize_t n;

	for (;; line = nl + 1) {
		nl = memchr(line, '\n', (size_t)(last - line));
		n = draw_line(
		    line, (size_t)((nl != NULL ? nl : last) - line), line == typed, drawn);
		if (n < 0)
			break;
		if (nl == NULL)
			n -= 2; /* the last newline is written separately */
		hit = memmem(p, (size_t)(end - p), drawn, (size_t)n);
		if (hit == NULL)
			break;
		hr_buf_add(rest, p, (size_t)(hit - p));
		p = hit + n;
		if (nl == NULL) {
			/* the last newline precedes readline's end sequence */
			if (end - p < 2 || memcmp(end - 2, "\r\n", 2) != 0)
				break;
			hr_buf_add(rest, p, (size_t)(end - 2 - p));
			if (rest->fail == HR_OK && is_plain(rest->p + was, rest->len - was))
				return true;
			break;
		}
	}
	rest->len = was;
	if (rest->p != NULL)
		rest->p[was] = '\0';
	return false;
}
