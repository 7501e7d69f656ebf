/* Finds lines that match, with PCRE2. Steps and the clock bound the cost of an expression. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/charset/charset.h"
#include "files/place/reach.h"
#include "files/search/search.h"

#define BINARY_LOOK 8192
#define PIECE (64u << 10)
#define CLOCK_LINES 256 /* lines between two checks of the clock */
#define STEPS_MAX 2000000

struct grepping {
	const struct hr_search *s;
	const struct hr_grep *g;
	hr_grep_fn *fn;
	void *arg;
	struct hr_grep_end *ret;
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	struct hr_buf bytes, wide; /* bytes of the current file; wide: those bytes decoded */
	const char *text, *end;    /* the buffer in use, without its mark */
	bool cr;                   /* lines of this file end with CR */
	bool keeps_cr;             /* the expression mentions CR */
	bool plain; /* a literal string that a line must contain, in place of the expression */
	size_t told;
	unsigned steps;
};

/* Checks the clock: PCRE2's limit restarts at each start of a match and bounds no search. */
static int
on_step(pcre2_callout_block *block, void *arg)
{
	struct grepping *w = arg;

	(void)block;
	return ++w->steps % 4 == 0 && hr_now_ms() >= w->s->until_ms ? PCRE2_ERROR_CALLOUT : 0;
}

/* Returns true if the expression mentions CR, so that lines must include theirs. */
static bool
names_cr(struct hr_span p, bool literal)
{
	static const char *const names[] = {"\\r", "\\R", "\\x0d", "\\x0D", "\\x{d}", "\\x{D}"};
	size_t i;

	if (p.len == 0)
		return false;
	if (memchr(p.p, '\r', p.len) != NULL)
		return true;
	for (i = 0; !literal && i < sizeof(names) / sizeof(names[0]); i++)
		if (memmem(p.p, p.len, names[i], strlen(names[i])) != NULL)
			return true;
	return false;
}

static bool
is_plain(const struct hr_grep *g)
{
	const char *p = g->pattern.p, *end = p + g->pattern.len;

	for (; !g->literal && p < end && strchr("\\^$.[|()?*+{", *p) == NULL; p++)
		;
	return !g->ignore_case && g->pattern.len > 0 && (g->literal || p == end);
}

static int
compile(struct grepping *w, struct hr_err *err)
{
	uint32_t flags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_AUTO_CALLOUT;
	pcre2_compile_context *own;
	unsigned char why[160];
	PCRE2_SIZE at;
	int code;

	if (w->g->ignore_case)
		flags |= PCRE2_CASELESS;
	if (w->g->literal)
		flags |= PCRE2_LITERAL;
	w->plain = is_plain(w->g);
	w->keeps_cr = names_cr(w->g->pattern, w->g->literal);
	own = pcre2_compile_context_create(NULL);
	if (own == NULL)
		return hr_err_nomem(err);
	/* lets "$" match before a final CR as well, if lines include it */
	(void)pcre2_set_newline(own, PCRE2_NEWLINE_ANYCRLF);
	w->code = pcre2_compile((PCRE2_SPTR)(w->g->pattern.p != NULL ? w->g->pattern.p : ""),
	    w->g->pattern.len, flags, &code, &at, w->keeps_cr ? own : NULL);
	pcre2_compile_context_free(own);
	if (w->code == NULL) {
		(void)pcre2_get_error_message(code, why, sizeof(why));
		return hr_err_set(err, HR_E_INVAL, "the expression is wrong at character %zu: %s",
		    (size_t)at, why);
	}
	/* optional, since it only saves time */
	(void)pcre2_jit_compile(w->code, PCRE2_JIT_COMPLETE);
	w->limits = pcre2_match_context_create(NULL);
	w->data = pcre2_match_data_create(1, NULL);
	if (w->limits == NULL || w->data == NULL)
		return hr_err_nomem(err);
	(void)pcre2_set_match_limit(w->limits, STEPS_MAX);
	(void)pcre2_set_heap_limit(w->limits, 65536);
	(void)pcre2_set_callout(w->limits, on_step, w);
	return 0;
}

