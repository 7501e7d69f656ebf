/* hr_rex_expect: finds the expressions that a client expects in a program's output, like pexpect:
 * the first match, and the first expression that matches there. */
#ifndef HR_WORKER_REX_EXPECT_H
#define HR_WORKER_REX_EXPECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* maximum steps of all expressions together, besides a few per byte */
#define HR_REX_EXPECT_STEPS 20000000
#define HR_REX_EXPECT_MAX 32

struct json_object;

struct hr_rex_expect {
	void *codes[HR_REX_EXPECT_MAX];
	void *limits, *data;
	int64_t steps;            /* number of steps left */
	struct json_object *list; /* borrowed */
	size_t n;
};

/* Compiles a list of strings; list may be NULL. Returns 0, or -1 with the message about an invalid
 * expression in `why`. */
int hr_rex_expect_init(struct hr_rex_expect *e, struct json_object *list, struct hr_buf *why);
void hr_rex_expect_done(struct hr_rex_expect *e);
/* Searches p from offset `from` until the deadline (0: none). Returns the index of the matching
 * expression with the position in *ret_at, -1 if none matches, or -2 if the steps are used up. */
int hr_rex_expect_match(struct hr_rex_expect *e, const char *p, size_t len, size_t from,
    int64_t until_ms, size_t *ret_at);

#endif
