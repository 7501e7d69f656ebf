/* Copies trees; the archive is kept in an unlinked file, so that a request can be repeated. */
#include "config.h"

#include "host/transfer/tree.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/text/quote.h"
#include "host/handle.h"
#include "host/transfer/archives.h"
#include "host/transfer/transfer.h"
#include "proto/json.h"

#define URL_MAX 65536
#define LOOK_TIMEOUT_S 10
#define COPY_TIMEOUT_S 300
#define LINE_MAX_LEN 65536
#define LINES_MAX_LEN (16u << 20)
#define ALL_IN_ONE 700 /* maximum bytes of an error */

static char *
url_of(const char *endpoint, const char *path, bool owner)
{
	HR_BUF(url, URL_MAX);

	hr_buf_addf(&url, "%s?path=", endpoint);
	hr_http_escape(&url, path);
	hr_buf_adds(&url, owner ? "&owner=true" : "");
	return hr_buf_end(&url, NULL);
}

/* ---- types ---- */

int
hr_treecopy_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err)
{
	HR_FREE char *url = url_of("/handrail/v1/stat", path, false);
	struct hr_http_request req = {
	    .method = "GET", .url = url, .timeout_s = LOOK_TIMEOUT_S, .watch_fd = -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_PUT struct json_object *o = NULL;
	struct hr_err e = {0};
	const char *type;

	if (url == NULL)
		return hr_err_nomem(err);
	if (hr_client_send(&s->client, &req, &a, &e) != 0)
		return e.code == HR_E_HTTP_STATUS && (e.status == 404 || e.status == 405)
			   ? 0
			   : hr_err_pass(err, &e);
	if (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, &o, NULL) != 0)
		return 0;
	type = hr_json_text_or(o, "type", "");
	*ret = *type == '\0'                    ? HR_CP_NOTHING
	       : strcmp(type, "directory") == 0 ? HR_CP_DIRECTORY
	       : strcmp(type, "unknown") == 0   ? HR_CP_UNKNOWN
						: HR_CP_FILE;
	return 1;
}

/* ---- the archive ---- */

/* Appends a line about an entry of a list. */
static void
put_line(struct hr_buf *b, const char *top, struct json_object *entry)
{
	const char *path = hr_json_text_or(entry, "path", "");
	const char *reason = hr_json_text_or(entry, "reason", "");

	hr_quote_text(b, top, strlen(top));
	hr_buf_adds(b, *path != '\0' ? "/" : "");
	hr_quote_text(b, path, strlen(path));
	hr_buf_adds(b, ": ");
	hr_quote_text(b, reason, strlen(reason));
}

/* Reports the entries of a list, below its top: in *err, or, if they are many, one by one in the
 * log. Returns 0 if the list is empty, otherwise -1. */
static int
tell(struct hr_sandbox *s, const char *top, struct json_object *list, struct hr_err *err)
{
	const size_t n = hr_json_count(list);
	HR_BUF(line, LINE_MAX_LEN);
	HR_BUF(all, LINES_MAX_LEN);
	size_t i;

	for (i = 0; i < n; i++) {
		hr_buf_adds(&all, i > 0 ? "; " : "left out: ");
		put_line(&all, top, hr_json_entry(list, i));
	}
	if (n == 0 || all.len <= ALL_IN_ONE)
		return n == 0 ? 0 : hr_err_set(err, HR_E_RUNTIME, "%s", hr_buf_str(&all));
	for (i = 0; i < n && s->log != NULL; i++) {
		hr_buf_reset(&line);
		put_line(&line, top, hr_json_entry(list, i));
		s->log(s->log_arg, hr_buf_str(&line));
	}
	return hr_err_set(err, HR_E_RUNTIME, "%zu of the files were left out: %.400s...", n,
	    hr_buf_str(&all) + strlen("left out: "));
}

