/* How fast hr_term takes output: MB per second of CPU time, fed 64 KiB at a time. With an argument:
 * seconds per kind (default 1). The last column asks for hr_term_generation() after each piece. */
#include "config.h"

#include "term/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 64 << 10, SAMPLE = 4 << 20 };

static double
bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static char *
bench_repeat(const char *unit, size_t *ret_len)
{
	size_t n = strlen(unit), len = SAMPLE / n * n, i;
	char *p = malloc(len);

	for (i = 0; p != NULL && i < len; i += n)
		memcpy(p + i, unit, n);
	*ret_len = len;
	return p;
}

static double
bench_run(const char *p, size_t len, double seconds, bool ask, size_t *ret_memory)
{
	const struct hr_term_config config = {.lf_is_crlf = true};
	struct hr_term *t = hr_term_new(&config);
	double start, now;
	size_t i, n, total = 0;

	if (t == NULL)
		exit(1);
	start = bench_now();
	do {
		for (i = 0; i < len; i += n) {
			n = len - i < PIECE ? len - i : PIECE;
			hr_term_feed(t, p + i, n);
			if (ask)
				(void)hr_term_generation(t);
		}
		total += len;
		now = bench_now();
	} while (now - start < seconds);
	*ret_memory = hr_term_memory(t);
	hr_term_free(t);
	return (double)total / (now - start) / 1e6;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name, *unit;
	} kinds[] = {
	    {"79 column lines", "the quick brown fox jumps over the lazy dog and then sits down to "
				"have some tea\n"},
	    {"the same, CR LF", "the quick brown fox jumps over the lazy dog and then sits down to "
				"have some te\r\n"},
	    {"yes", "y\n"},
	    {"seq", "1234567\n"},
	    {"coloured words", "\033[0m\033[01;34mbin\033[0m  \033[01;32mconfigure\033[0m  README  "
			       "\033[38;5;208msrc\033[0m/\033[1;36mlink\033[m -> there\n"},
	    {"compiler messages",
		"\033[01m\033[Kmain.c:12:5:\033[m\033[K \033[01;35m\033[Kwarning: "
		"\033[m\033[Kunused variable '\033[01m\033[Kcount\033[m\033[K'\n"},
	    {"one endless line", "0123456789abcdef"},
	    {"accents",
		"na\303\257ve caf\303\251 \303\274ber gar\303\247on, some plain text after\n"},
	    {"ideographs", "\344\275\240\345\245\275\344\270\226\347\225\214\n"},
	    {"progress bar", "\r 42%|\342\226\210\342\226\210\342\226\210\342\226\210      | "
			     "42/100 [00:01<00:02]"},
	    {"spinner", "\033[1G\033[0K\342\240\213 reify: timing\r\033[2K"},
	    {"full screen", "\033[H\033[2Kone\033[5;10Htwo\033[7m three \033[m\033[24;1H:\033[K"},
	    {"scroll region", "\0337\033[1;999r\0338\033[999;1Ha line of text\n"},
	};
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1, plain, asked;
	size_t i, len, memory;
	char *p;

	printf("%-20s %8s %10s %10s\n", "", "MB/s", "memory", "asked");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		p = bench_repeat(kinds[i].unit, &len);
		if (p == NULL)
			return 1;
		plain = bench_run(p, len, seconds, false, &memory);
		asked = bench_run(p, len, seconds, true, &memory);
		printf("%-20s %8.0f %7zu kB %10.0f\n", kinds[i].name, plain, memory / 1000, asked);
		free(p);
	}
	return 0;
}
