/* Prints a terminal's bytes on another terminal, in pieces. */
#include "config.h"

#include "cli/shown.h"

#include <stdlib.h>
#include <unistd.h>

#define OUT_MAX (8u << 20)

void
cli_shown_init(struct cli_shown *w, bool silent)
{
	const char *no_color = getenv("NO_COLOR");

	*w = (struct cli_shown){.silent = silent};
	w->tame.terminal = isatty(1) == 1;
	w->tame.colours = w->tame.terminal && (no_color == NULL || *no_color == '\0');
}

static void
write_out(struct cli_shown *w, struct hr_buf *b)
{
	const bool blank =
	    !w->tame.terminal && !w->begun && !w->blank && b->len == 1 && b->p[0] == '\n';

	if (blank || b->len == 0) {
		w->blank |= blank;
		hr_buf_reset(b);
		return;
	}
	if (w->blank && w->out == CLI_OK && !w->silent)
		w->out = cli_out("\n", 1);
	w->blank = false;
	w->begun = true;
	if (w->out == CLI_OK && !w->silent)
		w->out = cli_out(hr_buf_str(b), b->len);
	hr_buf_reset(b);
}

void
cli_shown_put(struct cli_shown *w, const char *p, size_t len)
{
	HR_BUF(b, OUT_MAX);
	size_t n;

	for (; len > 0; p += n, len -= n) {
		n = len < OUT_MAX / 8 ? len : OUT_MAX / 8;
		hr_tame_feed(&w->tame, &b, p, n);
		write_out(w, &b);
	}
}

void
cli_shown_end(struct cli_shown *w)
{
	HR_BUF(b, OUT_MAX);

	hr_tame_end(&w->tame, &b);
	write_out(w, &b);
	if (w->blank && !w->interrupted && w->out == CLI_OK && !w->silent)
		w->out = cli_out("\n", 1);
	w->blank = false;
}
