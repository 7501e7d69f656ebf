/* Reads tokens of the splitter's grammar. The reader keeps the types of the last two tokens because
 * bash's reserved words are reserved only in certain places. */
#include "config.h"

#include "shell/lex.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "shell/heredoc.h"
#include "shell/word.h"

int
hr_shell_enter(struct hr_shell_state *st, int levels)
{
	if (st->depth + levels > HR_SHELL_MAX_DEPTH)
		return -1;
	st->depth += levels;
	return 0;
}

void
hr_shell_leave(struct hr_shell_state *st, int levels)
{
	st->depth -= levels;
}

void
hr_shell_lex_init(struct hr_shell_lex *lx, const char *s, size_t len, struct hr_shell_state *st)
{
	memset(lx, 0, sizeof(*lx));
	lx->s = s;
	lx->len = len;
	lx->ends_nl = len > 0 && s[len - 1] == '\n';
	lx->st = st;
	lx->last = lx->before_last = HR_TOK_START;
}

void
hr_shell_lex_done(struct hr_shell_lex *lx)
{
	size_t i;

	free(lx->joins);
	for (i = 0; i < lx->n_docs; i++)
		free(lx->docs[i].delim);
	free(lx->docs);
}

static int
lex_at(const struct hr_shell_lex *lx, size_t pos)
{
	if (pos < lx->len)
		return (unsigned char)lx->s[pos];
	return pos == lx->len && !lx->ends_nl ? '\n' : -1;
}

static void
lex_note_join(struct hr_shell_lex *lx, size_t pos)
{
	if (hr_grow(&lx->joins, lx->n_joins, &lx->room_joins, sizeof(*lx->joins)))
		lx->st->nomem = true;
	/* A line join can be read twice, after an ungetc. */
	else if (lx->n_joins == 0 || lx->joins[lx->n_joins - 1] < pos)
		lx->joins[lx->n_joins++] = pos;
}

int
hr_shell_lex_getc(struct hr_shell_lex *lx, bool join)
{
	for (;;) {
		int c = lex_at(lx, lx->pos);

		if (c < 0)
			return -1;
		if (c != '\\' || !join || lex_at(lx, lx->pos + 1) != '\n') {
			lx->pos++;
			return c;
		}
		lex_note_join(lx, lx->pos);
		lx->pos += 2;
	}
}

int
hr_shell_lex_peekc(struct hr_shell_lex *lx)
{
	int c = hr_shell_lex_getc(lx, true);

	if (c >= 0)
		hr_shell_lex_ungetc(lx);
	return c;
}

bool
hr_shell_is_break(int c)
{
	switch (c) {
	case ' ':
	case '\t':
	case '\n':
	case ';':
	case '&':
	case '|':
	case '(':
	case ')':
	case '<':
	case '>': return true;
	default: return false;
	}
}

/* Returns true if a word directly after the tokens read so far may be a reserved word. */
static bool
lex_command_position(const struct hr_shell_lex *lx)
{
	switch (lx->last) {
	case HR_TOK_START:
	case HR_TOK_NEWLINE:
	case HR_TOK_IF:
	case HR_TOK_THEN:
	case HR_TOK_ELSE:
	case HR_TOK_ELIF:
	case HR_TOK_FI:
	case HR_TOK_WHILE:
	case HR_TOK_UNTIL:
	case HR_TOK_DO:
	case HR_TOK_DONE:
	case HR_TOK_LBRACE:
	case HR_TOK_RBRACE:
	case HR_TOK_BANG:
	case HR_TOK_UNSUPPORTED:
	case HR_TOK_AND_AND:
	case HR_TOK_OR_OR:
	case HR_TOK_AMP:
	case HR_TOK_SEMI:
	case HR_TOK_SEMI_SEMI:
	case HR_TOK_PIPE:
	case HR_TOK_PIPE_AMP:
	case HR_TOK_LPAREN:
	case HR_TOK_RPAREN: return true;
	case HR_TOK_WORD:
		/* `echo { fi` is an error in the original, `echo "{" fi` is not. */
		return lx->last_brace || lx->before_last == HR_TOK_FUNCTION;
	default: return false;
	}
}

