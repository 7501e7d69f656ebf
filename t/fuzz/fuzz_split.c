/* The splitter: whatever the text, it returns, and what it returns is made of the text. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shell/split.h"
#include "fuzz.h"

static void
check(const char *text, size_t len, const struct hr_shell_pieces *p)
{
	size_t total = 0, i;

	hr_assert(p->n >= 1);
	for (i = 0; i < p->n; i++) {
		total += p->v[i].len;
		hr_assert(p->v[i].text[p->v[i].len] == '\0');
		hr_assert(!p->v[i].comment || i == 0);
	}
	hr_assert(total <= len);
	if (p->verdict == HR_SHELL_UNPARSABLE)
		hr_assert(p->n == 1 && total == len && memcmp(p->v[0].text, text, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct hr_shell_pieces p;
	char *s;

	if (hr_shell_split(text, size, &p, NULL) == 0) {
		check(text, size, &p);
		s = hr_shell_refusal_text(&p, NULL, NULL);
		hr_assert(s != NULL);
		free(s);
		hr_shell_pieces_done(&p);
	}
	return 0;
}
