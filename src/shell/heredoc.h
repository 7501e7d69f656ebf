/* Inside shell/: here-documents, announced by << and read at the next newline. */
#ifndef HR_SHELL_HEREDOC_H
#define HR_SHELL_HEREDOC_H

#include "shell/lex.h"

/* Announces a here-document that ends at a line equal to `delim`, quotes and all: the contract's
 * parser does not take quotes off, so the body of <<'EOF' normally has no end. -1: out of memory */
int
hr_shell_heredoc_add(struct hr_shell_lex *lx, const struct hr_shell_token *delim, bool strip_tabs);

/* Reads the bodies of all announced here-documents from the current position, which must be the
 * start of a line. -1: one has no end. */
int hr_shell_heredocs_read(struct hr_shell_lex *lx);

#endif
