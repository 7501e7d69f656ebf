/* Implements the commands that change files (doc/files.md, "Changing a file"). Each runs with the
 * history open, so only one runs at a time over all workers. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "files/charset/charset.h"
#include "files/diff.h"
#include "files/editor/editor_int.h"
#include "files/pytext.h"
#include "proto/python/repr.h"
#include "base/text/utf8.h"

/* number of lines of the snippet up to the change's first one, inclusive */
#define LINES_BEFORE 4
#define LINES_AFTER 4

static void
put_diff(struct edit *e, struct hr_span before, struct hr_span after)
{
	struct hr_span path;
	struct hr_err err;

	path.p = hr_json_str(e->q->path, &path.len);
	if (hr_diff(e->diff, before, after, path, &err) < 0)
		e->diff->fail = HR_E_NOMEM;
}

/* Saves the old text. The change is already made; without a saved text undo_edit reports an
 * error. */
static void
remember(struct edit *e, struct hr_span text)
{
	struct hr_err err = {.code = HR_OK};

	if (hr_history_push(&e->history, edit_path(e), text.p, text.len, &err) < 0)
		hr_log(HR_LOG_WARNING, "an edit cannot be undone: %s", err.msg);
}

enum hr_edit_result
edit_create(struct edit *e)
{
	const struct hr_encoding utf8 = {.charset = &hr_charset_utf8};
	enum hr_edit_result r;
	struct hr_span text;
	HR_BUF(copy, HR_EDIT_TEXT_MAX);

	if (e->q->file_text == NULL)
		return edit_required(e, "file_text");
	if (!edit_string(e, e->q->file_text, "Ran into write() argument must be str, not ",
		" while trying to write to ", &text))
		return edit_error(e, "%s", edit_path(e));
	if (e->file == NULL) {
		hr_buf_adds(e->text, "embedded null byte");
		return HR_EDIT_ERROR;
	}
	hr_buf_add(&copy, text.p, text.len);
	r = copy.fail == HR_OK ? edit_store(e, &utf8, false, &copy, NULL) : HR_EDIT_ERROR;
	if (copy.fail != HR_OK)
		e->text->fail = copy.fail;
	if (r != HR_EDIT_DONE)
		return r;
	remember(e, text);
	put_diff(e, (struct hr_span){"", 0}, text);
	(void)edit_error(e, "File created successfully at: %s", edit_path(e));
	return HR_EDIT_DONE;
}

/* ---- str_replace ---- */

/* Returns the next place of `what` from `at` on, or SIZE_MAX. The empty string is found
 * everywhere. */
static size_t
find_next(struct hr_span text, size_t at, struct hr_span what)
{
	const char *p;

	if (at > text.len)
		return SIZE_MAX;
	p = memmem(text.p + at, text.len - at, what.p, what.len);
	return p != NULL ? (size_t)(p - text.p) : SIZE_MAX;
}

/* Returns the offset at which a non-overlapping search continues. */
static size_t
step(struct hr_span text, size_t at, struct hr_span what)
{
	size_t n = 1;

	if (what.len > 0)
		return at + what.len;
	if (at < text.len)
		(void)hr_utf8_next(text.p + at, text.p + text.len, &n);
	return at + n;
}

static enum hr_edit_result
refuse_multiple(struct edit *e, struct hr_span text, size_t at, struct hr_span what)
{
	size_t line = 1, counted = 0, last = 0;

	(void)edit_error(e,
	    "No replacement was performed. Multiple occurrences of old_str `%s` in lines [", what);
	for (; at != SIZE_MAX; at = find_next(text, step(text, at, what), what)) {
		line += hr_pytext_newlines(text.p + counted, at - counted);
		counted = at;
		if (line == last)
			continue;
		hr_buf_addf(e->text, "%s%zu", last > 0 ? ", " : "", line);
		last = line;
	}
	hr_buf_adds(e->text, "]. Please ensure it is unique.");
	return HR_EDIT_ERROR;
}

