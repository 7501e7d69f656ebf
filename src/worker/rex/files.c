/* Handles files: read as text, written, uploaded. They are opened and replaced like those of the
 * actions `read` and `write` and of POST /upload_file: completely or not at all, and with the same
 * access rules. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "files/archive/zip.h"
#include "files/charset/charset.h"
#include "files/multipart.h"
#include "files/params.h"
#include "files/place/atomic.h"
#include "files/place/oserror.h"
#include "files/place/target.h"
#include "files/purepath.h"
#include "files/pytext.h"
#include "files/textfile.h"
#include "worker/request/body.h"
#include "worker/rex/rex.h"

#define FILE_MAX (256u << 20)
#define WHY_MAX (64u << 20)
#define CHUNK (128u << 10)
#define FIELD_MAX (64u << 10)

/* Returns the server's path, which the caller frees, or NULL after raising an exception. */
static char *
path_of(struct hr_rex_call *c, struct hr_span given)
{
	HR_BUF(why, WHY_MAX);
	char *path = NULL;
	HR_FREE char *bytes = hr_purepath_bytes(given.p, given.len, &why);

	if (bytes == NULL && why.fail == HR_OK)
		hr_rex_raise(c->ret,
		    memchr(given.p, '\0', given.len) != NULL ? "builtins.ValueError"
							     : "builtins.UnicodeEncodeError",
		    &why, "");
	else if (bytes == NULL || (path = hr_path_join(c->w->work_dir, bytes)) == NULL)
		hr_answer_generic(c->ret);
	return path;
}

/* ---- read ---- */

enum handler { STRICT, IGNORE, REPLACE, BACKSLASH, SURROGATE };

static bool
handler_of(struct hr_span name, enum handler *ret)
{
	static const char *const names[] = {
	    "strict", "ignore", "replace", "backslashreplace", "surrogateescape"};
	size_t i;

	*ret = STRICT;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (name.p == NULL || hr_span_equal(name, hr_span_of(names[i]))) {
			*ret = (enum handler)i;
			return true;
		}
	return false;
}

static void
put_bad(struct hr_buf *text, const char *p, size_t n, enum handler how)
{
	size_t i;

	if (how == REPLACE)
		hr_buf_adds(text, "\xEF\xBF\xBD");
	for (i = 0; how == BACKSLASH && i < n; i++)
		hr_buf_addf(text, "\\x%02x", (unsigned char)p[i]);
}

/* Decodes UTF-8 or ASCII; an invalid byte is an error for STRICT and SURROGATE. */
static bool
decode_loosely(struct hr_buf *text, const struct hr_buf *bytes, bool ascii, enum handler how,
    struct hr_buf *why)
{
	const char *p = hr_buf_str(bytes), *begin = p, *end = p + bytes->len;
	size_t n;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (ascii ? (unsigned char)*p >= 0x80 : cp < 0 || hr_utf8_is_surrogate(cp)) {
			n = ascii || cp >= 0 ? 1 : n;
			if (how == STRICT)
				hr_buf_addf(why,
				    "'ascii' codec can't decode byte 0x%02x in position %zu: "
				    "ordinal not in range(128)",
				    (unsigned char)*p, (size_t)(p - begin));
			else if (how == SURROGATE)
				hr_buf_addf(why,
				    "byte 0x%02x in position %zu becomes a surrogate, which no "
				    "JSON holds",
				    (unsigned char)*p, (size_t)(p - begin));
			if (why->len > 0)
				return false;
			put_bad(text, p, n, how);
		} else {
			hr_buf_add(text, p, n);
		}
	}
	return true;
}

