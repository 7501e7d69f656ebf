/* Parses bash's grammar by recursive descent, as far as the contract's parser knows it. Only the
 * verdict and the extent of the command are kept. The time at which a token is examined matters:
 * reading a newline reads the bodies of the here-documents announced before, so a here-document is
 * announced only after the token that follows its delimiter was examined. In compound commands this
 * makes the first line of a body count as a command; the contract has it so. */
#include "config.h"

#include "shell/parse.h"

#include <string.h>

#include "shell/heredoc.h"

static int parse_compound_list(struct hr_shell_parser *p);

void
hr_shell_parser_init(
    struct hr_shell_parser *p, const char *s, size_t len, bool subst, struct hr_shell_state *st)
{
	memset(p, 0, sizeof(*p));
	hr_shell_lex_init(&p->lx, s, len, st);
	p->subst = subst;
}

static void
parser_drop(struct hr_shell_parser *p)
{
	if (p->have_tok)
		hr_shell_token_done(&p->tok);
	p->have_tok = false;
}

void
hr_shell_parser_done(struct hr_shell_parser *p)
{
	parser_drop(p);
	hr_shell_lex_done(&p->lx);
}

/* Returns the type of the next token, or -1. */
static int
peek(struct hr_shell_parser *p)
{
	if (p->failed)
		return -1;
	if (!p->have_tok) {
		if (hr_shell_lex_next(&p->lx, &p->tok)) {
			p->failed = true;
			return -1;
		}
		p->have_tok = true;
	}
	return (int)p->tok.type;
}

/* Consumes the token that was last examined. */
static void
take(struct hr_shell_parser *p)
{
	if (p->tok.type != HR_TOK_NEWLINE) {
		if (!p->started)
			p->start = p->tok.start;
		p->started = true;
		p->end = p->tok.end;
	}
	parser_drop(p);
}

static bool
accept(struct hr_shell_parser *p, enum hr_shell_tok type)
{
	if (peek(p) != (int)type)
		return false;
	take(p);
	return true;
}

static int
expect(struct hr_shell_parser *p, enum hr_shell_tok type)
{
	return accept(p, type) ? 0 : -1;
}

static int
newline_list(struct hr_shell_parser *p)
{
	while (accept(p, HR_TOK_NEWLINE))
		;
	return peek(p) < 0 ? -1 : 0;
}

/* Parses a word with its substitutions. */
static int
parse_word(struct hr_shell_parser *p)
{
	if (hr_shell_expand(p->tok.val, p->tok.vlen, p->lx.st))
		return -1;
	take(p);
	return 0;
}

/* Parses a redirection's target. */
static int
parse_target(struct hr_shell_parser *p)
{
	return peek(p) == HR_TOK_WORD ? parse_word(p) : -1;
}

static int
parse_heredoc(struct hr_shell_parser *p)
{
	bool strip_tabs = p->tok.strip_tabs;
	struct hr_shell_token delim;
	int r = -1;

	take(p);
	if (peek(p) != HR_TOK_WORD)
		return -1;
	delim = p->tok;
	p->tok.own = NULL;
	take(p);
	if (peek(p) >= 0)
		r = hr_shell_heredoc_add(&p->lx, &delim, strip_tabs);
	hr_shell_token_done(&delim);
	return r;
}

static bool
is_redirection(int type)
{
	return type == HR_TOK_NUMBER || (type >= HR_TOK_REDIR && type <= HR_TOK_REDIR_HEREDOC);
}

static int
parse_redirection(struct hr_shell_parser *p)
{
	int type = peek(p);

	if (type == HR_TOK_NUMBER) {
		take(p);
		type = peek(p);
		if (type == HR_TOK_REDIR_BOTH)
			return -1;
	}
	switch (type) {
	case HR_TOK_REDIR_HEREDOC: return parse_heredoc(p);
	case HR_TOK_REDIR_DUP:
		take(p);
		if (accept(p, HR_TOK_NUMBER) || accept(p, HR_TOK_DASH))
			return 0;
		return parse_target(p);
	case HR_TOK_REDIR:
	case HR_TOK_REDIR_BOTH:
	case HR_TOK_REDIR_HERESTR: take(p); return parse_target(p);
	default: return -1;
	}
}

