/* session/outlog: every byte has one offset, against a plain copy of all that was added; in a file,
 * in memory, and when one has to take the place of the other. */
#include "config.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "scratch.h"
#include "session/outlog.h"
#include "session/statedir.h"

#define TOTAL 400000

static char all[TOTAL];
static struct hr_statedir dir;

static void
setup(void)
{
	struct hr_err err = {0};
	size_t n;

	for (n = 0; n < TOTAL; n++)
		all[n] = (char)(n * 7 + n / 251);
	hr_statedir_init(&dir);
	ck_assert_int_eq(hr_statedir_open(&dir, scratch, geteuid(), getegid(), false, &err), 0);
}

static void
teardown(void)
{
	hr_statedir_close(&dir);
}

static void
compare(struct hr_outlog *o, uint64_t from)
{
	uint64_t at = from;
	const char *p;
	size_t len;

	ck_assert_uint_ge(from, hr_outlog_start(o));
	while (from < o->end) {
		p = hr_outlog_read(o, &at, &len);
		ck_assert_uint_eq(at, from);
		ck_assert_uint_gt(len, 0);
		ck_assert_uint_le(len, o->end - from);
		ck_assert(memcmp(p, all + from, len) == 0);
		at = from += len;
	}
	ck_assert_uint_eq(from, o->end);
	(void)hr_outlog_read(o, &at, &len);
	ck_assert_uint_eq(len, 0);
	ck_assert_uint_eq(at, o->end);
}

/* All of it in pieces up to `most`, looked at after each. */
static void
add_all(struct hr_outlog *o, size_t cap, size_t most)
{
	size_t at = (size_t)o->end, n;
	unsigned seed = 1;

	while (at < TOTAL) {
		seed = seed * 1103515245u + 12345u;
		n = seed / 65536 % most;
		n = n < TOTAL - at ? n : TOTAL - at;
		hr_outlog_add(o, all + at, n);
		at += n;
		ck_assert_uint_eq(o->end, at);
		ck_assert_uint_eq(hr_outlog_start(o), at > cap ? at - cap : 0);
		compare(o, hr_outlog_start(o));
		compare(o, o->end - (o->end - hr_outlog_start(o)) / 2);
	}
}

START_TEST(against_a_copy)
{
	static const size_t caps[] = {
	    1, 7, 4096, 32767, 32768, 32769, 65536, 100000, TOTAL, TOTAL + 1};
	size_t cap = caps[_i / 2];
	struct hr_outlog o;

	hr_outlog_init(&o, cap, _i % 2 == 0 ? &dir : NULL);
	add_all(&o, cap, cap < 4096 ? 1500 : 15000);
	ck_assert(o.fd >= 0 || o.memory != NULL);
	if (_i % 2 != 0)
		ck_assert_int_eq(o.fd, -1);
	hr_outlog_done(&o);
}
END_TEST

/* Its keeper was killed before it could tell the next one of the store. */
START_TEST(nothing_is_in_the_store_alone_at_once)
{
	struct hr_outlog o;
	size_t at = 0;

	hr_outlog_init(&o, TOTAL, _i == 0 ? &dir : NULL);
	while (o.fd < 0 && o.memory == NULL) {
		hr_outlog_add(&o, all + at, 8192);
		at += 8192;
	}
	ck_assert_uint_le(at, HR_OUTLOG_PIECE - 8192); /* there is time to tell of it */
	if (o.memory != NULL)
		ck_assert_int_eq(munmap(o.memory, o.size), 0);
	hr_fd_close(&o.fd);
	hr_fd_close(&o.shared);
	hr_outlog_resume(&o, TOTAL, &dir, -1, -1);
	ck_assert_uint_eq(o.end, at);
	add_all(&o, TOTAL, 8192);
	compare(&o, 0);
	hr_outlog_done(&o);
}
END_TEST

