/* worker/ready: what a worker says to the supervisor, and that only one of them looks at the disk.
 */
#include "config.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/channel.h"
#include "worker/ready.h"
#include "worker/worker.h"

static struct hr_scoreboard *board;
static struct hr_worker w;
static int supervisor;

static void
setup(void)
{
	int pair[2];

	board = calloc(1, sizeof(*board));
	ck_assert_ptr_nonnull(board);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	hr_worker_init(&w, "/nonexistent", "/", board, &board->slots[0]);
	w.channel = pair[0];
	supervisor = pair[1];
}

static void
teardown(void)
{
	(void)close(w.channel);
	(void)close(supervisor);
	hr_worker_done(&w);
	free(board);
}

static char heard[64];

static void *
answer(void *arg)
{
	ssize_t n = recv(supervisor, heard, sizeof(heard) - 1, 0);

	heard[n > 0 ? n : 0] = '\0';
	(void)send(supervisor, "r{}", 3, MSG_NOSIGNAL);
	return arg;
}

/* What it says. */
static const char *
said(void)
{
	struct hr_channel_answer a;
	struct hr_err err = {0};
	pthread_t other;
	int r;

	ck_assert_int_eq(pthread_create(&other, NULL, answer, NULL), 0);
	r = hr_ready_ask(&w, 30000, &a, &err);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_str_eq(a.text, "{}");
	return heard;
}

START_TEST(how_full_the_disk_is)
{
	const char *text = said();
	unsigned percent = 1000;

	ck_assert_int_eq(sscanf(text, "R%u", &percent), 1);
	ck_assert_uint_le(percent, 100);
	ck_assert_int_eq(atomic_load(&board->disk_looker), 0);
}
END_TEST

START_TEST(no_such_directory)
{
	const char *text;

	w.work_dir = "/nonexistent";
	text = said();
	ck_assert_str_eq(text, "R");
	ck_assert_int_eq(atomic_load(&board->disk_looker), 0);
}
END_TEST

/* Another one looks, and may do so for ever. */
START_TEST(one_at_a_time)
{
	const char *text;

	atomic_store(&board->disk_looker, 4711);
	text = said();
	ck_assert_str_eq(text, "R");
	ck_assert_int_eq(atomic_load(&board->disk_looker), 4711);
}
END_TEST

START_TEST(no_supervisor)
{
	struct hr_request r = {0};
	struct hr_answer a;

	(void)shutdown(supervisor, SHUT_RDWR);
	hr_answer_init(&a);
	hr_handle_ready(&w, &r, &a);
	ck_assert_int_eq(a.status, 503);
	ck_assert_int_eq(a.retry_after_s, 1);
	ck_assert_ptr_nonnull(
	    strstr(hr_buf_str(&a.body), "\"status\":\"not ready\",\"reason\":\""));
	hr_answer_done(&a);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ready");
	TCase *tc = tcase_create("ready");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, how_full_the_disk_is);
	tcase_add_test(tc, no_such_directory);
	tcase_add_test(tc, one_at_a_time);
	tcase_add_test(tc, no_supervisor);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
