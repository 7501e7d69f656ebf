/* supervisor/alert: when an alert begins and is over, and what the command is told of it. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/resources/alert.h"
#include "supervisor/settings/settings.h"

static char top[64], told[96], script[96], log_name[96];
static struct hr_err err;
static struct hr_loop *loop;
static struct hr_children kids;
static struct hr_settings settings;
static struct hr_metrics metrics;
static struct hr_alerts a;
static struct hr_watch *child_watch, *stop;
static bool stop_when_quiet;
static char *envp[] = {NULL};
static int log_fd;

static bool
quiet(void)
{
	unsigned kind;

	for (kind = 0; kind < HR_ALERTS; kind++) {
		if (a.v[kind].untold)
			return false;
	}
	return a.command.pid == 0;
}

static void
on_child(void *arg)
{
	(void)arg;
	hr_children_reap(&kids);
	if (stop_when_quiet && quiet())
		hr_loop_stop(loop);
}

static void
on_stop(void *arg)
{
	(void)arg;
	hr_loop_stop(loop);
}

static void
setup(void)
{
	static const char line[] = "#!/bin/sh\nexec cat >>\"${0%/*}/told\"\n";

	(void)snprintf(top, sizeof(top), "/tmp/test_alert.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(told, sizeof(told), "%s/told", top);
	(void)snprintf(script, sizeof(script), "%s/command", top);
	(void)snprintf(log_name, sizeof(log_name), "%s/log", top);
	ck_assert_int_eq(hr_path_write(script, line, sizeof(line) - 1, 0755, &err), 0);
	log_fd = open(log_name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(log_fd, 0);
	hr_log_setup("test", HR_LOG_TEXT, HR_LOG_INFO);
	hr_log_set_fd(log_fd);
	memset(&metrics, 0, sizeof(metrics));
	memset(&kids, 0, sizeof(kids));
	stop_when_quiet = false;
	loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(loop);
	hr_children_init(&kids, loop);
	child_watch = hr_loop_signal(loop, SIGCHLD, on_child, NULL, &err);
	stop = hr_loop_timer(loop, on_stop, NULL, &err);
	ck_assert(child_watch != NULL && stop != NULL);
	ck_assert_int_eq(hr_settings_init(&settings, &err), 0);
	settings.alert_clear_seconds = 1000;
	ck_assert_int_eq(hr_alerts_open(&a, loop, &kids, &settings, &metrics, envp, &err), 0);
}

static void
teardown(void)
{
	hr_alerts_close(&a);
	ck_assert_int_eq(a.command.pid, 0);
	hr_watch_free(child_watch);
	hr_watch_free(stop);
	hr_loop_free(loop);
	hr_settings_done(&settings);
	hr_log_set_fd(STDERR_FILENO);
	hr_fd_close(&log_fd);
	ck_assert_int_eq(hr_path_remove(top, &err), 0);
}

static void
use_command(const char *path)
{
	free(settings.alert_command);
	settings.alert_command = strdup(path);
	ck_assert_ptr_nonnull(settings.alert_command);
}

/* All that is due now; what is due later stays. Timers fire in the order of their deadlines. */
static void
let_pass(void)
{
	ck_assert_int_eq(hr_watch_arm(stop, 1, &err), 0);
	ck_assert_int_eq(hr_loop_run(loop, &err), 0);
}

/* Until the command has been told all; the timeout of a test is check's. */
static void
until_quiet(void)
{
	stop_when_quiet = true;
	if (!quiet())
		ck_assert_int_eq(hr_loop_run(loop, &err), 0);
	stop_when_quiet = false;
}

static const char *
content(const char *name)
{
	static char text[8192];
	HR_BUF(b, sizeof(text) - 1);

	text[0] = '\0';
	if (access(name, F_OK) == 0) {
		ck_assert_int_eq(hr_path_read(name, &b, &err), 0);
		(void)snprintf(text, sizeof(text), "%s", hr_buf_str(&b));
	}
	return text;
}

static unsigned
times(const char *text, const char *what)
{
	unsigned n = 0;

	for (text = strstr(text, what); text != NULL; text = strstr(text + 1, what))
		n++;
	return n;
}

/* "disk_high firing, mem_high resolved": the lines the command was given. */
static void
expect_told(const char *want)
{
	char got[512] = "", one[64], state[16];
	const char *at = content(told);
	size_t len = 0;

	while ((at = strstr(at, "{\"alert\":\"")) != NULL) {
		ck_assert_int_eq(
		    sscanf(at, "{\"alert\":\"%63[a-z_]\",\"state\":\"%15[a-z]\"", one, state), 2);
		len += (size_t)snprintf(
		    got + len, sizeof(got) - len, "%s%s %s", len > 0 ? ", " : "", one, state);
		at++;
	}
	ck_assert_str_eq(got, want);
}

static bool
firing(enum hr_alert_kind kind)
{
	ck_assert_int_eq(a.v[kind].firing, (int)atomic_load(&metrics.alerts[kind].firing));
	return a.v[kind].firing;
}

