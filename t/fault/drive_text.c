/* shell and term: pure functions of text, so only memory can fail. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "base/text/floatrepr.h"
#include "shell/quote.h"
#include "shell/split.h"
#include "term/term.h"

static const char script[] = "for i in 1 2; do\n  cat <<A <<B \\\\; echo \"$(ls `pwd` \\; )\"\n"
			     "1\nA\n2\nB\ndone\n# note\nif x; then y; fi && z \\\\& w";

static int
split(struct hr_err *err)
{
	struct hr_shell_pieces p = {0};
	HR_FREE char *refusal = NULL;
	size_t i;
	int r = hr_shell_split(script, sizeof(script) - 1, &p, err);

	if (r != 0)
		return r;
	for (i = 0; i < p.n; i++)
		fault_tell("[%s]", p.v[i].text);
	refusal = hr_shell_refusal_text(&p, NULL, err);
	if (refusal == NULL)
		r = -1;
	else
		fault_tell("%s", refusal);
	hr_shell_pieces_done(&p);
	return r;
}

static int
words(struct hr_err *err)
{
	HR_BUF(b, 1000);
	int r;

	hr_float_repr(&b, -12.5e3);
	hr_shell_quote(&b, "it's", 4);
	r = hr_buf_check(&b, err);
	fault_tell("%s", hr_buf_str(&b));
	return r;
}

/* Over its memory a terminal drops the oldest and goes on. */
static int
terminal(struct hr_err *err)
{
	const struct hr_term_config config = {
	    .cols = 40, .rows = 5, .history = 30, .lf_is_crlf = true};
	static const char line[] = "a line that is longer than forty columns are, so it wraps\n",
			  escapes[] = "\033[2;3H\xe4\xbd\xa0\xe5\xa5\xbd\033[?1049hxyz"
				      "\033[?1049l\033[1;31mred\033[K";
	struct hr_term *t = hr_term_new(&config);
	HR_BUF(b, 1 << 20);
	unsigned i;
	int r;

	if (t == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < 50; i++)
		hr_term_feed(t, line, sizeof(line) - 1);
	hr_term_feed(t, escapes, sizeof(escapes) - 1);
	hr_term_text(t, &b);
	r = hr_buf_check(&b, err);
	fault_tell("%s", hr_buf_str(&b));
	hr_term_reset(t);
	hr_term_free(t);
	return r;
}

const struct fault_scenario fault_scenarios[] = {
    {"split", split, 0}, {"words", words, 0}, {"terminal", terminal, FAULT_LOSSY}, {NULL, NULL, 0}};