static int
parse_redirections(struct hr_shell_parser *p)
{
	int type;

	while (is_redirection(type = peek(p)))
		if (parse_redirection(p))
			return -1;
	return type < 0 ? -1 : 0;
}

/* Returns true for `for`, `while`, `until`, `if`, ( and {. */
static bool
begins_shell_command(int type)
{
	switch (type) {
	case HR_TOK_FOR:
	case HR_TOK_WHILE:
	case HR_TOK_UNTIL:
	case HR_TOK_IF:
	case HR_TOK_LPAREN:
	case HR_TOK_LBRACE: return true;
	default: return false;
	}
}

static bool
begins_command(int type)
{
	return type == HR_TOK_WORD || type == HR_TOK_ASSIGN || type == HR_TOK_BANG ||
	       type == HR_TOK_FUNCTION || is_redirection(type) || begins_shell_command(type);
}

static int
parse_if(struct hr_shell_parser *p)
{
	do {
		take(p); /* consumes if or elif */
		if (parse_compound_list(p) || expect(p, HR_TOK_THEN) || parse_compound_list(p))
			return -1;
	} while (peek(p) == HR_TOK_ELIF);
	if (accept(p, HR_TOK_ELSE) && parse_compound_list(p))
		return -1;
	return expect(p, HR_TOK_FI);
}

static int
parse_while(struct hr_shell_parser *p)
{
	take(p);
	if (parse_compound_list(p) || expect(p, HR_TOK_DO) || parse_compound_list(p))
		return -1;
	return expect(p, HR_TOK_DONE);
}

/* Parses the words between `for name` and the body. */
static int
parse_for_words(struct hr_shell_parser *p)
{
	if (accept(p, HR_TOK_SEMI))
		return newline_list(p);
	if (newline_list(p))
		return -1;
	if (!accept(p, HR_TOK_IN))
		return 0;
	while (peek(p) == HR_TOK_WORD)
		if (parse_word(p))
			return -1;
	if (!accept(p, HR_TOK_SEMI) && !accept(p, HR_TOK_NEWLINE))
		return -1;
	return newline_list(p);
}

static int
parse_for(struct hr_shell_parser *p)
{
	take(p);
	if (peek(p) != HR_TOK_WORD || parse_word(p) || parse_for_words(p))
		return -1;
	if (accept(p, HR_TOK_DO))
		return parse_compound_list(p) ? -1 : expect(p, HR_TOK_DONE);
	if (accept(p, HR_TOK_LBRACE))
		return parse_compound_list(p) ? -1 : expect(p, HR_TOK_RBRACE);
	return -1;
}

/* Parses ( ) and { }. */
static int
parse_group(struct hr_shell_parser *p, enum hr_shell_tok close)
{
	take(p);
	return parse_compound_list(p) ? -1 : expect(p, close);
}

static int
shell_command(struct hr_shell_parser *p)
{
	int r;

	switch (peek(p)) {
	case HR_TOK_FOR: r = parse_for(p); break;
	case HR_TOK_WHILE:
	case HR_TOK_UNTIL: r = parse_while(p); break;
	case HR_TOK_IF: r = parse_if(p); break;
	case HR_TOK_LPAREN: r = parse_group(p, HR_TOK_RPAREN); break;
	case HR_TOK_LBRACE: r = parse_group(p, HR_TOK_RBRACE); break;
	default: return -1;
	}
	return r ? -1 : parse_redirections(p);
}

/* Parses a compound command with its redirections. */
static int
parse_shell_command(struct hr_shell_parser *p)
{
	int r;

	if (hr_shell_enter(p->lx.st, 1))
		return -1;
	r = shell_command(p);
	hr_shell_leave(p->lx.st, 1);
	return r;
}

/* Parses name () body after the name, with ( being next. */
static int
parse_function_parens(struct hr_shell_parser *p)
{
	take(p);
	if (expect(p, HR_TOK_RPAREN) || newline_list(p))
		return -1;
	return parse_shell_command(p);
}

