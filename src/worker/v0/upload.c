/* Answers POST /upload_file (doc/http.md, "POST /upload_file"). The body is written to disk as it
 * arrives, so the checks that the original makes before it opens the file are made after reception:
 * a failed request leaves no file, and is read to its end so that the answer is the same. An upload
 * runs at most once if the client names its request. The journal is asked after all data has
 * arrived: only then is the request known, and nothing was done before. The key contains the file's
 * name, size and digest and the destination, but not the bytes of the body: a client that repeats
 * its request chooses a new boundary. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "files/multipart.h"
#include "files/place/oserror.h"
#include "files/params.h"
#include "files/place/spool.h"
#include "files/archive/zip.h"
#include "proto/json.h"
#include "proto/python/repr.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "worker/request/body.h"
#include "worker/request/invalid.h"
#include "worker/request/key.h"
#include "worker/once.h"
#include "worker/worker.h"

#define QUERY_MAX (64u << 10)
#define CHUNK (128u << 10)
/* Starlette has the same limits */
#define PARTS_MAX 1000
#define FIELD_MAX (1024u * 1024u)
#define FORM_MAX (16u << 20) /* maximum bytes of a form that is not multipart */

enum part { PART_OTHER_FILE, PART_OTHER_FIELD, PART_FILE, PART_FIELD };
enum got { GOT_NOTHING, GOT_FILE, GOT_FIELD };

/* A part named "file" that has a file name. */
struct incoming {
	struct hr_spool spool;
	struct hr_buf name;
	int sys; /* errno of a failed write; 0: the bytes are on the disk */
	/* number of received bytes; the digest only if the request has a name */
	uint64_t size, digest;
};

struct upload {
	struct hr_worker *w;
	bool named; /* the client named the request, see worker/request/key.h */
	struct hr_buf destination, recursive_text;
	bool recursive, recursive_fine;
	bool as_is;     /* do not unpack zip files */
	bool adds;      /* replace nothing */
	bool exists;    /* the name was taken, and nothing was replaced */
	const char *as; /* name of the new file, for V1; NULL: the client's name */
	bool unnamed;   /* the client's name of the file is empty */

	enum part part;
	struct incoming now, last; /* the part being received; the last complete part */
	struct hr_buf field, last_field;
	size_t field_len; /* number of bytes so far, even of ignored fields */
	unsigned files, fields;
	enum got got;
	const char *refused; /* text of a 400; NULL: none */
};

/* ---- parameters ---- */

/* Returns false if the text is not a boolean. */
static bool
parse_bool(const struct hr_buf *text, bool *ret)
{
	int truth = hr_text_truth(hr_buf_str(text), text->len);

	if (truth >= 0)
		*ret = truth == 1;
	return truth >= 0;
}

static void
incoming_init(struct incoming *in)
{
	hr_spool_init(&in->spool);
	hr_buf_init(&in->name, HR_MULTIPART_HEADERS_MAX * 2);
	in->sys = 0;
	in->size = 0;
	in->digest = HR_HASH;
}

static void
incoming_done(struct incoming *in)
{
	hr_spool_close(&in->spool);
	hr_buf_done(&in->name);
	in->sys = 0;
}

static int
refuse(struct upload *u, const char *text)
{
	u->refused = text;
	return -1;
}

static bool
has_null(const struct hr_buf *b)
{
	return memchr(hr_buf_str(b), '\0', b->len) != NULL;
}

static bool
is_zip(const struct upload *u, const struct hr_buf *name)
{
	return !u->as_is && name->len >= 4 && memcmp(name->p + name->len - 4, ".zip", 4) == 0;
}

/* Reads the parameters of /handrail/v1/upload, which the original does not have. */
static void
read_own(struct upload *u, const struct hr_request *r)
{
	HR_BUF(text, QUERY_MAX);
	bool unpack = true, replace = true;

	if (strcmp(hr_buf_str(r->path), "/handrail/v1/upload") != 0)
		return;
	if (hr_request_query(r, "unpack", &text) && !parse_bool(&text, &unpack))
		(void)refuse(u, "unpack must be true or false");
	else if (!unpack && u->recursive)
		(void)refuse(u, "recursive requires a zip file and unpack=true");
	else if (hr_request_query(r, "replace", &text) && !parse_bool(&text, &replace))
		(void)refuse(u, "replace must be true or false");
	else if (!replace && unpack)
		(void)refuse(u, "replace=false is for single files: add unpack=false");
	u->as_is = !unpack;
	u->adds = !replace;
}

