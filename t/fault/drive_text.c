/* shell and term: pure functions of text, so only memory can fail. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "base/floatrepr.h"
#include "shell/escape.h"
#include "shell/ps1.h"
#include "shell/pyfloat.h"
#include "shell/quote.h"
#include "shell/split.h"
#include "shell/text.h"
#include "term/term.h"

static const char script[] = "for i in 1 2; do\n  cat <<A <<B \\\\; echo \"$(ls `pwd` \\; )\"\n"
			     "1\nA\n2\nB\ndone\n# note\nif x; then y; fi && z \\\\& w";

static int
split(struct hr_err *err)
{
	struct hr_shell_pieces p = {0};
	char *refusal;
	size_t i;
	int r = hr_shell_split_for_run(script, sizeof(script) - 1, &p, err);

	if (r != 0)
		return r;
	for (i = 0; i < p.n; i++)
		fault_tell("[%s]", p.v[i].text);
	refusal = hr_shell_refusal_text(&p, NULL, err);
	if (refusal == NULL)
		r = -1;
	else
		fault_tell("%s", refusal);
	free(refusal);
	hr_shell_pieces_done(&p);
	return r;
}

static int
escape(struct hr_err *err)
{
	char *text = hr_shell_escape(script, sizeof(script) - 1, NULL, err);

	if (text == NULL)
		return -1;
	fault_tell("%s", text);
	free(text);
	return 0;
}

static int
prompt(struct hr_err *err)
{
	static const char text[] = "out\n###PS1JSON###\n{\"pid\": \"12\", \"exit_code\": \"3\", "
				   "\"username\": \"a\\u00e9\", \"working_dir\": \"/w\"}\n"
				   "###PS1END###\n";
	struct hr_ps1_match m;
	struct hr_ps1_meta meta;

	/* finding a block has no way to say that memory is short: it is then none */
	if (!hr_ps1_find(text, sizeof(text) - 1, 0, &m))
		return hr_err_set(err, HR_E_NOMEM, "no block");
	if (hr_ps1_interpret(text + m.body, m.body_len, &meta, err) != 0)
		return -1;
	fault_tell("%lld %s", (long long)meta.exit_code, meta.username.p);
	hr_ps1_meta_done(&meta);
	return 0;
}

static int
words(struct hr_err *err)
{
	struct hr_buf b;
	char *cut;
	double d = 0;
	size_t len;
	int r = hr_pyfloat_parse(" -1_2.5e3 ", 10, &d, err);

	if (r != 0)
		return r;
	hr_buf_init(&b, 1000);
	hr_float_repr(&b, d);
	hr_shell_quote(&b, "it's", 4);
	r = hr_buf_check(&b, err);
	fault_tell("%s", hr_buf_str(&b));
	hr_buf_done(&b);
	cut = hr_shell_truncate("short", 5, &len, r == 0 ? err : NULL);
	if (cut == NULL)
		return -1;
	fault_tell("%zu", len);
	free(cut);
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
	struct hr_buf b;
	unsigned i;
	int r;

	if (t == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < 50; i++)
		hr_term_feed(t, line, sizeof(line) - 1);
	hr_term_feed(t, escapes, sizeof(escapes) - 1);
	hr_buf_init(&b, 1 << 20);
	hr_term_text(t, &b);
	r = hr_buf_check(&b, err);
	fault_tell("%s", hr_buf_str(&b));
	hr_term_reset(t);
	hr_buf_done(&b);
	hr_term_free(t);
	return r;
}

const struct fault_scenario fault_scenarios[] = {{"split", split, 0}, {"escape", escape, 0},
    {"prompt block", prompt, 0}, {"words", words, 0}, {"terminal", terminal, FAULT_LOSSY},
    {NULL, NULL, 0}};
