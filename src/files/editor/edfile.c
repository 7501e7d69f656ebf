/* Holds parts that the editor's commands share: error texts, reading and writing the file's text,
 * the numbered block. */
#include "config.h"

#include "files/editor/editor_int.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "files/place/atomic.h"
#include "files/binary.h"
#include "files/charset/charset.h"
#include "files/purepath.h"
#include "files/place/oserror.h"
#include "files/pytext.h"
#include "files/textfile.h"
#include "proto/python/repr.h"

static const char clipped[] =
    "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to "
    "you. You should retry this tool after you have searched inside the file with `grep -n` in "
    "order to find the line numbers of what you are looking for.</NOTE>";

/* ---- texts ---- */

enum hr_edit_result
edit_error(struct edit *e, const char *format, ...)
{
	const char *next;
	struct hr_span s;
	va_list ap;

	va_start(ap, format);
	while ((next = strstr(format, "%s")) != NULL) {
		hr_buf_add(e->text, format, (size_t)(next - format));
		s = va_arg(ap, struct hr_span);
		hr_buf_add(e->text, s.p, s.len);
		format = next + 2;
	}
	va_end(ap);
	hr_buf_adds(e->text, format);
	return HR_EDIT_ERROR;
}

enum hr_edit_result
edit_required(struct edit *e, const char *name)
{
	hr_buf_addf(e->text, "Parameter `%s` is required for command: ", name);
	return edit_error(e, "%s.", e->q->command);
}

void
edit_put_value(struct hr_buf *b, struct json_object *value)
{
	const char *s;
	size_t len;

	if (hr_json_type(value) == HR_PY_STR) {
		s = hr_json_str(value, &len);
		hr_buf_add(b, s, len);
	} else {
		hr_pyrepr(b, value);
	}
}

void
edit_invalid_range(struct edit *e, struct json_object *value)
{
	hr_buf_adds(e->text, "Invalid `view_range` parameter: ");
	edit_put_value(e->text, value);
	hr_buf_adds(e->text, ". ");
}

bool
edit_string(struct edit *e, struct json_object *value, const char *before, const char *after,
    struct hr_span *ret)
{
	enum hr_py_type t = hr_json_type(value);

	*ret = (struct hr_span){"", 0};
	if (t == HR_PY_NONE)
		return true;
	if (t != HR_PY_STR) {
		hr_buf_addf(e->text, "%s%s%s", before, hr_py_type_name(t), after);
		return false;
	}
	ret->p = hr_json_str(value, &ret->len);
	return true;
}

/* ---- read permission ---- */

bool
edit_is_document(const struct edit *e)
{
	static const char *const suffixes[] = {
	    ".docx", ".xlsx", ".pptx", ".pdf", ".mp3", ".wav", ".m4a", ".flac"};
	struct hr_span s = hr_purepath_suffix(hr_buf_str(&e->path), e->path.len);
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (s.len == strlen(suffixes[i]) && strncasecmp(s.p, suffixes[i], s.len) == 0)
			return true;
	return false;
}

static enum hr_edit_result
refuse_size(struct edit *e)
{
	/* one decimal, halves to even as printf() rounds; a double is exact for whole bytes */
	(void)edit_error(e, "File validation failed for %s: ", edit_path(e));
	hr_buf_addf(e->text, "File is too large (%.1fMB). Maximum allowed size is 10MB.",
	    (double)e->st.st_size / (1024 * 1024));
	return HR_EDIT_ERROR;
}

enum hr_edit_result
edit_validate(struct edit *e)
{
	if (!e->exists || !S_ISREG(e->st.st_mode))
		return HR_EDIT_DONE;
	if (e->st.st_size > (off_t)EDIT_FILE_MAX)
		return refuse_size(e);
	if (edit_is_document(e))
		return HR_EDIT_DONE;
	if (hr_binary_name(hr_buf_str(&e->path), e->path.len) || hr_binary_file(e->file))
		return edit_error(e,
		    "File validation failed for %s: File appears to be binary and this file type "
		    "cannot be read or edited by this tool.",
		    edit_path(e));
	return HR_EDIT_DONE;
}

/* ---- reading and writing ---- */

static enum hr_edit_result
say_ran_into(struct edit *e, const char *why, const char *doing)
{
	struct hr_span w = {why, strlen(why)};

	(void)edit_error(e, "Ran into %s while trying to ", w);
	hr_buf_adds(e->text, doing);
	return edit_error(e, " %s", edit_path(e));
}

