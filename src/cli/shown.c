/* A terminal's bytes for another terminal, in pieces. */
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
	hr_buf_init(&w->held, OUT_MAX);
	hr_buf_init(&w->text, OUT_MAX);
}

void
cli_shown_done(struct cli_shown *w)
{
	hr_buf_done(&w->held);
	hr_buf_done(&w->text);
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

static void
show(struct cli_shown *w, const char *p, size_t len)
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
cli_shown_expect(struct cli_shown *w, const struct hr_buf *text, size_t length)
{
	hr_buf_reset(&w->text);
	hr_buf_add(&w->text, hr_buf_str(text), text->len);
	w->length = length;
	w->echo = true;
}

void
cli_shown_lost(struct cli_shown *w)
{
	w->echo = false;
}

/* The command's text, as the terminal echoed it: how many bytes of it these are. What looks
 * otherwise (a shell where it has to be typed) is shown. */
static size_t
skip_echo(struct cli_shown *w, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len && w->echo; i++) {
		hr_buf_addc(&w->held, p[i]);
		if (p[i] == '\r')
			continue;
		if (w->echoed == w->length ||
		    (w->echoed < w->text.len && p[i] != w->text.p[w->echoed])) {
			w->echo = false;
			if (w->echoed < w->length || p[i] != '\n')
				show(w, hr_buf_str(&w->held), w->held.len);
		}
		w->echoed++;
	}
	return i;
}

void
cli_shown_put(struct cli_shown *w, const char *p, size_t len)
{
	size_t n = skip_echo(w, p, len);

	show(w, p + n, len - n);
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
