/* Answers GET /files as Go's http.ServeContent does: conditions, ranges, types; or compressed by
 * gzip at once if the client takes that and asks for no range. */
#include "config.h"

#include "worker/e2b/e2b.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fd.h"
#include "base/path.h"
#include "e2b/entry.h"
#include "files/byteparts.h"
#include "files/filebody.h"
#include "files/place/reach.h"
#include "files/place/whole.h"
#include "proto/httperr.h"
#include "worker/e2b/mime.h"

#define STEP (128u << 10)
#define GZIP 16 /* added to zlib's window bits: the format of gzip */

/* ---- encodings ---- */

enum encoding { IDENTITY, COMPRESSED, NEITHER };

/* Chooses by the weights of Accept-Encoding; of equal ones the first counts. */
static enum encoding
choose(const char *accept, bool identity_only)
{
	double best = 0, q;
	enum encoding chosen = NEITHER;
	bool refused = false;
	const char *p, *weight;
	size_t len, name;

	for (p = accept; *p != '\0'; p += len + (p[len] == ',')) {
		p += strspn(p, " \t");
		len = strcspn(p, ",");
		name = strcspn(p, ",; \t");
		weight = memmem(p, len, "q=", 2);
		q = weight != NULL ? strtod(weight + 2, NULL) : 1;
		if (name == 4 && strncasecmp(p, "gzip", 4) == 0 && q > best && !identity_only) {
			best = q;
			chosen = COMPRESSED;
		} else if (name == 8 && strncasecmp(p, "identity", 8) == 0) {
			refused = refused || q <= 0;
			if (q > best) {
				best = q;
				chosen = IDENTITY;
			}
		} else if (name == 1 && *p == '*' && q <= 0) {
			refused = true;
		}
	}
	return chosen == NEITHER && !refused ? IDENTITY : chosen;
}

struct packed {
	int fd;
	z_stream z;
	unsigned char in[STEP], out[STEP];
};

static int
packed_send(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct packed *k = arg;
	int flush = Z_NO_FLUSH;
	ssize_t n;

	while (flush != Z_FINISH) {
		n = hr_fd_read(k->fd, k->in, sizeof(k->in));
		if (n < 0)
			return hr_err_sys(err, errno, "cannot read the file");
		flush = n == 0 ? Z_FINISH : Z_NO_FLUSH;
		k->z.next_in = k->in;
		k->z.avail_in = (unsigned)n;
		do {
			k->z.next_out = k->out;
			k->z.avail_out = sizeof(k->out);
			(void)deflate(&k->z, flush); /* cannot fail with a valid state */
			if (sink->write(sink, k->out, sizeof(k->out) - k->z.avail_out) < 0)
				return -1;
		} while (k->z.avail_out == 0);
	}
	return 0;
}

static void
packed_free(void *arg)
{
	struct packed *k = arg;

	(void)deflateEnd(&k->z);
	hr_fd_close(&k->fd);
	free(k);
}

/* Takes *fd. */
static void
send_packed(struct hr_e2b_call *c, const char *path, int *fd)
{
	struct packed *k = calloc(1, sizeof(*k));
	struct hr_stream s = {packed_send, packed_free, k, -1};
	const char *type = hr_mime_by_name(path);

	(void)lseek(*fd, 0, SEEK_SET); /* a device cannot seek, and need not */
	if (k == NULL || deflateInit2(&k->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
			     Z_DEFAULT_STRATEGY) != Z_OK) {
		free(k);
		hr_answer_generic(c->ret);
		return;
	}
	k->fd = *fd;
	*fd = -1;
	c->ret->content_type = type != NULL ? type : "application/octet-stream";
	hr_answer_header(c->ret, "Content-Encoding", "gzip");
	hr_answer_stream(c->ret, &s);
}

/* ---- ranges ---- */

int
hr_e2b_ranges(const char *header, off_t size, struct hr_bytepart *to)
{
	const char *p = header + strlen("bytes=");
	char one[64];
	off_t sum = 0;
	size_t len;
	int n = 0, missed = 0;

	if (strncmp(header, "bytes=", 6) != 0)
		return -2;
	for (; *p != '\0'; p += len + (p[len] == ',')) {
		p += strspn(p, " \t");
		len = strcspn(p, ",");
		if (len == 0)
			continue;
		if (len + 7 > sizeof(one))
			return -2;
		(void)snprintf(one, sizeof(one), "bytes=%.*s", (int)len, p);
		if (n == HR_E2B_RANGES)
			return 0;
		switch (hr_range_parse(one, size, &to[n].from, &to[n].len)) {
		case HR_RANGE_ALL: return -2;
		case HR_RANGE_NONE: missed++; break;
		case HR_RANGE_PART: sum += to[n++].len; break;
		}
	}
	if (n == 0 && missed > 0)
		return size == 0 ? 0 : -1;
	return sum > size ? 0 : n;
}

/* ---- conditions ---- */

static time_t
parse_date(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end != NULL && *end == '\0' ? timegm(&tm) : -1;
}

/* Returns 200, 304 or 412. Files have no ETag. */
static int
check_conditions(const struct hr_e2b_call *c, time_t changed)
{
	const char *match = hr_e2b_header(c, "IF_MATCH");
	const char *none = hr_e2b_header(c, "IF_NONE_MATCH");
	time_t since = parse_date(hr_e2b_header(c, "IF_MODIFIED_SINCE"));
	time_t until = parse_date(hr_e2b_header(c, "IF_UNMODIFIED_SINCE"));

	if (match[0] != '\0' ? strchr(match, '*') == NULL : until >= 0 && changed > until)
		return 412;
	if (none[0] != '\0' ? strchr(none, '*') != NULL : since >= 0 && changed <= since)
		return 304;
	return 200;
}