/* Reads the file. Returns false after raising an exception. */
static bool
decode(struct hr_rex_call *c, const struct hr_buf *bytes, struct hr_buf *text)
{
	static const char *const utf8[] = {"utf_8", "utf8", "u8", "utf", NULL};
	static const char *const ascii[] = {"ascii", "us_ascii", "646", NULL};
	struct hr_span encoding = hr_rex_str(c, "encoding"), errors = hr_rex_str(c, "errors");
	const struct hr_charset *charset = &hr_charset_utf8;
	enum handler how;
	char name[64] = "utf_8";
	bool plain, is_text = true, ok;
	HR_BUF(why, WHY_MAX);
	size_t i;

	for (i = 0; i < encoding.len && i + 1 < sizeof(name); i++) {
		name[i] = encoding.p[i] == '-' ? '_' : (char)tolower((unsigned char)encoding.p[i]);
		name[i + 1] = '\0';
	}
	plain = hr_is_one_of(name, utf8) || hr_is_one_of(name, ascii);
	if (!plain)
		charset = encoding.len < sizeof(name)
			      ? hr_charset_find(name, strlen(name), &is_text)
			      : NULL;
	if (charset == NULL || !is_text)
		return hr_rex_raisef(c->ret, "builtins.LookupError", "unknown encoding: %.100s",
		    encoding.p != NULL ? encoding.p : "");
	if (!handler_of(errors, &how))
		return hr_rex_raisef(c->ret, "builtins.LookupError",
		    "unknown error handler name '%.100s'", errors.p);
	if (!plain && how != STRICT)
		return hr_rex_raisef(c->ret, "builtins.LookupError",
		    "errors='%.100s' is offered for UTF-8 and ASCII only, not for %.100s", errors.p,
		    encoding.p);
	if (hr_is_one_of(name, ascii) || (plain && how != STRICT))
		ok = decode_loosely(text, bytes, hr_is_one_of(name, ascii), how, &why);
	else
		ok = hr_charset_decode(charset, hr_buf_str(bytes), bytes->len, text, &why) == 0;
	return ok ||
	       hr_rex_raise(c->ret,
		   how == SURROGATE ? "builtins.UnicodeEncodeError" : "builtins.UnicodeDecodeError",
		   &why, "");
}

void
hr_rex_read_file(struct hr_rex_call *c)
{
	struct hr_span given = hr_rex_str(c, "path");
	struct hr_err err = {0};
	HR_BUF(bytes, FILE_MAX);
	HR_BUF(text, HR_ANSWER_MAX);
	HR_FREE char *path = path_of(c, given);

	if (path == NULL) {
		; /* path_of() has raised an exception */
	} else if (hr_textfile_read(path, &bytes, &err) < 0) {
		hr_rex_raise_os(
		    c->ret, err.sys != 0 ? err.sys : ENOMEM, given.len > 0 ? given.p : ".");
	} else if (decode(c, &bytes, &text)) {
		hr_pytext_universal(&text, 0);
		hr_buf_adds(&c->ret->body, "{\"content\":");
		(void)hr_json_put_str(&c->ret->body, hr_buf_str(&text), text.len, HR_JSON_REPLACE);
		hr_buf_addc(&c->ret->body, '}');
		if (text.fail != HR_OK)
			hr_answer_generic(c->ret);
	}
}

/* ---- write ---- */

/* Creates the parent directories. Returns false after raising an exception. */
static bool
make_parent(struct hr_rex_call *c, const char *path)
{
	HR_FREE char *dir = strdup(path);
	char *slash = dir != NULL ? strrchr(dir, '/') : NULL;
	HR_BUF(why, WHY_MAX);
	struct stat st;
	size_t made;

	if (dir == NULL)
		return hr_answer_generic(c->ret);
	if (slash == NULL || slash == dir)
		return true;
	*slash = '\0';
	if (hr_target_mkdirs(dir, &made, &why) < 0)
		return hr_rex_raise_os_text(c->ret, &why);
	if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
		return hr_rex_raise_os(c->ret, EEXIST, dir);
	return true;
}

/* Makes the sandbox's user the owner of a new file. Returns 0, or -1 with errno set. */
static int
set_owner(const struct hr_rex_call *c, int fd)
{
	return geteuid() == 0 ? fchown(fd, c->w->user_id, (gid_t)c->w->user_id) : 0;
}

/* Writes the file; `given` is the path for error messages. Returns false after raising an
 * exception. */
static bool
place(struct hr_rex_call *c, const char *path, const char *given, struct hr_span bytes)
{
	struct hr_err err = {0};
	struct hr_atomic a;
	int r = hr_atomic_open(&a, path, 0666, &err);

	if (r == 0) {
		if (a.old < 0 && set_owner(c, a.spool.fd) < 0)
			r = hr_err_sys(&err, errno, "chown");
		if (r == 0)
			r = hr_fd_write_full(a.spool.fd, bytes.p, bytes.len, &err);
		if (r == 0)
			r = hr_atomic_commit(&a, &err);
		else
			hr_atomic_abort(&a);
	}
	return r == 0 || hr_rex_raise_os(c->ret, err.sys != 0 ? err.sys : EINVAL, given);
}

