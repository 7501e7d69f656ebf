/* Transfers files between host and sandbox, over its server (doc/host.md, "Copies"). */
#include "config.h"

#include "host/transfer/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/err.h"
#include "base/path.h"
#include "host/handle.h"
#include "host/transfer/zip.h"
#include "proto/json.h"

#define UPLOAD_TIMEOUT_S 300
#define DOWNLOAD_TIMEOUT_S 30
#define LIST_TIMEOUT_S 10
#define URL_PART_MAX 65536

static int
ready(struct hr_sandbox *s, struct hr_err *err)
{
	if (!s->connected)
		return hr_err_set(err, HR_E_RUNTIME, "the sandbox is not connected");
	return 0;
}

static void
on_upload(void *arg, unsigned long long done, unsigned long long total)
{
	struct hr_sandbox *s = arg;

	s->progress(s->progress_arg, "upload", done, total);
}

void
hr_transfer_down(void *arg, unsigned long long done, unsigned long long total)
{
	struct hr_sandbox *s = arg;

	s->progress(s->progress_arg, "download", done, total);
}

static int
upload(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    const char *endpoint, const char *more, struct hr_err *err)
{
	struct hr_http_request req = {.method = "POST",
	    .timeout_s = UPLOAD_TIMEOUT_S,
	    .progress = s->progress != NULL ? on_upload : NULL,
	    .progress_arg = s,
	    .watch_fd = -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_BUF(url, URL_PART_MAX);

	hr_buf_addf(&url, "%s?destination=", endpoint);
	hr_http_escape(&url, to);
	hr_buf_adds(&url, more);
	if (hr_buf_check(&url, NULL) != 0)
		return hr_err_nomem(err);
	req.url = url.p;
	req.file = file;
	req.file_name = name;
	return hr_client_send(&s->client, &req, &a, err);
}

int
hr_transfer_upload(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    bool recursive, struct hr_err *err)
{
	return upload(s, file, name, to, "/upload_file",
	    recursive ? "&recursive=true" : "&recursive=false", err);
}

int
hr_transfer_upload_as(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    bool as_is, struct hr_err *err)
{
	return as_is ? upload(s, file, name, to, "/handrail/v1/upload", "&unpack=false", err)
		     : hr_transfer_upload(s, file, name, to, false, err);
}

int
hr_sandbox_copy_to(struct hr_sandbox *s, const char *host_path, const char *sandbox_path,
    bool recursive, struct hr_err *err)
{
	struct stat st;
	HR_FREE char *zip = NULL;
	int r;

	if (ready(s, err) != 0)
		return -1;
	if (s->ops->copy_to != NULL && !s->endpoint.serves)
		return s->ops->copy_to(s->self, host_path, sandbox_path, recursive, err);
	if (stat(host_path, &st) != 0)
		return hr_err_set(err, HR_E_NOTFOUND, "Source file %s does not exist.", host_path);
	if (!recursive)
		return hr_transfer_upload(
		    s, host_path, hr_path_leaf(host_path), sandbox_path, false, err);
	zip = hr_zip_directory(host_path, true, false, err);
	if (zip == NULL)
		return -1;
	r = hr_transfer_upload(s, zip, hr_path_leaf(zip), sandbox_path, true, err);
	(void)unlink(zip);
	return r;
}

int
hr_transfer_keep(void *file, const char *p, size_t len)
{
	struct hr_transfer_file *f = file;
	const off_t at = (off_t)f->came;

	f->came += len;
	return f->most > 0 && f->came > f->most ? -1 : hr_fd_pwrite_sparse(f->fd, p, len, at);
}

int
hr_transfer_kept(const struct hr_transfer_file *f, const char *name, struct hr_err *err)
{
	return ftruncate(f->fd, (off_t)f->came) == 0 ? 0 : hr_err_sys(err, errno, "write %s", name);
}

void
hr_transfer_slow(struct hr_err *err, const char *path, unsigned timeout_s)
{
	if (err->code == HR_E_HTTP_TIMEOUT)
		(void)hr_err_set(err, HR_E_RUNTIME_TIMEOUT,
		    "%s: the sandbox's server sent less than %u KiB within %u seconds, so the copy "
		    "was given up",
		    path, timeout_s, timeout_s);
}

static int
download(struct hr_sandbox *s, const char *path, bool empty, struct hr_transfer_file *to,
    struct hr_err *err)
{
	struct hr_http_request req = {
	    .method = "GET",
	    .timeout_s = DOWNLOAD_TIMEOUT_S,
	    .progress = s->progress != NULL ? hr_transfer_down : NULL,
	    .progress_arg = s,
	    .sink = hr_transfer_keep,
	    .sink_least = HR_TRANSFER_LEAST(DOWNLOAD_TIMEOUT_S),
	    .sink_arg = to,
	    .watch_fd = -1,
	};
	struct hr_err mine = {0};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_BUF(url, URL_PART_MAX);
	int r;

	hr_buf_adds(&url, "/download_files?path=");
	hr_http_escape(&url, path);
	hr_buf_adds(&url, empty ? "&empty=true" : "");
	if (hr_buf_check(&url, NULL) != 0)
		return hr_err_nomem(err);
	req.url = url.p;
	r = hr_client_send(&s->client, &req, &a, &mine);
	if (r != 0 && mine.code == HR_E_HTTP_TIMEOUT)
		(void)hr_err_set(&mine, HR_E_RUNTIME_TIMEOUT, "Copy operation timed out");
	if (r != 0 && to->most > 0 && to->came > to->most)
		(void)hr_err_set(
		    &mine, HR_E_INVAL, "%s takes more than %llu MiB", path, to->most >> 20);
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_sandbox_copy_some(struct hr_sandbox *s, const char *sandbox_path, unsigned long long most,
    bool empty, char **ret_file, struct hr_err *err)
{
	struct hr_transfer_file to = {.most = most};
	char *file;
	int r;

	if (ready(s, err) != 0)
		return -1;
	if (s->ops->copy_from != NULL && !s->endpoint.serves)
		return s->ops->copy_from(s->self, sandbox_path, ret_file, err);
	file = hr_zip_temporary(&to.fd, hr_env_get(s->host.environ, "TMPDIR"), err);
	if (file == NULL)
		return -1;
	r = download(s, sandbox_path, empty, &to, err);
	if (r == 0)
		r = hr_transfer_kept(&to, file, err);
	if (close(to.fd) != 0 && r == 0)
		r = hr_err_sys(err, errno, "write %s", file);
	if (r != 0) {
		(void)unlink(file);
		free(file);
		return -1;
	}
	*ret_file = file;
	return 0;
}

int
hr_sandbox_copy_from(
    struct hr_sandbox *s, const char *sandbox_path, char **ret_file, struct hr_err *err)
{
	return hr_sandbox_copy_some(s, sandbox_path, 0, false, ret_file, err);
}

int
hr_sandbox_list_files(struct hr_sandbox *s, const char *path, char **ret_json, struct hr_err *err)
{
	const char *const headers[] = {"Content-Type: application/json", NULL};
	struct hr_http_request req = {.method = "POST",
	    .url = "/list_files",
	    .headers = headers,
	    .timeout_s = LIST_TIMEOUT_S,
	    .watch_fd = -1};
	struct hr_err mine = {0};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_BUF(body, URL_PART_MAX);
	int r;

	if (ready(s, err) != 0)
		return -1;
	if (s->ops->list_files != NULL && !s->endpoint.serves)
		return s->ops->list_files(s->self, path, ret_json, err);
	hr_buf_addc(&body, '{');
	if (path != NULL) {
		hr_buf_adds(&body, "\"path\":");
		(void)hr_json_put_str(&body, path, strlen(path), HR_JSON_REPLACE);
	}
	hr_buf_addc(&body, '}');
	if (hr_buf_check(&body, NULL) != 0)
		return hr_err_nomem(err);
	req.body = body.p;
	req.body_len = body.len;
	r = hr_client_send(&s->client, &req, &a, &mine);
	if (r == 0 && (*ret_json = hr_buf_take(&a.body)) == NULL)
		r = hr_err_nomem(&mine);
	if (r != 0 && mine.code == HR_E_HTTP_TIMEOUT)
		(void)hr_err_set(&mine, HR_E_RUNTIME_TIMEOUT, "List files operation timed out");
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_sandbox_stats(struct hr_sandbox *s, char **ret_json, struct hr_err *err)
{
	struct hr_http_request req = {
	    .method = "GET", .url = "/server_info", .timeout_s = LIST_TIMEOUT_S, .watch_fd = -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	int r;

	if (ready(s, err) != 0)
		return -1;
	if (s->ops->stats != NULL)
		return s->ops->stats(s->self, ret_json, err);
	if (s->endpoint.url == NULL)
		return hr_err_set(
		    err, HR_E_RUNTIME, "%s runtime does not support stats", s->ops->name);
	r = hr_client_send(&s->client, &req, &a, err);
	if (r == 0 && (*ret_json = hr_buf_take(&a.body)) == NULL)
		r = hr_err_nomem(err);
	return r;
}
