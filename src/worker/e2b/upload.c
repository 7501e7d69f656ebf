/* Answers POST /files: the files of a form, or one as the body, each written whole or not at all.
 * The bytes go to an unnamed file beside the place as they arrive (files/place/atomic.h). */
#include "config.h"

#include "worker/e2b/e2b.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/text/quote.h"
#include "e2b/entry.h"
#include "files/multipart.h"
#include "files/params.h"
#include "files/place/atomic.h"
#include "files/place/reach.h"
#include "proto/json.h"
#include "worker/request/body.h"

#define CHUNK (128u << 10)
#define NAME_CAP (HR_MULTIPART_HEADERS_MAX * 2)
#define METADATA_KEY 246
#define METADATA_MAX 4096
#define METADATA_HEADER "HTTP_X_METADATA_"
#define COMPOSE_BODY_MAX (4u << 20)
#define HEADER 10 /* bytes of gzip's header, which Go reads before it looks at them */
#define GZIP 16   /* added to zlib's window bits: the format of gzip */

struct upload {
	struct hr_e2b_call *c;
	struct hr_buf given; /* path of the query */
	struct hr_buf path;  /* of the current file, cleaned */
	struct hr_atomic file;
	bool open;               /* a file is being received */
	bool wanted;             /* the current part is a file */
	bool over;               /* the end of the current file is reached or failed */
	int status;              /* of the error; 0: none */
	struct hr_buf why;       /* message of the error */
	struct hr_strv paths;    /* of the written files */
	struct hr_strv metadata; /* pairs of key and value, sorted by key */
	struct hr_buf out;
};

static int
fail(struct upload *u, int status, const char *fmt, const char *text)
{
	if (u->status == 0) {
		u->status = status;
		hr_buf_addf(&u->why, fmt, text); /* NOLINT: one of this file's formats */
	}
	return -1;
}

static int
fail_errno(struct upload *u, const char *what, const char *call, int sys)
{
	HR_BUF(text, HR_E2B_PATH_MAX * 2);

	if (sys == ENOSPC || sys == EDQUOT)
		return fail(u, 507, "not enough disk space available%s", "");
	hr_buf_addf(&text, "%s: ", what);
	(void)hr_e2b_sys(&text, call, hr_buf_str(&u->path), sys);
	return fail(u, 500, "%s", hr_buf_str(&text));
}

/* ---- metadata ---- */

/* Returns a header's name as a key: FastCGI has it in upper case, with '_' for '-'. */
static char *
key_of(const char *param)
{
	char *key = strndup(param, strcspn(param, "=")), *p;

	for (p = key; p != NULL && *p != '\0'; p++)
		*p = *p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
	return key;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((char *const *)a)[0], ((char *const *)b)[0]);
}

static int
take_metadata(struct upload *u)
{
	char *const *p = u->c->r->params;
	size_t total = 0, len;
	char text[256];
	const char *value;

	for (; p != NULL && *p != NULL; p++) {
		if (strncmp(*p, METADATA_HEADER, strlen(METADATA_HEADER)) != 0)
			continue;
		hr_strv_take(&u->metadata, key_of(*p + strlen(METADATA_HEADER)));
		if (u->metadata.failed)
			break;
		len = strlen(u->metadata.v[u->metadata.n - 1]);
		value = strchr(*p, '=') + 1;
		if (len == 0) { /* the original ignores a header without a key */
			free(u->metadata.v[--u->metadata.n]);
			u->metadata.v[u->metadata.n] = NULL;
			continue;
		}
		hr_strv_add(&u->metadata, value);
		if (len > METADATA_KEY) {
			(void)snprintf(
			    text, sizeof(text), "%zu exceeds %d bytes", len, METADATA_KEY);
			return fail(u, 400, "invalid metadata: metadata key length %s", text);
		}
		for (; *value != '\0'; value++)
			if (*value < ' ' || *value > '~')
				return fail(u, 400,
				    "invalid metadata: value of key \"%s\" must be printable ASCII",
				    u->metadata.v[u->metadata.n - 2]);
		total += strlen(HR_E2B_XATTR) + len + strlen(u->metadata.v[u->metadata.n - 1]);
	}
	if (u->metadata.failed)
		return fail(u, 500, "%s", "out of memory");
	if (total > METADATA_MAX) {
		(void)snprintf(text, sizeof(text), "%zu exceeds %d", total, METADATA_MAX);
		return fail(u, 400, "invalid metadata: total metadata size %s bytes", text);
	}
	if (u->metadata.n > 0)
		qsort(u->metadata.v, u->metadata.n / 2, 2 * sizeof(*u->metadata.v), by_key);
	return 0;
}

