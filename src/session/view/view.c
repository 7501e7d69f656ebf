/* Handles the bytes of the terminal: removes the echo of commands, and feeds the rest to the
 * screen. */
#include "config.h"

#include "session/view/view_int.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "session/view/echo.h"
#include "session/prompt/hook.h"
#include "term/term.h"

/* The view must keep 10 001 to 11 363 lines of a long output (long outputs are checked for line
 * 40000 of 50000). The terminal drops a tenth of the limit at a time, so with 10 300 it keeps at
 * least 10 270 and at most 11 299. */
#define HISTORY_ROWS 10300
/* maximum bytes of an echo; a longer line's echo is dropped with any output mixed in */
#define ECHO_CAP (64u << 10)

/* Memory of more rows, some 2000 lines, is returned to the system, which takes 0.1 ms. */
#define LARGE_TERM (256u << 10)

/* Bash prints nothing before it asks for more of a command: any output comes from other
 * processes. */
#define MORE_WITHIN (1u << 20)

struct hr_view *
hr_view_new(struct hr_err *err)
{
	const struct hr_term_config config = {.history = HISTORY_ROWS};
	struct hr_view *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return hr_err_null(err);
	v->term = hr_term_new(&config);
	if (v->term == NULL) {
		free(v);
		return hr_err_null(err);
	}
	v->points.whole = true;
	hr_buf_init(&v->held, 64);
	hr_buf_init(&v->typed, ECHO_CAP);
	hr_buf_init(&v->echoed, 2 * ECHO_CAP);
	hr_buf_init(&v->shown, TEXT_CAP);
	hr_buf_init(&v->shown_screen, TEXT_CAP);
	hr_buf_init(&v->row_text, TEXT_CAP);
	return v;
}

void
hr_view_free(struct hr_view *v)
{
	if (v == NULL)
		return;
	hr_term_free(v->term);
	hr_buf_done(&v->held);
	hr_buf_done(&v->typed);
	hr_buf_done(&v->echoed);
	hr_buf_done(&v->shown);
	hr_buf_done(&v->shown_screen);
	hr_buf_done(&v->row_text);
	free(v);
}

/* Searches `word` in the held and the new bytes. Returns the number of new bytes up to its end, or
 * -1 if it is not there and a partial match at the end is held. */
static ssize_t
find_word(struct hr_buf *held, const char *word, const char *p, size_t len)
{
	size_t n = strlen(word), i, have = held->len, keep;
	char joint[64];
	const char *hit;

	/* searches across the boundary: the held bytes and the first n - 1 new ones */
	if (have > 0) {
		memcpy(joint, held->p, have);
		i = len < n - 1 ? len : n - 1;
		memcpy(joint + have, p, i);
		hit = memmem(joint, have + i, word, n);
		if (hit != NULL) {
			hr_buf_reset(held);
			return (ssize_t)((size_t)(hit - joint) + n - have);
		}
	}
	hit = memmem(p, len, word, n);
	if (hit != NULL) {
		hr_buf_reset(held);
		return (ssize_t)((size_t)(hit - p) + n);
	}
	keep = n - 1;
	if (len >= keep) {
		hr_buf_reset(held);
		hr_buf_add(held, p + len - keep, keep);
	} else {
		hr_buf_add(held, p, len);
		if (held->len > keep)
			hr_buf_drop_front(held, held->len - keep);
	}
	return -1;
}

/* Shows the output of other processes within the echo, which has ended. */
static void
show_others(struct hr_view *v)
{
	size_t len = v->echoed.len - strlen(HR_READLINE_LEAVES);
	HR_BUF(rest, 2 * ECHO_CAP);

	if (v->typed.fail != HR_OK || v->echoed.fail != HR_OK)
		return;
	if (hr_echo_remove(v->echoed.p, len, hr_buf_str(&v->typed), v->typed.len, &rest) &&
	    rest.len > 0)
		hr_term_feed(v->term, rest.p, rest.len);
}

