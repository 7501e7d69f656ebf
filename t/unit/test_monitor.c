/* supervisor/monitor on made-up control groups and pressure: the test is the kernel, which writes
 * to the files. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/resources/alert.h"
#include "supervisor/run/cgroup.h"
#include "supervisor/resources/monitor.h"
#include "supervisor/settings/settings.h"

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
static int kernel = -1; /* an eventfd, see pressure_file() */

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
	hr_fd_close(&kernel);
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
	use(100 * MB, 0);
}

static bool
firing(enum hr_alert_kind kind)
{
	return alerts.v[kind].firing;
}

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

/* What there is of version 1 says nothing: it is seen when somebody asks. */
START_TEST(a_group_without_a_voice)
{
	version_one();
	settings.max_processes = 5;
	file("pids.events", "max 2\n");
	start(
	    "memory, except when /ready or /metrics is requested (control group of version 1), "
	    "processes, except when /ready or /metrics is requested (control group of version 1)");
	ck_assert_uint_eq(m.n, 0);
	use(900 * MB, 300 * MB);
	file("memory.oom_control", "oom_kill 4\n");
	file("pids.events", "max 3\n");
	hr_monitor_look(&m);
	ck_assert(
	    firing(HR_ALERT_MEM_HIGH) && firing(HR_ALERT_OOM_KILL) && firing(HR_ALERT_PIDS_MAX));
	ck_assert_uint_eq(alerts.v[HR_ALERT_MEM_HIGH].value, 58);
	ck_assert_uint_eq(alerts.v[HR_ALERT_OOM_KILL].value, 4);
}
END_TEST

/* ---- pressure ---- */

static void
waited(unsigned long long us)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
	    "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\n"
	    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	    us);
	file("pressure", text);
}

/* A made-up file that can be watched: a FIFO takes the trigger, behind its descriptor is then a
 * file with numbers, and an eventfd in its epoll is the kernel. */
static void
pressure_file(void)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/pressure", proc);
	ck_assert_int_eq(hr_path_mkdirs(path, 0755, NULL, &err), 0);
	(void)snprintf(path, sizeof(path), "%s/pressure/memory", proc);
	(void)unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	settings.max_memory_gb = 0;
	settings.alert_memory_pressure = 2;
	start("");
	waited(5000000);
	(void)snprintf(path, sizeof(path), "%s/pressure", group);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(dup3(fd, source(HR_MONITOR_PRESSURE)->file, O_CLOEXEC), 0);
	source(HR_MONITOR_PRESSURE)->total = 5000000; /* the FIFO could not be read */
	hr_fd_close(&fd);
	hr_fd_close(&kernel);
	kernel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_ge(kernel, 0);
	ck_assert_int_eq(epoll_ctl(source(HR_MONITOR_PRESSURE)->fd, EPOLL_CTL_ADD, kernel, &e), 0);
}

static void
the_kernel_tells(void)
{
	ck_assert_int_eq(eventfd_write(kernel, 1), 0);
	let_pass(1);
}

/* The first event of a trigger can be of the time before it was set: it is not even measured. */
START_TEST(pressure_is_not_told_of_by_the_kernel_alone)
{
	pressure_file();
	waited(5039999);
	the_kernel_tells();
	ck_assert(!source(HR_MONITOR_PRESSURE)->measuring);
	waited(5040000);
	the_kernel_tells();
	ck_assert(source(HR_MONITOR_PRESSURE)->measuring);
	ck_assert(!firing(HR_ALERT_MEM_PRESSURE));
	waited(5040400);
	let_pass(2100);
	ck_assert(!source(HR_MONITOR_PRESSURE)->measuring);
	ck_assert(!firing(HR_ALERT_MEM_PRESSURE));
	ck_assert_uint_eq(alerts.changes, 0);
}
END_TEST

START_TEST(pressure_has_the_value_that_was_measured)
{
	uint64_t value;

	pressure_file();
	waited(5040000);
	the_kernel_tells();
	waited(6240000); /* 60 of 100 */
	let_pass(2050);
	ck_assert(firing(HR_ALERT_MEM_PRESSURE));
	value = alerts.v[HR_ALERT_MEM_PRESSURE].value;
	ck_assert_msg(value > 2 && value <= 60, "%llu", (unsigned long long)value);
	ck_assert_uint_eq(alerts.v[HR_ALERT_MEM_PRESSURE].threshold, 2);
	/* it is measured on, though the kernel says nothing, until there is less */
	ck_assert(source(HR_MONITOR_PRESSURE)->measuring);
	waited(6240020);
	let_pass(2100);
	ck_assert(!source(HR_MONITOR_PRESSURE)->measuring);
	ck_assert(firing(HR_ALERT_MEM_PRESSURE) && alerts.v[HR_ALERT_MEM_PRESSURE].clearing);
	ck_assert_uint_eq(alerts.v[HR_ALERT_MEM_PRESSURE].value, 0);
}
END_TEST

/* At a reload the kernel is asked anew, and does not tell that it is over. */
START_TEST(pressure_at_a_reload)
{
	pressure_file();
	waited(5040000);
	the_kernel_tells();
	waited(9000000);
	let_pass(2050);
	ck_assert(firing(HR_ALERT_MEM_PRESSURE) && !alerts.v[HR_ALERT_MEM_PRESSURE].clearing);
	hr_monitor_close(&m);
	settings.alert_memory_pressure = 0;
	start("");
	ck_assert(alerts.v[HR_ALERT_MEM_PRESSURE].clearing);
}
END_TEST

/* The end of a server must not wait for the kernel to close the files. */
START_TEST(stopped)
{
	int file;

	pressure_file();
	file = source(HR_MONITOR_PRESSURE)->file;
	waited(5040000);
	hr_monitor_stop(&m);
	ck_assert(m.closing);
	the_kernel_tells();
	hr_monitor_disk(&m, 100);
	hr_monitor_look(&m);
	ck_assert(!source(HR_MONITOR_PRESSURE)->measuring);
	ck_assert_uint_eq(alerts.changes, 0);
	hr_monitor_stop(&m);
	hr_monitor_close(&m);
	ck_assert_int_eq(fcntl(file, F_GETFD), -1);
	start("");
	ck_assert(!m.closing);
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
	tcase_add_test(tc, version_two);
	tcase_add_test(tc, share_of_errors);
	tcase_add_test(tc, what_is_missing);
	tcase_add_test(tc, a_group_without_a_voice);
	tcase_add_test(tc, pressure_is_not_told_of_by_the_kernel_alone);
	tcase_add_test(tc, pressure_has_the_value_that_was_measured);
	tcase_add_test(tc, pressure_at_a_reload);
	tcase_add_test(tc, stopped);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
