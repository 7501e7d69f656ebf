/* Draws a line that is overwritten, at most ten times a second. */
#include "config.h"

#include "cli/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/text/quote.h"

#define BAR 30
#define EVERY_MS 100
#define LINE_MAX_LEN 4096

static bool
due(struct cli *c)
{
	int64_t now = hr_now_ms();

	if (c->quiet || !isatty(2) || (c->drawn_ms != 0 && now - c->drawn_ms < EVERY_MS))
		return false;
	c->drawn_ms = now;
	return true;
}

/* Returns megabytes per second since the start; another name, or a lower number, starts a new
 * measurement. */
static double
rate(struct cli *c, const char *what, unsigned long long done)
{
	int64_t now = hr_now_ms();

	if (c->began_ms == 0 || done < c->done || strcmp(c->what, what) != 0) {
		(void)snprintf(c->what, sizeof(c->what), "%s", what);
		c->began_ms = now;
		c->from = done;
	}
	c->done = done;
	return now - c->began_ms < EVERY_MS
		   ? 0
		   : (double)(done - c->from) / 1e3 / (double)(now - c->began_ms);
}

static void
draw(const struct hr_buf *b)
{
	struct winsize size = {0};
	size_t room = ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col - 1u : 79;
	HR_BUF(out, LINE_MAX_LEN);

	hr_buf_adds(&out, "\r\033[K");
	hr_buf_add(&out, hr_buf_str(b), b->len < room ? b->len : room);
	(void)hr_fd_write_full(2, hr_buf_str(&out), out.len, NULL); /* a failure does not matter */
}

void
cli_progress(void *arg, const char *what, unsigned long long done, unsigned long long total)
{
	struct cli *c = arg;
	unsigned filled = total > 0 ? (unsigned)(done < total ? done * BAR / total : BAR) : 0;
	HR_BUF(b, LINE_MAX_LEN);
	double mb_s;

	if (done == 0 || c->quiet || isatty(2) != 1)
		return;
	mb_s = rate(c, what, done);
	if (!due(c))
		return;
	hr_buf_addf(&b, "%s ", what);
	if (total > 0) {
		unsigned i;

		hr_buf_addc(&b, '[');
		for (i = 0; i < BAR; i++)
			hr_buf_addc(&b, i < filled ? '#' : '.');
		hr_buf_addf(&b, "] %llu%% of %.1f MB", done >= total ? 100 : done * 100 / total,
		    (double)total / 1e6);
	} else {
		hr_buf_addf(&b, "%.1f MB", (double)done / 1e6);
	}
	if (mb_s > 0)
		hr_buf_addf(&b, ", %.1f MB/s", mb_s);
	draw(&b);
}

bool
cli_progress_line(struct cli *c, const char *text, size_t len)
{
	HR_BUF(b, LINE_MAX_LEN);

	if (!isatty(2))
		return false;
	if (due(c)) {
		hr_quote_text(&b, text, len < LINE_MAX_LEN / 8 ? len : LINE_MAX_LEN / 8);
		draw(&b);
	}
	return true;
}

void
cli_progress_end(struct cli *c)
{
	static const char clear[] = "\r\033[K";

	if (c->drawn_ms != 0)
		(void)hr_fd_write_full(2, clear, sizeof(clear) - 1, NULL);
	c->drawn_ms = c->began_ms = 0;
}

void
cli_note(void *arg, const char *text)
{
	struct cli *c = arg;

	cli_progress_end(c);
	if (!c->quiet)
		cli_say("%s", text);
}
