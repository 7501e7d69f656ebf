/* Internals of shell/: reads bash text word by word, for the splitter alone. The rules are not
 * those of bash's own grammar but of the parser of the original server, whose verdicts are the
 * contract.
 *
 * Positions are byte offsets into the text given to hr_shell_lex_init(). Functions return -1 when
 * the text cannot be parsed, or when memory is short: then `nomem` is set in the state. */
#ifndef HR_SHELL_LEX_H
#define HR_SHELL_LEX_H

#include <stdbool.h>
#include <stddef.h>

/* State shared by a parse and all parses nested in its words. */
struct hr_shell_state {
	int depth; /* number of open brackets, substitutions and compound commands */
	bool nomem;
};

/* Deeper nesting counts as unparsable: this bounds the stack and, since every level of $( ) reads
 * its text again, the time. */
#define HR_SHELL_MAX_DEPTH 1000
#define HR_SHELL_SUBST_DEPTH 20 /* depth that one level of $( ) counts */

/* Returns -1 if the nesting is too deep. */
int hr_shell_enter(struct hr_shell_state *st, int levels);
void hr_shell_leave(struct hr_shell_state *st, int levels);

enum hr_shell_tok {
	HR_TOK_START, /* no token has been read */
	HR_TOK_EOF,
	HR_TOK_NEWLINE,
	HR_TOK_WORD,
	HR_TOK_ASSIGN, /* name=... at a place where an assignment may stand */
	HR_TOK_NUMBER, /* digits directly before < or > or after <& or >& */
	HR_TOK_DASH,   /* - after <& or >& */

	HR_TOK_IF, /* reserved words from here on */
	HR_TOK_THEN,
	HR_TOK_ELSE,
	HR_TOK_ELIF,
	HR_TOK_FI,
	HR_TOK_FOR,
	HR_TOK_WHILE,
	HR_TOK_UNTIL,
	HR_TOK_DO,
	HR_TOK_DONE,
	HR_TOK_IN,
	HR_TOK_FUNCTION,
	HR_TOK_LBRACE,
	HR_TOK_RBRACE,
	HR_TOK_BANG,
	HR_TOK_UNSUPPORTED, /* case esac select time coproc [[ ]]: nothing parsable can follow */

	HR_TOK_AND_AND, /* the first operator; the rest of the list are operators, too */
	HR_TOK_OR_OR,
	HR_TOK_AMP,
	HR_TOK_SEMI,
	HR_TOK_SEMI_SEMI, /* ;; ;& ;;& */
	HR_TOK_PIPE,
	HR_TOK_PIPE_AMP,
	HR_TOK_LPAREN,
	HR_TOK_RPAREN,
	HR_TOK_REDIR,         /* < > >> >| <> */
	HR_TOK_REDIR_DUP,     /* <& >& */
	HR_TOK_REDIR_BOTH,    /* &> &>>: no number may stand before them */
	HR_TOK_REDIR_HERESTR, /* <<< */
	HR_TOK_REDIR_HEREDOC, /* << <<- */
};

struct hr_shell_token {
	enum hr_shell_tok type;
	size_t start, end; /* offsets in the text */
	const char *val;   /* text of a word without its backslash-newlines */
	size_t vlen;
	/* owns val if the word contained backslash-newlines; freed by hr_shell_token_done() */
	char *own;
	bool strip_tabs; /* REDIR_HEREDOC: the operator was <<- */
};

struct hr_shell_heredoc {
	char *delim;
	size_t delim_len;
	bool strip_tabs;
};

struct hr_shell_lex {
	const char *s;
	size_t len;
	size_t pos;
	bool ends_nl; /* false: a newline is read after the last character */
	struct hr_shell_state *st;

	enum hr_shell_tok last, before_last; /* types of the tokens already read */
	bool last_brace;                     /* the last token was a word { or } */

	size_t *joins; /* backslash-newlines dropped in the current token */
	size_t n_joins, room_joins;

	struct hr_shell_heredoc *docs; /* here-documents announced, body not read yet */
	size_t n_docs, room_docs;
};

void
hr_shell_lex_init(struct hr_shell_lex *lx, const char *s, size_t len, struct hr_shell_state *st);
void hr_shell_lex_done(struct hr_shell_lex *lx);

/* Reads the next token. Reading a newline reads the bodies of the here-documents announced so
 * far. */
int hr_shell_lex_next(struct hr_shell_lex *lx, struct hr_shell_token *ret);
void hr_shell_token_done(struct hr_shell_token *tok);

/* Returns the next character, or -1 at the end. `join` skips backslash-newlines. */
int hr_shell_lex_getc(struct hr_shell_lex *lx, bool join);
int hr_shell_lex_peekc(struct hr_shell_lex *lx);
static inline void
hr_shell_lex_ungetc(struct hr_shell_lex *lx)
{
	lx->pos--;
}

/* Returns true for a character that ends a word: blank, newline, ; & | ( ) < > */
bool hr_shell_is_break(int c);

#endif
