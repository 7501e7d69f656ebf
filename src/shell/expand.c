/* Parses the substitutions in a word, each of which must be valid. The rules are those of the
 * parser whose verdicts are the contract, not bash's: quotes do not protect (unless the whole word
 * is in single quotes), and only the first line of the commands in $( ) or `...` is parsed; after
 * it the rest counts as word text again. */
#include "config.h"

#include "shell/parse.h"

#include <string.h>

/* Parses the command at the start of s, the text after $( or between backquotes. Word text
 * continues at *ret_used. */
static int
expand_command(const char *s, size_t len, bool paren, struct hr_shell_state *st, size_t *ret_used)
{
	struct hr_shell_parser p;
	struct hr_shell_unit unit;
	int r;

	if (hr_shell_enter(st, HR_SHELL_SUBST_DEPTH))
		return -1;
	hr_shell_parser_init(&p, s, len, paren, st);
	r = hr_shell_parse_unit(&p, &unit);
	hr_shell_parser_done(&p);
	hr_shell_leave(st, HR_SHELL_SUBST_DEPTH);
	if (r || unit.blank)
		return -1;
	*ret_used = unit.end < len ? unit.end + 1 : len;
	return 0;
}

static int
expand_backquote(const char *s, size_t len, struct hr_shell_state *st, size_t *ret_used)
{
	const char *close = memchr(s, '`', len);
	size_t used;

	if (!close)
		return -1;
	*ret_used = (size_t)(close - s) + 1;
	if (close == s)
		return 0;
	return expand_command(s, (size_t)(close - s), false, st, &used);
}

/* Parses after a $; *ret_used counts from there. */
static int
expand_dollar(const char *s, size_t len, struct hr_shell_state *st, size_t *ret_used)
{
	const char *close;

	*ret_used = 0;
	if (len == 0)
		return 0;
	switch (s[0]) {
	case '(':
		if (len > 1 && s[1] == '(')
			return -1;
		if (expand_command(s + 1, len - 1, true, st, ret_used))
			return -1;
		*ret_used += 1;
		return 0;
	case '[': return -1;
	case '{':
		/* The original never ends without a }. Nothing else can be found. */
		close = memchr(s, '}', len);
		*ret_used = close ? (size_t)(close - s) + 1 : len;
		return 0;
	case '$': *ret_used = 1; return 0;
	default: return 0;
	}
}

/* Returns the length of an unquoted ~ and the text up to a slash or a quote, where no substitution
 * is recognised. */
static size_t
tilde_length(const char *val, size_t len)
{
	size_t n = 0;

	if (len == 0 || val[0] != '~')
		return 0;
	while (n < len && !strchr("/\\'\"", val[n]))
		n++;
	return n;
}

int
hr_shell_expand(const char *val, size_t len, struct hr_shell_state *st)
{
	bool procsubst = len == 0 || val[0] != '"';
	size_t i = tilde_length(val, len), used;

	if (len >= 2 && val[0] == '\'' && val[len - 1] == '\'')
		return 0;
	while (i < len) {
		char c = val[i++];

		used = 0;
		if (c == '\\') {
			i++;
		} else if (c == '$') {
			if (expand_dollar(val + i, len - i, st, &used))
				return -1;
		} else if (c == '`') {
			if (expand_backquote(val + i, len - i, st, &used))
				return -1;
		} else if ((c == '<' || c == '>') && procsubst && i < len && val[i] == '(') {
			if (expand_command(val + i + 1, len - i - 1, true, st, &used))
				return -1;
			used++;
		}
		i += used;
	}
	return 0;
}