START_TEST(a_level_has_to_stay_below)
{
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 89, 90);
	ck_assert(!firing(HR_ALERT_DISK_HIGH));
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 90, 90);
	ck_assert(firing(HR_ALERT_DISK_HIGH));
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 95, 90);
	ck_assert_uint_eq(a.v[HR_ALERT_DISK_HIGH].value, 95);
	/* below: not yet over; above again: as if nothing had been */
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 10, 90);
	let_pass();
	ck_assert(firing(HR_ALERT_DISK_HIGH) && a.v[HR_ALERT_DISK_HIGH].clearing);
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 91, 90);
	ck_assert(firing(HR_ALERT_DISK_HIGH) && !a.v[HR_ALERT_DISK_HIGH].clearing);
	ck_assert_uint_eq(times(content(log_name), "disk_high"), 1);
	/* a second time below does not begin the wait anew: it would never end */
	settings.alert_clear_seconds = 0;
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 12, 90);
	settings.alert_clear_seconds = 1000;
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 11, 90);
	let_pass();
	ck_assert(!firing(HR_ALERT_DISK_HIGH));
	ck_assert_uint_eq(a.v[HR_ALERT_DISK_HIGH].value, 11);
	ck_assert_uint_eq(atomic_load(&metrics.alerts[HR_ALERT_DISK_HIGH].total), 1);
	ck_assert_uint_eq(
	    times(content(log_name), "\"state\":\"resolved\",\"severity\":\"warning\""), 1);
	hr_alert_level(&a, HR_ALERT_DISK_HIGH, 99, 90);
	ck_assert_uint_eq(atomic_load(&metrics.alerts[HR_ALERT_DISK_HIGH].total), 2);
}
END_TEST

START_TEST(a_threshold_of_0_is_none)
{
	hr_alert_level(&a, HR_ALERT_MEM_HIGH, 100, 0);
	ck_assert(!firing(HR_ALERT_MEM_HIGH));
	hr_alert_level(&a, HR_ALERT_MEM_HIGH, 100, 90);
	ck_assert(firing(HR_ALERT_MEM_HIGH));
	/* switched off while it holds: over */
	settings.alert_clear_seconds = 0;
	hr_alert_level(&a, HR_ALERT_MEM_HIGH, 100, 0);
	let_pass();
	ck_assert(!firing(HR_ALERT_MEM_HIGH));
	ck_assert_str_eq(content(told), "");
}
END_TEST

START_TEST(an_event_again_makes_it_longer)
{
	settings.alert_clear_seconds = 0;
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 1, 1);
	settings.alert_clear_seconds = 1000;
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 2, 1);
	let_pass();
	ck_assert(firing(HR_ALERT_OOM_KILL));
	ck_assert_uint_eq(a.v[HR_ALERT_OOM_KILL].value, 2);
	ck_assert_uint_eq(atomic_load(&metrics.alerts[HR_ALERT_OOM_KILL].total), 1);
	settings.alert_clear_seconds = 0;
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 3, 1);
	let_pass();
	ck_assert(!firing(HR_ALERT_OOM_KILL));
	ck_assert_uint_eq(times(content(log_name), "\"severity\":\"critical\""), 2);
}
END_TEST

/* One after the other: no child is reaped, so the first one runs, until the loop does. */
START_TEST(the_command_is_told_the_last_state)
{
	use_command(script);
	hr_alert_event(&a, HR_ALERT_DISK_HIGH, 1, 1);
	ck_assert_int_gt(a.command.pid, 0);
	hr_alert_event(&a, HR_ALERT_PIDS_MAX, 1, 1);
	hr_alert_event(&a, HR_ALERT_MEM_HIGH, 1, 1);
	until_quiet();
	expect_told("disk_high firing, mem_high firing, pids_max firing");
	hr_alerts_hold(&a, true);
	settings.alert_clear_seconds = 0;
	hr_alert_event(&a, HR_ALERT_MEM_PRESSURE, 1, 1);
	hr_alert_event(&a, HR_ALERT_PIDS_MAX, 2, 1);
	let_pass();
	ck_assert(!firing(HR_ALERT_MEM_PRESSURE) && !firing(HR_ALERT_PIDS_MAX));
	ck_assert(a.command.pid == 0 && !quiet());
	hr_alerts_hold(&a, false);
	until_quiet();
	expect_told("disk_high firing, mem_high firing, pids_max firing, pids_max resolved, "
		    "mem_pressure resolved");
	ck_assert_uint_eq(times(content(log_name), "alert_command"), 0);
}
END_TEST

START_TEST(what_nobody_is_told_of_is_not_kept)
{
	hr_alert_event(&a, HR_ALERT_DISK_HIGH, 1, 1);
	ck_assert(quiet());
	use_command(script);
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 1, 1);
	until_quiet();
	expect_told("oom_kill firing");
}
END_TEST

START_TEST(a_command_that_fails_is_not_tried_again)
{
	use_command("/nonexistent/command");
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 1, 1);
	until_quiet();
	ck_assert_uint_eq(times(content(log_name), "alert_command failed: exit 127"), 1);
}
END_TEST

