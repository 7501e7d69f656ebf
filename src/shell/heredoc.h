/* Internals of shell/: here-documents, announced by << and read at the next newline. */
#ifndef HR_SHELL_HEREDOC_H
#define HR_SHELL_HEREDOC_H

#include "shell/lex.h"

/* Announces a here-document that ends at a line equal to `delim`, quotes included: the contract's
 * parser does not remove quotes, so the body of <<'EOF' normally has no end. Returns -1 without
 * memory. */
int
hr_shell_heredoc_add(struct hr_shell_lex *lx, const struct hr_shell_token *delim, bool strip_tabs);

/* Reads the bodies of all announced here-documents from the current position, which must be the
 * start of a line. Returns -1 if one has no end. */
int hr_shell_heredocs_read(struct hr_shell_lex *lx);

#endif