/* Sets the text from the bytes read. Returns false if they are not text. */
static bool
take_text(struct grepping *w)
{
	const char *p = hr_buf_str(&w->bytes);
	enum hr_bom bom = hr_charset_bom(p, w->bytes.len);

	w->text = p;
	w->end = p + w->bytes.len;
	if (bom == HR_BOM_UTF8) {
		w->text += 3;
	} else if (bom != HR_BOM_NONE && bom != HR_BOM_ODD) {
		hr_buf_reset(&w->wide);
		if (hr_charset_decode(hr_charset_of_bom(bom), p, w->bytes.len, &w->wide, NULL) <
			0 ||
		    w->wide.fail != HR_OK)
			return false;
		w->text = hr_buf_str(&w->wide);
		w->end = w->text + w->wide.len;
	}
	w->cr = memchr(w->text, '\n', (size_t)(w->end - w->text)) == NULL;
	return memchr(w->text, '\0',
		   w->end - w->text < BINARY_LOOK ? (size_t)(w->end - w->text) : BINARY_LOOK) ==
	       NULL;
}

/* Reads a regular file of limited length to its end, whatever size it reports. Takes fd. */
static bool
load(struct grepping *w, int taken)
{
	HR_CLOSE int fd = hr_reach_check(taken);
	struct stat st;
	char *room;
	ssize_t n = -1;

	if (fd < 0) {
		w->ret->walk.closed++;
		return false;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_size > (off_t)HR_SEARCH_FILE_MAX) {
		w->ret->walk.large++;
		return false;
	}
	hr_buf_reset(&w->bytes);
	while ((room = hr_buf_reserve(&w->bytes, PIECE)) != NULL &&
	       (n = hr_fd_read(fd, room, PIECE)) > 0)
		hr_buf_grew(&w->bytes, (size_t)n);
	if (room == NULL || n < 0) {
		w->ret->walk.large += room == NULL;
		w->ret->walk.closed += room != NULL;
		return false;
	}
	w->ret->searched++;
	if (take_text(w))
		return true;
	w->ret->walk.binary++;
	return false;
}

/* The place of a line: its first byte and its number. */
struct cursor {
	const char *at;
	size_t number;
};

/* Returns the line at c, before it is matched; *ret_next is the line after it. */
static struct hr_grep_line
line_at(const struct grepping *w, struct cursor c, struct cursor *ret_next)
{
	const char *end = memchr(c.at, w->cr ? '\r' : '\n', (size_t)(w->end - c.at));
	struct hr_grep_line l = {.number = c.number, .text = {c.at, 0}};

	ret_next->at = end != NULL ? end + 1 : w->end;
	ret_next->number = c.number + 1;
	if (end == NULL)
		end = w->end;
	l.text.len = (size_t)(end - c.at);
	return l;
}

/* Reports a line, without the CR of its CR LF. */
static void
tell(const struct grepping *w, const char *rel, struct hr_grep_line l)
{
	if (l.text.len > 0 && l.text.p[l.text.len - 1] == '\r')
		l.text.len--;
	if (l.to > l.text.len)
		l.to = l.text.len;
	if (l.from > l.to)
		l.from = l.to;
	w->fn(w->arg, rel, &l);
}

/* Reports context lines from `from` on, before `to`. */
static struct cursor
tell_after(const struct grepping *w, const char *rel, struct cursor from, const char *to)
{
	struct cursor next;
	unsigned n;

	for (n = 0; n < w->g->context && from.at < to; n++, from = next)
		tell(w, rel, line_at(w, from, &next));
	return from;
}

/* Reports context lines before a match, unless they were reported already. */
static void
tell_before(const struct grepping *w, const char *rel, struct cursor match, const char *shown)
{
	const char end = w->cr ? '\r' : '\n';
	struct cursor c = match, next;
	unsigned n;

	for (n = 0; n < w->g->context && c.at > shown; n++) {
		for (c.at--; c.at > w->text && c.at[-1] != end; c.at--)
			;
		c.number--;
	}
	for (; c.at < match.at; c = next)
		tell(w, rel, line_at(w, c, &next));
}

