/* hr_shell_split: decides whether a text contains one shell command or several. The rules are those
 * of the original server's parser: its complete commands, and its verdict "cannot parse". */
#ifndef HR_SHELL_SPLIT_H
#define HR_SHELL_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum hr_shell_verdict {
	HR_SHELL_PARSED,
	HR_SHELL_UNPARSABLE, /* there is one piece: the whole text, unchanged */
	HR_SHELL_BLANK,      /* there is one empty piece */
};

struct hr_shell_piece {
	const char *text; /* NUL-terminated; may contain NULs */
	size_t len;
	bool comment; /* contains no command, only comment lines and backslash-newlines */
};

struct hr_shell_pieces {
	enum hr_shell_verdict verdict;
	size_t n; /* at least 1 after success */
	struct hr_shell_piece *v;
	char *store; /* memory of the pieces' bytes */
};

/* Accepts a zeroed struct, and a second call. */
void hr_shell_pieces_done(struct hr_shell_pieces *p);

/* Splits a text. One that crashes the original's parser gets the pieces that bash would see, or
 * one; and a comment directly after ; & or ) is a comment, where the original makes it a command.
 * Time is proportional to `len` times the depth of nesting, which is limited. Returns 0, or -1 with
 * HR_E_NOMEM. */
int hr_shell_split(const char *text, size_t len, struct hr_shell_pieces *ret, struct hr_err *err);

/* Returns true if the pieces must be refused: two or more commands. Comments do not count. */
bool hr_shell_pieces_refused(const struct hr_shell_pieces *p);

/* Returns the content of the error observation for the pieces, all listed. The caller frees; NULL:
 * out of memory. *ret_len may be NULL. */
char *hr_shell_refusal_text(const struct hr_shell_pieces *p, size_t *ret_len, struct hr_err *err);

/* Trims the blanks around a command, except one that a backslash makes a part of it. */
void hr_shell_trim(const char **p, size_t *len);

/* Appends a command as handrail's own interfaces send it to bash: as hr_shell_add_unix(), trimmed,
 * and several commands as one, in braces. `braces`: also around a single one. Returns 0, or -1
 * without memory. */
struct hr_buf;
int hr_shell_add_one(struct hr_buf *b, const char *p, size_t len, bool braces);

/* Appends a command with LF in place of each CR LF, as a person's terminal would send it to bash: a
 * CR at the end of a line would become a part of the last word, and bash would not find `do` or the
 * end of a here-document. */
void hr_shell_add_unix(struct hr_buf *b, const char *p, size_t len);

#endif