static void
write_file(struct hr_rex_call *c)
{
	struct hr_span given = hr_rex_str(c, "path"), content = hr_rex_str(c, "content");
	HR_BUF(why, 1024);
	HR_FREE char *path = path_of(c, given);

	if (path == NULL)
		; /* path_of() has raised an exception */
	else if (hr_charset_check_text(content.p, content.len, &why) < 0)
		hr_rex_raise(c->ret, "builtins.UnicodeEncodeError", &why, "");
	else if (make_parent(c, path) && place(c, path, given.p, content))
		hr_buf_adds(&c->ret->body, "{}");
}

void
hr_rex_write_file(struct hr_rex_call *c)
{
	if (hr_rex_enter(c)) {
		write_file(c);
		hr_rex_leave(c);
	}
}

/* ---- upload ---- */

enum part { OTHER, FILE_PART, TARGET, UNZIP };

struct upload {
	/* the last complete part and the current one, which have no names yet */
	struct hr_spool spool, now;
	int sys, now_sys; /* errno of each spool; -1: there is no file */
	enum part part;
	struct hr_buf target, unzip, field;
	bool has_target;
};

static int
part_begin(void *arg, const char *disposition, size_t len)
{
	static const struct {
		const char *name;
		enum part part;
	} names[] = {{"file", FILE_PART}, {"target_path", TARGET}, {"unzip", UNZIP}};
	struct upload *u = arg;
	HR_BUF(value, HR_MULTIPART_HEADERS_MAX);
	size_t i;

	u->part = OTHER;
	if (disposition != NULL && hr_params_get(disposition, len, "name", &value))
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strcmp(hr_buf_str(&value), names[i].name) == 0)
				u->part = names[i].part;
	hr_buf_reset(&u->field);
	if (u->part == FILE_PART) {
		hr_spool_close(&u->now);
		u->now_sys = hr_spool_open(&u->now, "/tmp") < 0 ? errno : 0;
	}
	return 0;
}

static int
part_data(void *arg, const char *p, size_t len)
{
	struct upload *u = arg;

	if (u->part == FILE_PART && u->now_sys == 0 && hr_spool_write(&u->now, p, len) < 0) {
		u->now_sys = errno;
		hr_spool_close(&u->now); /* frees the disk space */
	} else if (u->part == TARGET || u->part == UNZIP) {
		hr_buf_add(&u->field, p, len);
	}
	return 0;
}

static void
take_field(struct hr_buf *ret, const struct hr_buf *field)
{
	hr_buf_reset(ret);
	hr_buf_add(ret, hr_buf_str(field), field->len);
	if (field->fail != HR_OK)
		ret->fail = field->fail;
}

/* Ends a part. It counts only now, because a body may end within it. */
static int
part_end(void *arg)
{
	struct upload *u = arg;

	if (u->part == FILE_PART) {
		hr_spool_close(&u->spool);
		u->spool = u->now;
		u->sys = u->now_sys;
		hr_spool_init(&u->now);
	} else if (u->part == TARGET) {
		take_field(&u->target, &u->field);
		u->has_target = true;
	} else if (u->part == UNZIP) {
		take_field(&u->unzip, &u->field);
	}
	return 0;
}

/* Reads the parts. Returns false after sending an error. */
static bool
receive(struct hr_rex_call *c, struct upload *u)
{
	static const struct hr_multipart_ops ops = {part_begin, part_data, part_end};
	const char *type = c->r->content_type;
	struct hr_multipart m;
	HR_BUF(boundary, HR_MULTIPART_BOUNDARY_MAX + 1);
	ssize_t n = -1;
	char *p;
	int fine = -1;

	hr_worker_stage(c->w, HR_STAGE_READING);
	hr_buf_reset(&c->w->body);
	p = hr_buf_reserve(&c->w->body, CHUNK);
	if (p != NULL && hr_body_is_type(type, "multipart/form-data") &&
	    hr_params_get(type, strlen(type), "boundary", &boundary)) {
		fine = hr_multipart_init(&m, hr_buf_str(&boundary), boundary.len, &ops, u);
		while (fine == 0 && (n = c->r->body.read(c->r->body.ctx, p, CHUNK)) > 0)
			fine = hr_multipart_feed(&m, p, (size_t)n, NULL);
		hr_multipart_done(&m);
	}
	hr_worker_stage(c->w, HR_STAGE_RUNNING);
	if (fine < 0 || n < 0 || u->target.fail != HR_OK || u->unzip.fail != HR_OK)
		return hr_answer_detail(c->ret, 400, "There was an error parsing the body");
	if (u->sys < 0)
		return hr_rex_refuse(
		    c->ret, "missing", ",\"file\"", "Field required", "null", NULL);
	return u->has_target ||
	       hr_rex_refuse(c->ret, "missing", ",\"target_path\"", "Field required", "null", NULL);
}

