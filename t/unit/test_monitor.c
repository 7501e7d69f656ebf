/* supervisor/monitor on made-up control groups: the test is the kernel, which writes to the files
 * and to the eventfds. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/alert.h"
#include "supervisor/cgroup.h"
#include "supervisor/monitor.h"
#include "supervisor/settings.h"

#define MB ((uint64_t)1 << 20)

static char top[64], group[80], proc[80];
static struct hr_err err;
static struct hr_loop *loop;
static struct hr_children kids;
static struct hr_settings settings;
static struct hr_metrics metrics;
static struct hr_alerts alerts;
static struct hr_monitor m;
static struct hr_cgroup groups;
static struct hr_buf missing;
static struct hr_watch *stop;

static void
on_stop(void *arg)
{
	(void)arg;
	hr_loop_stop(loop);
}

static void
file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", group, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
number(const char *name, const char *before, uint64_t n)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "%s%llu\n", before, (unsigned long long)n);
	file(name, text);
}

static void
setup(void)
{
	static char *envp[] = {NULL};

	(void)snprintf(top, sizeof(top), "/tmp/test_monitor.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(group, sizeof(group), "%s/box", top);
	(void)snprintf(proc, sizeof(proc), "%s/proc", top);
	ck_assert_int_eq(hr_path_mkdirs(group, 0755, NULL, &err), 0);
	memset(&groups, 0, sizeof(groups));
	groups.dirs[0] = group;
	groups.n = 1;
	memset(&metrics, 0, sizeof(metrics));
	memset(&kids, 0, sizeof(kids));
	hr_log_setup("test", HR_LOG_TEXT, HR_LOG_ERROR);
	loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(loop);
	hr_children_init(&kids, loop);
	stop = hr_loop_timer(loop, on_stop, NULL, &err);
	ck_assert_ptr_nonnull(stop);
	ck_assert_int_eq(hr_settings_init(&settings, &err), 0);
	settings.max_memory_gb = 1;
	settings.alert_memory = 50;
	settings.alert_memory_pressure = 0;
	settings.alert_clear_seconds = 1000;
	ck_assert_int_eq(hr_alerts_open(&alerts, loop, &kids, &settings, &metrics, envp, &err), 0);
	hr_monitor_init(&m);
	hr_buf_init(&missing, 1024);
}

static void
teardown(void)
{
	hr_monitor_close(&m);
	hr_alerts_close(&alerts);
	hr_buf_done(&missing);
	hr_watch_free(stop);
	hr_loop_free(loop);
	hr_settings_done(&settings);
	ck_assert_int_eq(hr_path_remove(top, &err), 0);
}

static void
start(const char *lacking)
{
	const char *said;

	hr_buf_reset(&missing);
	hr_monitor_open(&m, loop, &alerts, &settings, &groups, proc, &missing);
	said = hr_buf_str(&missing);
	ck_assert_str_eq(said, lacking);
}

/* All that is due now. A descriptor that is ready comes before a timer of the same turn. */
static void
let_pass(int ms)
{
	ck_assert_int_eq(hr_watch_arm(stop, ms, &err), 0);
	ck_assert_int_eq(hr_loop_run(loop, &err), 0);
}

static struct hr_monitor_source *
source(enum hr_monitor_what what)
{
	unsigned i;

	for (i = 0; i < m.n; i++) {
		if (m.sources[i].what == what)
			return &m.sources[i];
	}
	ck_abort_msg("not watched");
	return NULL;
}

/* The kernel has something to say by an eventfd. */
static void
say(enum hr_monitor_what what, uint64_t times)
{
	ck_assert_int_eq(write(source(what)->fd, &times, sizeof(times)), sizeof(times));
}

static void
use(uint64_t raw, uint64_t cached)
{
	number("memory.usage_in_bytes", "", raw);
	number("memory.stat", "total_inactive_file ", cached);
}