/* No descriptor is free: the alert waits, and is told. */
START_TEST(a_command_that_cannot_be_started_is)
{
	struct rlimit was, none;

	use_command(script);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 1; /* that is taken; poll() asks for one */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 1, 1);
	ck_assert(a.command.pid == 0 && a.v[HR_ALERT_OOM_KILL].untold);
	ck_assert_int_eq(a.retry_ms, 100);
	hr_alert_event(&a, HR_ALERT_DISK_HIGH, 1, 1); /* tries at once */
	ck_assert_int_eq(a.retry_ms, 200);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	until_quiet();
	expect_told("oom_kill firing, disk_high firing");
	ck_assert_int_eq(a.retry_ms, 0);
	ck_assert_uint_eq(times(content(log_name), "cannot start alert_command"), 1);
}
END_TEST

START_TEST(patience_ends)
{
	static const char line[] = "#!/bin/sh\nrm \"$0\"\nexec sleep 1000\n";

	ck_assert_int_eq(hr_path_write(script, line, sizeof(line) - 1, 0755, &err), 0);
	use_command(script);
	hr_alert_event(&a, HR_ALERT_DISK_HIGH, 1, 1);
	ck_assert_int_eq(hr_watch_arm(a.patience, 0, &err), 0);
	until_quiet();
	ck_assert_uint_eq(times(content(log_name), "took too long and was killed"), 1);
	ck_assert_uint_eq(times(content(log_name), "alert_command failed: signal 9"), 1);
}
END_TEST

START_TEST(the_end_kills_it)
{
	static const char line[] = "#!/bin/sh\nexec sleep 1000\n";

	ck_assert_int_eq(hr_path_write(script, line, sizeof(line) - 1, 0755, &err), 0);
	use_command(script);
	hr_alert_event(&a, HR_ALERT_DISK_HIGH, 1, 1);
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 1, 1);
	hr_alerts_close(&a);
	a.v[HR_ALERT_OOM_KILL].untold = false; /* of no account any more */
	until_quiet();
	hr_alert_event(&a, HR_ALERT_MEM_HIGH, 1, 1);
	hr_alert_level(&a, HR_ALERT_MEM_HIGH, 1, 1);
	ck_assert(!a.v[HR_ALERT_MEM_HIGH].firing && a.command.pid == 0);
	ck_assert_uint_eq(times(content(log_name), "alert_command"), 0);
}
END_TEST

START_TEST(json)
{
	HR_BUF(b, 1024);

	hr_alerts_json(&b, &a);
	ck_assert_str_eq(hr_buf_str(&b), "[]");
	hr_buf_reset(&b);
	hr_alert_event(&a, HR_ALERT_OOM_KILL, 1, 1);
	hr_alert_event(&a, HR_ALERT_MEM_HIGH, 1, 1);
	hr_alerts_json(&b, &a);
	ck_assert_uint_eq(times(hr_buf_str(&b), "\"since\":\"20"), 2);
	ck_assert_ptr_eq(strstr(hr_buf_str(&b), "[{\"alert\":\"mem_high\""), hr_buf_str(&b));
}
END_TEST

START_TEST(history)
{
	HR_BUF(b, 4096);
	unsigned i;

	hr_alerts_history(&b, &a);
	ck_assert_str_eq(hr_buf_str(&b), "{\"alerts\":[],\"history\":[]}");
	hr_buf_reset(&b);
	settings.alert_clear_seconds = 0;
	for (i = 0; i < HR_ALERTS_PAST; i++) { /* two changes each */
		hr_alert_event(&a, HR_ALERT_MEM_PRESSURE, UINT64_MAX - i, UINT64_MAX);
		let_pass();
	}
	for (i = 0; i < HR_ALERTS; i++)
		hr_alert_event(&a, i, i, UINT64_MAX);
	/* the longest there is fits into a packet */
	hr_alerts_history(&b, &a);
	ck_assert_int_eq(hr_buf_check(&b, &err), 0);
	ck_assert_uint_eq(times(hr_buf_str(&b), "\"ts\":\"20"), HR_ALERTS_PAST);
	ck_assert_uint_eq(times(hr_buf_str(&b), "\"state\":\"resolved\""), 4);
	ck_assert_uint_eq(times(hr_buf_str(&b), "\"since\":\"20"), HR_ALERTS);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&b), "\"history\":[{\"alert\":\"mem_pressure\","));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("alert");
	TCase *tc = tcase_create("alert");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_level_has_to_stay_below);
	tcase_add_test(tc, a_threshold_of_0_is_none);
	tcase_add_test(tc, an_event_again_makes_it_longer);
	tcase_add_test(tc, the_command_is_told_the_last_state);
	tcase_add_test(tc, what_nobody_is_told_of_is_not_kept);
	tcase_add_test(tc, a_command_that_fails_is_not_tried_again);
	tcase_add_test(tc, a_command_that_cannot_be_started_is);
	tcase_add_test(tc, patience_ends);
	tcase_add_test(tc, the_end_kills_it);
	tcase_add_test(tc, json);
	tcase_add_test(tc, history);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
