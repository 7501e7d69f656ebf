/* worker/once: what becomes of an entry when the answer is that nothing was done. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/once.h"
#include "worker/worker.h"

static struct hr_scoreboard *board;
static struct hr_worker w;
static struct hr_journal keeper; /* another process's */
static struct hr_answer ret;
static char dir[] = "/tmp/test_once-XXXXXX";

static void
setup(void)
{
	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	board = calloc(1, sizeof(*board));
	ck_assert_ptr_nonnull(board);
	hr_worker_init(&w, dir, "/", board, &board->slots[0]);
	w.journal.entries_max = 16;
	w.journal.bytes_max = 1 << 20;
	w.journal.age_max_ms = 3600000;
	hr_journal_init(&keeper);
	hr_answer_init(&ret);
}

static void
open_journals(void)
{
	ck_assert_int_eq(hr_journal_open(&w.journal, dir, NULL), 0);
	ck_assert_int_eq(hr_journal_open(&keeper, dir, NULL), 0);
}

static void
teardown(void)
{
	char command[64];

	hr_worker_done(&w);
	hr_journal_close(&keeper);
	hr_answer_done(&ret);
	free(board);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static uint32_t
enter(const char *key)
{
	ck_assert(hr_once_enter(&w, (struct hr_span){key, strlen(key)}, &ret));
	ck_assert(!hr_journal_begun(&w.once));
	return w.once.attempt;
}

/* Its worker is killed before it knows anything. */
static void
die(void)
{
	hr_journal_leave(&w.journal, &w.once, false);
}

static void
refuse(bool sent)
{
	hr_answer_reset(&ret);
	hr_answer_detail(&ret, 503, "not now");
	ret.retry_after_s = 1;
	hr_once_leave(&w, &ret);
	hr_once_sent(&w, sent);
}

static bool
begins(const char *key, uint32_t attempt)
{
	return hr_journal_begin(&keeper, key, strlen(key), attempt);
}

static const char *const keys[] = {"c:of a client", "n:of nginx"};

/* What a dead worker asked for is still on its way to a shell. It must not begin on behalf of a
 * later attempt, however often one was refused meanwhile. */
START_TEST(an_older_attempt_never_begins)
{
	const char *key = keys[_i];
	uint32_t first, second, third;

	open_journals();
	first = enter(key);
	die();
	second = enter(key);
	ck_assert(!begins(key, first));
	refuse(false);
	ck_assert(!begins(key, first));
	third = enter(key);
	ck_assert(!begins(key, first));
	ck_assert(!begins(key, second));
	ck_assert(begins(key, third));
	ck_assert(!begins(key, third));
	die();
}
END_TEST

static int
entries(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

/* Nobody asks again for what only nginx could repeat, once it was told. */
START_TEST(kept_for_whom_may_ask_again)
{
	const char *key = keys[_i];
	uint32_t attempt;

	open_journals();
	attempt = enter(key);
	refuse(true);
	ck_assert_int_eq(entries(), key[0] == 'c');
	if (key[0] != 'c')
		ck_assert(!begins(key, attempt));
	(void)enter(key);
	refuse(true);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("once");
	TCase *tc = tcase_create("once");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, an_older_attempt_never_begins, 0, 2);
	tcase_add_loop_test(tc, kept_for_whom_may_ask_again, 0, 2);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