/* Appends the numbered block of a range of lines, counted from 0, of the file's present text. */
static void
put_snippet(struct edit *e, const char *what, bool with_path, const struct hr_buf *now, size_t from,
    size_t to, uint64_t first)
{
	const char *p = hr_buf_str(now);
	size_t begin = hr_pytext_line_at(p, now->len, from);
	size_t end = begin + hr_pytext_line_at(p + begin, now->len - begin, to - from);

	(void)edit_error(e, "The file %s has been edited. ", edit_path(e));
	edit_put_block(e, what, with_path, p + begin, end - begin, first);
}

/* Replaces the file's text by `after`; *now is the text that it then holds. The original reads the
 * file again for its answer: a change that makes the file binary or too large stays, with an error.
 */
static enum hr_edit_result
change(struct edit *e, const struct hr_encoding *enc, bool added, const struct hr_buf *text,
    const struct hr_buf *after, struct hr_buf *now)
{
	enum hr_edit_result r = HR_EDIT_ERROR;

	if (after->fail != HR_OK)
		e->text->fail = after->fail;
	else
		r = edit_store(e, enc, added, after, now);
	if (r != HR_EDIT_DONE)
		return r;
	remember(e, hr_span_of_buf(text));
	e->exists = stat(e->file, &e->st) == 0;
	r = edit_validate(e);
	if (r == HR_EDIT_DONE)
		put_diff(e, hr_span_of_buf(text), hr_span_of_buf(added ? now : after));
	return r;
}

static enum hr_edit_result
replace_at(struct edit *e, const struct hr_encoding *enc, const struct hr_buf *text, size_t at,
    size_t len, struct hr_span new)
{
	size_t row = hr_pytext_newlines(text->p, at) + 1; /* counted from 1 */
	size_t from = row > LINES_BEFORE ? row - LINES_BEFORE : 0;
	HR_BUF(after, HR_EDIT_TEXT_MAX);
	HR_BUF(now, HR_EDIT_TEXT_MAX);
	enum hr_edit_result r;

	hr_buf_add(&after, hr_buf_str(text), at);
	hr_buf_add(&after, new.p, new.len);
	hr_buf_add(&after, hr_buf_str(text) + at + len, text->len - at - len);
	r = change(e, enc, false, text, &after, &now);
	if (r == HR_EDIT_DONE) {
		put_snippet(e, "a snippet of ", true, &now, from,
		    row + LINES_AFTER + hr_pytext_newlines(new.p, new.len), from + 1);
		hr_buf_adds(e->text, "Review the changes and make sure they are as expected. Edit "
				     "the file again if necessary.");
	}
	return r;
}

static enum hr_edit_result
replace_in(struct edit *e, const struct hr_encoding *enc, const struct hr_buf *text,
    struct hr_span old, struct hr_span new)
{
	struct hr_span all = hr_span_of_buf(text);
	size_t at = find_next(all, 0, old), again;

	if (at == SIZE_MAX) {
		hr_utf8_strip(&old.p, &old.len);
		hr_utf8_strip(&new.p, &new.len);
		at = find_next(all, 0, old);
	}
	if (at == SIZE_MAX)
		return edit_error(e,
		    "No replacement was performed, old_str `%s` did not appear verbatim in %s.",
		    old, edit_path(e));
	again = find_next(all, step(all, at, old), old);
	if (again != SIZE_MAX)
		return refuse_multiple(e, all, at, old);
	return replace_at(e, enc, text, at, old.len, new);
}

enum hr_edit_result
edit_str_replace(struct edit *e)
{
	struct hr_span old, new;
	struct hr_encoding enc;
	enum hr_edit_result r;
	HR_BUF(text, HR_EDIT_TEXT_MAX);

	if (e->q->old_str == NULL)
		return edit_required(e, "old_str");
	if (e->q->new_str != NULL && json_object_equal(e->q->old_str, e->q->new_str)) {
		hr_buf_adds(e->text, "Invalid `new_str` parameter: ");
		edit_put_value(e->text, e->q->new_str);
		return edit_error(e, ". No replacement was performed. `new_str` and `old_str` must "
				     "be different.");
	}
	r = edit_validate(e);
	if (r != HR_EDIT_DONE)
		return r;
	if (!edit_string(
		e, e->q->old_str, "decoding to str: need a bytes-like object, ", " found", &old) ||
	    !edit_string(e, hr_py_truthy(e->q->new_str) ? e->q->new_str : NULL,
		"can only concatenate str (not \"", "\") to str", &new))
		return HR_EDIT_ERROR;
	r = edit_load(e, false, &text, &enc);
	if (r == HR_EDIT_DONE)
		r = replace_in(e, &enc, &text, old, new);
	return r;
}

