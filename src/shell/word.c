/* Finds the ends of words and of quoted stretches. Nothing is interpreted here; expand.c parses the
 * insides. */
#include "config.h"

#include "shell/word.h"

#include <string.h>

static bool
is_quote(int c)
{
	return c == '\'' || c == '"' || c == '`';
}

/* Skips $( ${ $[ after the dollar and the bracket. */
static int
dollar_skip(struct hr_shell_lex *lx, int bracket, unsigned flags)
{
	if (bracket == '(')
		return hr_shell_comsub_skip(lx);
	if (bracket == '{')
		return hr_shell_pair_skip(lx, '{', '}', HR_PAIR_BRACE | flags);
	return hr_shell_pair_skip(lx, '[', ']', flags);
}

struct pair {
	int open, close;
	unsigned flags;
	size_t count;
	bool pass;   /* the next character is quoted */
	bool dollar; /* the last character was a $ */
	/* The meaning of ' in "${name...}" changes: an ordinary character after the name or :-, a
	 * quote after # % / ^ , */
	enum { BRACE_START, BRACE_NAME, BRACE_PATTERN, BRACE_OTHER } brace;
};

static void
pair_brace(struct pair *p, int c)
{
	if (p->brace == BRACE_START)
		p->brace = c && strchr("#%^,~:-=?+/", c) ? BRACE_OTHER : BRACE_NAME;
	else if (p->brace == BRACE_NAME && c && strchr("#%^,/", c))
		p->brace = BRACE_PATTERN;
}

/* Returns true if c, a single quote, is an ordinary character here. */
static bool
pair_plain_quote(const struct pair *p, int c)
{
	return c == '\'' && p->open == '{' && (p->flags & HR_PAIR_DQUOTE) &&
	       p->brace != BRACE_PATTERN;
}

/* Skips a quote or expansion that starts with c. */
static int
pair_nested(struct hr_shell_lex *lx, const struct pair *p, int c)
{
	if (p->open != p->close && is_quote(c)) {
		if (c != '\'')
			return hr_shell_pair_skip(lx, c, c, 0);
		return hr_shell_pair_skip(lx, c, c, p->dollar ? HR_PAIR_ANSI : 0);
	}
	if (p->open != '"')
		return 0;
	if (c == '`')
		return hr_shell_pair_skip(lx, c, c, 0);
	if (p->dollar && (c == '(' || c == '{' || c == '['))
		return dollar_skip(lx, c, HR_PAIR_DQUOTE);
	return 0;
}

static int
pair_body(struct hr_shell_lex *lx, struct pair *p)
{
	for (;;) {
		int c = hr_shell_lex_getc(lx, p->open != '\'' && !p->pass);

		if (c < 0)
			return -1;
		if (p->pass) {
			p->pass = false;
			p->dollar = false;
			continue;
		}
		if (c == p->close) {
			if (--p->count == 0)
				return 0;
		} else if (c == p->open && (!(p->flags & HR_PAIR_BRACE) || p->dollar)) {
			p->count++;
		}
		if (p->open == '\'') {
			p->pass = (p->flags & HR_PAIR_ANSI) && c == '\\';
			continue;
		}
		if (p->open == '{')
			pair_brace(p, c);
		if (pair_plain_quote(p, c))
			continue; /* a $ before the quote belongs to the next part */
		if (c == '\\')
			p->pass = true;
		else if (pair_nested(lx, p, c))
			return -1;
		p->dollar = c == '$';
	}
}

int
hr_shell_pair_skip(struct hr_shell_lex *lx, int open, int close, unsigned flags)
{
	struct pair p = {.open = open, .close = close, .flags = flags, .count = 1};
	int r;

	if (hr_shell_enter(lx->st, 1))
		return -1;
	r = pair_body(lx, &p);
	hr_shell_leave(lx->st, 1);
	return r;
}

/* Continues after c, which is $, < or >, in a word. *ret_taken is set if the expansion is longer
 * than c. */
static int
word_expansion(struct hr_shell_lex *lx, int c, bool *ret_taken)
{
	int next = hr_shell_lex_getc(lx, true);

	*ret_taken = true;
	if (next == '(' || (c == '$' && (next == '{' || next == '[')))
		return dollar_skip(lx, next, 0);
	if (c == '$' && next == '\'')
		return hr_shell_pair_skip(lx, next, next, HR_PAIR_ANSI);
	if (c == '$' && next == '"')
		return hr_shell_pair_skip(lx, next, next, HR_PAIR_DQUOTE);
	if (c == '$' && next == '$')
		return 0;
	if (next >= 0)
		hr_shell_lex_ungetc(lx);
	*ret_taken = false;
	return 0;
}

/* Reads a quoted character, string or expansion starting with c. *ret_taken is set if there was
 * one. */
static int
word_part(struct hr_shell_lex *lx, int c, struct hr_shell_word *w, bool *ret_taken)
{
	*ret_taken = true;
	if (c == '\\') {
		w->quoted = true;
		(void)hr_shell_lex_getc(lx, false);
		return 0;
	}
	if (is_quote(c)) {
		w->quoted = true;
		return hr_shell_pair_skip(lx, c, c, c == '"' ? HR_PAIR_DQUOTE : 0);
	}
	if (c != '$' && c != '<' && c != '>') {
		*ret_taken = false;
		return 0;
	}
	if (word_expansion(lx, c, ret_taken))
		return -1;
	if (c == '$' || *ret_taken)
		w->dollar = true;
	return 0;
}

int
hr_shell_word_skip(struct hr_shell_lex *lx, struct hr_shell_word *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (;;) {
		int c = hr_shell_lex_getc(lx, true);
		bool taken = false;

		ret->next = c;
		ret->end = lx->pos - (c >= 0);
		if (c < 0)
			return 0;
		if (word_part(lx, c, ret, &taken))
			return -1;
		if (!taken && hr_shell_is_break(c)) {
			/* < and > made the reader continue, so set the position back */
			lx->pos = ret->end;
			return 0;
		}
	}
}
