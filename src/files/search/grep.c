/* Lines that match, by PCRE2. What an expression may cost is bounded by steps and by the clock. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/place/reach.h"
#include "files/search/search.h"

#define BINARY_LOOK 8192
#define STEPS_MAX 2000000

struct grepping {
	const struct hr_search *s;
	const struct hr_grep *g;
	hr_grep_fn *fn;
	void *arg;
	struct hr_grep_end *end;
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	char *text; /* of the file in hand */
	size_t room, len;
	size_t told;
	unsigned steps;
};

/* PCRE2's own limit counts anew wherever a match may begin, so it bounds no search by itself. */
static int
on_step(pcre2_callout_block *block, void *arg)
{
	struct grepping *w = arg;

	(void)block;
	return ++w->steps % 4 == 0 && hr_now_ms() >= w->s->until_ms ? PCRE2_ERROR_CALLOUT : 0;
}

static int
compile(struct grepping *w, struct hr_err *err)
{
	uint32_t flags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_AUTO_CALLOUT;
	unsigned char why[160];
	PCRE2_SIZE at;
	int code;

	if (w->g->ignore_case)
		flags |= PCRE2_CASELESS;
	/* literal goes with few others */
	flags |= w->g->literal ? PCRE2_LITERAL : PCRE2_MULTILINE;
	w->code = pcre2_compile((PCRE2_SPTR)(w->g->pattern.p != NULL ? w->g->pattern.p : ""),
	    w->g->pattern.len, flags, &code, &at, NULL);
	if (w->code == NULL) {
		(void)pcre2_get_error_message(code, why, sizeof(why));
		return hr_err_set(err, HR_E_INVAL, "the expression is wrong at character %zu: %s",
		    (size_t)at, why);
	}
	(void)pcre2_jit_compile(w->code, PCRE2_JIT_COMPLETE); /* slower without */
	w->limits = pcre2_match_context_create(NULL);
	w->data = pcre2_match_data_create(1, NULL);
	if (w->limits == NULL || w->data == NULL)
		return hr_err_nomem(err);
	(void)pcre2_set_match_limit(w->limits, STEPS_MAX);
	(void)pcre2_set_heap_limit(w->limits, 65536);
	(void)pcre2_set_callout(w->limits, on_step, w);
	return 0;
}

/* A plain file of bearable length, without null characters at its beginning. Takes fd. */
static bool
load(struct grepping *w, int taken)
{
	HR_CLOSE int fd = hr_reach_check(taken);
	struct stat st;
	ssize_t n = -1;
	char *more;

	if (fd < 0) {
		w->end->walk.closed++;
		return false;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_size > (off_t)HR_SEARCH_FILE_MAX) {
		w->end->walk.large++;
		return false;
	}
	if (w->room < (size_t)st.st_size + 1) {
		more = realloc(w->text, (size_t)st.st_size + 65536);
		if (more == NULL) {
			w->end->walk.closed++;
			return false;
		}
		w->text = more;
		w->room = (size_t)st.st_size + 65536;
	}
	n = hr_fd_read_full(fd, w->text, (size_t)st.st_size, NULL);
	if (n < 0) {
		w->end->walk.closed++;
		return false;
	}
	w->len = (size_t)n;
	w->end->searched++;
	return memchr(w->text, '\0', w->len < BINARY_LOOK ? w->len : BINARY_LOOK) == NULL;
}

struct cursor {
	size_t at, line; /* a line's first byte, and its number */
};

static struct hr_span
line_at(const struct grepping *w, size_t at)
{
	const char *nl = memchr(w->text + at, '\n', w->len - at);

	return (struct hr_span){
	    w->text + at, nl != NULL ? (size_t)(nl - w->text) - at : w->len - at};
}

static void
advance(const struct grepping *w, struct cursor *c, size_t to)
{
	const char *nl;

	while (c->at < to && (nl = memchr(w->text + c->at, '\n', to - c->at)) != NULL) {
		c->at = (size_t)(nl - w->text) + 1;
		c->line++;
	}
}

/* Lines of the context behind `from`, up to but not including `to`. */
static struct cursor
tell_after(const struct grepping *w, const char *rel, struct cursor from, size_t to)
{
	unsigned n;

	for (n = 0; n < w->g->context && from.at < to && from.at < w->len; n++) {
		struct hr_span s = line_at(w, from.at);

		w->fn(w->arg, rel, from.line, s, false);
		from.at += s.len + 1;
		from.line++;
	}
	return from;
}

static void
tell_before(const struct grepping *w, const char *rel, struct cursor match, size_t shown)
{
	struct cursor c = match;
	unsigned n = 0;

	while (n < w->g->context && c.at > shown && c.at > 0) {
		for (c.at--; c.at > 0 && w->text[c.at - 1] != '\n'; c.at--)
			;
		c.line--;
		n++;
	}
	for (; c.at < match.at; c.line++) {
		struct hr_span s = line_at(w, c.at);

		w->fn(w->arg, rel, c.line, s, false);
		c.at += s.len + 1;
	}
}

static void
search_text(struct grepping *w, const char *rel)
{
	struct cursor c = {0, 1}, after = {0, 1};
	size_t at = 0, found = 0;
	bool tell, open = false; /* the context behind a line was not told yet */
	int r;

	while (at <= w->len) {
		r = pcre2_match(w->code, (PCRE2_SPTR)w->text, w->len, at, 0, w->data, w->limits);
		if (r < 0) {
			w->end->walk.late |= r == PCRE2_ERROR_CALLOUT;
			w->end->walk.costly += r != PCRE2_ERROR_NOMATCH && r != PCRE2_ERROR_CALLOUT;
			break;
		}
		at = pcre2_get_ovector_pointer(w->data)[0];
		if (at >= w->len && at > 0)
			break; /* behind the last line's end */
		advance(w, &c, at);
		found++;
		tell = w->told < w->g->max;
		if (w->g->files_only) {
			if (tell) {
				w->told++;
				w->fn(w->arg, rel, 0, (struct hr_span){"", 0}, true);
			}
			break;
		}
		if (open) {
			after = tell_after(w, rel, after, c.at);
			open = false;
		}
		if (tell) {
			struct hr_span s = line_at(w, c.at);

			tell_before(w, rel, c, after.at);
			w->told++;
			w->fn(w->arg, rel, c.line, s, true);
			after = (struct cursor){c.at + s.len + 1, c.line + 1};
			open = w->g->context > 0;
		}
		c.at += line_at(w, c.at).len + 1;
		c.line++;
		at = c.at;
		if (hr_now_ms() >= w->s->until_ms) {
			w->end->walk.late = true;
			break;
		}
	}
	if (open)
		(void)tell_after(w, rel, after, w->len);
	w->end->lines += found;
	w->end->files += found > 0;
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
		w->end->walk.closed += errno != ENOENT && errno != ELOOP;
	else if (load(w, fd))
		search_text(w, rel);
	return !w->end->walk.late;
}

/* The top is a file. False: it is not. */
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
	struct grepping w = {.s = s, .g = g, .fn = fn, .arg = arg, .end = ret};
	struct hr_search_end walked;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = compile(&w, err);
	if (r == 0 && !only_file(&w)) {
		r = hr_search_walk(s, on_file, &w, &walked, err);
		ret->walk.late |= walked.late;
		ret->walk.closed += walked.closed;
		ret->walk.deep += walked.deep;
		ret->walk.large += walked.large;
	}
	pcre2_code_free(w.code);
	pcre2_match_context_free(w.limits);
	pcre2_match_data_free(w.data);
	free(w.text);
	return r;
}
