/* supervisor/cgroup and session/confine on made-up trees: which directory, which files, what is
 * said. */
#include "config.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "session/confine.h"
#include "supervisor/run/cgroup.h"

static char top[64];
static struct hr_err err;
static struct hr_cgroup g;

static char *
at(const char *format, ...)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];
	va_list ap;
	int n = snprintf(p, sizeof(path[0]), "%s/", top);

	va_start(ap, format);
	(void)vsnprintf(p + n, sizeof(path[0]) - (size_t)n, format, ap);
	va_end(ap);
	return p;
}

static void
dir(const char *name)
{
	ck_assert_int_eq(hr_path_mkdirs(at("%s", name), 0755, NULL, NULL), 0);
}

static void
file(const char *name, const char *text)
{
	FILE *f = fopen(at("%s", name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static const char *
content(const char *name)
{
	static char text[256];
	FILE *f = fopen(at("%s", name), "r");
	size_t n = 0;

	if (f != NULL) {
		n = fread(text, 1, sizeof(text) - 1, f);
		(void)fclose(f);
	}
	text[n] = '\0';
	return text;
}

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test_cgroup.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	memset(&err, 0, sizeof(err));
	memset(&g, 0, sizeof(g));
	dir("proc/self");
}

static void
teardown(void)
{
	char command[128];

	hr_cgroup_close(&g);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", top);
	ck_assert_int_eq(system(command), 0);
}

static int
open_box(uint64_t memory, uint64_t pids, uint64_t cpu)
{
	const struct hr_cgroup_limits l = {
	    .memory = memory, .pids = pids, .cpu_quota = cpu, .cpu_period = 100000};

	return hr_cgroup_open(&g, at("proc"), "box", &l, &err);
}

START_TEST(version_two)
{
	char mounts[512];

	(void)snprintf(mounts, sizeof(mounts),
	    "25 30 0:23 / /sys rw - sysfs sysfs rw\n"
	    "35 25 0:30 /scope %s/cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
	    top);
	file("proc/self/mountinfo", mounts);
	file("proc/self/cgroup", "0::/scope/unit\n");
	/* the kernel makes these files; here they are there before */
	dir("cg/unit/box");
	file("cg/unit/cgroup.controllers", "cpu memory pids\n");
	file("cg/unit/cgroup.subtree_control", "");
	file("cg/unit/box/memory.max", "max");
	file("cg/unit/box/memory.swap.max", "max");
	file("cg/unit/box/pids.max", "max");
	ck_assert_msg(open_box(3u << 20, 77, 0) == 0, "%s", err.msg);
	ck_assert_uint_eq(g.n, 1);
	ck_assert_str_eq(g.dirs[0], at("cg/unit/box"));
	ck_assert(g.has_memory && g.has_pids);
	ck_assert_str_eq(content("cg/unit/cgroup.subtree_control"), "+memory +pids");
	ck_assert_str_eq(content("cg/unit/box/memory.max"), "3145728");
	ck_assert_str_eq(content("cg/unit/box/memory.swap.max"), "0ax"); /* a file, so not cut */
	ck_assert_str_eq(content("cg/unit/box/pids.max"), "77x");
	/* half a processor; the others are limited without it, too */
	hr_cgroup_close(&g);
	ck_assert_int_eq(open_box(0, 77, 50000), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "cpu.max"));
	ck_assert(g.has_pids && !g.has_cpu && !g.has_memory);
	hr_cgroup_close(&g);
	file("cg/unit/box/cpu.max", "");
	ck_assert_int_eq(open_box(0, 77, 50000), 0);
	ck_assert(g.has_pids && g.has_cpu);
	ck_assert_str_eq(content("cg/unit/box/cpu.max"), "50000 100000");
	hr_cgroup_close(&g);
	ck_assert_int_eq(open_box(0, 77, 0), 0);
	ck_assert_str_eq(content("cg/unit/box/cpu.max"), "max00 100000"); /* not cut either */
	hr_cgroup_close(&g);
	file("cg/unit/cgroup.controllers", "cpuset memory\n");
	ck_assert_int_eq(open_box(0, 0, 50000), -1);
	ck_assert(!g.has_cpu);
}
END_TEST

/* A server that moved out of the way finds the group that it came from. */
START_TEST(version_two_again)
{
	char mounts[512];

	(void)snprintf(mounts, sizeof(mounts), "35 25 0:30 / %s/cg rw - cgroup2 cgroup2 rw\n", top);
	file("proc/self/mountinfo", mounts);
	file("proc/self/cgroup", "0::/unit/handrail-server\n");
	dir("cg/unit/box");
	dir("cg/unit/handrail-server");
	file("cg/unit/cgroup.controllers", "pids\n");
	file("cg/unit/cgroup.subtree_control", "");
	file("cg/unit/box/cpu.max", "");
	file("cg/unit/box/pids.max", "");
	ck_assert_msg(open_box(0, 77, 0) == 0, "%s", err.msg);
	ck_assert_str_eq(g.dirs[0], at("cg/unit/box"));
	/* a group outside the namespace of control groups is nowhere in the tree */
	hr_cgroup_close(&g);
	file("proc/self/cgroup", "0::/../unit\n");
	ck_assert_int_eq(open_box(0, 77, 0), -1);
	ck_assert_str_eq(err.msg, "no control group for pids is mounted");
}
END_TEST

START_TEST(version_two_without_a_right)
{
	char mounts[512];

	(void)snprintf(mounts, sizeof(mounts), "35 25 0:30 / %s/cg rw - cgroup2 cgroup2 rw\n", top);
	file("proc/self/mountinfo", mounts);
	file("proc/self/cgroup", "0::/\n");
	dir("cg");
	file("cg/cgroup.controllers", "memory pids\n");
	ck_assert_int_eq(open_box(1, 1, 0), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "cgroup.subtree_control"));
	ck_assert_uint_eq(g.n, 0);
	ck_assert(!g.has_memory && !g.has_pids);
}
END_TEST

