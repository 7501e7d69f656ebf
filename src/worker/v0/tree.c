/* Serves /handrail/v1/pack, unpack and stat (doc/live.md): copies between a sandbox and its host
 * that keep modes, times and links. They require the key and reach the files that files/place and
 * files/archive/tree allow, like /upload_file and /download_files. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "files/archive/zip.h"
#include "files/place/target.h"
#include "worker/worker.h"

#define QUERY_MAX (64u << 10)

/* Returns false after sending an error. */
static bool
wanted_path(const struct hr_request *r, struct hr_buf *path, struct hr_answer *ret)
{
	const bool found = hr_request_query_bytes(r, "path", path);

	if (path->fail != HR_OK)
		return hr_answer_generic(ret);
	if (!found || hr_buf_str(path)[0] != '/')
		return hr_answer_detail(ret, 400, "path must be absolute");
	return strlen(hr_buf_str(path)) == path->len ||
	       hr_answer_detail(ret, 400, "no name has a null in it");
}

static void
refuse(struct hr_answer *ret, const struct hr_err *err)
{
	const int status = err->code == HR_E_NOTFOUND     ? 404
			   : err->code == HR_E_PERMISSION ? 403
			   : err->code == HR_E_TOOLARGE   ? 413
			   : err->code == HR_E_SYS        ? 500
							  : 400;

	hr_answer_detail(ret, status, err->msg);
}

/* Returns NULL after sending an error. */
static const struct hr_zip *
load(const struct hr_worker *w, struct hr_answer *ret)
{
	struct hr_err err = {.code = HR_OK};
	const struct hr_zip *zip = hr_zip_load(w->libexec_dir, &err);

	if (zip == NULL) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		hr_answer_detail(ret, 500, err.msg);
	}
	return zip;
}

static bool
is_set(const struct hr_request *r, const char *name)
{
	HR_BUF(text, 64);

	return hr_request_query(r, name, &text) && strcmp(hr_buf_str(&text), "true") == 0;
}

/* ---- pack ---- */

struct sending {
	const struct hr_zip *zip;
	struct hr_tree *tree;
};

static int
to_sink(void *arg, const void *p, size_t len)
{
	struct hr_sink *sink = arg;

	return sink->write(sink, p, len) != 0 ? -1 : 0;
}

static int
send_tree(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct sending *s = arg;
	HR_CLEAN(hr_tree_report_done) struct hr_tree_report report;
	int r;

	hr_tree_report_init(&report);
	r = s->zip->tree_send(s->tree, to_sink, sink, &report, err);
	if (r != 0 && err->code == HR_E_GONE)
		*err = (struct hr_err){.code = HR_OK};
	return r;
}

static void
free_tree(void *arg)
{
	struct sending *s = arg;

	s->zip->tree_free(s->tree);
	free(s);
}

static void
pack(const struct hr_zip *zip, const struct hr_request *r, const char *path, struct hr_answer *ret)
{
	const struct hr_tree_options o = {.owner = is_set(r, "owner")};
	struct sending *s = calloc(1, sizeof(*s));
	struct hr_err err = {.code = HR_OK};

	if (s == NULL) {
		hr_answer_generic(ret);
		return;
	}
	s->zip = zip;
	s->tree = zip->tree_open(path, &o, &err);
	if (s->tree == NULL) {
		free(s);
		refuse(ret, &err);
		return;
	}
	ret->content_type = "application/x-tar";
	hr_answer_header(ret, "Cache-Control", "no-store");
	hr_answer_stream(ret, &(const struct hr_stream){
				  .send = send_tree, .done = free_tree, .arg = s, .length = -1});
}

/* ---- unpack ---- */

static ssize_t
from_body(void *arg, char *p, size_t room)
{
	const struct hr_body *body = arg;

	errno = EPIPE; /* the sender broke off */
	return body->read(body->ctx, p, room);
}

static void
unpack(struct hr_worker *w, const struct hr_zip *zip, struct hr_request *r, const char *path,
    struct hr_answer *ret)
{
	const struct hr_tree_options o = {.owner = is_set(r, "owner"),
	    .follow = true,
	    .own = true,
	    .bytes = w->unpack_limits.bytes,
	    .entries = w->unpack_limits.entries};
	HR_CLEAN(hr_tree_report_done) struct hr_tree_report report;
	HR_BUF(why, HR_TARGET_TEXT_MAX);
	HR_FREE char *dir = strndup(path, (size_t)(strrchr(path, '/') - path) + 1);
	struct hr_err err = {.code = HR_OK};
	size_t made;

	hr_tree_report_init(&report);
	if (dir == NULL)
		hr_answer_generic(ret);
	else if (hr_target_mkdirs(dir, &made, &why) < 0)
		hr_answer_detail(ret, 400, hr_buf_str(&why));
	else if (zip->tree_unpack(path, &o, from_body, &r->body, &report, &err) < 0)
		refuse(ret, &err);
	else
		hr_buf_addf(&ret->body, "{\"failed\":[%s]}", hr_buf_str(&report.list));
}

void
hr_handle_pack(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	const struct hr_zip *zip;
	HR_BUF(path, QUERY_MAX);

	if (wanted_path(r, &path, ret) && (zip = load(w, ret)) != NULL)
		pack(zip, r, hr_buf_str(&path), ret);
}

void
hr_handle_unpack(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	const struct hr_zip *zip;
	HR_BUF(path, QUERY_MAX);

	if (wanted_path(r, &path, ret) && (zip = load(w, ret)) != NULL)
		unpack(w, zip, r, hr_buf_str(&path), ret);
}

/* ---- stat ---- */

void
hr_handle_stat(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(path, QUERY_MAX);
	struct stat st;
	const char *type = "null";

	(void)w;
	if (!wanted_path(r, &path, ret))
		return;
	if (stat(hr_buf_str(&path), &st) == 0)
		type = S_ISREG(st.st_mode)   ? "\"file\""
		       : S_ISDIR(st.st_mode) ? "\"directory\""
					     : "\"other\"";
	else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENAMETOOLONG)
		type = "\"unknown\"";
	else if (lstat(hr_buf_str(&path), &st) == 0)
		type = "\"link\"";
	hr_buf_addf(&ret->body, "{\"type\":%s}", type);
	hr_answer_header(ret, "Cache-Control", "no-store");
}