enum hr_edit_result
edit_load(struct edit *e, bool counting, struct hr_buf *text, struct hr_encoding *ret)
{
	struct hr_err err = {.code = HR_OK};
	HR_BUF(bytes, EDIT_FILE_MAX + 1);
	HR_BUF(why, HR_EDIT_TEXT_MAX);
	enum hr_edit_result r = HR_EDIT_DONE;

	if (hr_textfile_read(e->file, &bytes, &err) < 0) {
		if (err.code == HR_E_NOMEM)
			e->text->fail = HR_E_NOMEM;
		hr_oserror_add(&why, err.sys, hr_buf_str(&e->path), e->path.len);
		r = say_ran_into(e, hr_buf_str(&why), "read");
	} else {
		hr_encoding_detect(hr_buf_str(&bytes), bytes.len, ret);
		if (hr_textfile_decode(&bytes, ret, text, &why) < 0) {
			r = counting ? HR_EDIT_RAISED : HR_EDIT_ERROR;
			if (counting)
				hr_buf_adds(e->text, hr_buf_str(&why));
			else
				(void)say_ran_into(e, hr_buf_str(&why), "read");
		}
	}
	return r;
}

static enum hr_edit_result
store_bytes(struct edit *e, const struct hr_buf *bytes)
{
	struct hr_err err = {.code = HR_OK};
	HR_BUF(why, HR_EDIT_TEXT_MAX);

	if (hr_atomic_write_telling(
		e->file, hr_buf_str(bytes), bytes->len, 0666, e->q->commit, &err) == 0)
		return HR_EDIT_DONE;
	if (err.code == HR_E_NOMEM)
		e->text->fail = HR_E_NOMEM;
	hr_oserror_add(&why, err.sys, hr_buf_str(&e->path), e->path.len);
	(void)say_ran_into(e, hr_buf_str(&why), "write to");
	return HR_EDIT_ERROR;
}

enum hr_edit_result
edit_store(struct edit *e, const struct hr_encoding *enc, bool raises, const struct hr_buf *text,
    struct hr_buf *written)
{
	enum hr_edit_result r = HR_EDIT_DONE;
	struct hr_encoding now;
	HR_BUF(bytes, HR_EDIT_TEXT_MAX);
	HR_BUF(why, HR_EDIT_TEXT_MAX);

	if (hr_charset_encode(enc->charset, enc->mark, hr_buf_str(text), text->len, &bytes, &why) <
	    0) {
		r = raises ? HR_EDIT_RAISED : HR_EDIT_ERROR;
		if (raises)
			hr_buf_adds(e->text, hr_buf_str(&why));
		else
			(void)say_ran_into(e, hr_buf_str(&why), "write to");
	} else if (hr_buf_check(&bytes, NULL) < 0) {
		e->text->fail = bytes.fail;
		r = HR_EDIT_ERROR;
	} else {
		r = store_bytes(e, &bytes);
		if (r == HR_EDIT_DONE && written != NULL) {
			hr_encoding_detect(hr_buf_str(&bytes), bytes.len, &now);
			/* the text decodes in the charset it was written in, even if another one is
			 * detected now */
			if (hr_textfile_decode(&bytes, &now, written, NULL) < 0)
				(void)hr_textfile_decode(&bytes, enc, written, NULL);
			if (written->fail != HR_OK)
				e->text->fail = written->fail;
		}
	}
	return r;
}

/* ---- the numbered block ---- */

void
edit_put_block(
    struct edit *e, const char *what, bool with_path, const char *p, size_t len, uint64_t first)
{
	size_t shown = hr_pytext_prefix(p, len, EDIT_SHOWN), n;
	const char *end = p + shown, *next;
	struct hr_buf *b = e->text;

	hr_buf_addf(b, "Here's the result of running `cat -n` on %s", what);
	if (with_path)
		hr_buf_add(b, hr_buf_str(&e->path), e->path.len);
	hr_buf_adds(b, ":\n");
	for (;; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		n = (size_t)((next != NULL ? next : end) - p);
		hr_buf_addf(b, "%6" PRIu64 "\t", first++);
		hr_buf_add(b, p, n);
		if (next == NULL)
			break;
		hr_buf_addc(b, '\n');
	}
	if (shown < len)
		hr_buf_add(b, clipped, sizeof(clipped) - 1);
	hr_buf_addc(b, '\n');
}