static void
version_one(void)
{
	file("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	file("memory.pressure_level", "");
	file("cgroup.event_control", "");
	use(100 * MB, 0);
}

static bool
firing(enum hr_alert_kind kind)
{
	return alerts.v[kind].firing;
}

START_TEST(a_level_is_followed)
{
	uint64_t threshold = (1024 * MB) / 100 * 50;
	struct hr_monitor_source *s;

	version_one();
	start("");
	s = source(HR_MONITOR_LEVEL);
	ck_assert_uint_eq(s->threshold, threshold);
	ck_assert_uint_eq(s->at, threshold);
	/* crossed, but by cached bytes: the next number is where it will be by the others */
	use(600 * MB, 300 * MB);
	say(HR_MONITOR_LEVEL, 1);
	let_pass(1);
	ck_assert_uint_eq(s->at, threshold + 300 * MB);
	ck_assert(!firing(HR_ALERT_MEM_HIGH));
	use(900 * MB, 300 * MB);
	say(HR_MONITOR_LEVEL, 1);
	let_pass(1);
	ck_assert(firing(HR_ALERT_MEM_HIGH) && !firing(HR_ALERT_MEM_CRITICAL));
	/* and where it will be over */
	ck_assert_uint_eq(s->at, threshold + 300 * MB);
	use(300 * MB, 0);
	say(HR_MONITOR_LEVEL, 1);
	let_pass(1);
	ck_assert(firing(HR_ALERT_MEM_HIGH) && alerts.v[HR_ALERT_MEM_HIGH].clearing);
	ck_assert_uint_eq(s->at, threshold);
}
END_TEST

/* The use does not grow any more, as what is cached makes room. */
START_TEST(a_group_that_is_full)
{
	uint64_t top_most = 1024 * MB - 1024 * MB / 100;
	struct hr_monitor_source *s;
	int fd;

	version_one();
	use(1000 * MB, 950 * MB);
	start("");
	s = source(HR_MONITOR_LEVEL);
	ck_assert_uint_eq(s->at, top_most);
	fd = s->fd;
	use(1023 * MB, 950 * MB);
	say(HR_MONITOR_LEVEL, 1);
	let_pass(1);
	ck_assert_uint_eq(s->at, top_most);
	ck_assert_int_eq(s->fd, fd);
	ck_assert(!firing(HR_ALERT_MEM_HIGH));
	use(1023 * MB, 300 * MB);
	say(HR_MONITOR_RECLAIM, 1);
	let_pass(1);
	ck_assert(firing(HR_ALERT_MEM_HIGH));
}
END_TEST

START_TEST(a_level_near_the_limit_can_be_reached)
{
	version_one();
	settings.alert_memory = 100;
	settings.alert_memory_critical = 0;
	start("");
	ck_assert_uint_eq(source(HR_MONITOR_LEVEL)->at, 1024 * MB - 1024 * MB / 100);
}
END_TEST

/* More wake-ups in a second than a few are none. */
START_TEST(what_comes_often_waits)
{
	struct hr_monitor_source *s;

	version_one();
	start("");
	s = source(HR_MONITOR_RECLAIM);
	say(HR_MONITOR_RECLAIM, 1);
	let_pass(1);
	ck_assert_ptr_null(s->watch);
	ck_assert(m.pausing);
	/* seen at the end of the pause, without a word from the kernel; a level that is watched
	 * again still fires */
	use(700 * MB, 0);
	let_pass(1000);
	ck_assert(firing(HR_ALERT_MEM_HIGH));
	ck_assert_ptr_nonnull(s->watch);
	ck_assert(!m.pausing);
	ck_assert_ptr_nonnull(source(HR_MONITOR_LEVEL)->watch);
}
END_TEST

START_TEST(lack_of_memory)
{
	version_one();
	start("");
	ck_assert(!firing(HR_ALERT_OOM_KILL));
	say(HR_MONITOR_OOM, 2);
	let_pass(1);
	ck_assert(firing(HR_ALERT_OOM_KILL));
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 5);
	/* the file has them now: not another time */
	file("memory.oom_control", "oom_kill 5\n");
	hr_monitor_look(&m);
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 5);
	/* not yet seen when new settings come */
	say(HR_MONITOR_OOM, 1);
	hr_monitor_close(&m);
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 6);
	start("");
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 6);
	hr_monitor_close(&m);
	file("memory.oom_control", "oom_kill 9\n");
	start("");
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 9);
}
END_TEST