START_TEST(none_is_kept)
{
	struct hr_outlog o;
	uint64_t at = 1;
	size_t len = 1;

	hr_outlog_init(&o, 0, &dir);
	hr_outlog_add(&o, "abc", 3);
	ck_assert_uint_eq(o.end, 3);
	ck_assert_uint_eq(hr_outlog_start(&o), 3);
	(void)hr_outlog_read(&o, &at, &len);
	ck_assert_uint_eq(len, 0);
	ck_assert_uint_eq(at, 3);
	hr_outlog_done(&o);
}
END_TEST

/* Its length was changed while its keeper was away: what there was is lost, but no offset. */
START_TEST(another_length)
{
	static const size_t lengths[] = {TOTAL / 2, 0, 4096, TOTAL * 2};
	struct hr_outlog o;
	uint64_t was;

	hr_outlog_init(&o, TOTAL, NULL);
	hr_outlog_add(&o, all, 100000);
	was = o.end;
	if (o.memory != NULL)
		ck_assert_int_eq(munmap(o.memory, o.size), 0);
	hr_outlog_resume(&o, lengths[_i], NULL, o.fd, o.shared);
	ck_assert_uint_eq(o.end, was);
	ck_assert_uint_eq(hr_outlog_start(&o), was);
	hr_outlog_add(&o, all + was, 40000);
	ck_assert_uint_eq(o.end, was + 40000);
	if (lengths[_i] > 40000)
		compare(&o, was);
	hr_outlog_done(&o);
}
END_TEST

/* A full disk looks the same: the last piece is written in part, or not at all. */
START_TEST(a_file_that_may_not_grow)
{
	static const rlim_t limits[] = {0, 1, 32768, 80000, 131071};
	struct rlimit was, small;
	struct hr_outlog o;

	ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
	small = was;
	small.rlim_cur = limits[_i];
	hr_outlog_init(&o, 200000, &dir);
	hr_outlog_add(&o, all, (size_t)limits[_i] / 2);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	hr_outlog_add(&o, all + o.end, TOTAL / 2 - (size_t)o.end);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
	ck_assert_int_eq(o.fd, -1);
	add_all(&o, 200000, 15000);
	hr_outlog_done(&o);
}
END_TEST

START_TEST(no_directory)
{
	struct hr_statedir none;
	struct hr_outlog o;

	hr_statedir_init(&none);
	hr_outlog_init(&o, 100000, &none);
	add_all(&o, 100000, 15000);
	ck_assert_int_eq(o.fd, -1);
	hr_outlog_done(&o);
}
END_TEST

/* What cannot be read is a gap, and the log goes on. */
START_TEST(a_file_that_lost_its_end)
{
	struct hr_outlog o;
	uint64_t at = 0;
	const char *p;
	size_t len;

	hr_outlog_init(&o, TOTAL, &dir);
	hr_outlog_add(&o, all, 200000);
	if (o.fd >= 0) /* the directory may be in memory */
		ck_assert_int_eq(ftruncate(o.fd, 40000), 0);
	p = hr_outlog_read(&o, &at, &len);
	ck_assert_uint_eq(at, 0);
	ck_assert(memcmp(p, all, len) == 0);
	at = 32768;
	(void)hr_outlog_read(&o, &at, &len);
	ck_assert_uint_eq(at, o.fd >= 0 ? o.stored : 32768);
	compare(&o, hr_outlog_start(&o));
	hr_outlog_add(&o, all + o.end, TOTAL - (size_t)o.end);
	compare(&o, hr_outlog_start(&o));
	ck_assert_uint_eq(hr_outlog_start(&o), o.fd >= 0 ? o.first : 0);
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

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, against_a_copy, 0, 20);
	tcase_add_loop_test(tc, nothing_is_in_the_store_alone_at_once, 0, 2);
	tcase_add_test(tc, none_is_kept);
	tcase_add_loop_test(tc, another_length, 0, 4);
	tcase_add_loop_test(tc, a_file_that_may_not_grow, 0, 5);
	tcase_add_test(tc, no_directory);
	tcase_add_test(tc, a_file_that_lost_its_end);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