/* Replaces the metadata of a file. A file system without extended attributes has none. */
static void
put_metadata(struct upload *u, const char *proc)
{
	char names[4096];
	ssize_t len = listxattr(proc, names, sizeof(names));
	const char *name;
	HR_BUF(key, 256);
	size_t i;

	for (name = names; len > 0 && name < names + len; name += strlen(name) + 1)
		if (strncmp(name, HR_E2B_XATTR, strlen(HR_E2B_XATTR)) == 0)
			(void)removexattr(proc, name);
	for (i = 0; i + 1 < u->metadata.n; i += 2) {
		hr_buf_reset(&key);
		hr_buf_addf(&key, HR_E2B_XATTR "%s", u->metadata.v[i]);
		(void)setxattr(
		    proc, hr_buf_str(&key), u->metadata.v[i + 1], strlen(u->metadata.v[i + 1]), 0);
	}
}

/* ---- one file ---- */

static bool
is_written(const struct upload *u, const char *path)
{
	size_t i;

	for (i = 0; i < u->paths.n; i++)
		if (strcmp(u->paths.v[i], path) == 0)
			return true;
	return false;
}

static int
fail_again(struct upload *u)
{
	HR_BUF(text, HR_E2B_PATH_MAX * 4);
	size_t i, n = 0;

	hr_buf_addf(&text,
	    "you cannot upload multiple files to the same path '%s' in one upload request, only "
	    "the "
	    "first specified file was uploaded",
	    hr_buf_str(&u->path));
	for (i = 0; u->paths.n > 2 && i < u->paths.n; i++)
		if (strcmp(u->paths.v[i], hr_buf_str(&u->path)) != 0)
			hr_buf_addf(&text, "%s%s",
			    n++ == 0 ? ", also the following files were uploaded: " : ", ",
			    u->paths.v[i]);
	return fail(u, 400, "%s", hr_buf_str(&text));
}

/* Opens the file in its directory `dir`. A link that the sandbox's user may have made is followed with
 * that user's rights. */