static void
upload_init(struct upload *u, struct hr_worker *w, const struct hr_request *r)
{
	memset(u, 0, sizeof(*u));
	u->w = w;
	u->named = hr_key_is_named(r);
	hr_buf_init(&u->destination, QUERY_MAX);
	hr_buf_init(&u->recursive_text, QUERY_MAX);
	hr_buf_init(&u->field, FIELD_MAX);
	hr_buf_init(&u->last_field, FIELD_MAX * 4);
	incoming_init(&u->now);
	incoming_init(&u->last);
	if (!hr_request_query(r, "destination", &u->destination))
		hr_buf_adds(&u->destination, "/");
	u->recursive_fine = !hr_request_query(r, "recursive", &u->recursive_text) ||
			    parse_bool(&u->recursive_text, &u->recursive);
	read_own(u, r);
}

static void
upload_done(struct upload *u)
{
	hr_buf_done(&u->destination);
	hr_buf_done(&u->recursive_text);
	hr_buf_done(&u->field);
	hr_buf_done(&u->last_field);
	incoming_done(&u->now);
	incoming_done(&u->last);
}

/* ---- parts ---- */

/* Appends UTF-8, or other bytes decoded as Latin-1. */
static void
put_decoded(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len;

	if (hr_utf8_strict(p, len)) {
		hr_buf_add(b, p, len);
		return;
	}
	for (; p < end; p++)
		hr_utf8_add(b, (unsigned char)*p);
}

/* Strips the directories that old browsers send with a name. */
static void
put_file_name(struct hr_buf *b, const struct hr_buf *value)
{
	const char *p = hr_buf_str(value), *slash;
	size_t len = value->len;

	if ((len >= 3 && p[1] == ':' && p[2] == '\\') ||
	    (len >= 2 && p[0] == '\\' && p[1] == '\\')) {
		slash = memrchr(p, '\\', len);
		len -= (size_t)(slash + 1 - p);
		p = slash + 1;
	}
	put_decoded(b, p, len);
}

/* Opens a temporary file in the directory of the destination, so that it needs only a rename at the
 * end. Failures are reported when the part is complete. */
static void
open_spool(struct upload *u, struct incoming *in)
{
	const char *destination = hr_buf_str(&u->destination);
	bool zip = u->recursive || is_zip(u, &in->name);
	HR_CLEAN(hr_target_close) struct hr_target t = {.dir = -1};
	HR_BUF(why, HR_TARGET_TEXT_MAX);

	in->sys = EIO;
	if (destination[0] != '/' || in->name.fail != HR_OK)
		return; /* the upload will be refused anyway */
	errno = 0;
	if (!zip && !has_null(&in->name) &&
	    hr_target_open(&t, destination, hr_buf_str(&in->name), u->w->work_dir, &why) == 0)
		in->sys = hr_spool_open_at(&in->spool, t.dir, t.exists ? 0600 : 0666, t.exists) < 0
			      ? errno
			      : 0;
	else
		in->sys = hr_spool_open(&in->spool, destination) < 0 ? errno : 0;
}

static int
part_begin(void *arg, const char *disposition, size_t len)
{
	struct upload *u = arg;
	HR_BUF(value, HR_MULTIPART_HEADERS_MAX);
	bool named, is_file, wanted;

	named = disposition != NULL && hr_params_get(disposition, len, "name", &value);
	wanted = named && value.len == 4 && memcmp(value.p, "file", 4) == 0;
	is_file = named && hr_params_get(disposition, len, "filename", &value);
	u->part = wanted    ? (is_file ? PART_FILE : PART_FIELD)
		  : is_file ? PART_OTHER_FILE
			    : PART_OTHER_FIELD;
	hr_buf_reset(&u->field);
	u->field_len = 0;
	if (u->part == PART_FILE) {
		incoming_done(&u->now);
		incoming_init(&u->now);
		u->unnamed = value.len == 0;
		if (u->as != NULL)
			hr_buf_adds(&u->now.name, u->as);
		else
			put_file_name(&u->now.name, &value);
	}
	if (!named)
		return refuse(u, "The Content-Disposition header field \"name\" must be provided.");
	if (is_file && ++u->files > PARTS_MAX)
		return refuse(u, "Too many files. Maximum number of files is 1000.");
	if (!is_file && ++u->fields > PARTS_MAX)
		return refuse(u, "Too many fields. Maximum number of fields is 1000.");
	if (u->part == PART_FILE)
		open_spool(u, &u->now);
	return 0;
}