/* Returns true if the expression matches the line. *ret_give_up is set if that took too long. */
static bool
is_in(struct grepping *w, struct hr_grep_line *l, bool *ret_give_up)
{
	size_t n = l->text.len;
	int r;

	if (!w->keeps_cr && n > 0 && l->text.p[n - 1] == '\r')
		n--;
	r = pcre2_match(w->code, (PCRE2_SPTR)l->text.p, n, 0, 0, w->data, w->limits);
	if (r < 0) {
		w->ret->walk.late |= r == PCRE2_ERROR_CALLOUT;
		w->ret->walk.costly += r != PCRE2_ERROR_NOMATCH && r != PCRE2_ERROR_CALLOUT;
		*ret_give_up = r != PCRE2_ERROR_NOMATCH;
		return false;
	}
	l->match = true;
	l->from = pcre2_get_ovector_pointer(w->data)[0];
	l->to = pcre2_get_ovector_pointer(w->data)[1];
	return true;
}

static void
search_text(struct grepping *w, const char *rel)
{
	struct cursor c = {w->text, 1}, after = c, next;
	size_t found = 0;
	bool open = false, give_up = false; /* open: context after a match must still be reported */
	struct hr_grep_line l;

	if (w->plain &&
	    memmem(w->text, (size_t)(w->end - w->text), w->g->pattern.p, w->g->pattern.len) == NULL)
		return; /* this is the result for most files, and much faster than line by line */
	for (; c.at < w->end && !give_up; c = next) {
		l = line_at(w, c, &next);
		if (c.number % CLOCK_LINES == 0 && hr_now_ms() >= w->s->until_ms)
			give_up = w->ret->walk.late = true;
		else if (is_in(w, &l, &give_up)) {
			found++;
			if (open)
				after = tell_after(w, rel, after, c.at);
			open = false;
			if (w->told < w->g->max) {
				w->told++;
				if (w->g->files_only)
					l = (struct hr_grep_line){.text = {"", 0}, .match = true};
				else
					tell_before(w, rel, c, after.at);
				tell(w, rel, l);
				after = next;
				open = w->g->context > 0 && !w->g->files_only;
			}
			give_up = w->g->files_only;
		}
	}
	if (open)
		(void)tell_after(w, rel, after, w->end);
	w->ret->lines += found;
	w->ret->files += found > 0;
}

static bool
on_file(void *arg, int dir, const char *name, const char *rel, bool is_dir)
{
	struct grepping *w = arg;
	int fd;

	if (is_dir || (w->g->names != NULL && !hr_globs_match(w->g->names, rel)))
		return true;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		w->ret->walk.closed += errno != ENOENT && errno != ELOOP;
	else if (load(w, fd))
		search_text(w, rel);
	return !w->ret->walk.late;
}

/* Searches a top that is a file. Returns false if it is not. */
static bool
only_file(struct grepping *w)
{
	int fd = hr_reach_open_as(AT_FDCWD, w->s->top, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		hr_fd_close(&fd);
		return false;
	}
	if (load(w, fd))
		search_text(w, w->s->top);
	return true;
}

int
hr_grep(const struct hr_search *s, const struct hr_grep *g, hr_grep_fn *fn, void *arg,
    struct hr_grep_end *ret, struct hr_err *err)
{
	struct grepping w = {.s = s, .g = g, .fn = fn, .arg = arg, .ret = ret};
	struct hr_search_end walked;
	int r;

	memset(ret, 0, sizeof(*ret));
	hr_buf_init(&w.bytes, HR_SEARCH_FILE_MAX);
	hr_buf_init(&w.wide, HR_SEARCH_FILE_MAX * 2);
	r = compile(&w, err);
	if (r == 0 && !only_file(&w)) {
		r = hr_search_walk(s, on_file, &w, &walked, err);
		ret->walk.late |= walked.late;
		ret->walk.closed += walked.closed;
		ret->walk.deep += walked.deep;
		ret->walk.large += walked.large;
		ret->walk.hidden = walked.hidden;
		ret->walk.ignored = walked.ignored;
	}
	pcre2_code_free(w.code);
	pcre2_match_context_free(w.limits);
	pcre2_match_data_free(w.data);
	hr_buf_done(&w.bytes);
	hr_buf_done(&w.wide);
	return r;
}