static int
tell_report(
    struct hr_sandbox *s, const char *top, const struct hr_tree_report *r, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	HR_BUF(text, HR_TREE_REPORT_MAX + 16);

	hr_buf_addf(&text, "[%s]", hr_buf_str(&r->list));
	if (hr_buf_check(&r->list, err) != 0 || hr_buf_check(&text, err) != 0)
		return -1;
	if (hr_json_decode(text.p, text.len, &list, NULL) != 0)
		return hr_err_set(
		    err, HR_E_PROTO, "the list of files that were not copied is not JSON");
	return tell(s, top, list, err);
}

/* ---- upload ---- */

static void
on_upload(void *arg, unsigned long long done, unsigned long long total)
{
	struct hr_sandbox *s = arg;

	s->progress(s->progress_arg, "upload", done, total);
}

static int
post(struct hr_sandbox *s, int fd, const char *to, struct hr_err *err)
{
	static const char *const headers[] = {"Content-Type: application/x-tar", NULL};
	HR_FREE char *url = url_of("/handrail/v1/unpack", to, s->keep_owner);
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_http_request req = {.method = "POST",
	    .url = url,
	    .headers = headers,
	    .timeout_s = COPY_TIMEOUT_S,
	    .progress = s->progress != NULL ? on_upload : NULL,
	    .progress_arg = s,
	    .watch_fd = -1};
	HR_PUT struct json_object *answer = NULL;
	struct hr_json_error why = {0};
	struct stat st;
	void *p;
	int r;

	if (url == NULL)
		return hr_err_nomem(err);
	if (fstat(fd, &st) != 0)
		return hr_err_sys(err, errno, "the archive");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return hr_err_sys(err, errno, "map the archive");
	req.body = p;
	req.body_len = (size_t)st.st_size;
	r = hr_client_send(&s->client, &req, &a, err);
	(void)munmap(p, (size_t)st.st_size);
	if (r != 0)
		return -1;
	if (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, &answer, &why) != 0)
		return hr_json_err(
		    err, HR_E_PROTO, &why, "the server's answer to a copy is not JSON");
	return tell(s, to, hr_json_at(answer, "failed"), err);
}

int
hr_treecopy_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err)
{
	HR_CLEAN(hr_tree_report_done) struct hr_tree_report report;
	HR_CLOSE int fd = hr_archives_unlinked(hr_env_get(s->host.environ, "TMPDIR"), err);
	int r, left_out;

	hr_tree_report_init(&report);
	r = fd >= 0 ? hr_treefile_pack(fd, from, s->keep_owner, &report, err) : -1;
	if (r != 0)
		return r;
	left_out = tell_report(s, from, &report, err);
	r = post(s, fd, to, err);
	return r != 0 ? r : left_out;
}

/* ---- download ---- */

int
hr_treecopy_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err)
{
	HR_FREE char *url = url_of("/handrail/v1/pack", from, s->keep_owner);
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_CLEAN(hr_tree_report_done) struct hr_tree_report report;
	HR_CLOSE int fd = hr_archives_unlinked(hr_env_get(s->host.environ, "TMPDIR"), err);
	struct hr_transfer_file file = {.fd = fd};
	struct hr_http_request req = {.method = "GET",
	    .url = url,
	    .timeout_s = COPY_TIMEOUT_S,
	    .sink = hr_transfer_keep,
	    .sink_least = HR_TRANSFER_LEAST(COPY_TIMEOUT_S),
	    .sink_arg = &file,
	    .progress = s->progress != NULL ? hr_transfer_down : NULL,
	    .progress_arg = s,
	    .watch_fd = -1};
	struct hr_err e = {0};
	int r = -1;

	hr_tree_report_init(&report);
	if (url == NULL)
		r = hr_err_nomem(err);
	else if (fd >= 0 && (r = hr_client_send(&s->client, &req, &a, &e)) != 0) {
		hr_transfer_slow(&e, from, COPY_TIMEOUT_S);
		(void)hr_err_pass(err, &e);
	}
	if (r == 0)
		r = hr_transfer_kept(&file, "the archive", err);
	if (r == 0)
		r = hr_treefile_unpack(fd, to, s->keep_owner, &report, err);
	return tell_report(s, from, &report, r == 0 ? err : NULL) == 0 ? r : -1;
}