static int
part_data(void *arg, const char *p, size_t len)
{
	struct upload *u = arg;

	switch (u->part) {
	case PART_OTHER_FILE: return 0;
	case PART_FILE:
		u->now.size += len;
		if (u->named)
			u->now.digest = hr_hash(u->now.digest, p, len);
		if (u->now.sys == 0 && hr_spool_write(&u->now.spool, p, len) < 0) {
			u->now.sys = errno;
			hr_spool_close(&u->now.spool); /* frees the disk space */
		}
		return 0;
	case PART_OTHER_FIELD:
	case PART_FIELD: break;
	}
	u->field_len += len;
	if (u->field_len > FIELD_MAX)
		return refuse(u, "Part exceeded maximum size of 1024KB.");
	if (u->part == PART_FIELD)
		hr_buf_add(&u->field, p, len);
	return 0;
}

static int
part_end(void *arg)
{
	struct upload *u = arg;

	if (u->part == PART_FILE) {
		incoming_done(&u->last);
		u->last = u->now;
		incoming_init(&u->now);
		/* V1 takes what a browser sends if no file was chosen for none */
		u->got = u->as != NULL && u->unnamed && u->last.size == 0 ? GOT_NOTHING : GOT_FILE;
	} else if (u->part == PART_FIELD) {
		hr_buf_reset(&u->last_field);
		put_decoded(&u->last_field, hr_buf_str(&u->field), u->field.len);
		if (u->field.fail != HR_OK)
			u->last_field.fail = u->field.fail;
		u->got = GOT_FIELD;
	}
	return 0;
}

/* Returns 0, or -1 with the text of the 400 in u->refused. */
static int
receive_multipart(struct upload *u, const struct hr_request *r)
{
	static const struct hr_multipart_ops ops = {part_begin, part_data, part_end};
	static const char unreadable[] = "There was an error parsing the body";
	struct hr_multipart m;
	HR_BUF(boundary, HR_MULTIPART_BOUNDARY_MAX + 1);
	ssize_t n = 0;
	char *p;
	int fine;

	if (!hr_params_get(r->content_type, strlen(r->content_type), "boundary", &boundary))
		return refuse(u, "Missing boundary in multipart.");
	fine = hr_multipart_init(&m, hr_buf_str(&boundary), boundary.len, &ops, u);
	hr_buf_reset(&u->w->body);
	p = hr_buf_reserve(&u->w->body, CHUNK);
	while (fine == 0 && p != NULL && (n = r->body.read(r->body.ctx, p, CHUNK)) > 0)
		fine = hr_multipart_feed(&m, p, (size_t)n, NULL);
	hr_multipart_done(&m);
	if (fine == 0 && p != NULL && n == 0)
		return 0;
	return refuse(u, u->refused != NULL ? u->refused : unreadable);
}

/* Reads application/x-www-form-urlencoded, which can have a field "file" but no file. */
static void
receive_form(struct upload *u, const struct hr_request *r, struct hr_answer *ret)
{
	struct hr_request as_query = {.query = NULL};

	if (!hr_worker_body(u->w, r, FORM_MAX, ret)) {
		u->refused = "";
		return;
	}
	as_query.query = hr_buf_str(&u->w->body);
	if (hr_request_query(&as_query, "file", &u->last_field))
		u->got = GOT_FIELD;
}

/* ---- a complete upload ---- */

static void
answer_invalid(struct upload *u, struct hr_answer *ret)
{
	static const char message[] = "Value error, Expected UploadFile, received: <class 'str'>";
	HR_BUF(errors, HR_INVALID_MAX);

	if (!u->recursive_fine) {
		hr_invalid_open(&errors, "bool_parsing", "'query', 'recursive'",
		    "Input should be a valid boolean, unable to interpret input");
		hr_pyrepr_str(&errors, hr_buf_str(&u->recursive_text), u->recursive_text.len);
		hr_invalid_close(&errors, NULL);
	}
	if (u->got == GOT_NOTHING) {
		hr_invalid_missing(&errors, "'body', 'file'");
	} else if (u->got == GOT_FIELD) {
		hr_invalid_open(&errors, "value_error", "'body', 'file'", message);
		hr_pyrepr_str(&errors, hr_buf_str(&u->last_field), u->last_field.len);
		hr_invalid_close(&errors, ", 'ctx': {'error': ValueError(\"Expected UploadFile, "
					  "received: <class 'str'>\")}");
	}
	if (u->recursive_text.fail != HR_OK || u->last_field.fail != HR_OK)
		errors.fail = HR_E_NOMEM;
	hr_invalid_answer(&errors, ret);
}

