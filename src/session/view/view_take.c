/* Finds the text not returned yet. Invariant: `shown` is the whole text as of the last mark, empty
 * if there was none since the reset; mark_row is the absolute row of the cursor then, and row_text
 * the text from that row on. */
#include "config.h"

#include "session/view/view_int.h"

#include <string.h>

#include "base/text/utf8.h"
#include "session/view/echo.h"

static void
strip_end(struct hr_buf *text)
{
	if (text->len > 0)
		text->len = hr_utf8_rstrip(text->p, text->len);
}

/* Returns the first byte of the first line of text that differs from `old`, or the end if nothing
 * was added. */
static size_t
first_changed_line(const char *text, size_t len, const char *old, size_t old_len)
{
	size_t i, line = 0, n = len < old_len ? len : old_len;

	for (i = 0; i < n && text[i] == old[i]; i++) {
		if (text[i] == '\n')
			line = i + 1;
	}
	if (i == len && (i == old_len || old[i] == '\n'))
		return len; /* lines were removed */
	return line;
}

/* Compares only the text from the marked row on, since rows were dropped since the mark. */
static void
new_after_drop(
    struct hr_view *v, struct hr_buf *text, uint64_t *ret_row, size_t *ret_from, bool *ret_lost)
{
	uint64_t first = hr_term_first_row(v->term);

	if (v->mark_row < first) {
		*ret_lost = v->mark_row + 1 < first || v->row_text.len > 0;
		*ret_from = 0;
		return;
	}
	hr_buf_reset(text);
	hr_term_text_from(v->term, v->mark_row, text);
	*ret_row = v->mark_row;
	*ret_from = 0;
	if (text->len >= v->row_text.len && v->row_text.len > 0 &&
	    memcmp(text->p, v->row_text.p, v->row_text.len) == 0)
		*ret_from = v->row_text.len;
}

/* Finds the start of the new text in *text, which may be replaced by the text from another row on,
 * *ret_row. */
static size_t
new_from(struct hr_view *v, struct hr_buf *text, uint64_t *ret_row, bool *ret_lost)
{
	size_t from;

	if (!v->marked) {
		*ret_lost = hr_term_rows_dropped(v->term) > 0;
		return 0;
	}
	if (hr_term_alternate(v->term)) {
		hr_buf_reset(text);
		hr_term_text_screen(v->term, text);
		strip_end(text);
		if (text->len == v->shown_screen.len && text->len > 0 &&
		    memcmp(text->p, v->shown_screen.p, text->len) == 0)
			return text->len;
		return 0;
	}
	if (hr_term_rows_dropped(v->term) > v->mark_dropped) {
		new_after_drop(v, text, ret_row, &from, ret_lost);
		return from;
	}
	if (text->len >= v->shown.len &&
	    (v->shown.len == 0 || memcmp(text->p, v->shown.p, v->shown.len) == 0))
		return v->shown.len;
	if (text->len == 0)
		return 0;
	return first_changed_line(text->p, text->len, v->shown.p, v->shown.len);
}

/* Takes the new text: *text from *ret_from on. *ret_row is the first row of *text. */
static int
take_new(struct hr_view *v, struct hr_buf *text, uint64_t *ret_row, size_t *ret_from,
    bool *ret_lost, struct hr_err *err)
{
	*ret_lost = false;
	*ret_row = 0;
	hr_term_text(v->term, text);
	strip_end(text);
	*ret_from = new_from(v, text, ret_row, ret_lost);
	*ret_lost |= v->lost;
	if (hr_buf_check(text, err) < 0)
		return -1;
	strip_end(text);
	if (*ret_from > text->len)
		*ret_from = text->len;
	return 0;
}

/* Returns the length without the text that set -v printed at the end. */
static size_t
without_trace(const char *p, size_t len, const char *trace)
{
	size_t n = trace != NULL ? strlen(trace) : 0, end = n > 0 ? hr_utf8_rstrip(p, len) : 0;

	return n > 0 && n <= end && memcmp(p + end - n, trace, n) == 0 ? end - n : len;
}

int
hr_view_take(struct hr_view *v, const char *echoed, size_t echoed_len, const char *trace,
    struct hr_buf *out, bool *ret_lost, struct hr_err *err)
{
	HR_BUF(text, TEXT_CAP);
	size_t from, len, n;
	uint64_t row;
	const char *p;