static void
unzip(struct hr_rex_call *c, struct upload *u, const char *path)
{
	struct hr_err err = {0};
	const struct hr_zip *zip = hr_zip_load(c->w->libexec_dir, &err);
	HR_BUF(why, WHY_MAX);
	bool too_large = false;
	size_t made = 0;

	if (zip == NULL) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		hr_answer_generic(c->ret);
	} else if (!zip->is_zip(u->spool.fd)) {
		hr_rex_raisef(c->ret, "zipfile.BadZipFile", "File is not a zip file");
	} else if (hr_target_mkdirs(path, &made, &why) < 0) {
		hr_rex_raise_os_text(c->ret, &why);
	} else if (zip->unpack(
		       u->spool.fd, path, path, &c->w->unpack_limits, NULL, &too_large, &why) < 0) {
		hr_target_rmdirs(path, made);
		hr_rex_raise_os_text(c->ret, &why);
	} else {
		hr_buf_adds(&c->ret->body, "{}");
	}
}

/* Copies the upload to a new file in the target's directory. Returns 0, or -1 with errno set. */
static int
copy_to(
    struct hr_rex_call *c, const struct upload *u, const struct hr_target *t, struct hr_spool *s)
{
	HR_FREE char *room = malloc(CHUNK);
	ssize_t n = -1;

	if (room != NULL && lseek(u->spool.fd, 0, SEEK_SET) == 0 &&
	    hr_spool_open_at(s, t->dir, t->exists ? 0600 : 0666, t->exists) == 0 &&
	    (t->exists || set_owner(c, s->fd) == 0))
		while ((n = hr_fd_read(u->spool.fd, room, CHUNK)) > 0)
			if (hr_spool_write(s, room, (size_t)n) < 0) {
				n = -1;
				break;
			}
	return n < 0 ? -1 : 0;
}

/* Follows the rules of POST /upload_file: no link may lead out of the file's directory. Returns
 * false after raising an exception. */
static bool
place_upload(struct hr_rex_call *c, const struct upload *u, const char *path)
{
	const char *leaf = strrchr(path, '/') + 1;
	HR_FREE char *dir = strndup(path, (size_t)(leaf - path));
	HR_CLEAN(hr_target_close) struct hr_target t = {.dir = -1};
	struct hr_spool s;
	HR_BUF(why, WHY_MAX);
	int r = -1;

	hr_spool_init(&s);
	if (dir == NULL)
		(void)hr_oserror_put(&why, ENOMEM, path);
	else if (hr_target_open(&t, dir, leaf, c->w->work_dir, &why) == 0)
		r = copy_to(c, u, &t, &s) < 0 ? hr_oserror_put(&why, errno, path)
					      : hr_spool_place(&s, &t, &why);
	hr_spool_close(&s);
	return r == 0 || hr_rex_raise_os_text(c->ret, &why);
}

/* Replaces the file. A repetition writes the same bytes, so no journal is needed. */
static void
put(struct hr_rex_call *c, struct upload *u)
{
	HR_FREE char *path = path_of(c, hr_span_of_buf(&u->target));
	int yes = u->unzip.len > 0 ? hr_text_truth(u->unzip.p, u->unzip.len) : 0;

	if (path == NULL)
		return;
	if (yes < 0)
		hr_rex_refuse(c->ret, "bool_parsing", ",\"unzip\"",
		    "Input should be a valid boolean, unable to interpret input", "null", NULL);
	else if (u->sys != 0)
		hr_rex_raise_os(c->ret, u->sys, NULL);
	else if (yes)
		unzip(c, u, path);
	else if (make_parent(c, path) && place_upload(c, u, path))
		hr_buf_adds(&c->ret->body, "{}");
}

void
hr_rex_upload(struct hr_rex_call *c)
{
	struct upload u = {.sys = -1};

	hr_spool_init(&u.spool);
	hr_spool_init(&u.now);
	hr_buf_init(&u.target, FIELD_MAX);
	hr_buf_init(&u.unzip, 64);
	hr_buf_init(&u.field, FIELD_MAX);
	if (receive(c, &u))
		put(c, &u);
	hr_spool_close(&u.spool);
	hr_spool_close(&u.now);
	hr_buf_done(&u.target);
	hr_buf_done(&u.unzip);
	hr_buf_done(&u.field);
}
