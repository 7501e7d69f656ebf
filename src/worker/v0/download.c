/* Serves GET /download_files (doc/http.md, "GET /download_files"), a tree as an archive, and GET
 * /download_file, an addition of handrail's: one file, with Range and ETag. Access: the request has
 * passed the key check, and this process opens the file with the server's identity. If nginx's
 * account can read it, too, nginx sends it (sendfile): by a header that nginx accepts from this
 * program for this path only, with the kernel's name of the open file, and nginx follows no links
 * there. This process sends files that only the server can read, in the same form. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/process/pid.h"
#include "base/text/percent.h"
#include "files/byteparts.h"
#include "files/filebody.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/place/whole.h"
#include "files/place/target.h"
#include "files/archive/zip.h"
#include "worker/request/invalid.h"
#include "worker/worker.h"

#define QUERY_MAX (64u << 10)

void
hr_answer_disposition(struct hr_answer *ret, const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	HR_BUF(plain, QUERY_MAX);
	HR_BUF(quoted, QUERY_MAX * 3);
	HR_BUF(value, QUERY_MAX * 4);

	hr_buf_adds(&plain, name);
	hr_buf_adds(&plain, suffix);
	hr_percent_encode(&quoted, hr_buf_str(&plain), "_.-~/");
	if (strcmp(hr_buf_str(&plain), hr_buf_str(&quoted)) == 0)
		hr_buf_addf(&value, "attachment; filename=\"%s\"", hr_buf_str(&plain));
	else
		hr_buf_addf(&value, "attachment; filename*=utf-8''%s", hr_buf_str(&quoted));
	if (plain.fail != HR_OK || quoted.fail != HR_OK || value.fail != HR_OK)
		ret->headers.fail = HR_E_NOMEM;
	else
		hr_answer_header(ret, "Content-Disposition", hr_buf_str(&value));
}

/* Returns false after sending an error. */
static bool
wanted_path(const struct hr_request *r, struct hr_buf *path, struct hr_answer *ret)
{
	HR_BUF(errors, HR_INVALID_MAX);
	bool found = hr_request_query(r, "path", path);

	if (path->fail != HR_OK)
		return hr_answer_generic(ret);
	if (!found) {
		hr_invalid_missing(&errors, "'query', 'path'");
		return hr_invalid_answer(&errors, ret);
	}
	if (hr_buf_str(path)[0] != '/')
		return hr_answer_detail(ret, 500, "400: Path must be an absolute path");
	return strlen(hr_buf_str(path)) == path->len ||
	       hr_answer_detail(ret, 500, "404: File not found");
}

void
hr_handle_download(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_stream s = {.length = -1};
	struct hr_err err = {.code = HR_OK};
	const struct hr_zip *zip;
	HR_BUF(path, QUERY_MAX);
	HR_BUF(why, HR_TARGET_TEXT_MAX);
	HR_BUF(empty, QUERY_MAX);

	(void)hr_request_query(r, "empty", &empty);
	if (empty.fail == HR_E_NOMEM)
		hr_answer_generic(ret);
	if (empty.fail == HR_E_NOMEM || !wanted_path(r, &path, ret))
		return;
	zip = hr_zip_load(w->libexec_dir, &err);
	if (zip == NULL) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		hr_answer_detail(ret, 500, err.msg);
		return;
	}
	s.arg = zip->pack_open(hr_buf_str(&path), strcmp(hr_buf_str(&empty), "true") == 0, &why);
	if (s.arg != NULL) {
		s.send = zip->pack_send;
		s.done = zip->pack_free;
		ret->content_type = "application/zip";
		hr_answer_disposition(ret, hr_buf_str(&path), ".zip");
		hr_answer_stream(ret, &s);
	} else if (why.fail != HR_OK) {
		hr_answer_generic(ret);
	} else {
		hr_answer_detail(ret, 500, hr_buf_str(&why));
	}
}

/* ---- one file ---- */

/* Returns true if nginx can send the file. */
static bool
leave_to_nginx(const struct hr_worker *w, int fd, const struct stat *st, struct hr_answer *ret)
{
	char name[PATH_MAX];
	HR_BUF(uri, sizeof(name) * 3 + 16);
	struct stat there;

	/* the name must be a path and still refer to this file, not to one that replaced it */
	if (hr_pid_link(name, sizeof(name), "/proc/self/fd/%d", fd) <= 0 || name[0] != '/' ||
	    lstat(name, &there) < 0 || there.st_dev != st->st_dev || there.st_ino != st->st_ino ||
	    !hr_nginx_account_reads(&w->nginx, name))
		return false;
	hr_buf_adds(&uri, "/-/file");
	hr_percent_encode(&uri, name, "_.-~/");
	if (uri.fail != HR_OK)
		return false;
	hr_answer_header(ret, "X-Accel-Redirect", hr_buf_str(&uri));
	return true;
}