/* Sends the bytes as they are. Takes *fd. */
static void
send_plain(struct hr_e2b_call *c, const char *path, int *fd, const struct stat *st)
{
	struct hr_answer *ret = c->ret;
	const char *unless = c->r->if_range, *type = hr_mime_by_name(path);
	struct hr_bytepart range[HR_E2B_RANGES];
	char start[HR_MIME_SNIFF];
	HR_BUF(text, 128);
	ssize_t sniffed;
	int n = 0;

	hr_filebody_date(&text, st->st_mtime);
	ret->status = check_conditions(c, st->st_mtime);
	if (c->r->range[0] != '\0' && (unless[0] == '\0' || parse_date(unless) == st->st_mtime))
		n = hr_e2b_ranges(c->r->range, st->st_size, range);
	if (ret->status == 200 && n < 0) {
		ret->status = 416;
		ret->content_type = "text/plain; charset=utf-8";
		hr_answer_header(ret, "X-Content-Type-Options", "nosniff");
		hr_buf_adds(
		    &ret->body, n == -1 ? "invalid range: failed to overlap\n" : "invalid range\n");
		hr_buf_reset(&text);
		hr_buf_addf(&text, "bytes */%lld", (long long)st->st_size);
		if (n == -1)
			hr_answer_header(ret, "Content-Range", hr_buf_str(&text));
		return;
	}
	hr_answer_header(ret, "Last-Modified", hr_buf_str(&text));
	ret->content_type = NULL;
	if (ret->status != 200)
		return;
	hr_answer_header(ret, "Accept-Ranges", "bytes");
	sniffed = type == NULL ? pread(*fd, start, sizeof(start), 0) : 0;
	ret->content_type =
	    type != NULL ? type : hr_mime_by_content(start, sniffed > 0 ? (size_t)sniffed : 0);
	ret->status = n > 0 ? 206 : 200;
	if (n > 1)
		hr_download_parts(fd, st->st_size, range, (size_t)n, false, ret);
	else if (n == 1)
		hr_download_part(fd, st->st_size, range->from, range->len, ret);
	else
		hr_download_part(fd, st->st_size, 0, st->st_size, ret);
}

/* ---- the request ---- */

/* Returns true for a file whose bytes can be sent: a regular one, or a device that is empty. */
static bool
is_readable(int *fd, struct stat *st)
{
	char one;

	if (S_ISREG(st->st_mode))
		return hr_whole_take(fd, st) == 0;
	errno = EINVAL;
	if (!S_ISCHR(st->st_mode) || read(*fd, &one, 1) != 0)
		return false;
	st->st_size = 0;
	return true;
}

static void
send(struct hr_e2b_call *c, const char *path)
{
	enum encoding encoding =
	    choose(hr_e2b_header(c, "ACCEPT_ENCODING"), c->r->range[0] != '\0');
	HR_CLOSE int fd = hr_reach_keep_out(c->w->run_dir,
	    hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false), false);
	HR_BUF(disposition, HR_E2B_PATH_MAX * 3);
	HR_BUF(why, 256);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		hr_e2b_refuse(c, 404, "path '%s' does not exist", path);
	} else if (fd < 0 || fstat(fd, &st) < 0) {
		hr_e2b_entry_errno(&why, errno);
		hr_e2b_refuse(
		    c, 500, "error opening file '%s': open %s: %s", path, path, hr_buf_str(&why));
	} else if (S_ISDIR(st.st_mode)) {
		hr_e2b_refuse(c, 400, "path '%s' is a directory", path);
	} else if (encoding == NEITHER) {
		hr_e2b_refuse(c, 406,
		    "error parsing Accept-Encoding: no acceptable encoding found, supported: "
		    "[gzip]");
	} else if (!is_readable(&fd, &st)) {
		hr_e2b_entry_errno(&why, errno);
		hr_e2b_refuse(
		    c, 500, "error reading file '%s': read %s: %s", path, path, hr_buf_str(&why));
	} else {
		hr_mime_put_disposition(&disposition, hr_path_leaf(path));
		hr_answer_header(c->ret, "Content-Disposition", hr_buf_str(&disposition));
		hr_answer_header(c->ret, "Vary", "Accept-Encoding");
		if (encoding == COMPRESSED)
			send_packed(c, path, &fd);
		else
			send_plain(c, path, &fd, &st);
	}
}

void
hr_e2b_download(struct hr_e2b_call *c)
{
	HR_BUF(given, HR_E2B_PATH_MAX);
	HR_BUF(path, HR_E2B_PATH_MAX);
	HR_BUF(why, HR_E2B_PATH_MAX);

	if (!hr_e2b_check_query(c) || !hr_e2b_find_user(c))
		return;
	(void)hr_request_query_bytes(c->r, "path", &given);
	if (given.fail != HR_OK)
		hr_answer_generic(c->ret);
	else if (hr_e2b_path(&path, hr_span_of_buf(&given), &c->who, c->setup->directory, &why) < 0)
		hr_e2b_refuse(c, 400, "error expanding and resolving path '%s': %s",
		    hr_buf_str(&given), hr_buf_str(&why));
	else
		send(c, hr_buf_str(&path));
}
