/* Sign-ins on the board: found with both halves alone, over when their time or somebody says so,
 * and pushed out by more of them, the one that ends first before others. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/signin.h"

static struct hr_signins board;

static struct hr_signin
make(unsigned char n, int64_t until)
{
	struct hr_signin s = {.until_ns = until, .rights = HR_PAGE_ACT};

	memset(s.cookie, n, sizeof(s.cookie));
	memset(s.token, n ^ 0x80, sizeof(s.token));
	memset(s.key, 7, sizeof(s.key));
	return s;
}

static bool
finds(const struct hr_signin *s, int64_t now)
{
	struct hr_signin got = {.rights = HR_PAGE_NONE};

	return hr_signin_find(&board, s->cookie, s->token, now, &got) &&
	       memcmp(got.key, s->key, sizeof(got.key)) == 0 && got.until_ns == s->until_ns &&
	       got.rights == s->rights;
}

START_TEST(both_halves_and_the_time)
{
	struct hr_signin one = make(1, 100), two = make(2, 200), got, crossed = one;

	memset(&board, 0, sizeof(board));
	memset(&got, 0, sizeof(got));
	ck_assert(!finds(&one, 0));
	/* what a free place holds opens nothing */
	ck_assert(!hr_signin_find(&board, got.cookie, got.token, 0, &got));
	ck_assert(hr_signin_add(&board, &one, 0));
	ck_assert(hr_signin_add(&board, &two, 0));
	ck_assert(finds(&one, 99));
	ck_assert(!finds(&one, 100));
	ck_assert(finds(&two, 100));
	memcpy(crossed.token, two.token, sizeof(two.token));
	ck_assert(!finds(&crossed, 0));
	one.cookie[31] ^= 1;
	ck_assert(!finds(&one, 0));
}
END_TEST

START_TEST(ended)
{
	struct hr_signin one = make(1, 100), two = make(2, 100);

	memset(&board, 0, sizeof(board));
	ck_assert(hr_signin_add(&board, &one, 0));
	ck_assert(hr_signin_add(&board, &two, 0));
	hr_signin_end(&board, one.cookie);
	hr_signin_end(&board, one.cookie);
	ck_assert(!finds(&one, 0));
	ck_assert(finds(&two, 0));
}
END_TEST

START_TEST(pushed_out)
{
	struct hr_signin s, more = make(200, 5000);
	unsigned i;

	memset(&board, 0, sizeof(board));
	for (i = 0; i < HR_SIGNINS; i++) {
		s = make((unsigned char)(i + 1), 1000 + (int64_t)((i * 7) % HR_SIGNINS));
		ck_assert(hr_signin_add(&board, &s, 0));
	}
	ck_assert(hr_signin_add(&board, &more, 0));
	for (i = 0; i < HR_SIGNINS; i++) {
		s = make((unsigned char)(i + 1), 1000 + (int64_t)((i * 7) % HR_SIGNINS));
		ck_assert_int_eq(finds(&s, 0), i != 0);
	}
	ck_assert(finds(&more, 0));
	/* those whose time is over first */
	s = make(201, 9000);
	ck_assert(hr_signin_add(&board, &s, 1001));
	ck_assert(finds(&s, 1001) && finds(&more, 1001));
}
END_TEST

/* A worker was killed while it wrote. */
START_TEST(half_written)
{
	struct hr_signin one = make(1, 100), s;
	unsigned i;

	memset(&board, 0, sizeof(board));
	ck_assert(hr_signin_add(&board, &one, 0));
	atomic_fetch_add(&board.v[0].turn, 1);
	ck_assert(!finds(&one, 0));
	for (i = 1; i < HR_SIGNINS; i++) {
		s = make((unsigned char)(i + 1), 1000);
		ck_assert(hr_signin_add(&board, &s, 0));
	}
	ck_assert(!finds(&one, 0));
	/* all are taken but that one, whose turn comes when theirs has */
	for (i = 0; i < HR_SIGNINS; i++)
		atomic_store(&board.v[i].turn, atomic_load(&board.v[i].turn) | 1);
	ck_assert(hr_signin_add(&board, &one, 0));
	ck_assert(finds(&one, 0));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("signin");
	TCase *c = tcase_create("signin");
	SRunner *r;
	int failed;

	tcase_add_test(c, both_halves_and_the_time);
	tcase_add_test(c, ended);
	tcase_add_test(c, pushed_out);
	tcase_add_test(c, half_written);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