START_TEST(version_two)
{
	struct hr_monitor_source *s;

	settings.max_processes = 5;
	number("memory.current", "", 100 * MB);
	file("memory.stat", "anon 1\ninactive_file 0\n");
	file("memory.events", "low 0\nmax 0\noom_kill 1\n");
	file("pids.events", "max 2\n");
	file("cgroup.events", "populated 1\n");
	start("");
	ck_assert_uint_eq(m.n, 1);
	s = source(HR_MONITOR_COUNTERS);
	file("memory.events", "low 0\nmax 7\noom_kill 1\n");
	let_pass(1);
	ck_assert(!firing(HR_ALERT_OOM_KILL) && !firing(HR_ALERT_PIDS_MAX));
	ck_assert_ptr_null(s->watch);
	/* one of many in the pause */
	file("memory.events", "low 0\nmax 99\noom_kill 2\n");
	number("memory.current", "", 600 * MB);
	let_pass(1000);
	ck_assert(firing(HR_ALERT_OOM_KILL) && firing(HR_ALERT_MEM_HIGH));
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 2);
	/* while it is closed */
	hr_monitor_close(&m);
	file("pids.events", "max 3\n");
	start("");
	ck_assert(firing(HR_ALERT_PIDS_MAX));
}
END_TEST

START_TEST(share_of_errors)
{
	int64_t now = hr_now_ms() * 1000000;
	unsigned i;

	settings.max_memory_gb = 0;
	groups.n = 0;
	start("");
	for (i = 0; i < 3; i++)
		hr_metrics_recent_add(&metrics, now, true);
	hr_monitor_look(&m);
	ck_assert(!firing(HR_ALERT_ERROR_RATE)); /* too few */
	for (i = 0; i < 4; i++)
		hr_metrics_recent_add(&metrics, now, false);
	hr_monitor_look(&m);
	ck_assert(!firing(HR_ALERT_ERROR_RATE)); /* 42 of 100 */
	hr_metrics_recent_add(&metrics, now, true);
	hr_monitor_look(&m);
	ck_assert(firing(HR_ALERT_ERROR_RATE));
	ck_assert_uint_eq(alerts.v[HR_ALERT_ERROR_RATE].value, 50);
}
END_TEST

START_TEST(what_is_missing)
{
	groups.n = 0;
	settings.max_processes = 5;
	settings.alert_memory_pressure = 30;
	hr_monitor_open(&m, loop, &alerts, &settings, &groups, proc, &missing);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&missing),
	    "memory (no control group), processes (no control group), memory pressure ("));
	ck_assert_uint_eq(m.n, 0);
	hr_monitor_look(&m);
}
END_TEST

/* A group that can be made, but has no way to say something. */
START_TEST(a_group_without_a_voice)
{
	char path[128];

	version_one();
	(void)snprintf(path, sizeof(path), "%s/cgroup.event_control", group);
	ck_assert_int_eq(unlink(path), 0);
	hr_monitor_open(&m, loop, &alerts, &settings, &groups, proc, &missing);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&missing), "memory ("));
	/* it is seen when somebody asks */
	use(900 * MB, 0);
	file("memory.oom_control", "oom_kill 4\n");
	hr_monitor_look(&m);
	ck_assert(firing(HR_ALERT_MEM_HIGH) && firing(HR_ALERT_OOM_KILL));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("monitor");
	TCase *tc = tcase_create("monitor");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_level_is_followed);
	tcase_add_test(tc, a_group_that_is_full);
	tcase_add_test(tc, a_level_near_the_limit_can_be_reached);
	tcase_add_test(tc, what_comes_often_waits);
	tcase_add_test(tc, lack_of_memory);
	tcase_add_test(tc, version_two);
	tcase_add_test(tc, share_of_errors);
	tcase_add_test(tc, what_is_missing);
	tcase_add_test(tc, a_group_without_a_voice);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