static const struct {
	const char *word;
	enum hr_shell_tok type;
} lex_reserved[] = {
    {"if", HR_TOK_IF},
    {"then", HR_TOK_THEN},
    {"else", HR_TOK_ELSE},
    {"elif", HR_TOK_ELIF},
    {"fi", HR_TOK_FI},
    {"for", HR_TOK_FOR},
    {"while", HR_TOK_WHILE},
    {"until", HR_TOK_UNTIL},
    {"do", HR_TOK_DO},
    {"done", HR_TOK_DONE},
    {"in", HR_TOK_IN},
    {"function", HR_TOK_FUNCTION},
    {"{", HR_TOK_LBRACE},
    {"}", HR_TOK_RBRACE},
    {"!", HR_TOK_BANG},
    {"case", HR_TOK_UNSUPPORTED},
    {"esac", HR_TOK_UNSUPPORTED},
    {"select", HR_TOK_UNSUPPORTED},
    {"time", HR_TOK_UNSUPPORTED},
    {"coproc", HR_TOK_UNSUPPORTED},
    {"[[", HR_TOK_UNSUPPORTED},
    {"]]", HR_TOK_UNSUPPORTED},
};

static bool
token_is(const struct hr_shell_token *t, const char *word)
{
	return t->vlen == strlen(word) && !memcmp(t->val, word, t->vlen);
}

static enum hr_shell_tok
lex_reserved_word(const struct hr_shell_lex *lx, const struct hr_shell_token *t)
{
	size_t i;

	if (t->vlen > strlen("function"))
		return HR_TOK_WORD;
	if (lex_command_position(lx)) {
		for (i = 0; i < sizeof(lex_reserved) / sizeof(lex_reserved[0]); i++)
			if (token_is(t, lex_reserved[i].word))
				return lex_reserved[i].type;
	} else if (lx->last == HR_TOK_WORD && lx->before_last == HR_TOK_FOR) {
		if (token_is(t, "in"))
			return HR_TOK_IN;
		if (token_is(t, "do"))
			return HR_TOK_DO;
	}
	return HR_TOK_WORD;
}

static bool
is_name_char(char c, bool first)
{
	/* Approximates the letters of all scripts. */
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) ||
	       (!first && c >= '0' && c <= '9');
}

static size_t
name_length(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && is_name_char(s[n], n == 0))
		n++;
	return n;
}

/* Matches name=, name+=, name[...]= and name[...]+=. */
static bool
token_is_assignment(const struct hr_shell_token *t)
{
	size_t n = name_length(t->val, t->vlen);

	if (n == 0)
		return false;
	if (n < t->vlen && t->val[n] == '[') {
		const char *close = memchr(t->val + n, ']', t->vlen - n);

		if (!close)
			return false;
		n = (size_t)(close - t->val) + 1;
	}
	if (n < t->vlen && t->val[n] == '+')
		n++;
	return n < t->vlen && t->val[n] == '=';
}

static bool
token_is_number(const struct hr_shell_token *t)
{
	size_t i;

	for (i = 0; i < t->vlen; i++)
		if (t->val[i] < '0' || t->val[i] > '9')
			return false;
	return t->vlen > 0;
}

/* Returns the word without its backslash-newlines: the text itself if there are none. */
static int
lex_word_value(struct hr_shell_lex *lx, struct hr_shell_token *t)
{
	size_t from = t->start, i;

	t->val = lx->s + t->start;
	t->vlen = t->end - t->start;
	if (lx->n_joins == 0 || lx->joins[0] >= t->end)
		return 0;
	t->own = malloc(t->vlen + 1);
	if (!t->own) {
		lx->st->nomem = true;
		return -1;
	}
	t->vlen = 0;
	for (i = 0; i <= lx->n_joins; i++) {
		size_t to = i < lx->n_joins && lx->joins[i] < t->end ? lx->joins[i] : t->end;

		if (to > from) {
			memcpy(t->own + t->vlen, lx->s + from, to - from);
			t->vlen += to - from;
		}
		from = to + 2;
	}
	t->val = t->own;
	return 0;
}

static int
lex_word(struct hr_shell_lex *lx, struct hr_shell_token *t)
{
	struct hr_shell_word w;

	lx->n_joins = 0;
	if (hr_shell_word_skip(lx, &w))
		return -1;
	t->end = w.end < lx->len ? w.end : lx->len;
	if (lex_word_value(lx, t))
		return -1;
	t->type = HR_TOK_WORD;
	if (token_is_number(t) && (w.next == '<' || w.next == '>' || lx->last == HR_TOK_REDIR_DUP))
		t->type = HR_TOK_NUMBER;
	else if (!w.quoted && !w.dollar)
		t->type = lex_reserved_word(lx, t);
	if (t->type == HR_TOK_WORD && (lex_command_position(lx) || lx->last == HR_TOK_ASSIGN) &&
	    token_is_assignment(t))
		t->type = HR_TOK_ASSIGN;
	return 0;
}

/* Ends an operator after the backslash-newlines that follow it; `next` was read after them. */
static void
lex_end_operator(struct hr_shell_lex *lx, struct hr_shell_token *t, int next)
{
	if (next >= 0)
		hr_shell_lex_ungetc(lx);
	t->end = lx->pos < lx->len ? lx->pos : lx->len;
}

