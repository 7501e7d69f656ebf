/* Reports of a shell among whatever else may be in the FIFO. The input is cut into reads by its own
 * bytes: what comes out must not depend on where, must lie within the reader's bounds, and a true
 * report after any garbage is found, if not at once then at the next one. */
#include "config.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shell/exports.h"
#include "session/prompt/report.h"
#include "fuzz.h"

static void
check(const struct hr_report *r)
{
	must(strlen(r->nonce) <= HR_REPORT_MAX);
	must(r->pid >= 1 && r->exit_code >= 0 && r->exit_code <= 255);
	must(r->job == -1 || r->job >= 1);
	must(r->pwd[0] == '/' || r->pwd[0] == '\0');
	must(strlen(r->path) + strlen(r->hook) + strlen(r->flags) + strlen(r->options) <=
	     HR_REPORT_MAX);
}

/* A sum of all that came out. */
static uint64_t
take_all(struct hr_report_reader *reader, uint64_t sum, unsigned *count)
{
	struct hr_report r;
	const char *p;

	for (;;) {
		hr_report_next(reader, &r);
		if (r.nonce == NULL)
			return sum;
		check(&r);
		(*count)++;
		sum = sum * 31 + (uint64_t)r.pid * 7 + (uint64_t)r.exit_code;
		for (p = r.path; *p != '\0'; p++)
			sum = sum * 33 + (unsigned char)*p;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char truth[] = "\0" HR_REPORT_PROMPT "\0"
				    "00112233445566778899aabbccddeeff\0"
				    "42\0"
				    "7\0"
				    "\0"
				    "1000\0"
				    "/w\0"
				    "/bin\0"
				    "xterm\0"
				    "himBs\0"
				    "emacs:monitor";
	struct hr_report_reader whole, cut;
	HR_BUF(kept, 1u << 20);
	uint64_t a, b = 0;
	unsigned n_whole = 0, n_cut = 0, before, i;
	size_t at, step;

	hr_report_reader_init(&whole);
	hr_report_reader_init(&cut);
	hr_report_feed(&whole, data, size);
	a = take_all(&whole, 0, &n_whole);
	for (at = 0; at < size; at += step) {
		step = 1 + data[at] % 5;
		step = step < size - at ? step : size - at;
		hr_report_feed(&cut, data + at, step);
		b = take_all(&cut, b, &n_cut);
	}
	must(a == b && n_whole == n_cut);
	/* garbage may look like the beginning of a report, but not for ever */
	before = n_cut;
	for (i = 0; i < 3; i++) {
		hr_report_feed(&cut, truth, sizeof(truth));
		b = take_all(&cut, b, &n_cut);
	}
	must(n_cut >= before + 2);
	hr_report_reader_done(&whole);
	hr_report_reader_done(&cut);
	/* the other text that the shell may make up */
	hr_exports_keep((const char *)data, size, &kept);
	must(kept.fail != HR_OK || kept.len <= size);
	return 0;
}