/* Returns the number of new bytes up to the end of the mark. Bash prints HR_HOOK_STARTED once it
 * has the rest of the command. */
static size_t
look_for_more(struct hr_view *v, const char *p, size_t len)
{
	ssize_t n;

	v->watch_more -= len < v->watch_more ? len : v->watch_more;
	/* nearly all output contains no part of the mark */
	if (v->held.len == 0 && memchr(p, HR_HOOK_MORE[0], len) == NULL)
		return 0;
	n = find_word(&v->held, HR_HOOK_MORE, p, len);
	v->more = v->watch_start = n >= 0;
	if (v->more)
		v->watch_more = 0;
	/* nothing needs to be held then */
	if (v->watch_more == 0 ||
	    (v->held.len > 0 && memchr(v->held.p, HR_HOOK_MORE[0], v->held.len) == NULL))
		hr_buf_reset(&v->held);
	return n > 0 ? (size_t)n : 0;
}

void
hr_view_feed(struct hr_view *v, const char *p, size_t len)
{
	const char *nl;
	size_t seen = 0;
	ssize_t n;

	v->points.fed += len;
	if (v->echo_line) {
		nl = memchr(p, '\n', len);
		if (nl == NULL)
			return;
		v->echo_line = false;
		len -= (size_t)(nl + 1 - p);
		p = nl + 1;
	}
	if (v->echo) {
		n = find_word(&v->held, HR_READLINE_LEAVES, p, len);
		hr_buf_add(&v->echoed, p, n < 0 ? len : (size_t)n);
		if (n < 0)
			return;
		v->echo = false;
		show_others(v);
		hr_term_feed(v->term, HR_READLINE_LEAVES, strlen(HR_READLINE_LEAVES));
		p += n;
		len -= (size_t)n;
		v->watch_start = true;
	}
	if (len == 0)
		return;
	if (v->watch_more > 0)
		seen = look_for_more(v, p, len);
	if (v->watch_start && find_word(&v->held, HR_HOOK_STARTED, p + seen, len - seen) >= 0) {
		v->watch_start = false;
		v->started = true;
	}
	hr_term_feed(v->term, p, len);
}

size_t
hr_view_echo_bytes(const struct hr_view *v, const char *p, size_t len, bool *ret_over)
{
	struct hr_buf held = {.cap = 64};
	const char *nl = v->echo_line ? memchr(p, '\n', len) : NULL;
	size_t line = !v->echo_line ? 0 : nl != NULL ? (size_t)(nl + 1 - p) : len;
	ssize_t n;

	*ret_over = false;
	if (!v->echo)
		return line;
	hr_buf_add(&held, hr_buf_str(&v->held), v->held.len);
	n = find_word(&held, HR_READLINE_LEAVES, p + line, len - line);
	hr_buf_done(&held);
	*ret_over = n >= 0;
	return n >= 0 ? line + (size_t)n : len;
}

void
hr_view_place(struct hr_view *v, uint64_t at)
{
	v->points.fed = at;
}

void
view_note(struct hr_view *v, enum hr_view_event event)
{
	v->points.events[event].at = v->points.fed;
	v->points.events[event].number = ++v->points.last;
}

static void
forget(struct hr_view *v, enum hr_view_event event)
{
	v->points.events[event].number = 0;
}

static void
begin_row(struct hr_view *v)
{
	unsigned col, row;

	hr_term_cursor(v->term, &col, &row);
	if (col > 0)
		hr_term_feed(v->term, "\r\n", 2);
	hr_buf_reset(&v->held);
}

static void
watch_nothing(struct hr_view *v)
{
	forget(v, HR_VIEW_ECHO);
	forget(v, HR_VIEW_MORE);
	v->echo = v->watch_start = v->started = v->more = false;
	v->watch_more = 0;
}

void
hr_view_expect_echo(struct hr_view *v, const char *p, size_t len)
{
	begin_row(v);
	hr_buf_reset(&v->echoed);
	hr_buf_reset(&v->typed);
	hr_buf_add(&v->typed, p, len);
	watch_nothing(v);
	view_note(v, HR_VIEW_ECHO);
	v->echo = true;
}