static int
parse_function(struct hr_shell_parser *p)
{
	take(p);
	if (peek(p) != HR_TOK_WORD || parse_word(p))
		return -1;
	if (peek(p) == HR_TOK_LPAREN)
		return parse_function_parens(p);
	return newline_list(p) ? -1 : parse_shell_command(p);
}

static int
parse_simple(struct hr_shell_parser *p)
{
	bool name = peek(p) == HR_TOK_WORD;
	int type;

	for (;; name = false) {
		type = peek(p);
		if (type == HR_TOK_WORD || type == HR_TOK_ASSIGN) {
			if (parse_word(p))
				return -1;
			if (name && peek(p) == HR_TOK_LPAREN)
				return parse_function_parens(p);
		} else if (is_redirection(type)) {
			if (parse_redirection(p))
				return -1;
		} else {
			return type < 0 ? -1 : 0;
		}
	}
}

static int
parse_command(struct hr_shell_parser *p)
{
	int type = peek(p);

	if (begins_shell_command(type))
		return parse_shell_command(p);
	if (type == HR_TOK_FUNCTION)
		return parse_function(p);
	return begins_command(type) && type != HR_TOK_BANG ? parse_simple(p) : -1;
}

static int
parse_pipeline(struct hr_shell_parser *p)
{
	for (;;) {
		if (parse_command(p))
			return -1;
		if (!accept(p, HR_TOK_PIPE) && !accept(p, HR_TOK_PIPE_AMP))
			return 0;
		if (newline_list(p))
			return -1;
	}
}

static int
parse_pipeline_command(struct hr_shell_parser *p)
{
	bool bang = false;

	while (accept(p, HR_TOK_BANG))
		bang = true;
	/* `! ;` is a command; its semicolon does not separate */
	if (bang && accept(p, HR_TOK_SEMI))
		return 0;
	return parse_pipeline(p);
}

/* Parses commands joined by &&
 *
 * ; & and newlines, inside compound commands. */
static int
parse_compound_list(struct hr_shell_parser *p)
{
	if (newline_list(p))
		return -1;
	for (;;) {
		int type;

		if (parse_pipeline_command(p))
			return -1;
		type = peek(p);
		switch (type) {
		case HR_TOK_AND_AND:
		case HR_TOK_OR_OR:
			take(p);
			if (newline_list(p))
				return -1;
			break;
		case HR_TOK_SEMI:
		case HR_TOK_AMP:
		case HR_TOK_NEWLINE:
			take(p);
			if (newline_list(p))
				return -1;
			if (!begins_command(peek(p)))
				return 0;
			break;
		default: return type < 0 ? -1 : 0;
		}
	}
}

/* Parses a top-level line: commands joined by &&
 *
 * ; & up to a newline, or to the ) of a substitution: the original cannot end a list there whose
 * last operator is not a semicolon, as in $(a && b). */
static int
parse_simple_list(struct hr_shell_parser *p)
{
	bool paren_ok = p->subst;

	for (;;) {
		if (parse_pipeline_command(p))
			return -1;
		switch (peek(p)) {
		case HR_TOK_AND_AND:
		case HR_TOK_OR_OR:
			paren_ok = false;
			take(p);
			if (newline_list(p))
				return -1;
			break;
		case HR_TOK_SEMI:
		case HR_TOK_AMP:
			paren_ok = p->subst && p->tok.type == HR_TOK_SEMI;
			take(p);
			if (peek(p) == HR_TOK_NEWLINE)
				return 0;
			break;
		case HR_TOK_NEWLINE: return 0;
		case HR_TOK_RPAREN: return paren_ok ? 0 : -1;
		default: return -1;
		}
	}
}

int
hr_shell_parse_unit(struct hr_shell_parser *p, struct hr_shell_unit *ret)
{
	memset(ret, 0, sizeof(*ret));
	p->started = false;
	if (newline_list(p))
		return -1;
	if (peek(p) == HR_TOK_EOF) {
		ret->blank = true;
		return 0;
	}
	if (parse_simple_list(p))
		return -1;
	ret->start = p->start;
	ret->end = p->end;
	parser_drop(p);
	return hr_shell_heredocs_read(&p->lx);
}
