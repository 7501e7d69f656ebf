/* A text as a sequence of complete commands. */
#include "config.h"

#include "shell/parse.h"

/* Does the original go on reading directly behind the command, not at the next line? A # behind ; &
 * or ) is then passed over, so that a comment there becomes a command; and a here-document becomes
 * commands if another one, in a substitution, was announced after it. */
static bool
rereads(const struct hr_shell_parser *p, const struct hr_shell_unit *u, const char *text,
    size_t len, struct hr_shell_state *st)
{
	if (!st->exact || u->end >= len || st->reread > HR_SHELL_REREAD_MAX)
		return false;
	if (u->docs_end > u->end ? !st->last_doc_nested : text[u->end] != '#')
		return false;
	st->reread += p->lx.pos - u->end;
	return true;
}

int
hr_shell_units(
    const char *text, size_t len, const struct hr_shell_visitor *visitor, struct hr_shell_state *st)
{
	struct hr_shell_parser p;
	struct hr_shell_unit u;
	bool any = false;
	int r;

	hr_shell_parser_init(&p, text, len, false, visitor, st);
	while ((r = hr_shell_parse_unit(&p, &u)) == 0 && !u.blank) {
		any = true;
		if (rereads(&p, &u, text, len, st))
			hr_shell_parser_seek(&p, u.end + 1);
	}
	hr_shell_parser_done(&p);
	return r == 0 && any ? 0 : -1;
}
