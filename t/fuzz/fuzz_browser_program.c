/* Programs of a client: whatever the text, it returns; what it refuses it gives a reason for, and
 * what it takes can be written as Python and is found again in that. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/program/calls.h"
#include "plugins/browser/program/program.h"
#include "base/text/utf8.h"
#include "../unit/found.h"
#include "fuzz.h"

/* Such an argument is found where no comma stands before it, which is no Python either. */
static bool
is_named_as_literal(const struct br_found *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		const char *name = f->args[i].name;

		if (name != NULL && (strcmp(name, "True") == 0 || strcmp(name, "False") == 0 ||
					strcmp(name, "None") == 0))
			return true;
	}
	return false;
}

static void
check_again(const struct br_found *f)
{
	HR_BUF(one, 1u << 26);
	HR_BUF(two, 1u << 26);
	HR_BUF(why, 1u << 26);
	struct br_calls c;

	found_python(&one, f);
	hr_assert(one.fail == HR_OK);
	/* "inf": a name, as Python writes it */
	if (strstr(one.p, "inf") == NULL && !is_named_as_literal(f)) {
		hr_assert(br_calls_find(&c, one.p, one.len, &why) == 0);
		hr_assert(c.n == 1);
		found_python(&two, &c.v[0]);
		hr_assert(two.len == one.len && memcmp(one.p, two.p, one.len) == 0);
		br_calls_done(&c);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct br_program *p;
	struct br_calls c;
	struct br_call call;
	HR_BUF(why, 1u << 26);
	size_t i;

	if (br_calls_find(&c, text, size, &why) == 0) {
		for (i = 0; i < c.n && hr_utf8_valid(text, size); i++)
			check_again(&c.v[i]);
		br_calls_done(&c);
	} else {
		hr_assert(why.len > 0);
	}
	hr_buf_reset(&why);
	p = br_program_parse(text, size, &why);
	hr_assert((p == NULL) == (why.len > 0));
	for (i = 0; p != NULL && i < br_program_calls(p); i++) {
		hr_buf_reset(&why);
		hr_assert((br_program_bind(p, i, &call, &why) < 0) == (why.len > 0));
	}
	br_program_free(p);
	return 0;
}
