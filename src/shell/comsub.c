/* Finds the ) of $( ), <( ) and >( ) by looking for quotes, comments, here-documents and brackets,
 * not by parsing. */
#include "config.h"

#include "shell/word.h"

#include <string.h>

struct comsub {
	size_t count; /* number of open parentheses */
	bool comment, pass, dollar;

	/* Parentheses do not count inside `case`. The word is recognised only if `letters`, the
	 * small letters read since a command may have started, are exactly these four; it is not
	 * recognised after a command of small letters and blanks. */
	bool in_case, command_ok;
	size_t letters;

	enum { DOC_NONE, DOC_DELIM, DOC_BODY } doc;
	bool strip_tabs;
	size_t from, to; /* the delimiter's place in the text; from == to: not started */
	bool delim_begun;
	size_t line; /* DOC_BODY: start of the line being read */
};

static size_t
skip_joins(const struct hr_shell_lex *lx, size_t i, size_t end)
{
	while (i + 1 < end && lx->s[i] == '\\' && lx->s[i + 1] == '\n')
		i += 2;
	return i;
}

/* Returns true if the line from cs->line to `end` is the delimiter. Backslash-newlines do not
 * count. Quotes are removed from the line here, unlike in heredoc.c; any other backslash outside
 * quotes makes that fail, so that no line matches. */
static bool
comsub_doc_ends(const struct hr_shell_lex *lx, const struct comsub *cs, size_t end)
{
	size_t l = skip_joins(lx, cs->line, end), d;
	char quote = 0;

	while (cs->strip_tabs && l < end && lx->s[l] == '\t')
		l = skip_joins(lx, l + 1, end);
	for (d = skip_joins(lx, cs->from, cs->to); d < cs->to; d = skip_joins(lx, d + 1, cs->to)) {
		char c = lx->s[d];

		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? 0 : c;
			continue;
		}
		if ((c == '\\' && !quote) || l >= end || lx->s[l] != c)
			return false;
		l = skip_joins(lx, l + 1, end);
	}
	return l == end;
}

/* Reads one character of a here-document's body. Returns true while inside. */
static bool
comsub_in_doc(const struct hr_shell_lex *lx, struct comsub *cs, int c)
{
	size_t end = lx->pos - 1;

	if (c == '\n' || (c == ')' && cs->count == 1)) {
		if (comsub_doc_ends(lx, cs, end)) {
			cs->doc = DOC_NONE;
			return false;
		}
		if (c == '\n')
			cs->line = lx->pos;
	}
	return true;
}

static void
comsub_delim(const struct hr_shell_lex *lx, struct comsub *cs, int c)
{
	size_t at = lx->pos - 1;

	if (!cs->delim_begun) {
		if (!hr_shell_is_break(c)) {
			cs->delim_begun = true;
			cs->from = at;
			cs->to = 0;
		}
		return;
	}
	if (!hr_shell_is_break(c))
		return;
	if (cs->to == 0)
		cs->to = at;
	if (c == '\n') {
		cs->doc = DOC_BODY;
		cs->line = lx->pos;
	}
}

/* Handles a < that was read: starts a here-document if it is <<, not <<<. Returns the next
 * character, as read; '<' means that nothing is left to do. */
static int
comsub_less(struct hr_shell_lex *lx, struct comsub *cs)
{
	int c = hr_shell_lex_getc(lx, true);

	if (c != '<')
		return c;
	c = hr_shell_lex_getc(lx, true);
	cs->strip_tabs = c == '-';
	if (c == '-')
		c = hr_shell_lex_getc(lx, true);
	if (c >= 0)
		hr_shell_lex_ungetc(lx);
	/* Only the first of several here-documents on a line is recognised. */
	if (c == '<' || (cs->doc == DOC_DELIM && cs->to != 0))
		return '<';
	cs->doc = DOC_DELIM;
	cs->delim_begun = false;
	cs->to = 0;
	return '<';
}

/* Returns true if the characters read, without the last one, end in `word`. */
static bool
comsub_behind(const struct hr_shell_lex *lx, const char *word)
{
	size_t n = strlen(word);

	return lx->pos > n && lx->pos - 1 <= lx->len &&
	       memcmp(lx->s + lx->pos - 1 - n, word, n) == 0;
}

