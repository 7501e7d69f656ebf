/* Implements read and write without the editor. */
#include "config.h"

#include "files/readwrite.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "files/place/atomic.h"
#include "files/charset/charset.h"
#include "files/place/oserror.h"
#include "files/purepath.h"
#include "files/pytext.h"
#include "files/textfile.h"

#define TEXT_MAX (512u << 20)
#define MIME_TYPES "/etc/mime.types"
#define MIME_TYPES_MAX (1u << 20)

static enum hr_rw_result
say(struct hr_buf *text, const char *before, struct hr_span path, const char *after)
{
	hr_buf_adds(text, before);
	hr_buf_add(text, path.p, path.len);
	hr_buf_adds(text, after);
	return HR_RW_ERROR;
}

static enum hr_rw_result
raise_os(struct hr_buf *text, const struct hr_err *err, struct hr_span path)
{
	if (err->code == HR_E_NOMEM)
		text->fail = HR_E_NOMEM;
	hr_oserror_add(text, err->sys, path.p, path.len);
	return HR_RW_RAISED;
}

/* ---- read ---- */

static const struct media {
	const char *suffix;
	const char *type;
	const char *bare; /* type of a file whose whole name is the suffix */
} medias[] = {
    {".png", "image/png", "image/png"}, {".jpg", "image/jpeg", "image/png"},
    {".jpeg", "image/jpeg", "image/png"}, {".bmp", "image/bmp", "image/png"},
    {".gif", "image/gif", "image/png"}, {".pdf", "application/pdf", "application/pdf"},
    {".mp4", "video/mp4", "video/mp4"}, {".webm", "video/webm", "video/mp4"},
    {".ogg", NULL, "video/mp4"}, /* see ogg_type() */
};

/* Returns the type of .ogg, the only one that the original takes from the system's table. */
static const char *
ogg_type(void)
{
	const char *p, *end;
	bool listed = false;
	HR_BUF(b, MIME_TYPES_MAX);

	if (hr_path_read(MIME_TYPES, &b, NULL) == 0) {
		p = hr_buf_str(&b);
		end = p + b.len;
		while (!listed && (p = memmem(p, (size_t)(end - p), "ogg", 3)) != NULL) {
			/* the suffix must be a separate word after the type */
			listed = p > b.p && strchr(" \t", p[-1]) != NULL &&
				 (p + 3 == end || strchr(" \t\r\n", p[3]) != NULL);
			p++;
		}
	}
	return listed ? "audio/ogg" : "video/mp4";
}

/* Returns the type of a media file, or NULL for text. */
static const char *
media_type(struct hr_span path)
{
	const struct media *m;
	size_t i, n;

	for (i = 0; i < sizeof(medias) / sizeof(medias[0]); i++) {
		m = &medias[i];
		n = strlen(m->suffix);
		if (path.len < n || strncasecmp(path.p + path.len - n, m->suffix, n) != 0)
			continue;
		if (path.len == n || path.p[path.len - n - 1] == '/')
			return m->bare;
		return m->type != NULL ? m->type : ogg_type();
	}
	return NULL;
}

bool
hr_rw_is_media(struct hr_span path)
{
	return media_type(path) != NULL;
}

void
hr_rw_slice(const char *p, size_t len, int64_t start, int64_t end, size_t *ret_from, size_t *ret_to)
{
	int64_t n, begin, stop;

	*ret_from = 0;
	*ret_to = len;
	if (start <= 0 && end == -1)
		return; /* the whole file is read, so the lines need not be counted */
	n = (int64_t)hr_pytext_lines(p, len);
	start = start < 0 ? 0 : start > n ? n : start;
	if (end != -1) {
		end = end < 0 ? 0 : end > n ? n : end;
		begin = start < n - 2 ? start : n - 2;
		begin = begin < 0 ? 0 : begin;
		stop = end > begin + 1 ? end : begin + 1;
		*ret_from = hr_pytext_line_at(p, len, (size_t)begin);
		*ret_to = *ret_from +
			  hr_pytext_line_at(p + *ret_from, len - *ret_from, (size_t)(stop - begin));
		return;
	}
	*ret_from = hr_pytext_line_at(p, len, (size_t)start);
}

/* Limits floats to the n lines, as the original does: a limit is an integer, and what is within
 * the limits stays a float. Returns false if Python would slice by a float. */
static bool
limit_floats(const struct hr_read *q, int64_t n, int64_t *start, int64_t *end)
{
	double s = q->float_start != NULL ? *q->float_start : (double)*start;
	double e = q->float_end != NULL ? *q->float_end : (double)*end;
	double begin = fmax(0, fmin(s, (double)(n - 2)));
	bool to_last = e == -1;

	if (q->float_start != NULL) {
		if (s > 0 && s <= (double)(to_last ? n : n - 2))
			return false;
		*start = s > 0 ? n : 0;
	}
	if (q->float_end != NULL) {
		if (!to_last && e > begin + 1 && e <= (double)n)
			return false;
		*end = to_last ? -1 : e > begin + 1 ? n : 0;
	}
	return true;
}

