/* box/group on a made-up tree, in which this program's mkdir() makes the files of a control group
 * as the kernel does. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/path.h"
#include "box/group.h"

static const char *const files[] = {"memory.max", "memory.swap.max", "pids.max", "cpu.max",
    "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "cpu.cfs_quota_us", "tasks",
    "cgroup.subtree_control", "cgroup.freeze", NULL};
static char top[64];
static struct hr_err err;
static struct hr_buf dirs;
static bool into; /* the first process can be created in a group */

static const char *
at(const char *name)
{
	static char path[4][256];
	static unsigned next;
	char *p = path[next++ % 4];

	(void)snprintf(p, sizeof(path[0]), "%s/%s", top, name);
	return p;
}

static void
file(const char *name, const char *text)
{
	ck_assert_int_eq(hr_path_write(at(name), text, strlen(text), 0644, NULL), 0);
}

static const char *
content(const char *name)
{
	static struct hr_buf b;

	hr_buf_done(&b);
	hr_buf_init(&b, 4096);
	(void)hr_path_read(at(name), &b, NULL);
	return hr_buf_str(&b);
}

int
mkdir(const char *path, mode_t mode)
{
	int dir, i, r = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

	dir = r == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	for (i = 0; dir >= 0 && files[i] != NULL; i++)
		(void)close(openat(dir, files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (dir >= 0)
		(void)close(dir);
	return r;
}

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test_box_group.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	err = (struct hr_err){0};
	hr_buf_init(&dirs, 4096);
	ck_assert_int_eq(hr_path_mkdirs(at("proc/self"), 0755, NULL, NULL), 0);
}

static void
teardown(void)
{
	hr_buf_done(&dirs);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static int
make(bool root, int64_t memory, int64_t processes, double cpus)
{
	struct box_spec s = {.name = "b", .limits = {memory, processes, cpus}};

	struct box_groups g;
	int r;

	err = (struct hr_err){0};
	hr_buf_reset(&dirs);
	r = box_group_make(&s, at("proc"), root, &g, &dirs, &err);
	if (r == 0)
		r = box_group_join(&g, &err);
	into = g.into >= 0;
	box_group_close(&g);
	return r;
}

static void
mounted(const char *own, const char *format)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), format, top, top, top);
	file("proc/self/mountinfo", text);
	file("proc/self/cgroup", own);
}

/* All controllers of version 2 are in one group. */
START_TEST(one_group)
{
	char want[128];

	mounted("0::/user.slice\n", "35 25 0:30 / %s/cg rw - cgroup2 cgroup2 rw\n");
	(void)mkdir(at("cg"), 0755);
	file("cg/cgroup.controllers", "cpuset cpu memory pids\n");
	ck_assert_msg(make(true, 64 << 20, 9, 1.5) == 0, "%s", err.msg);
	ck_assert_str_eq(content("cg/cgroup.subtree_control"), "+memory +pids +cpu");
	ck_assert_str_eq(content("cg/handrail/cgroup.subtree_control"), "+memory +pids +cpu");
	ck_assert_str_eq(content("cg/handrail/b/memory.max"), "67108864");
	ck_assert_str_eq(content("cg/handrail/b/memory.swap.max"), "0");
	ck_assert_str_eq(content("cg/handrail/b/pids.max"), "9");
	ck_assert_str_eq(content("cg/handrail/b/cpu.max"), "150000 100000");
	ck_assert(into);
	(void)snprintf(want, sizeof(want), "\"%s\"", at("cg/handrail/b"));
	ck_assert_str_eq(hr_buf_str(&dirs), want);
	/* rmdir() removes no group that is in use; here it has files */
	ck_assert_int_eq(make(true, 64 << 20, 0, 0), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "which a box that runs has"));
}
END_TEST

START_TEST(version_one)
{
	mounted("4:memory:/a\n0::/\n", "40 25 0:31 / %s/m rw - cgroup cgroup rw,memory\n"
				       "41 25 0:32 / %s/p rw - cgroup cgroup rw,cpu,pids\n"
				       "42 25 0:33 / %s/u rw - cgroup2 cgroup2 rw\n");
	(void)mkdir(at("m"), 0755);
	(void)mkdir(at("p"), 0755);
	(void)mkdir(at("u"), 0755);
	file("u/cgroup.controllers", "\n");
	ck_assert_msg(make(true, 64 << 20, 9, 0.5) == 0, "%s", err.msg);
	ck_assert_str_eq(content("m/handrail/b/memory.limit_in_bytes"), "67108864");
	ck_assert_str_eq(content("m/handrail/b/memory.memsw.limit_in_bytes"), "67108864");
	ck_assert_str_eq(content("p/handrail/b/pids.max"), "9");
	ck_assert_str_eq(content("p/handrail/b/cpu.cfs_quota_us"), "50000");
	ck_assert_str_eq(content("m/handrail/b/tasks"), "0");
	ck_assert_str_eq(content("p/handrail/b/tasks"), "0");
	ck_assert(into);
	ck_assert_str_eq(content("u/handrail/cgroup.subtree_control"), "");
}
END_TEST

/* An ordinary user's groups are below the user's own, and version 1 has none. */
START_TEST(of_a_user)
{
	mounted("4:memory:/a\n0::/app/run/handrail-server\n",
	    "40 25 0:31 / %s/m rw - cgroup cgroup rw,memory\n"
	    "42 25 0:33 / %s/u rw - cgroup2 cgroup2 rw\n");
	ck_assert_int_eq(hr_path_mkdirs(at("u/app/run/handrail-server"), 0755, NULL, NULL), 0);
	file("u/app/run/cgroup.controllers", "pids\n");
	ck_assert_int_eq(make(false, 64 << 20, 0, 0), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "limit of memory cannot be enforced: your control"));
	ck_assert_msg(make(false, 0, 9, 0) == 0, "%s", err.msg);
	ck_assert_str_eq(content("u/app/run/cgroup.subtree_control"), "+pids");
	ck_assert_str_eq(content("u/app/run/handrail/b/pids.max"), "9");
	/* without a group of version 2 a box without limits is no error */
	mounted("", "");
	ck_assert_int_eq(make(false, 0, 0, 0), 0);
	ck_assert_str_eq(hr_buf_str(&dirs), "");
	ck_assert(!into);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("box_group");
	TCase *tc = tcase_create("box_group");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_group);
	tcase_add_test(tc, version_one);
	tcase_add_test(tc, of_a_user);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