/* Consumes c if it comes next. */
static bool
lex_accept(struct hr_shell_lex *lx, struct hr_shell_token *t, int c)
{
	int next = hr_shell_lex_getc(lx, true);

	if (next == c) {
		t->end = lx->pos;
		return true;
	}
	lex_end_operator(lx, t, next);
	return false;
}

static enum hr_shell_tok
lex_less(struct hr_shell_lex *lx, struct hr_shell_token *t)
{
	if (lex_accept(lx, t, '<')) {
		if (lex_accept(lx, t, '<'))
			return HR_TOK_REDIR_HERESTR;
		t->strip_tabs = lex_accept(lx, t, '-');
		return HR_TOK_REDIR_HEREDOC;
	}
	if (lex_accept(lx, t, '&'))
		return HR_TOK_REDIR_DUP;
	(void)lex_accept(lx, t, '>');
	return HR_TOK_REDIR;
}

static enum hr_shell_tok
lex_greater(struct hr_shell_lex *lx, struct hr_shell_token *t)
{
	if (lex_accept(lx, t, '&'))
		return HR_TOK_REDIR_DUP;
	if (!lex_accept(lx, t, '>'))
		(void)lex_accept(lx, t, '|');
	return HR_TOK_REDIR;
}

static enum hr_shell_tok
lex_ampersand(struct hr_shell_lex *lx, struct hr_shell_token *t)
{
	if (lex_accept(lx, t, '&'))
		return HR_TOK_AND_AND;
	if (!lex_accept(lx, t, '>'))
		return HR_TOK_AMP;
	(void)lex_accept(lx, t, '>');
	return HR_TOK_REDIR_BOTH;
}

/* Reads an operator whose first character c has been read. */
static enum hr_shell_tok
lex_operator(struct hr_shell_lex *lx, int c, struct hr_shell_token *t)
{
	switch (c) {
	case '<': return lex_less(lx, t);
	case '>': return lex_greater(lx, t);
	case '&': return lex_ampersand(lx, t);
	case ';':
		return lex_accept(lx, t, ';') || lex_accept(lx, t, '&') ? HR_TOK_SEMI_SEMI
									: HR_TOK_SEMI;
	case '|':
		if (lex_accept(lx, t, '|'))
			return HR_TOK_OR_OR;
		return lex_accept(lx, t, '&') ? HR_TOK_PIPE_AMP : HR_TOK_PIPE;
	default:
		lex_end_operator(lx, t, hr_shell_lex_getc(lx, true));
		return c == '(' ? HR_TOK_LPAREN : HR_TOK_RPAREN;
	}
}

/* Skips blanks and a comment; the next character is returned and counts as read. */
static int
lex_skip_blanks(struct hr_shell_lex *lx)
{
	int c;

	do
		c = hr_shell_lex_getc(lx, true);
	while (c == ' ' || c == '\t');
	if (c == '#')
		while (c >= 0 && c != '\n')
			c = hr_shell_lex_getc(lx, false);
	return c;
}

static int
lex_read(struct hr_shell_lex *lx, struct hr_shell_token *t)
{
	int c = lex_skip_blanks(lx);

	if (c < 0) {
		t->type = HR_TOK_EOF;
		t->start = t->end = lx->len;
		return 0;
	}
	t->start = lx->pos - 1;
	t->end = lx->pos;
	if (c == '\n') {
		t->type = HR_TOK_NEWLINE;
		t->end = lx->pos > lx->len ? lx->len : lx->pos;
		return hr_shell_heredocs_read(lx);
	}
	if (c == '-' && lx->last == HR_TOK_REDIR_DUP) {
		t->type = HR_TOK_DASH;
		return 0;
	}
	/* <( and >( start words */
	if (hr_shell_is_break(c) && !((c == '<' || c == '>') && hr_shell_lex_peekc(lx) == '(')) {
		t->type = lex_operator(lx, c, t);
		return 0;
	}
	lx->pos = t->start;
	return lex_word(lx, t);
}

int
hr_shell_lex_next(struct hr_shell_lex *lx, struct hr_shell_token *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (lex_read(lx, ret) || lx->st->nomem) {
		hr_shell_token_done(ret);
		return -1;
	}
	lx->before_last = lx->last;
	lx->last = ret->type;
	lx->last_brace = ret->type == HR_TOK_WORD && (token_is(ret, "{") || token_is(ret, "}"));
	return 0;
}

void
hr_shell_token_done(struct hr_shell_token *tok)
{
	free(tok->own);
	tok->own = NULL;
}