static int
open_place(struct upload *u, int dir, bool shells)
{
	const char *path = hr_buf_str(&u->path);
	struct hr_account_own own = {.changed = false};
	struct hr_err err = {0};
	struct stat st, there, here;
	bool link = fstatat(dir, hr_path_leaf(path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISLNK(st.st_mode);
	int r;

	shells = shells || (link && st.st_uid != 0 && hr_reach_get_rules() != NULL);
	if (shells && hr_reach_enter(&own) < 0)
		return fail_errno(u, "error opening file", "open", errno);
	r = hr_atomic_open(&u->file, path, 0644, &err);
	hr_account_leave(&own);
	if (r < 0)
		return fail_errno(u, "error opening file", "open", err.sys != 0 ? err.sys : EINVAL);
	u->file.dir = hr_e2b_keep_out(u->c, u->file.dir, false);
	if (u->file.dir >= 0 &&
	    (shells || link || (fstat(dir, &there) == 0 && fstat(u->file.dir, &here) == 0 &&
				   there.st_ino == here.st_ino && there.st_dev == here.st_dev))) {
		u->open = true;
		return 0;
	}
	hr_atomic_abort(&u->file); /* a link came in between */
	return fail_errno(u, "error opening file", "open", EACCES);
}

/* Opens the place of a file; `name` is its path as the client sent it. */
static int
begin(struct upload *u, struct hr_span name)
{
	HR_BUF(why, HR_E2B_PATH_MAX * 2);
	HR_FREE char *parent = NULL;
	HR_CLOSE int dir = -1;
	struct stat st;
	bool shells;

	hr_buf_reset(&u->path);
	if (hr_e2b_path(&u->path, name, &u->c->who, u->c->setup->directory, &why) < 0)
		return fail(u, 400, "error resolving path: %s", hr_buf_str(&why));
	if (is_written(u, hr_buf_str(&u->path)))
		return fail_again(u);
	parent = hr_e2b_parent(hr_buf_str(&u->path));
	dir = parent != NULL ? hr_e2b_mkdirs(u->c, parent, &shells, &why) : -1;
	if (dir < 0)
		return fail(u, 500, "error ensuring directories: %s", hr_buf_str(&why));
	if (stat(hr_buf_str(&u->path), &st) == 0 && S_ISDIR(st.st_mode))
		return fail(u, 400, "path is a directory: %s", hr_buf_str(&u->path));
	return open_place(u, dir, shells);
}

static int
data(struct upload *u, const char *p, size_t len)
{
	if (hr_spool_write(&u->file.spool, p, len) < 0)
		return fail_errno(u, "error writing file", "write", errno);
	return 0;
}

/* Puts the file in its place, as the user's. */
static int
finish(struct upload *u)
{
	HR_CLOSE int dir = fcntl(u->file.dir, F_DUPFD_CLOEXEC, 3);
	HR_FREE char *name = strdup(u->file.name);
	HR_CLOSE int fd = -1;
	bool is_new = u->file.old < 0;
	struct hr_err err = {0};
	char proc[64];

	u->open = false;
	if (is_new && (fchmod(u->file.spool.fd, 0644) < 0 ||
			  fchown(u->file.spool.fd, u->c->who.uid, u->c->who.gid) < 0)) {
		(void)fail_errno(u, "error changing ownership", "chown", errno);
		hr_atomic_abort(&u->file);
		return -1;
	}
	if (hr_atomic_commit(&u->file, &err) < 0)
		return fail_errno(u, "error writing file", "write", err.sys != 0 ? err.sys : EIO);
	if (name == NULL || dir < 0)
		return fail(u, 500, "%s", "out of memory");
	fd = hr_reach_check(openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	if (fd < 0 ||
	    (!is_new && fchownat(fd, "", u->c->who.uid, u->c->who.gid, AT_EMPTY_PATH) < 0))
		return fail_errno(u, "error changing ownership", "chown", errno);
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	put_metadata(u, proc);
	hr_strv_add(&u->paths, hr_buf_str(&u->path));
	return 0;
}

/* ---- a form ---- */

static int
part_begin(void *arg, const char *disposition, size_t len)
{
	struct upload *u = arg;
	HR_BUF(value, NAME_CAP);

	u->wanted = disposition != NULL && hr_params_get(disposition, len, "name", &value) &&
		    value.len == 4 && memcmp(value.p, "file", 4) == 0;
	if (!u->wanted)
		return 0;
	if (u->given.len > 0)
		return begin(u, hr_span_of_buf(&u->given));
	hr_buf_reset(&value);
	if (!hr_params_get(disposition, len, "filename", &value) || value.fail != HR_OK)
		return fail(u, 400, "error getting multipart custom part file name: %s",
		    "filename not found in Content-Disposition header");
	return begin(u, hr_span_of_buf(&value));
}

static int
part_data(void *arg, const char *p, size_t len)
{
	struct upload *u = arg;

	return u->wanted ? data(u, p, len) : 0;
}

static int
part_end(void *arg)
{
	struct upload *u = arg;

	return u->wanted ? finish(u) : 0;
}

/* ---- the body ---- */

struct body {
	struct upload *u;
	struct hr_multipart *form; /* NULL: the body is the file */
	bool packed;
	z_stream z;
	bool begun; /* compressed data has come */
	bool whole; /* the compressed data has ended */
	unsigned char out[CHUNK];
};

static int
body_plain(struct body *b, const char *p, size_t len)
{
	struct hr_err err = {0};

	if (b->form == NULL)
		return data(b->u, p, len);
	if (hr_multipart_feed(b->form, p, len, &err) < 0)
		return fail(b->u, 500, "error parsing multipart form: %s",
		    err.msg[0] != '\0' ? err.msg : "malformed");
	return 0;
}

/* Decompresses; several streams may follow each other. */
static int
body_packed(struct body *b, char *p, size_t len)
{
	int r = Z_OK;

	b->z.next_in = (unsigned char *)p;
	b->z.avail_in = (unsigned)len;
	do {
		if (b->whole && b->z.avail_in > 0 && inflateReset(&b->z) == Z_OK)
			b->whole = false;
		if (b->whole)
			break;
		b->z.next_out = b->out;
		b->z.avail_out = sizeof(b->out);
		r = inflate(&b->z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return fail(b->u, 400, "error decompressing request body: %s",
			    b->begun       ? "corrupt input"
			    : len < HEADER ? "failed to create gzip reader: unexpected EOF"
					   : "failed to create gzip reader: gzip: invalid header");
		b->whole = r == Z_STREAM_END;
		if (b->z.avail_out < sizeof(b->out)) {
			b->begun = true;
			if (body_plain(b, (char *)b->out, sizeof(b->out) - b->z.avail_out) < 0)
				return -1;
		}
	} while (b->z.avail_in > 0 || b->z.avail_out == 0);
	return 0;
}

static int
body_read(struct body *b)
{
	struct upload *u = b->u;
	const struct hr_request *r = u->c->r;
	struct hr_buf *buf = &u->c->w->body;
	ssize_t n = -1;
	char *p;

	hr_buf_reset(buf);
	p = hr_buf_reserve(buf, CHUNK);
	while (p != NULL && (n = r->body.read(r->body.ctx, p, CHUNK)) > 0)
		if ((b->packed ? body_packed(b, p, (size_t)n) : body_plain(b, p, (size_t)n)) < 0)
			return -1;
	if (p == NULL)
		return fail(u, 500, "%s", "out of memory");
	if (b->packed && !b->whole && !b->begun)
		return fail(u, 400,
		    "error decompressing request body: failed to create gzip reader: %s",
		    b->z.total_in > 0 ? "unexpected EOF" : "EOF");
	if (n < 0 || (b->packed && !b->whole))
		return fail(u, 500, "error writing file: %s", "unexpected EOF");
	return 0;
}

static int
receive(struct upload *u, struct hr_multipart *form)
{
	const char *encoding = hr_e2b_header(u->c, "CONTENT_ENCODING");
	struct body *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return fail(u, 500, "%s", "out of memory");
	b->u = u;
	b->form = form;
	b->packed = strcasecmp(encoding, "gzip") == 0;
	if (b->packed && inflateInit2(&b->z, MAX_WBITS + GZIP) != Z_OK) {
		free(b);
		return fail(u, 500, "%s", "out of memory");
	}
	r = body_read(b);
	if (b->packed)
		(void)inflateEnd(&b->z);
	free(b);
	return r;
}

static int
receive_form(struct upload *u)
{
	static const struct hr_multipart_ops ops = {part_begin, part_data, part_end};
	const char *type = u->c->r->content_type;
	HR_BUF(boundary, HR_MULTIPART_BOUNDARY_MAX + 1);
	struct hr_multipart m;
	int r;

	if (!hr_params_get(type, strlen(type), "boundary", &boundary) || boundary.len == 0)
		return fail(u, 500, "error parsing multipart form: %s",
		    "no multipart boundary param in Content-Type");
	if (hr_multipart_init(&m, hr_buf_str(&boundary), boundary.len, &ops, u) < 0)
		r = fail(u, 500, "error parsing multipart form: %s", "invalid boundary");
	else
		r = receive(u, &m);
	if (r == 0 && u->open)
		r = fail(u, 500, "error writing file: %s", "unexpected EOF");
	else if (r == 0 && m.state != HR_MULTIPART_END)
		r = fail(u, 500, "error parsing multipart form: %s", "multipart: NextPart: EOF");
	hr_multipart_done(&m);
	return r;
}

static int
receive_whole(struct upload *u)
{
	if (u->given.len == 0)
		return fail(u, 400, "%s", "path query parameter is required for raw body upload");
	if (begin(u, hr_span_of_buf(&u->given)) < 0 || receive(u, NULL) < 0)
		return -1;
	return finish(u);
}

/* ---- the answer ---- */

/* Appends a JSON string as Go writes it: safe within HTML. */
static void
put_go_text(struct hr_buf *b, const char *text)
{
	HR_BUF(plain, HR_E2B_PATH_MAX * 6);
	const char *p;

	hr_quote_json(&plain, text, strlen(text));
	if (plain.fail != HR_OK)
		b->fail = plain.fail;
	for (p = hr_buf_str(&plain); *p != '\0'; p++)
		if (*p == '&' || *p == '<' || *p == '>')
			hr_buf_addf(b, "\\u%04x", (unsigned)*p);
		else
			hr_buf_addc(b, *p);
}

static void
put_written(struct upload *u)
{
	size_t i, k;

	hr_buf_addc(&u->out, '[');
	for (i = 0; i < u->paths.n; i++) {
		hr_buf_adds(&u->out, i > 0 ? ",{" : "{");
		for (k = 0; k + 1 < u->metadata.n; k += 2) {
			hr_buf_adds(&u->out, k > 0 ? "," : "\"metadata\":{");
			put_go_text(&u->out, u->metadata.v[k]);
			hr_buf_addc(&u->out, ':');
			put_go_text(&u->out, u->metadata.v[k + 1]);
		}
		hr_buf_adds(&u->out, k > 0 ? "},\"name\":" : "\"name\":");
		put_go_text(&u->out, hr_path_leaf(u->paths.v[i]));
		hr_buf_adds(&u->out, ",\"path\":");
		put_go_text(&u->out, u->paths.v[i]);
		hr_buf_adds(&u->out, ",\"type\":\"file\"}");
	}
	hr_buf_addc(&u->out, ']');
}

static void
upload_init(struct upload *u, struct hr_e2b_call *c)
{
	memset(u, 0, sizeof(*u));
	u->c = c;
	u->file.dir = u->file.old = -1;
	hr_spool_init(&u->file.spool);
	hr_buf_init(&u->given, HR_E2B_PATH_MAX);
	hr_buf_init(&u->path, HR_E2B_PATH_MAX);
	hr_buf_init(&u->why, HR_E2B_PATH_MAX * 4);
	hr_buf_init(&u->out, HR_ANSWER_MAX);
}

static void
upload_done(struct upload *u)
{
	hr_atomic_abort(&u->file);
	hr_buf_done(&u->given);
	hr_buf_done(&u->path);
	hr_buf_done(&u->why);
	hr_buf_done(&u->out);
	hr_strv_done(&u->paths);
	hr_strv_done(&u->metadata);
}

static void
answer(struct upload *u)
{
	if (u->paths.failed || u->out.fail != HR_OK)
		hr_answer_generic(u->c->ret);
	else if (u->status != 0)
		hr_e2b_refuse(u->c, u->status, "%s", hr_buf_str(&u->why));
	else
		hr_buf_add(&u->c->ret->body, u->out.p, u->out.len);
}

void
hr_e2b_upload(struct hr_e2b_call *c)
{
	const char *encoding = hr_e2b_header(c, "CONTENT_ENCODING");
	const char *type = c->r->content_type;
	struct upload u;

	upload_init(&u, c);
	(void)hr_request_query_bytes(c->r, "path", &u.given);
	if (encoding[0] != '\0' && strcasecmp(encoding, "gzip") != 0 &&
	    strcasecmp(encoding, "identity") != 0)
		hr_e2b_refuse(c, 400,
		    "error decompressing request body: unsupported Content-Encoding: %s, "
		    "supported: "
		    "[gzip]",
		    encoding);
	else if (hr_e2b_check_query(c) && hr_e2b_find_user(c)) {
		if (take_metadata(&u) == 0) {
			if (hr_body_is_type(type, "multipart/form-data"))
				(void)receive_form(&u);
			else if (hr_body_is_type(type, "application/octet-stream"))
				(void)receive_whole(&u);
			else
				(void)fail(&u, 400,
				    "unsupported content type: %s, expected multipart/form-data or "
				    "application/octet-stream",
				    type);
		}
		put_written(&u);
		c->ret->content_type = "text/plain; charset=utf-8";
		answer(&u);
	}
	upload_done(&u);
}

/* ---- POST /files/compose ---- */

/* Appends one of the files. */
static int
append(struct upload *u, const char *path)
{
	HR_CLOSE int fd = hr_e2b_keep_out(u->c,
	    hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false), false);
	struct hr_buf *buf = &u->c->w->body;
	struct stat st;
	ssize_t n = -1;
	char *p;

	if (fd < 0 && errno == ENOENT)
		return fail(u, 404, "source file not found: %s", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_errno(u, "error opening source file", "open", errno);
	if (!S_ISREG(st.st_mode))
		return fail(u, 400, "source is not a regular file: %s", path);
	hr_buf_reset(buf);
	p = hr_buf_reserve(buf, CHUNK);
	while (p != NULL && (n = hr_fd_read(fd, p, CHUNK)) > 0)
		if (data(u, p, (size_t)n) < 0)
			return -1;
	return n == 0 ? 0 : fail_errno(u, "error reading source file", "read", EIO);
}

/* Removes a file that is part of another one now. */
static void
remove_source(const char *path)
{
	struct hr_account_own own = {.changed = false};
	HR_FREE char *parent = hr_e2b_parent(path);
	HR_CLOSE int dir = -1;
	bool shells = false;

	if (parent != NULL)
		dir = hr_reach_open_whose(AT_FDCWD, parent, O_PATH | O_DIRECTORY, &shells);
	if (dir < 0 || (shells && hr_reach_enter(&own) < 0))
		return;
	(void)unlinkat(dir, hr_path_leaf(path), 0);
	hr_account_leave(&own);
}

static int
compose(struct upload *u, struct json_object *in)
{
	struct json_object *list = hr_json_typed_at(in, "source_paths", HR_PY_LIST);
	HR_CLEAN(hr_strv_done) struct hr_strv sources = {0};
	HR_BUF(path, HR_E2B_PATH_MAX);
	HR_BUF(why, HR_E2B_PATH_MAX);
	const char *text;
	size_t i, n = hr_json_count(list);

	for (i = 0; i < n; i++) {
		text = hr_json_text(hr_json_entry(list, i));
		hr_buf_reset(&path);
		if (text == NULL || hr_e2b_path(&path, hr_span_of(text), &u->c->who,
					u->c->setup->directory, &why) < 0)
			return fail(u, 400, "error resolving source path: %s", hr_buf_str(&why));
		hr_strv_add(&sources, hr_buf_str(&path));
	}
	text = hr_json_text_at(in, "destination");
	if (n == 0 || text == NULL || text[0] == '\0')
		return fail(u, 400, "%s", "source_paths and destination are required");
	if (sources.failed)
		return fail(u, 500, "%s", "out of memory");
	if (begin(u, hr_span_of(text)) < 0)
		return -1;
	for (i = 0; i < n; i++)
		if (append(u, sources.v[i]) < 0)
			return -1;
	if (finish(u) < 0)
		return -1;
	for (i = 0; i < n; i++)
		if (strcmp(sources.v[i], u->paths.v[0]) != 0)
			remove_source(sources.v[i]);
	return 0;
}

void
hr_e2b_compose(struct hr_e2b_call *c)
{
	HR_PUT struct json_object *in = NULL;
	struct upload u;
	const char *user;

	if (!hr_worker_body(c->w, c->r, COMPOSE_BODY_MAX, c->ret))
		return;
	if (hr_json_decode(hr_buf_str(&c->w->body), c->w->body.len, &in, NULL) < 0) {
		hr_e2b_refuse(c, 400, "invalid request body");
		return;
	}
	user = hr_json_text_at(in, "username");
	if (!hr_e2b_who_find(&c->who, user, c->setup, c->w->user_id)) {
		hr_e2b_refuse(c, 401, "error looking up user '%s': user: unknown user %s",
		    user != NULL ? user : "", user != NULL ? user : "");
		return;
	}
	upload_init(&u, c);
	if (compose(&u, in) == 0) {
		hr_buf_adds(&u.out, "{\"name\":");
		put_go_text(&u.out, hr_path_leaf(u.paths.v[0]));
		hr_buf_adds(&u.out, ",\"path\":");
		put_go_text(&u.out, u.paths.v[0]);
		hr_buf_adds(&u.out, ",\"type\":\"file\"}");
	}
	answer(&u);
	upload_done(&u);
}
