/* Prompt blocks, and Python's numbers, which their fields hold. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "base/floatrepr.h"
#include "shell/ps1.h"
#include "shell/pyfloat.h"
#include "shell/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
interpret(const char *body, size_t len)
{
	struct hr_ps1_meta m;

	if (hr_ps1_interpret(body, len, &m, NULL) == 0) {
		hr_assert(m.prefix.p != NULL && m.suffix.p != NULL);
		hr_ps1_meta_done(&m);
	}
}

/* What is written reads back as the same number. */
static void
number(const char *s, size_t len)
{
	struct hr_buf b;
	double d, e;

	if (hr_pyfloat_parse(s, len, &d, NULL))
		return;
	hr_buf_init(&b, 1000);
	hr_float_repr(&b, d);
	hr_assert(hr_pyfloat_parse(hr_buf_str(&b), b.len, &e, NULL) == 0);
	hr_assert(d == e || (d != d && e != e));
	hr_buf_done(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *p;
	struct hr_ps1_match m;
	size_t from = 0, n;

	while (hr_ps1_find(text, size, from, &m)) {
		hr_assert(m.start >= from && m.end <= size && m.end > m.start);
		hr_assert(m.body > m.start && m.body + m.body_len < m.end);
		interpret(text + m.body, m.body_len);
		from = m.end;
	}
	interpret(text, size);
	number(text, size);
	p = hr_shell_strip(text, size, &n);
	hr_assert(p >= text && p + n <= text + size);
	hr_assert(hr_shell_count(p, n) <= n);
	return 0;
}