/* Marks the start of the change, before any of it is visible. */
static void
mark(const void *arg)
{
	const struct upload *u = arg;

	hr_journal_mark(&u->w->journal, &u->w->once);
}

/* Returns true if the target has the bytes that were sent. */
static bool
is_placed(const struct upload *u, const struct hr_target *t)
{
	HR_CLOSE int fd = openat(t->dir, t->leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char was[8192], sent[8192];
	struct stat st;
	uint64_t at;
	size_t n;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != u->last.size)
		return false;
	for (at = 0; at < u->last.size; at += n) {
		n = u->last.size - at < sizeof(was) ? (size_t)(u->last.size - at) : sizeof(was);
		if (hr_fd_pread_full(fd, was, n, (off_t)at) != 0 ||
		    hr_fd_pread_full(u->last.spool.fd, sent, n, (off_t)at) != 0 ||
		    memcmp(was, sent, n) != 0)
			return false;
	}
	return true;
}

/* Adds a file. If its worker died, nginx tries the request again, which finds its own file. */
static int
add_file(struct upload *u, const struct hr_target *t, struct hr_buf *why)
{
	if (hr_spool_place_new(&u->last.spool, t, &u->exists, why) == 0)
		return 0;
	if (!u->exists || !u->w->once_again || !is_placed(u, t))
		return -1;
	hr_buf_reset(why);
	return 0;
}

/* Moves a file to its place under its own name. */
static int
place_file(struct upload *u, struct hr_buf *why)
{
	struct hr_target t;
	int r = hr_target_open(
	    &t, hr_buf_str(&u->destination), hr_buf_str(&u->last.name), u->w->work_dir, why);

	if (r == 0 && u->last.sys != 0)
		r = hr_oserror_put(why, u->last.sys, t.text);
	if (r == 0)
		mark(u);
	if (r == 0)
		r = u->adds ? add_file(u, &t, why) : hr_spool_place(&u->last.spool, &t, why);
	hr_target_close(&t);
	return r;
}

/* Unpacks an archive, which itself never appears in the directory. An invalid archive is kept as a
 * plain file, as in the original. */
static int
place_zip(struct upload *u, bool *ret_too_large, bool *ret_kept, struct hr_buf *why)
{
	const char *destination = hr_buf_str(&u->destination);
	HR_FREE char *name = hr_path_join(destination, hr_buf_str(&u->last.name));
	const struct hr_commit commit = {mark, u};
	const struct hr_zip *zip;
	struct hr_err err = {.code = HR_OK};
	int r = -1;

	if (name == NULL) {
		(void)hr_oserror_put(why, ENOMEM, NULL);
	} else if (u->last.sys != 0) {
		(void)hr_oserror_put(why, u->last.sys, name);
	} else if ((zip = hr_zip_load(u->w->libexec_dir, &err)) == NULL) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		(void)hr_oserror_text(why, err.msg, NULL);
	} else if (zip->is_zip(u->last.spool.fd)) {
		r = zip->unpack(u->last.spool.fd, name, destination, &u->w->unpack_limits, &commit,
		    ret_too_large, why);
	} else if (place_file(u, why) == 0) {
		*ret_kept = true;
		hr_buf_reset(why);
		hr_buf_adds(why, name);
		hr_buf_adds(why, " is not a zip file");
	}
	return r;
}

/* Returns 0, or -1 with the text of the answer. */
static int
place(struct upload *u, bool *ret_too_large, struct hr_buf *why)
{
	const char *destination = hr_buf_str(&u->destination);
	bool zip = is_zip(u, &u->last.name), kept = false;
	size_t made = 0;
	int r;

	if (destination[0] != '/')
		return hr_oserror_text(why, "400: Destination must be an absolute path", NULL);
	if (has_null(&u->destination))
		return hr_oserror_text(why, "mkdir: embedded null character in path", NULL);
	if (hr_target_mkdirs(destination, &made, why) < 0)
		return -1;
	if (u->recursive && !zip)
		r = hr_oserror_text(why, "400: Recursive uploads must be zip files", NULL);
	else if (has_null(&u->last.name))
		r = hr_oserror_text(why, "embedded null byte", NULL);
	else if (zip)
		r = place_zip(u, ret_too_large, &kept, why);
	else
		r = place_file(u, why);
	if (r < 0 && !kept)
		hr_target_rmdirs(destination, made);
	return r;
}

