/* supervisor/children/service: its states, with shells as processes. */
#include "config.h"

#include <check.h>
#include <signal.h>
#include <string.h>

#include "base/loop.h"
#include "base/process/spawn.h"
#include "supervisor/children/service.h"

static struct hr_loop *loop;
static struct hr_children kids;
static struct hr_watch *sigchld;
static struct hr_service service;
static const char *script;
static char seen[256]; /* a letter for each thing that happened */
static enum hr_service_state until;

static void
note(const char *what)
{
	strncat(seen, what, sizeof(seen) - strlen(seen) - 1);
}

static int
spawn(struct hr_service *s, int ready, struct hr_err *err)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct hr_spawn_fd fds[] = {{ready, 3}};
	char *envp[] = {NULL};

	return hr_child_start(&s->child,
	    &(const struct hr_spawn){.path = "/bin/sh",
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.nfds = 1,
		.setsid = true,
		.umask = 022},
	    0, err);
}

static void
changed(struct hr_service *s)
{
	static const char *const letters[] = {"o", "w", "s", "r", "d", "f", "u", ".", "x"};

	note(letters[s->state]);
	if (s->state == until)
		hr_loop_stop(loop);
}

static void
ended(struct hr_service *s, const struct hr_exit *how)
{
	(void)s;
	note(how->killed ? "K" : "E");
}

static void
lost(struct hr_service *s, const struct hr_exit *how, bool worked, int64_t delay)
{
	(void)how;
	note(worked ? "W" : "-");
	hr_service_down(s, worked ? HR_SERVICE_DOWN : HR_SERVICE_FAILED, delay);
}

static void
again(struct hr_service *s)
{
	struct hr_err err = {0};

	note("A");
	if (s->state == HR_SERVICE_FAILED)
		hr_service_move(s, HR_SERVICE_OFF);
	ck_assert_int_eq(hr_service_start(s, 60000, &err), 0);
}

static void
signalled(struct hr_service *s, int sig)
{
	(void)s;
	note(sig == SIGTERM ? "T" : "?");
}

static const struct hr_service_ops ops = {
    .spawn = spawn,
    .changed = changed,
    .ended = ended,
    .lost = lost,
    .again = again,
    .signal = signalled,
    .says_ready = true,
    .leads = true,
};

static void
on_child(void *arg)
{
	(void)arg;
	hr_children_reap(&kids);
}

static void
setup(void)
{
	struct hr_err err = {0};

	loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(loop);
	sigchld = hr_loop_signal(loop, SIGCHLD, on_child, NULL, &err);
	ck_assert_ptr_nonnull(sigchld);
	hr_children_init(&kids, loop);
	hr_service_init(&service, &ops, NULL, &kids);
	strcpy(service.child.name, "test");
	ck_assert_int_eq(hr_service_open(&service, &err), 0);
	seen[0] = '\0';
}

static void
teardown(void)
{
	hr_service_done(&service);
	hr_watch_free(sigchld);
	hr_loop_free(loop);
}

static void
run_until(enum hr_service_state state)
{
	struct hr_err err = {0};

	until = state;
	ck_assert_int_eq(hr_loop_run(loop, &err), 0);
}

static void
start(const char *text, int64_t patience_ms)
{
	struct hr_err err = {0};

	script = text;
	ck_assert_int_eq(hr_service_start(&service, patience_ms, &err), 0);
}

START_TEST(ready_and_told_to_end)
{
	start("echo ready >&3; exec sleep 1000", 60000);
	run_until(HR_SERVICE_READY);
	ck_assert_str_eq(hr_service_state_text(&service), "ready");
	hr_service_stop(&service, SIGTERM, 60000);
	ck_assert_int_eq(service.state, HR_SERVICE_STOPPING);
	run_until(HR_SERVICE_STOPPED);
	ck_assert_str_eq(seen, "srKx");
	hr_service_stop(&service, SIGTERM, 60000); /* nothing */
	ck_assert_int_eq(service.state, HR_SERVICE_STOPPED);
}
END_TEST

START_TEST(deaf_to_its_end)
{
	start("trap '' TERM; echo ready >&3; sleep 1000 & wait; wait", 60000);
	run_until(HR_SERVICE_READY);
	hr_service_stop(&service, SIGTERM, 1);
	run_until(HR_SERVICE_STOPPED);
	ck_assert_str_eq(seen, "srKx");
}
END_TEST

/* The first start after a death is at once. */
START_TEST(dies_and_starts_again)
{
	start("echo ready >&3; exit 3", 60000);
	run_until(HR_SERVICE_DOWN);
	ck_assert_str_eq(seen, "srEWd");
	script = "echo ready >&3; exec sleep 1000";
	run_until(HR_SERVICE_READY);
	ck_assert_str_eq(seen, "srEWdAsr");
	hr_service_stop(&service, SIGKILL, 0);
	run_until(HR_SERVICE_STOPPED);
}
END_TEST

START_TEST(says_why_it_cannot)
{
	start("echo failed no luck >&3; exec sleep 1000", 60000);
	run_until(HR_SERVICE_FAILED);
	ck_assert_str_eq(seen, "sK-f");
	ck_assert_str_eq(service.reason, "no luck");
	ck_assert(!service.never);
	hr_service_stop(&service, SIGTERM, 0);
	ck_assert_int_eq(service.state, HR_SERVICE_STOPPED);
}
END_TEST

START_TEST(says_that_it_never_will)
{
	start("echo unavailable no display >&3", 60000);
	run_until(HR_SERVICE_FAILED);
	ck_assert_str_eq(service.reason, "no display");
	ck_assert(service.never);
}
END_TEST

START_TEST(too_slow)
{
	start("exec sleep 1000", 1);
	run_until(HR_SERVICE_FAILED);
	ck_assert_str_eq(seen, "sK-f");
	ck_assert_str_eq(service.reason, "it was not ready after 0 s");
}
END_TEST

/* As a pool that has taken over workers and has not been filled yet. */
START_TEST(told_to_end_before_its_start)
{
	service.elsewhere = true;
	hr_service_stop(&service, SIGTERM, 0);
	ck_assert_int_eq(service.state, HR_SERVICE_STOPPING);
	service.elsewhere = false;
	hr_service_set(&service, HR_SERVICE_STOPPED);
	ck_assert_str_eq(seen, "Tx");
}
END_TEST

/* Caught where it is made, not where it shows. */
START_TEST(a_change_that_cannot_be)
{
	hr_service_set(&service, HR_SERVICE_DOWN);
}
END_TEST

START_TEST(nothing_follows_the_end)
{
	hr_service_stop(&service, SIGTERM, 0);
	hr_service_set(&service, HR_SERVICE_OFF);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("service");
	TCase *tc = tcase_create("service"), *native = tcase_create("wrong changes");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, ready_and_told_to_end);
	tcase_add_test(tc, deaf_to_its_end);
	tcase_add_test(tc, dies_and_starts_again);
	tcase_add_test(tc, says_why_it_cannot);
	tcase_add_test(tc, says_that_it_never_will);
	tcase_add_test(tc, too_slow);
	tcase_add_test(tc, told_to_end_before_its_start);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(native, setup, teardown);
	tcase_set_tags(native, "no-valgrind"); /* in its process they end all */
	tcase_add_test_raise_signal(native, a_change_that_cannot_be, SIGABRT);
	tcase_add_test_raise_signal(native, nothing_follows_the_end, SIGABRT);
	suite_add_tcase(s, native);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