/* Tracks `case`. Returns true if c is handled. */
static bool
comsub_case(const struct hr_shell_lex *lx, struct comsub *cs, int c)
{
	if (!cs->command_ok) {
		if (c != '\n' && c != ';' && c != '&' && c != '|')
			return false;
		cs->command_ok = true;
		cs->letters = 0;
		return true;
	}
	if (c >= 'a' && c <= 'z') {
		cs->letters++;
		return true;
	}
	if (cs->letters == 4 && hr_shell_is_break(c)) {
		cs->command_ok = false;
		if (comsub_behind(lx, "case"))
			cs->in_case = true;
		else if (comsub_behind(lx, "esac"))
			cs->in_case = false;
	} else if (c == '#') {
		;
	} else if (!cs->in_case && (c == ' ' || c == '\t' || c == '\n') && cs->letters == 2 &&
		   comsub_behind(lx, "do")) {
		cs->letters = 0;
	} else if (cs->in_case ? c != '\n' : !hr_shell_is_break(c)) {
		cs->command_ok = false;
	}
	return false;
}

static int
comsub_nested(struct hr_shell_lex *lx, struct comsub *cs, int c)
{
	if (c == '\'' || c == '`')
		return hr_shell_pair_skip(lx, c, c, cs->dollar && c == '\'' ? HR_PAIR_ANSI : 0);
	if (c == '"')
		return hr_shell_pair_skip(lx, c, c, HR_PAIR_DQUOTE);
	if (!cs->dollar)
		return 0;
	if (c == '(') {
		cs->count -= !cs->in_case;
		return hr_shell_comsub_skip(lx);
	}
	if (c == '{') /* ${ acts as it does in double quotes */
		return hr_shell_pair_skip(lx, '{', '}', HR_PAIR_BRACE | HR_PAIR_DQUOTE);
	if (c == '[')
		return hr_shell_pair_skip(lx, '[', ']', 0);
	return 0;
}

/* Handles a character in a comment, whose newline can start the here-document announced before
 * it. */
static void
comsub_in_comment(struct hr_shell_lex *lx, struct comsub *cs, int c)
{
	if (c != '\n')
		return;
	cs->comment = false;
	if (cs->doc == DOC_DELIM && cs->to != 0)
		comsub_delim(lx, cs, c);
}

/* Handles an unquoted character outside of comments and here-documents. Returns 1 at the end, 0, or
 * -1. */
static int
comsub_char(struct hr_shell_lex *lx, struct comsub *cs, int c)
{
	if ((c == ' ' || c == '\t') && cs->doc != DOC_DELIM && cs->letters == 0)
		return 0;
	if (cs->doc == DOC_DELIM)
		comsub_delim(lx, cs, c);
	if (comsub_case(lx, cs, c))
		return 0;
	if (c == '#') {
		cs->comment = true;
		cs->dollar = false;
		return 0;
	}
	if (c == '<') {
		c = comsub_less(lx, cs);
		if (c == '<')
			return 0;
		if (c < 0)
			return -1;
	}
	if (!cs->in_case) {
		if (c == ')' && --cs->count == 0)
			return 1;
		if (c == '(')
			cs->count++;
	}
	if (c == '\\')
		cs->pass = true;
	if (comsub_nested(lx, cs, c))
		return -1;
	cs->dollar = c == '$';
	return 0;
}

static int
comsub_body(struct hr_shell_lex *lx)
{
	struct comsub cs = {.count = 1, .command_ok = true};
	int r = 0;

	while (r == 0) {
		int c = hr_shell_lex_getc(lx, !cs.comment && !cs.pass);

		if (c < 0)
			return -1;
		if (cs.doc == DOC_BODY && comsub_in_doc(lx, &cs, c))
			continue;
		if (cs.comment) {
			comsub_in_comment(lx, &cs, c);
		} else if (cs.pass) {
			cs.pass = false;
			cs.dollar = false;
		} else {
			r = comsub_char(lx, &cs, c);
		}
	}
	return r < 0 ? -1 : 0;
}

int
hr_shell_comsub_skip(struct hr_shell_lex *lx)
{
	int r;

	/* $(( starts arithmetic, where # and << mean other things */
	if (hr_shell_lex_peekc(lx) == '(')
		return hr_shell_pair_skip(lx, '(', ')', 0);
	if (hr_shell_enter(lx->st, 1))
		return -1;
	r = comsub_body(lx);
	hr_shell_leave(lx->st, 1);
	return r;
}