static void
answer_done(struct upload *u, struct hr_answer *ret)
{
	hr_buf_addc(&ret->body, '{');
	hr_json_put_member(&ret->body, "filename", hr_span_of_buf(&u->last.name));
	hr_json_put_member(&ret->body, "destination", hr_span_of_buf(&u->destination));
	hr_buf_addf(&ret->body, ",\"recursive\":%s}", u->recursive ? "true" : "false");
}

static void
finish(struct upload *u, struct hr_answer *ret)
{
	bool too_large = false;
	HR_BUF(why, HR_TARGET_TEXT_MAX);

	if (u->destination.fail != HR_OK || u->last.name.fail != HR_OK)
		hr_answer_generic(ret);
	else if (place(u, &too_large, &why) == 0)
		answer_done(u, ret);
	else if (why.fail != HR_OK)
		hr_answer_generic(ret);
	else
		hr_answer_detail(ret, too_large ? 413 : u->exists ? 409 : 500, hr_buf_str(&why));
}

static void
finish_once(struct upload *u, const struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(what, QUERY_MAX * 4); /* has room for two names */
	HR_BUF(key, HR_KEY_MAX);
	struct hr_span span;

	hr_buf_adds(&what, "upload");
	hr_buf_addc(&what, '\0'); /* distinguishes the text from the body of any action */
	hr_buf_add(&what, hr_buf_str(&u->destination), u->destination.len);
	hr_buf_addc(&what, '\0');
	hr_buf_add(&what, hr_buf_str(&u->last.name), u->last.name.len);
	hr_buf_addf(&what, "%c%d %" PRIu64 " %016" PRIx64, '\0',
	    u->recursive | u->as_is << 1 | u->adds << 2, u->last.size, u->last.digest);
	hr_key_named(&key, r, &what);
	span = hr_span_of_buf(&key);
	if (hr_buf_check(&what, NULL) < 0 || hr_buf_check(&key, NULL) < 0) {
		hr_answer_generic(ret);
	} else if (hr_once_enter(u->w, span, ret)) {
		finish(u, ret);
		hr_once_leave(u->w, ret);
	}
	hr_buf_add(&ret->key, span.p, span.len);
}

/* Returns true if a file has come, or false after sending an error. */
static bool
receive(struct upload *u, const struct hr_request *r, struct hr_answer *ret)
{
	hr_worker_stage(u->w, HR_STAGE_READING);
	if (u->refused != NULL) {
		hr_answer_detail(ret, 400, u->refused);
	} else if (hr_body_is_type(r->content_type, "multipart/form-data")) {
		if (receive_multipart(u, r) < 0)
			hr_answer_detail(ret, 400, u->refused);
	} else if (hr_body_is_type(r->content_type, "application/x-www-form-urlencoded")) {
		receive_form(u, r, ret);
	}
	hr_worker_stage(u->w, HR_STAGE_RUNNING);
	if (u->refused != NULL)
		return false;
	if (u->recursive_fine && u->got == GOT_FILE)
		return true;
	answer_invalid(u, ret);
	return false;
}

static void
place_received(struct upload *u, const struct hr_request *r, struct hr_answer *ret)
{
	if (u->named) {
		finish_once(u, r, ret);
	} else if (!u->adds) {
		finish(u, ret);
	} else if (hr_once_try(u->w, r, true, ret)) {
		finish(u, ret);
		hr_once_leave(u->w, ret);
	}
}

void
hr_handle_upload(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct upload u;

	upload_init(&u, w, r);
	if (receive(&u, r, ret))
		place_received(&u, r, ret);
	upload_done(&u);
}

bool
hr_upload_to(struct hr_worker *w, const struct hr_request *r, const struct hr_buf *path,
    uint64_t *ret_size, struct hr_buf *ret_field, struct hr_answer *ret)
{
	const char *slash = path != NULL ? memrchr(path->p, '/', path->len) : NULL;
	struct upload u;

	upload_init(&u, w, r);
	u.as = slash != NULL ? slash + 1 : "";
	u.as_is = true;
	u.recursive = false;
	u.recursive_fine = true;
	hr_buf_reset(&u.destination);
	if (slash != NULL)
		hr_buf_add(
		    &u.destination, path->p, slash > path->p ? (size_t)(slash - path->p) : 1);
	if (receive(&u, r, ret) && slash != NULL)
		place_received(&u, r, ret);
	*ret_size = u.last.size;
	if (u.got == GOT_FIELD)
		hr_buf_add(ret_field, hr_buf_str(&u.last_field), u.last_field.len);
	upload_done(&u);
	return ret->status == 200;
}
