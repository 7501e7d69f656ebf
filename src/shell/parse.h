/* Inside shell/: recognises one complete command at a time; builds no tree. */
#ifndef HR_SHELL_PARSE_H
#define HR_SHELL_PARSE_H

#include "shell/lex.h"

/* Told what a text consists of, in the order of the text. Any member may be NULL. */
struct hr_shell_visitor {
	void (*begin)(void *arg, size_t start); /* a complete command */
	void (*end)(void *arg, size_t start, size_t end);
	/* Of simple commands outside compound commands and function bodies: words that are no
	 * assignments, and here-document operators with their word. */
	void (*word)(void *arg, size_t start, size_t end);
	size_t (*heredoc)(void *arg, size_t start, size_t end); /* returns a tag */
	void (*body)(void *arg, size_t tag, size_t start, size_t end);
	void *arg;
};

struct hr_shell_unit {
	size_t start, end; /* first to last character, without the newline that ends it */
	bool blank;        /* nothing but blank lines and comments was left */
	size_t docs_end;   /* end of the here-document read last, 0 if none */
};

struct hr_shell_parser {
	struct hr_shell_lex lx;
	struct hr_shell_token tok;
	bool have_tok, failed;
	bool subst; /* the text of a $( ): a ) may end the command */
	size_t start, end;
	bool started;
	int nested;                             /* open compound commands and function bodies */
	const struct hr_shell_visitor *visitor; /* never NULL */
};

/* visitor may be NULL. */
void hr_shell_parser_init(struct hr_shell_parser *p, const char *s, size_t len, bool subst,
    const struct hr_shell_visitor *visitor, struct hr_shell_state *st);
void hr_shell_parser_done(struct hr_shell_parser *p);

/* The next complete command. -1: unparsable, or st->nomem. */
int hr_shell_parse_unit(struct hr_shell_parser *p, struct hr_shell_unit *ret);

/* Starts reading again at `pos`, as at the beginning of a text. */
void hr_shell_parser_seek(struct hr_shell_parser *p, size_t pos);

/* All complete commands of a text. -1: unparsable, no command at all, or st->nomem. */
int hr_shell_units(const char *text, size_t len, const struct hr_shell_visitor *visitor,
    struct hr_shell_state *st);

/* Parses the substitutions in a word. -1 as above. */
int hr_shell_expand(const char *val, size_t len, struct hr_shell_state *st);

#endif
