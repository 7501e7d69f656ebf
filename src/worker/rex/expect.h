/* hr_rex_expect: expressions that a client waits for in what a program prints, as pexpect does:
 * the first place at which any of them fits, and the first of those that do. */
#ifndef HR_WORKER_REX_EXPECT_H
#define HR_WORKER_REX_EXPECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* of all expressions together, beyond a few for each byte that is looked at */
#define HR_REX_EXPECT_STEPS 20000000
#define HR_REX_EXPECT_MAX 32

struct json_object;

struct hr_rex_expect {
	void *codes[HR_REX_EXPECT_MAX];
	void *limits, *data;
	int64_t steps;            /* that are left */
	struct json_object *list; /* borrowed */
	size_t n;
};

/* list: of strings, or NULL. -1: why says what is wrong with one of them. */
int hr_rex_expect_init(struct hr_rex_expect *e, struct json_object *list, struct hr_buf *why);
void hr_rex_expect_done(struct hr_rex_expect *e);
/* Looks at p from `from` on, until then (0: for ever). Which one fits, *ret_at where; -1: none;
 * -2: they took too many steps. */
int hr_rex_expect_match(struct hr_rex_expect *e, const char *p, size_t len, size_t from,
    int64_t until_ms, size_t *ret_at);

#endif
