/* Reads the bodies of here-documents. */
#include "config.h"

#include "shell/heredoc.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

int
hr_shell_heredoc_add(struct hr_shell_lex *lx, const struct hr_shell_token *delim, bool strip_tabs)
{
	char *copy = malloc(delim->vlen + 1);

	if (!copy || hr_grow(&lx->docs, lx->n_docs, &lx->room_docs, sizeof(*lx->docs))) {
		free(copy);
		lx->st->nomem = true;
		return -1;
	}
	memcpy(copy, delim->val, delim->vlen);
	lx->docs[lx->n_docs++] = (struct hr_shell_heredoc){copy, delim->vlen, strip_tabs};
	return 0;
}

/* Reads one line, joined lines counting as one, and compares it with the delimiter. Returns 1 if
 * they are equal, 0 if not, -1 at the end of the text. */
static int
heredoc_line(struct hr_shell_lex *lx, const struct hr_shell_heredoc *d)
{
	size_t n = 0;
	bool same = true;
	int c = hr_shell_lex_getc(lx, true);

	if (c < 0)
		return -1;
	while (d->strip_tabs && c == '\t')
		c = hr_shell_lex_getc(lx, true);
	for (; c >= 0 && c != '\n'; c = hr_shell_lex_getc(lx, true)) {
		if (n >= d->delim_len || (unsigned char)d->delim[n] != c)
			same = false;
		n++;
	}
	return same && n == d->delim_len;
}

static int
heredoc_read(struct hr_shell_lex *lx, const struct hr_shell_heredoc *d)
{
	int r;

	do
		r = heredoc_line(lx, d);
	while (r == 0);
	return r < 0 ? -1 : 0;
}

int
hr_shell_heredocs_read(struct hr_shell_lex *lx)
{
	int r = 0;
	size_t i;

	for (i = 0; i < lx->n_docs; i++) {
		if (r == 0)
			r = heredoc_read(lx, &lx->docs[i]);
		free(lx->docs[i].delim);
	}
	lx->n_docs = 0;
	lx->n_joins = 0;
	return r;
}
