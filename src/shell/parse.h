/* Internals of shell/: recognises one complete command at a time; builds no tree. */
#ifndef HR_SHELL_PARSE_H
#define HR_SHELL_PARSE_H

#include "shell/lex.h"

struct hr_shell_unit {
	size_t start, end; /* first to last character, without the newline that ends it */
	bool blank;        /* only blank lines and comments remained */
};

struct hr_shell_parser {
	struct hr_shell_lex lx;
	struct hr_shell_token tok;
	bool have_tok, failed;
	bool subst; /* the text of a $( ), where a ) may end the command */
	size_t start, end;
	bool started;
};

void hr_shell_parser_init(
    struct hr_shell_parser *p, const char *s, size_t len, bool subst, struct hr_shell_state *st);
void hr_shell_parser_done(struct hr_shell_parser *p);

/* Parses the next complete command. Returns -1 if it cannot be parsed, or with st->nomem. */
int hr_shell_parse_unit(struct hr_shell_parser *p, struct hr_shell_unit *ret);

/* Parses the substitutions in a word. Returns -1 as above. */
int hr_shell_expand(const char *val, size_t len, struct hr_shell_state *st);

#endif
