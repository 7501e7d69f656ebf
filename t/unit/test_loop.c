/* base/loop: order, arming, freeing from inside, sleep when nothing is due. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"

struct seen {
	struct hr_loop *loop;
	struct hr_watch *self, *other;
	int fd, count;
};

/* Every test is run with both. */
static struct hr_loop *
make_loop(int few)
{
	return few ? hr_loop_new_few(NULL) : hr_loop_new(NULL);
}

static void
stop_now(void *arg)
{
	struct seen *s = arg;

	s->count++;
	hr_loop_stop(s->loop);
}

START_TEST(timers_fire_once_in_order)
{
	struct seen a = {0}, b = {0}, end = {0};
	struct hr_loop *loop = make_loop(_i);
	struct hr_watch *t1, *t2, *t3;
	int64_t from = hr_now_ms();

	ck_assert_ptr_nonnull(loop);
	a.loop = b.loop = end.loop = loop;
	t1 = hr_loop_timer(loop, stop_now, &a, NULL);
	t2 = hr_loop_timer(loop, stop_now, &b, NULL);
	t3 = hr_loop_timer(loop, stop_now, &end, NULL);
	/* far apart, since the calls themselves may take long on a busy machine */
	ck_assert_int_eq(hr_watch_arm(t2, 500, NULL), 0);
	ck_assert_int_eq(hr_watch_arm(t1, 20, NULL), 0);
	ck_assert_int_eq(hr_watch_arm(t3, 600, NULL), 0);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_eq(a.count + b.count * 10 + end.count * 100, 1);
	ck_assert(!hr_watch_is_armed(t1));
	ck_assert(hr_watch_is_armed(t2));
	hr_watch_disarm(t2);
	ck_assert(!hr_watch_is_armed(t2));
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_eq(a.count + b.count * 10 + end.count * 100, 101);
	ck_assert_int_ge(hr_now_ms() - from, 600);
	hr_watch_free(t1);
	hr_watch_free(t2);
	hr_watch_free(t3);
	hr_watch_free(NULL);
	hr_loop_free(loop);
}
END_TEST

START_TEST(signals_and_descriptors_wake_it)
{
	struct hr_loop *loop = make_loop(_i);
	struct seen sig = {.loop = loop}, rd = {.loop = loop};
	struct hr_watch *ws, *wr;
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ws = hr_loop_signal(loop, SIGUSR1, stop_now, &sig, NULL);
	wr = hr_loop_readable(loop, p[0], stop_now, &rd, NULL);
	ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_eq(sig.count, 1);
	ck_assert_int_eq(rd.count, 0);
	ck_assert_int_eq(write(p[1], "x", 1), 1);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_eq(rd.count, 1);
	hr_watch_free(ws);
	hr_watch_free(wr);
	hr_loop_free(loop);
	hr_fd_close(&p[0]);
	hr_fd_close(&p[1]);
}
END_TEST

static void
free_both(void *arg)
{
	struct seen *s = arg;

	s->count++;
	hr_watch_free(s->self);
	hr_watch_free(s->other);
	s->self = s->other = NULL;
	hr_loop_stop(s->loop);
}

/* Both are due in one turn; whichever runs first frees both, the other must not run. */
START_TEST(a_freed_watch_is_silent_even_when_due)
{
	struct hr_loop *loop = make_loop(_i);
	struct seen s = {.loop = loop}, end = {.loop = loop};
	struct hr_watch *t;
	int a[2], b[2];

	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(b, O_CLOEXEC), 0);
	ck_assert_int_eq(write(a[1], "x", 1), 1);
	ck_assert_int_eq(write(b[1], "x", 1), 1);
	s.self = hr_loop_readable(loop, a[0], free_both, &s, NULL);
	s.other = hr_loop_readable(loop, b[0], free_both, &s, NULL);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	t = hr_loop_timer(loop, stop_now, &end, NULL);
	ck_assert_int_eq(hr_watch_arm(t, 10, NULL), 0);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_eq(s.count, 1);
	hr_watch_free(t);
	hr_loop_free(loop);
}
END_TEST

START_TEST(stop_before_run_is_kept)
{
	struct hr_loop *loop = make_loop(_i);

	hr_loop_stop(loop);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	hr_loop_free(loop);
}
END_TEST

/* Waiting uses no processor: 200 ms of sleep cost less than 20 ms of CPU. */
START_TEST(waiting_is_sleeping)
{
	struct hr_loop *loop = make_loop(_i);
	struct seen end = {.loop = loop};
	struct hr_watch *t = hr_loop_timer(loop, stop_now, &end, NULL);
	clock_t cpu = clock();

	ck_assert_int_eq(hr_watch_arm(t, 200, NULL), 0);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_lt(clock() - cpu, CLOCKS_PER_SEC / 50);
	hr_watch_free(t);
	hr_loop_free(loop);
}
END_TEST

START_TEST(its_descriptors_are_cloexec)
{
	struct hr_loop *loop = make_loop(_i);
	struct seen sig = {.loop = loop};
	struct hr_watch *w = hr_loop_signal(loop, SIGUSR1, stop_now, &sig, NULL);
	int fd;

	for (fd = 3; fd < 64; fd++) {
		int flags = fcntl(fd, F_GETFD);
		char link[64], name[64] = "";

		if (flags < 0 || (flags & FD_CLOEXEC) != 0)
			continue;
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		(void)!readlink(link, name, sizeof(name) - 1);
		ck_assert_msg(strstr(name, "eventpoll") == NULL && strstr(name, "eventfd") == NULL,
		    "%d is %s", fd, name);
	}
	hr_watch_free(w);
	hr_loop_free(loop);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("loop");
	TCase *tc = tcase_create("loop");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, timers_fire_once_in_order, 0, 2);
	tcase_add_loop_test(tc, signals_and_descriptors_wake_it, 0, 2);
	tcase_add_loop_test(tc, a_freed_watch_is_silent_even_when_due, 0, 2);
	tcase_add_loop_test(tc, stop_before_run_is_kept, 0, 2);
	tcase_add_loop_test(tc, waiting_is_sleeping, 0, 2);
	tcase_add_loop_test(tc, its_descriptors_are_cloexec, 0, 2);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