static enum hr_rw_result
put_text(const struct hr_read *q, struct hr_buf *bytes, struct hr_buf *text)
{
	const struct hr_encoding utf8 = {.charset = &hr_charset_utf8};
	int64_t start = q->start, end = q->end;
	size_t from, to;

	if (hr_textfile_decode(bytes, &utf8, text, NULL) < 0)
		return say(text, "File could not be decoded as utf-8: ", q->path, ".");
	if ((q->float_start != NULL || q->float_end != NULL) &&
	    !limit_floats(q, (int64_t)hr_pytext_lines(hr_buf_str(text), text->len), &start, &end)) {
		hr_buf_reset(text);
		hr_buf_adds(text, HR_RW_UNSLICED);
		return HR_RW_RAISED;
	}
	hr_rw_slice(hr_buf_str(text), text->len, start, end, &from, &to);
	if (text->len > to)
		text->len = to;
	if (from > 0)
		hr_buf_drop_front(text, from);
	return HR_RW_DONE;
}

static enum hr_rw_result
refuse_read(const struct hr_read *q, const struct hr_err *err, struct hr_buf *text)
{
	switch (err->sys) {
	case ENOENT:
		if (q->cwd.p == NULL)
			return HR_RW_CWD;
		(void)say(text, "File not found: ", q->path, "");
		return say(text, ". Your current working directory is ", q->cwd, ".");
	case EISDIR:
		return say(text, "Path is a directory: ", q->path, ". You can only read files");
	default: return raise_os(text, err, q->path);
	}
}

enum hr_rw_result
hr_rw_read(const struct hr_read *q, struct hr_buf *text)
{
	HR_FREE char *file = hr_purepath_bytes(q->path.p, q->path.len, text);
	const char *media = media_type(q->path);
	enum hr_rw_result r = HR_RW_DONE;
	struct hr_err err = {.code = HR_OK};
	bool binary = false;
	HR_BUF(bytes, HR_READ_MAX);

	if (file == NULL)
		return HR_RW_RAISED;
	if ((q->text_only ? hr_textfile_read_text(file, &bytes, &binary, &err)
			  : hr_textfile_read(file, &bytes, &err)) < 0) {
		r = refuse_read(q, &err, text);
	} else if (binary) {
		r = HR_RW_BINARY;
	} else if (media != NULL) {
		hr_buf_addf(text, "data:%s;base64,", media);
		hr_quote_base64(text, hr_buf_str(&bytes), bytes.len);
	} else {
		r = put_text(q, &bytes, text);
	}
	return r;
}

/* ---- write ---- */

/* Clamps the slices OLD[:start] and OLD[end:] independently, as Python does. */
void
hr_rw_insert(
    struct hr_buf *b, const struct hr_span *old, struct hr_span content, int64_t start, int64_t end)
{
	size_t n, from, to;

	n = old != NULL ? hr_pytext_lines(old->p, old->len) : 0;
	if (old != NULL && start != 0) {
		hr_pytext_slice(n, 0, start, &from, &to);
		hr_buf_add(b, old->p, hr_pytext_line_at(old->p, old->len, to));
	}
	hr_buf_add(b, content.p, content.len);
	hr_buf_addc(b, '\n');
	if (old != NULL && end != -1) {
		hr_pytext_slice(n, end, INT64_MAX, &from, &to);
		from = hr_pytext_line_at(old->p, old->len, from);
		hr_buf_add(b, old->p + from, old->len - from);
	}
}

/* Makes the directories above the file. Returns 0, or -1 with *err set. */
static int
make_parents(const char *file, struct hr_err *err)
{
	const char *slash = strrchr(file, '/');
	struct stat st;
	HR_FREE char *dir = NULL;
	int r = 0;

	if (slash == NULL || slash == file)
		return 0;
	dir = strndup(file, (size_t)(slash - file));
	if (dir == NULL)
		return hr_err_nomem(err);
	/* a parent that is not a directory makes the later open fail */
	if (stat(dir, &st) < 0)
		r = hr_path_mkdirs(dir, 0777, NULL, err);
	return r;
}

/* Computes in `after` the text of a file that is not there. */
static enum hr_rw_result
make_new(const struct hr_write *q, struct hr_buf *after, struct hr_buf *text)
{
	if (hr_charset_check_text(q->content.p, q->content.len, text) < 0)
		return HR_RW_RAISED;
	hr_rw_insert(after, NULL, q->content, 0, -1);
	return HR_RW_DONE;
}