/* ---- insert ---- */

/* Returns the value as a line number. Integers beyond 64 bits are out of range anyway. */
static bool
line_number(struct edit *e, int64_t *ret)
{
	struct json_object *v = e->q->insert_line;
	enum hr_py_type t = hr_json_type(v);
	struct hr_span s;
	double d;

	switch (t) {
	case HR_PY_STR:
		s.p = hr_json_str(v, &s.len);
		/* insert_line_ok() has checked the text */
		return hr_pytext_int(s.p, s.len, ret) == 0;
	case HR_PY_BOOL: *ret = json_object_get_boolean(v) ? 1 : 0; return true;
	case HR_PY_INT: *ret = hr_json_int(v); return true;
	case HR_PY_FLOAT:
		d = json_object_get_double(v);
		if (d > -1e15 && d < 1e15 && d == (double)(int64_t)d) {
			*ret = (int64_t)d;
			return true;
		}
		hr_buf_adds(e->text, "'float' object cannot be interpreted as an integer");
		return false;
	case HR_PY_NONE:
	case HR_PY_LIST:
	case HR_PY_DICT: break;
	}
	hr_buf_addf(
	    e->text, "'<' not supported between instances of '%s' and 'int'", hr_py_type_name(t));
	return false;
}

/* Checks line by line, as the original encodes: positions in messages count within a line. */
static enum hr_edit_result
check_pieces(struct edit *e, const struct hr_encoding *enc, struct hr_span new)
{
	const char *p = new.p, *end = new.p + new.len, *next;
	HR_BUF(bytes, HR_EDIT_TEXT_MAX);
	HR_BUF(why, HR_EDIT_TEXT_MAX);
	int r = 0;

	for (;; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		r = hr_charset_encode(enc->charset, false, p,
		    (size_t)((next != NULL ? next : end) - p), &bytes, &why);
		if (r < 0 || next == NULL)
			break;
		hr_buf_reset(&bytes);
	}
	if (r < 0)
		hr_buf_adds(e->text, hr_buf_str(&why));
	return r < 0 ? HR_EDIT_RAISED : HR_EDIT_DONE;
}

static enum hr_edit_result
insert_at(struct edit *e, const struct hr_encoding *enc, const struct hr_buf *text, int64_t line,
    struct hr_span new)
{
	size_t at = hr_pytext_line_at(hr_buf_str(text), text->len, (size_t)line);
	size_t lines = hr_pytext_lines(hr_buf_str(text), text->len);
	size_t pieces = hr_pytext_newlines(new.p, new.len) + 1, from, to;
	enum hr_edit_result r = check_pieces(e, enc, new);
	HR_BUF(after, HR_EDIT_TEXT_MAX);
	HR_BUF(now, HR_EDIT_TEXT_MAX);

	if (r != HR_EDIT_DONE)
		return r;
	hr_buf_add(&after, hr_buf_str(text), at);
	hr_buf_add(&after, new.p, new.len);
	hr_buf_addc(&after, '\n');
	hr_buf_add(&after, hr_buf_str(text) + at, text->len - at);
	r = change(e, enc, true, text, &after, &now);
	if (r == HR_EDIT_DONE) {
		from = line > LINES_BEFORE ? (size_t)line - LINES_BEFORE : 0;
		to = (size_t)line + LINES_AFTER + pieces;
		if (to > lines + pieces)
			to = lines + pieces;
		put_snippet(e, "a snippet of the edited file", false, &now, from, to, from + 1);
		hr_buf_adds(e->text,
		    "Review the changes and make sure they are as expected "
		    "(correct indentation, no duplicate lines, etc). Edit the file "
		    "again if necessary.");
	}
	return r;
}

