/* A filter around hr_term, for t/lint/term-vs-tmux: term_render [COLS ROWS HISTORY]. Reads cases of
 * the form "LENGTH CRLF CUT\n" and LENGTH bytes; CRLF is 1 if LF acts as CR LF; the bytes are fed
 * CUT at a time (0: all at once). Writes "COL ROW HISTORY ALTERNATE LENGTH\n" and the text. Each
 * case begins with an empty terminal. */
#include "config.h"

#include "term/term.h"

#include <stdio.h>
#include <stdlib.h>

#include "term_history.h"

static void
render_case(struct hr_term *t, const char *bytes, size_t len, size_t cut)
{
	HR_BUF(out, (size_t)1 << 30);
	unsigned col, row;
	size_t i;

	if (cut == 0)
		cut = len;
	for (i = 0; i < len; i += cut)
		hr_term_feed(t, bytes + i, len - i < cut ? len - i : cut);
	hr_term_text(t, &out);
	hr_term_cursor(t, &col, &row);
	printf("%u %u %u %d %zu\n", col, row, history_rows(t), hr_term_alternate(t), out.len);
	fwrite(hr_buf_str(&out), 1, out.len, stdout);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct hr_term_config config = {0};
	struct hr_term *t[2]; /* by crlf */
	size_t len, cut;
	char *bytes;
	int crlf;

	if (argc == 4) {
		config.cols = (unsigned)strtoul(argv[1], NULL, 10);
		config.rows = (unsigned)strtoul(argv[2], NULL, 10);
		config.history = (unsigned)strtoul(argv[3], NULL, 10);
	}
	t[0] = hr_term_new(&config);
	config.lf_is_crlf = true;
	t[1] = hr_term_new(&config);
	if (t[0] == NULL || t[1] == NULL)
		return 1;
	while (scanf("%zu %d %zu", &len, &crlf, &cut) == 3 && getchar() == '\n') {
		bytes = malloc(len + 1);
		if (bytes == NULL || fread(bytes, 1, len, stdin) != len)
			return 1;
		hr_term_reset(t[crlf != 0]);
		render_case(t[crlf != 0], bytes, len, cut);
		free(bytes);
	}
	hr_term_free(t[0]);
	hr_term_free(t[1]);
	return 0;
}