START_TEST(version_one)
{
	char mounts[1024];

	(void)snprintf(mounts, sizeof(mounts),
	    "40 25 0:31 / %s/m rw - cgroup cgroup rw,memory\n"
	    "41 25 0:32 / %s/p rw - cgroup cgroup rw,cpu,pids\n"
	    "42 25 0:33 / %s/u rw - cgroup2 cgroup2 rw\n",
	    top, top, top);
	file("proc/self/mountinfo", mounts);
	file("proc/self/cgroup", "4:memory:/a/b\n3:cpu,pids:/\n1:name=systemd:/\n0::/\n");
	dir("u");
	file("u/cgroup.controllers", "\n");
	dir("m/a/b/box");
	dir("p/box");
	file("m/a/b/box/memory.limit_in_bytes", "");
	file("p/box/pids.max", "");
	file("p/box/cpu.cfs_period_us", "");
	file("p/box/cpu.cfs_quota_us", "");
	ck_assert_msg(open_box(4096, 9, 50000) == 0, "%s", err.msg);
	ck_assert_uint_eq(g.n, 3); /* two of them are one directory here, which does no harm */
	ck_assert_str_eq(g.dirs[0], at("m/a/b/box"));
	ck_assert_str_eq(g.dirs[1], at("p/box"));
	ck_assert_str_eq(content("m/a/b/box/memory.limit_in_bytes"), "4096");
	ck_assert_str_eq(content("p/box/pids.max"), "9");
	ck_assert_str_eq(content("p/box/cpu.cfs_period_us"), "100000");
	ck_assert_str_eq(content("p/box/cpu.cfs_quota_us"), "50000");
	hr_cgroup_close(&g);
	/* only one of them is wanted, and it is not mounted */
	file("proc/self/cgroup", "4:memory:/a/b\n");
	ck_assert_int_eq(open_box(0, 9, 0), -1);
	ck_assert_str_eq(err.msg, "no control group for pids is mounted");
}
END_TEST

START_TEST(nothing_is_asked_for)
{
	ck_assert_int_eq(open_box(0, 0, 0), 0);
	ck_assert_uint_eq(g.n, 0);
}
END_TEST

static const char *
why(struct hr_confine *c)
{
	static struct hr_buf out;

	hr_buf_done(&out);
	hr_buf_init(&out, 4096);
	hr_confine_why(c, NULL, &out);
	return hr_buf_str(&out);
}

/* ck_assert_str_eq() looks at its arguments more than once. */
static void
expect(struct hr_confine *c, const char *want)
{
	const char *got = why(c);

	ck_assert_str_eq(got, want);
}

START_TEST(what_is_said)
{
	struct hr_confine c = {.ngroups = 1};
	char group[512];

	dir("cg");
	(void)snprintf(group, sizeof(group), "%s", at("cg"));
	c.groups[0] = group;
	expect(&c, "");
	file("cg/memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 0\n");
	file("cg/memory.max", "67108864\n");
	file("cg/pids.events", "max 3\n");
	file("cg/pids.max", "64\n");
	/* what was before the first command is nobody's business */
	hr_confine_begin(&c);
	expect(&c, "");
	hr_confine_begin(&c);
	file("cg/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
	expect(&c, "\n[Out of memory: the system ended a process of the sandbox (limit 64 MB).]");
	expect(&c, "");
	hr_confine_begin(&c);
	file("cg/pids.events", "max 12\n");
	expect(&c, "\n[Too many processes: the sandbox may have no more than 64.]");
	expect(&c, "");
	file("cg/pids.max", "max\n");
	file("cg/pids.events", "max 13\n");
	expect(&c, "\n[Too many processes: the sandbox may have no more.]");
	/* between two commands, or in one whose end nobody asked for */
	file("cg/memory.events", "low 0\noom 3\noom_kill 3\noom_group_kill 0\n");
	hr_confine_begin(&c);
	hr_confine_begin(&c);
	expect(&c, "\n[Out of memory: before this command began, the system ended a process of the "
		   "sandbox.]");
	expect(&c, "");
	file("cg/memory.events", "low 0\noom 3\noom_kill 4\noom_group_kill 0\n");
	hr_confine_begin(&c);
	file("cg/memory.events", "low 0\noom 3\noom_kill 5\noom_group_kill 0\n");
	expect(&c, "\n[Out of memory: the system ended a process of the sandbox (limit 64 MB).]");
	expect(&c, "");
}
END_TEST

START_TEST(without_limits_nothing_is_said)
{
	expect(NULL, "");
}
END_TEST

START_TEST(what_is_said_in_version_one)
{
	struct hr_confine c = {.ngroups = 1};
	char group[512];

	dir("cg");
	(void)snprintf(group, sizeof(group), "%s", at("cg"));
	c.groups[0] = group;
	file("cg/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
	file("cg/memory.limit_in_bytes", "1073741824\n");
	hr_confine_begin(&c);
	file("cg/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	expect(&c, "\n[Out of memory: the system ended a process of the sandbox (limit 1024 MB).]");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("cgroup");
	TCase *tc = tcase_create("cgroup");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, version_two);
	tcase_add_test(tc, version_two_again);
	tcase_add_test(tc, version_two_without_a_right);
	tcase_add_test(tc, version_one);
	tcase_add_test(tc, nothing_is_asked_for);
	tcase_add_test(tc, what_is_said);
	tcase_add_test(tc, without_limits_nothing_is_said);
	tcase_add_test(tc, what_is_said_in_version_one);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
