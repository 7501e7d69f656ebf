/* session/outlog: every byte has one offset, against a plain copy of all that was added. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "session/outlog.h"

#define TOTAL 5000

static char all[TOTAL];

static void
compare(const struct hr_outlog *o, uint64_t from)
{
	const char *p;
	size_t len;

	ck_assert_uint_ge(from, hr_outlog_start(o));
	while (from < o->end) {
		p = hr_outlog_at(o, from, &len);
		ck_assert_uint_gt(len, 0);
		ck_assert(memcmp(p, all + from, len) == 0);
		from += len;
	}
	ck_assert_uint_eq(from, o->end);
	(void)hr_outlog_at(o, from, &len);
	ck_assert_uint_eq(len, 0);
}

START_TEST(against_a_copy)
{
	static const size_t caps[] = {1, 2, 7, 64, 1000, TOTAL, TOTAL + 1};
	struct hr_outlog o;
	struct hr_err err = {0};
	size_t at = 0, n, cap = caps[_i];
	unsigned seed = 1;

	for (n = 0; n < TOTAL; n++)
		all[n] = (char)(n * 7 + n / 251);
	ck_assert_int_eq(hr_outlog_init(&o, cap, &err), 0);
	while (at < TOTAL) {
		seed = seed * 1103515245u + 12345u;
		n = seed / 65536 % 150;
		n = n < TOTAL - at ? n : TOTAL - at;
		hr_outlog_add(&o, all + at, n);
		at += n;
		ck_assert_uint_eq(o.end, at);
		ck_assert_uint_eq(hr_outlog_start(&o), at > cap ? at - cap : 0);
		compare(&o, hr_outlog_start(&o));
		compare(&o, o.end - (o.end - hr_outlog_start(&o)) / 2);
	}
	hr_outlog_done(&o);
}
END_TEST

START_TEST(none_is_kept)
{
	struct hr_outlog o;
	size_t len = 1;

	ck_assert_int_eq(hr_outlog_init(&o, 0, NULL), 0);
	hr_outlog_add(&o, "abc", 3);
	ck_assert_uint_eq(o.end, 3);
	ck_assert_uint_eq(hr_outlog_start(&o), 3);
	(void)hr_outlog_at(&o, 3, &len);
	ck_assert_uint_eq(len, 0);
	hr_outlog_done(&o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("outlog");
	TCase *tc = tcase_create("outlog");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, against_a_copy, 0, 7);
	tcase_add_test(tc, none_is_kept);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