/* Computes in `after` the new text of an existing file. */
static enum hr_rw_result
merge(const struct hr_write *q, const char *file, struct hr_buf *after, struct hr_buf *text)
{
	const struct hr_encoding utf8 = {.charset = &hr_charset_utf8};
	enum hr_rw_result r = HR_RW_DONE;
	struct hr_err err = {.code = HR_OK};
	HR_BUF(bytes, HR_READ_MAX);
	HR_BUF(old, HR_READ_MAX);
	struct hr_span span;

	if (hr_textfile_read(file, &bytes, &err) < 0) {
		if (err.sys == EISDIR)
			r = say(text, "Path is a directory: ", q->path,
			    ". You can only write to files");
		else if (err.sys == ENOENT)
			/* the file was removed meanwhile */
			r = make_new(q, after, text);
		else
			r = raise_os(text, &err, q->path);
	} else if (hr_textfile_decode(&bytes, &utf8, &old, NULL) < 0) {
		r = say(text, "File could not be decoded as utf-8: ", q->path, "");
	} else if (q->unsliced) {
		hr_buf_adds(text, HR_RW_UNSLICED);
		r = HR_RW_RAISED;
	} else if (hr_charset_check_text(q->content.p, q->content.len, text) < 0) {
		r = HR_RW_RAISED;
	} else {
		span = hr_span_of_buf(&old);
		hr_rw_insert(after, &span, q->content, q->start, q->end);
	}
	return r;
}

static enum hr_rw_result
say_written(const struct hr_write *q, int sys, struct hr_buf *text)
{
	(void)say(
	    text, "File ", q->path, " written, but failed to change ownership and permissions: ");
	hr_oserror_add(text, sys, q->path.p, q->path.len);
	return HR_RW_ERROR;
}

/* Gives a new file mode and owner before its name: otherwise a user who may write to the directory
 * could put a link there and have another file chowned. *ret_refused is the errno of chown. */
static int
store_bytes(const struct hr_write *q, const char *file, const struct hr_buf *bytes,
    int *ret_refused, struct hr_err *err)
{
	struct hr_atomic a;

	if (hr_atomic_open(&a, file, 0666, err) < 0)
		return err->code == HR_E_UNSUPPORTED
			   ? hr_atomic_write_telling(
				 file, hr_buf_str(bytes), bytes->len, 0666, q->commit, err)
			   : -1;
	if (hr_fd_write_full(a.spool.fd, hr_buf_str(bytes), bytes->len, err) < 0) {
		hr_atomic_abort(&a);
		return -1;
	}
	if (a.old < 0 &&
	    (fchmod(a.spool.fd, 0664) < 0 || fchown(a.spool.fd, q->owner, (gid_t)q->owner) < 0))
		*ret_refused = errno;
	a.commit = q->commit;
	return hr_atomic_commit(&a, err);
}

static enum hr_rw_result
store(const struct hr_write *q, const char *file, const struct hr_buf *after, struct hr_buf *text)
{
	struct hr_err err = {.code = HR_OK};
	int refused = 0;

	if (after->fail != HR_OK) {
		text->fail = after->fail;
		return HR_RW_RAISED;
	}
	if (store_bytes(q, file, after, &refused, &err) < 0) {
		if (err.sys == EISDIR)
			return say(text, "Path is a directory: ", q->path,
			    ". You can only write to files");
		if (err.sys == ENOENT)
			return say(text, "File not found: ", q->path, "");
		return raise_os(text, &err, q->path);
	}
	return refused != 0 ? say_written(q, refused, text) : HR_RW_DONE;
}

/* Works as Python's os.path.exists(), but a file that stat cannot reach for other reasons is not
 * taken for a missing one: its text would be lost. Returns 1, 0, or -1 with errno. */
static int
exists(const char *file)
{
	struct stat st;

	if (stat(file, &st) == 0)
		return 1;
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EACCES:
	case ENAMETOOLONG: return 0;
	default: return -1;
	}
}

enum hr_rw_result
hr_rw_write(const struct hr_write *q, struct hr_buf *text)
{
	HR_FREE char *file = hr_purepath_bytes(q->path.p, q->path.len, text);
	enum hr_rw_result r = HR_RW_DONE;
	struct hr_err err = {.code = HR_OK};
	HR_BUF(after, TEXT_MAX);
	int existed;

	if (file == NULL)
		return HR_RW_RAISED;
	existed = exists(file);
	if (existed < 0)
		(void)hr_err_sys(&err, errno, "%s", file);
	if (existed == 0 && hr_charset_check_text(q->content.p, q->content.len, text) < 0)
		r = HR_RW_RAISED;
	else if (existed < 0 || (existed == 0 && make_parents(file, &err) < 0))
		r = raise_os(text, &err, q->path);
	else if (existed > 0)
		r = merge(q, file, &after, text);
	else
		hr_rw_insert(&after, NULL, q->content, 0, -1);
	if (r == HR_RW_DONE)
		r = store(q, file, &after, text);
	return r;
}
