/* Sends files and ranges of them as Starlette's FileResponse does. nginx sends them only if the
 * request has neither ranges nor conditions, which it would treat in another way. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text/utf8.h"
#include "files/byteparts.h"
#include "worker/v1/v1.h"

/* ---- ranges ---- */

/* Parses a number of int(): no fraction. */
static bool
parse_offset(struct hr_span s, long long *ret)
{
	return memchr(s.p, '.', s.len) == NULL && hr_rex_parse_int(s, ret);
}

static struct hr_span
strip(const char *p, size_t len)
{
	hr_utf8_strip(&p, &len);
	return (struct hr_span){p, len};
}

/* Parses "FROM-LAST", "FROM-" or "-LENGTH". Returns false for anything else, which is ignored. The
 * part may be empty or lie outside the file. */
static bool
parse_part(struct hr_span part, off_t size, struct hr_bytepart *ret)
{
	const char *dash = memchr(part.p, '-', part.len);
	struct hr_span first, last;
	long long from, n = 0, end = size;

	if (dash == NULL)
		return false;
	first = strip(part.p, (size_t)(dash - part.p));
	last = strip(dash + 1, (size_t)(part.p + part.len - dash - 1));
	if ((last.len > 0 || first.len == 0) && !parse_offset(last, &n))
		return false;
	if (first.len == 0)
		from = n < size ? (n > -size ? size - n : size) : 0;
	else if (!parse_offset(first, &from))
		return false;
	if (first.len > 0 && last.len > 0 && n < size)
		end = n + 1;
	/* the caller refuses both */
	ret->from = from < 0 || from > size ? size : from;
	ret->len = end > from ? end - ret->from : 0;
	return true;
}

static int
compare(const void *a, const void *b)
{
	const struct hr_bytepart *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->len < y->len ? -1 : x->len > y->len;
}

/* Joins sorted parts that overlap or touch. Returns their number. */
static int
join(struct hr_bytepart *part, int n)
{
	int i, last = 0;
	off_t end;

	for (i = 1; i < n; i++) {
		end = part[last].from + part[last].len;
		if (part[i].from > end)
			part[++last] = part[i];
		else if (part[i].from + part[i].len > end)
			part[last].len = part[i].from + part[i].len - part[last].from;
	}
	return last + 1;
}

int
hr_v1_ranges(const char *header, off_t size, struct hr_bytepart *to, const char **ret_why)
{
	const char *p = strchr(header, '='), *comma;
	struct hr_span unit, one;
	bool outside = false, empty = false;
	size_t len, commas = 0;
	int n = 0;

	*ret_why = "Malformed range header.";
	if (p == NULL)
		return -2;
	unit = strip(header, (size_t)(p - header));
	*ret_why = "Only support bytes range";
	if (unit.len != 5 || strncasecmp(unit.p, "bytes", 5) != 0)
		return -2;
	for (comma = strchr(++p, ','); comma != NULL; comma = strchr(comma + 1, ','))
		commas++;
	if (commas >= HR_V1_RANGES)
		return 0;
	for (;; p += len + 1) {
		len = strcspn(p, ",");
		one = strip(p, len);
		if (one.len > 0 && parse_part(one, size, &to[n])) {
			outside = outside || to[n].from >= size;
			empty = empty || to[n].len == 0;
			n++;
		}
		if (p[len] == '\0')
			break;
	}
	*ret_why = n == 0 ? "Range header: range must be requested"
			  : "Range header: start must be less than end";
	if (n == 0 || (empty && !outside))
		return -2;
	if (outside)
		return -1;
	qsort(to, (size_t)n, sizeof(*to), compare);
	return join(to, n);
}

/* ---- the answer ---- */

static void
refuse(struct hr_answer *ret, int status, const char *why, off_t size)
{
	HR_BUF(range, 128);

	hr_answer_reset(ret);
	ret->status = status;
	ret->content_type = "text/plain; charset=utf-8";
	hr_buf_adds(&ret->body, why);
	hr_buf_addf(&range, "bytes */%lld", (long long)size);
	if (status == 416)
		hr_answer_header(ret, "Content-Range", hr_buf_str(&range));
}

void
hr_v1_download(struct hr_rex_call *c, int *fd, const struct stat *st)
{
	struct hr_bytepart parts[HR_V1_RANGES] = {{0, st->st_size}};
	const char *why = "", *unless = c->r->if_range;
	HR_BUF(etag, 64);
	HR_BUF(date, 64);
	int n = 0;

	if (c->r->range[0] == '\0' && c->r->if_none_match[0] == '\0' && !c->r->conditional) {
		hr_download_send(c->w, c->r, fd, st, c->ret);
		return;
	}
	hr_download_describe(st, c->ret, &etag, &date);
	if (c->r->range[0] != '\0' &&
	    (unless[0] == '\0' || strcmp(unless, hr_buf_str(&etag)) == 0 ||
		strcmp(unless, hr_buf_str(&date)) == 0))
		n = hr_v1_ranges(c->r->range, st->st_size, parts, &why);
	if (n == -2) {
		refuse(c->ret, 400, why, st->st_size);
	} else if (n == -1) {
		refuse(c->ret, 416, "", st->st_size);
	} else {
		c->ret->status = n > 0 ? 206 : 200;
		if (n > 1)
			hr_download_parts(fd, st->st_size, parts, (size_t)n, true, c->ret);
		else
			hr_download_part(fd, st->st_size, n > 0 ? parts->from : 0,
			    n > 0 ? parts->len : st->st_size, c->ret);
	}
}
