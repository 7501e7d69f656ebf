/* Reads a file piece by piece, and makes the headers that describe it. */
#include "config.h"

#include "files/filebody.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define BUFFER (256u << 10)

struct filebody {
	int fd;
	off_t at, end;
	char buffer[BUFFER];
};

/* Parses digits. Returns -1 if there are none, or too many. */
static off_t
parse_offset(const char **p)
{
	off_t n = 0;

	if (**p < '0' || **p > '9')
		return -1;
	for (; **p >= '0' && **p <= '9'; ++*p)
		if (__builtin_mul_overflow(n, (off_t)10, &n) ||
		    __builtin_add_overflow(n, (off_t)(**p - '0'), &n))
			return -1;
	return n;
}

enum hr_range
hr_range_parse(const char *header, off_t size, off_t *ret_from, off_t *ret_len)
{
	const char *p = header;
	off_t from, last = -1;

	if (strncasecmp(p, "bytes=", 6) != 0)
		return HR_RANGE_ALL;
	p += 6;
	p += strspn(p, " \t");
	from = *p == '-' ? -1 : parse_offset(&p);
	if (*p != '-' || (from < 0 && p[1] == '\0'))
		return HR_RANGE_ALL;
	p++;
	if (*p != '\0') {
		last = parse_offset(&p);
		if (last < 0)
			return HR_RANGE_ALL;
	}
	p += strspn(p, " \t");
	if (*p != '\0')
		return HR_RANGE_ALL;
	if (from < 0) { /* a suffix range names the last `last` bytes */
		if (last == 0 || size == 0)
			return HR_RANGE_NONE;
		from = last < size ? size - last : 0;
		last = size - 1;
	} else if (last >= 0 && last < from) {
		return HR_RANGE_ALL;
	} else if (from >= size) {
		return HR_RANGE_NONE;
	}
	if (last < 0 || last >= size)
		last = size - 1;
	*ret_from = from;
	*ret_len = last - from + 1;
	return HR_RANGE_PART;
}

void
hr_filebody_etag(struct hr_buf *b, time_t mtime, off_t size)
{
	hr_buf_addf(b, "\"%llx-%llx\"", (unsigned long long)mtime, (unsigned long long)size);
}

void
hr_filebody_date(struct hr_buf *b, time_t mtime)
{
	char text[64];
	struct tm tm;

	/* the program never sets LC_TIME */
	if (gmtime_r(&mtime, &tm) != NULL &&
	    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
		hr_buf_adds(b, text);
}

bool
hr_filebody_matches(const char *header, const char *etag)
{
	size_t n, len = strlen(etag);

	for (;; header += n) {
		header += strspn(header, " \t,");
		if (*header == '\0')
			return false;
		n = strcspn(header, ",");
		while (n > 0 && (header[n - 1] == ' ' || header[n - 1] == '\t'))
			n--;
		if (n == 1 && *header == '*')
			return true;
		if (n > 2 && strncmp(header, "W/", 2) == 0) {
			header += 2;
			n -= 2;
		}
		if (n == len && memcmp(header, etag, n) == 0)
			return true;
	}
}

void *
hr_filebody_new(int fd, off_t from, off_t len)
{
	struct filebody *b = malloc(sizeof(*b));

	if (b == NULL) {
		hr_fd_close(&fd);
		return NULL;
	}
	b->fd = fd;
	b->at = from;
	b->end = from + len;
	return b;
}

int
hr_filebody_send(void *body, struct hr_sink *sink, struct hr_err *err)
{
	struct filebody *b = body;
	ssize_t n;

	while (b->at < b->end) {
		n = pread(b->fd, b->buffer,
		    b->end - b->at < (off_t)BUFFER ? (size_t)(b->end - b->at) : BUFFER, b->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hr_err_sys(err, errno, "reading the file");
		if (n == 0)
			return hr_err_set(err, HR_E_GONE, "the file has become shorter");
		if (sink->write(sink, b->buffer, (size_t)n) < 0)
			return -1;
		b->at += n;
	}
	return 0;
}

void
hr_filebody_free(void *body)
{
	struct filebody *b = body;

	if (b == NULL)
		return;
	hr_fd_close(&b->fd);
	free(b);
}