	if (take_new(v, &text, &row, &from, ret_lost, err) < 0)
		return -1;
	p = hr_buf_str(&text) + from;
	len = hr_utf8_rstrip(p, without_trace(p, text.len - from, trace));
	n = hr_utf8_lstrip(p, len);
	p += n;
	len -= n;
	n = echoed_len > 0 ? hr_echo_length(p, len, echoed, echoed_len) : 0;
	if (n > 0) {
		p += n;
		len -= n;
		n = hr_utf8_lstrip(p, len);
		p += n;
		len -= n;
	}
	hr_buf_add(out, p, len);
	return hr_buf_check(out, err);
}

/* Finds the place in `exact` that corresponds to `from` in `text`: each line of `text` is the start
 * of one line of `exact`. A place at the end of a line becomes the start of the next one. */
static size_t
same_place(const struct hr_buf *text, size_t from, const struct hr_buf *exact)
{
	const char *t = hr_buf_str(text), *p = hr_buf_str(exact), *end = p + exact->len, *nl;
	size_t line = 0, i;

	if (from == 0)
		return 0;
	for (i = 0; i < from; i++) {
		if (t[i] != '\n')
			continue;
		line = i + 1;
		nl = memchr(p, '\n', (size_t)(end - p));
		p = nl != NULL ? nl + 1 : end;
	}
	p += from - line < (size_t)(end - p) ? from - line : (size_t)(end - p);
	if (from == line || (from < text->len && t[from] != '\n'))
		return (size_t)(p - hr_buf_str(exact));
	while (p < end && *p != '\n' && hr_utf8_lstrip(p, 1) == 1)
		p++;
	return (size_t)(p - hr_buf_str(exact)) + (p < end && *p == '\n');
}

int
hr_view_take_exact(struct hr_view *v, const char *echoed, size_t echoed_len, const char *trace,
    struct hr_buf *out, bool *ret_lost, struct hr_err *err)
{
	HR_BUF(text, TEXT_CAP);
	HR_BUF(exact, TEXT_CAP);
	size_t from, len, n;
	uint64_t row;
	const char *p;

	if (take_new(v, &text, &row, &from, ret_lost, err) < 0)
		return -1;
	/* Blank rows were returned, too: `shown` ends before them, the marked row is after them. */
	if (v->marked && row == 0 && from == v->shown.len && !hr_term_alternate(v->term)) {
		row = v->mark_row;
		hr_buf_reset(&text);
		hr_term_text_from(v->term, row, &text);
		from = v->row_text.len < text.len ? v->row_text.len : text.len;
	}
	if (hr_term_alternate(v->term))
		hr_buf_add(&exact, hr_buf_str(&text), text.len);
	else
		hr_term_text_exact(v->term, row, &exact);
	from = same_place(&text, from, &exact);
	p = hr_buf_str(&exact) + from;
	len = without_trace(p, exact.len - from, trace);
	n = echoed_len > 0 ? hr_echo_length(p, len, echoed, echoed_len) : 0;
	if (n > 0 && n < len && p[n] == '\n')
		n++;
	hr_buf_add(out, p + n, len - n);
	return hr_buf_check(&exact, err) < 0 ? -1 : hr_buf_check(out, err);
}

int
hr_view_mark(struct hr_view *v, struct hr_err *err)
{
	uint64_t row = hr_term_cursor_row(v->term);

	v->lost = false;
	view_note(v, hr_term_alternate(v->term) ? HR_VIEW_MARK : HR_VIEW_MARK_MAIN);
	if (hr_term_alternate(v->term)) {
		/* the main screen is unchanged since it was last marked */
		hr_buf_reset(&v->shown_screen);
		hr_term_text_screen(v->term, &v->shown_screen);
		strip_end(&v->shown_screen);
		v->marked = true;
		return hr_buf_check(&v->shown_screen, err);
	}
	hr_buf_reset(&v->shown);
	hr_buf_reset(&v->row_text);
	hr_buf_reset(&v->shown_screen);
	hr_term_text(v->term, &v->shown);
	strip_end(&v->shown);
	hr_term_text_from(v->term, row, &v->row_text);
	strip_end(&v->row_text);
	v->mark_row = row;
	v->mark_dropped = hr_term_rows_dropped(v->term);
	v->marked = true;
	if (hr_buf_check(&v->shown, err) < 0)
		return -1;
	return hr_buf_check(&v->row_text, err);
}