void
hr_view_expect_more(struct hr_view *v)
{
	begin_row(v);
	watch_nothing(v);
	view_note(v, HR_VIEW_MORE);
	v->watch_more = MORE_WITHIN;
}

void
hr_view_expect_line(struct hr_view *v)
{
	view_note(v, HR_VIEW_LINE);
	v->echo_line = true;
}

void
hr_view_end_echo(struct hr_view *v)
{
	hr_buf_reset(&v->held);
	v->echo = v->echo_line = false;
	forget(v, HR_VIEW_ECHO); /* otherwise a successor would expect an echo */
	forget(v, HR_VIEW_LINE);
}

bool
hr_view_echo_over(const struct hr_view *v)
{
	return !v->echo;
}

bool
hr_view_started(const struct hr_view *v)
{
	return v->started;
}

bool
hr_view_more(const struct hr_view *v)
{
	return v->more;
}

bool
hr_view_readline(const struct hr_view *v)
{
	return !v->echo && hr_term_bracketed_paste(v->term);
}

uint64_t
hr_view_generation(struct hr_view *v)
{
	return hr_term_generation(v->term);
}

/* Returns memory to the system. Small blocks in use after the freed ones make the library keep all
 * of it. */
static void
give_back(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}

void
hr_view_reset(struct hr_view *v, bool keep_readline)
{
	bool readline = keep_readline && hr_view_readline(v);
	bool large = hr_term_memory(v->term) > LARGE_TERM;

	hr_term_reset(v->term);
	hr_buf_done(&v->shown);
	hr_buf_done(&v->shown_screen);
	hr_buf_done(&v->row_text);
	hr_buf_reset(&v->held);
	watch_nothing(v);
	memset(v->points.events, 0, sizeof(v->points.events));
	v->points.last = 0;
	v->points.reset = v->points.fed;
	v->points.readline = false;
	if (readline)
		hr_view_readline_waits(v);
	v->points.whole = true;
	v->echo_line = v->marked = v->lost = false;
	v->mark_row = v->mark_dropped = 0;
	if (large)
		give_back();
}

void
hr_view_begin(struct hr_view *v, uint64_t at)
{
	hr_view_place(v, at);
	hr_view_reset(v, false);
}

void
hr_view_leave_screen(struct hr_view *v)
{
	static const char leave[] = "\033[?1049l";

	if (hr_term_alternate(v->term))
		hr_term_feed(v->term, leave, sizeof(leave) - 1);
}

void
hr_view_leave_readline(struct hr_view *v)
{
	if (hr_term_bracketed_paste(v->term))
		hr_term_feed(v->term, HR_READLINE_LEAVES, strlen(HR_READLINE_LEAVES));
}

void
hr_view_shell_ended(struct hr_view *v)
{
	static const char modes[] = "\033[?2004l\033[?1l";

	hr_buf_reset(&v->held);
	watch_nothing(v);
	v->points.whole = false;
	v->points.ended = v->points.fed;
	v->echo_line = false;
	hr_term_feed(v->term, modes, sizeof(modes) - 1);
}

size_t
hr_view_replies(struct hr_view *v, char *buf, size_t cap)
{
	return hr_term_replies(v->term, buf, cap);
}

void
hr_view_points(const struct hr_view *v, struct hr_view_points *ret)
{
	*ret = v->points;
}

const struct hr_buf *
hr_view_typed(const struct hr_view *v)
{
	return &v->typed;
}

void
hr_view_readline_waits(struct hr_view *v)
{
	hr_term_feed(v->term, HR_READLINE_TAKES, strlen(HR_READLINE_TAKES));
	v->points.readline = true;
}

void
hr_view_lose(struct hr_view *v)
{
	v->lost = true;
}

bool
hr_view_application_cursor(const struct hr_view *v)
{
	return hr_term_application_cursor(v->term);
}