void
hr_download_describe(
    const struct stat *st, struct hr_answer *ret, struct hr_buf *etag, struct hr_buf *date)
{
	hr_answer_header(ret, "X-Content-Type-Options", "nosniff");
	hr_answer_header(ret, "Content-Security-Policy", "default-src 'none'; sandbox");
	hr_filebody_etag(etag, st->st_mtime, st->st_size);
	hr_filebody_date(date, st->st_mtime);
	hr_answer_header(ret, "ETag", hr_buf_str(etag));
	hr_answer_header(ret, "Last-Modified", hr_buf_str(date));
	hr_answer_header(ret, "Accept-Ranges", "bytes");
}

void
hr_download_part(int *fd, off_t size, off_t from, off_t len, struct hr_answer *ret)
{
	struct hr_stream s = {.send = hr_filebody_send, .done = hr_filebody_free, .length = len};
	HR_BUF(part, 128);

	if (ret->status == 206) {
		hr_buf_addf(&part, "bytes %lld-%lld/%lld", (long long)from,
		    (long long)(from + len - 1), (long long)size);
		hr_answer_header(ret, "Content-Range", hr_buf_str(&part));
	}
	s.arg = hr_filebody_new(*fd, from, len);
	*fd = -1;
	if (s.arg != NULL)
		hr_answer_stream(ret, &s);
	else
		hr_answer_generic(ret);
}

void
hr_download_parts(int *fd, off_t size, const struct hr_bytepart *parts, size_t n, bool starlette,
    struct hr_answer *ret)
{
	struct hr_stream s;
	const char *type = hr_byteparts_start(fd, size, ret->content_type, parts, n, starlette, &s);

	if (type == NULL) {
		hr_answer_generic(ret);
		return;
	}
	ret->content_type = type;
	hr_answer_stream(ret, &s);
}

/* Sends the file; the streamed body takes ownership of *fd. */
static void
send_ourselves(const struct hr_request *r, int *fd, const struct stat *st, struct hr_answer *ret)
{
	HR_BUF(etag, 64);
	HR_BUF(date, 64);
	HR_BUF(part, 128);
	off_t from = 0, len = st->st_size;
	enum hr_range range = HR_RANGE_ALL;

	hr_download_describe(st, ret, &etag, &date);
	if (r->if_range[0] == '\0' || strcmp(r->if_range, hr_buf_str(&etag)) == 0 ||
	    strcmp(r->if_range, hr_buf_str(&date)) == 0)
		range = hr_range_parse(r->range, st->st_size, &from, &len);
	if (hr_filebody_matches(r->if_none_match, hr_buf_str(&etag))) {
		ret->status = 304;
		ret->content_type = NULL;
	} else if (range == HR_RANGE_NONE) {
		ret->status = 416;
		hr_buf_addf(&part, "bytes */%lld", (long long)st->st_size);
		hr_answer_header(ret, "Content-Range", hr_buf_str(&part));
	} else {
		ret->status = range == HR_RANGE_PART ? 206 : ret->status;
		hr_download_part(fd, st->st_size, from, len, ret);
	}
}

bool
hr_download_open(const char *path, int *ret_fd, struct stat *ret_st, struct hr_answer *ret)
{
	HR_CLOSE int fd = hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
	HR_BUF(why, HR_TARGET_TEXT_MAX);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return hr_answer_detail(ret, 500, "404: File not found");
	if (fd < 0 && errno == ENXIO) /* a socket */
		return hr_answer_detail(ret, 500, "400: Not a regular file");
	if (fd < 0 || fstat(fd, ret_st) < 0 || hr_whole_take(&fd, ret_st) < 0) {
		(void)hr_oserror_put(&why, errno, path);
		return hr_answer_detail(ret, 500, hr_buf_str(&why));
	}
	if (!S_ISREG(ret_st->st_mode))
		return hr_answer_detail(ret, 500,
		    S_ISDIR(ret_st->st_mode) ? "400: Path is a directory"
					     : "400: Not a regular file");
	ret->content_type = "application/octet-stream";
	hr_answer_disposition(ret, path, "");
	*ret_fd = fd;
	fd = -1;
	return true;
}

void
hr_download_send(const struct hr_worker *w, const struct hr_request *r, int *fd,
    const struct stat *st, struct hr_answer *ret)
{
	if (r->direct || !leave_to_nginx(w, *fd, st, ret))
		send_ourselves(r, fd, st, ret);
}

void
hr_handle_download_one(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(path, QUERY_MAX);
	HR_CLOSE int fd = -1;
	struct stat st;

	if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0)
		hr_answer_detail(ret, 405, "Method Not Allowed");
	else if (wanted_path(r, &path, ret) && hr_download_open(hr_buf_str(&path), &fd, &st, ret))
		hr_download_send(w, r, &fd, &st, ret);
}