/* Appends the number that came as a string, in decimal; it may have more digits than 64 bits. */
static void
put_number(struct hr_buf *b, struct hr_span s, bool negative)
{
	bool zero = true; /* no digit but 0 yet */
	size_t i, n;
	int digit;

	if (negative)
		hr_buf_addc(b, '-');
	for (i = 0; i < s.len; i += n) {
		digit = hr_pytext_digit(hr_utf8_next(s.p + i, s.p + s.len, &n));
		if (digit < 0 || (zero && digit == 0))
			continue;
		zero = false;
		hr_buf_addc(b, (char)('0' + digit));
	}
}

static enum hr_edit_result
insert_in(
    struct edit *e, const struct hr_encoding *enc, const struct hr_buf *text, struct hr_span new)
{
	int64_t lines = (int64_t)hr_pytext_lines(hr_buf_str(text), text->len), line = 0;
	struct hr_span given;

	if (!line_number(e, &line))
		return HR_EDIT_ERROR;
	if (line < 0 || line > lines) {
		hr_buf_adds(e->text, "Invalid `insert_line` parameter: ");
		if (hr_json_type(e->q->insert_line) == HR_PY_STR) {
			given.p = hr_json_str(e->q->insert_line, &given.len);
			put_number(e->text, given, line < 0);
		} else {
			edit_put_value(e->text, e->q->insert_line);
		}
		hr_buf_addf(e->text,
		    ". It should be within the range of allowed values: [0, %" PRId64 "]", lines);
		return HR_EDIT_ERROR;
	}
	return insert_at(e, enc, text, line, new);
}

enum hr_edit_result
edit_insert(struct edit *e)
{
	struct hr_encoding enc;
	enum hr_edit_result r;
	struct hr_span new;
	HR_BUF(text, HR_EDIT_TEXT_MAX);

	if (e->q->insert_line == NULL)
		return edit_required(e, "insert_line");
	if (e->q->new_str == NULL)
		return edit_required(e, "new_str");
	r = edit_validate(e);
	if (r != HR_EDIT_DONE)
		return r;
	if (!edit_string(e, e->q->new_str, "'", "' object has no attribute 'split'", &new))
		return HR_EDIT_RAISED;
	r = edit_load(e, true, &text, &enc);
	if (r == HR_EDIT_DONE)
		r = insert_in(e, &enc, &text, new);
	return r;
}

/* ---- undo_edit ---- */

/* Restores the text and only then drops the entry, so that a failed undo can be repeated. */
static enum hr_edit_result
undo_to(struct edit *e, const struct hr_encoding *enc, const struct hr_buf *text,
    const struct hr_buf *old)
{
	enum hr_edit_result r = edit_store(e, enc, false, old, NULL);
	struct hr_err err = {.code = HR_OK};

	if (r != HR_EDIT_DONE)
		return r;
	if (hr_history_drop(&e->history, edit_path(e), &err) < 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
	put_diff(e, hr_span_of_buf(text), hr_span_of_buf(old));
	(void)edit_error(e, "Last edit to %s undone successfully. ", edit_path(e));
	edit_put_block(e, "", true, hr_buf_str(old), old->len, 1);
	return HR_EDIT_DONE;
}

enum hr_edit_result
edit_undo(struct edit *e)
{
	struct hr_err err = {.code = HR_OK};
	enum hr_edit_result r = edit_validate(e);
	struct hr_encoding enc;
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(old, HR_EDIT_TEXT_MAX);
	int found;

	if (r != HR_EDIT_DONE)
		return r;
	r = edit_load(e, false, &text, &enc);
	if (r == HR_EDIT_DONE) {
		found = hr_history_peek(&e->history, edit_path(e), &old, &err);
		if (found > 0)
			r = undo_to(e, &enc, &text, &old);
		else if (found == 0)
			r = edit_error(e, "No edit history found for %s.", edit_path(e));
		else
			r = edit_error(e, "%s", hr_span_of(err.msg));
	}
	return r;
}
