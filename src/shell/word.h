/* Internals of shell/: finds the ends of words, quotes, expansions and substitutions. */
#ifndef HR_SHELL_WORD_H
#define HR_SHELL_WORD_H

#include "shell/lex.h"

struct hr_shell_word {
	size_t end;  /* offset of the end */
	int next;    /* the character that ends the word, not consumed; -1: end of the text */
	bool quoted; /* contains a quote or backslash */
	bool dollar; /* contains an expansion */
};

/* Reads a word from its first character. */
int hr_shell_word_skip(struct hr_shell_lex *lx, struct hr_shell_word *ret);

/* Flags of hr_shell_pair_skip(). */
#define HR_PAIR_DQUOTE 1u /* inside double quotes */
#define HR_PAIR_BRACE 2u  /* ${...}: a further { does not need its own } */
#define HR_PAIR_ANSI 4u   /* $'...': a backslash quotes */

/* Reads to the `close` that matches an `open` already read. open == close: a quote. */
int hr_shell_pair_skip(struct hr_shell_lex *lx, int open, int close, unsigned flags);

/* Reads to the end of $( ), <( ) or >( ) after the opening. */
int hr_shell_comsub_skip(struct hr_shell_lex *lx);

#endif
