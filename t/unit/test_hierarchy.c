/* base/process/hierarchy: the directory of a control group, from the kernel's texts, and its
 * files. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/process/hierarchy.h"
#include "scratch.h"

#define MOUNTS                                                                                     \
	"21 1 8:1 / / rw - ext4 /dev/root rw\n"                                                    \
	"30 21 0:26 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n"                     \
	"31 21 0:27 / /sys/fs/cgroup/my\\040own rw - cgroup cgroup rw,memory\n"                    \
	"32 21 0:27 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"               \
	"33 21 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"                      \
	"34 21 0:29 / /sys/fs/cgroup/none rw - cgroup cgroup\n"
#define GROUPS                                                                                     \
	"11:cpu,cpuacct:/jobs/handrail-server\n"                                                   \
	"9:memory:/docker/ab/one\n"                                                                \
	"8:pids:/../out\n"                                                                         \
	"broken\n"                                                                                 \
	"0::/user/one\n"

static const struct {
	const char *controller;
	bool top;
	const char *want; /* NULL: none */
} cases[] = {
    {"", false, "/sys/fs/cgroup/unified/user/one"},
    {"", true, "/sys/fs/cgroup/unified"},
    {"memory", false, "/sys/fs/cgroup/memory/one"},
    {"memory", true, "/sys/fs/cgroup/memory"},
    {"cpu", false, "/sys/fs/cgroup/cpu/jobs"},
    {"cpuacct", false, "/sys/fs/cgroup/cpu/jobs"},
    {"cp", false, NULL},
    {"pids", false, NULL},
    {"freezer", false, NULL},
    {"freezer", true, NULL},
};

START_TEST(parsed)
{
	char mounts[] = MOUNTS, groups[] = GROUPS;
	struct hr_err err = {0};
	HR_FREE char *dir =
	    hr_hierarchy_parse(mounts, cases[_i].top ? NULL : groups, cases[_i].controller, &err);

	if (cases[_i].want == NULL) {
		ck_assert_ptr_null(dir);
		ck_assert_int_eq(err.code, HR_E_NOTFOUND);
		ck_assert_ptr_nonnull(
		    strstr(err.msg, "no control group for")); /* names what is missing */
	} else {
		ck_assert_msg(dir != NULL, "%s", err.msg);
		ck_assert_str_eq(dir, cases[_i].want);
	}
}
END_TEST

START_TEST(a_group_that_the_mount_does_not_show)
{
	char mounts[] = MOUNTS, groups[] = "9:memory:/docker/abc\n";
	struct hr_err err = {0};

	ck_assert_ptr_null(hr_hierarchy_parse(mounts, groups, "memory", &err));
	ck_assert_int_eq(err.code, HR_E_NOTFOUND);
}
END_TEST

/* A mount on top of another one at the same place hides it. */
START_TEST(a_covered_mount)
{
	char mounts[] = "31 21 0:27 / /sys/fs/cgroup rw - cgroup2 a rw\n"
			"3 21 0:27 / /sys/fs/cgroup rw - ext4 b rw\n"
			"39 31 0:27 / /sys/fs/cgroup/x rw - tmpfs c rw\n"
			"40 31 0:28 /new /sys/fs/cgroup rw - cgroup2 d rw\n"
			"41 40 0:28 / /sys/fs/cgroup/y rw - tmpfs e rw\n"
			"42 4";
	char groups[] = "0::/new/one\n";
	struct hr_err err = {0};
	HR_FREE char *dir = hr_hierarchy_parse(mounts, groups, "", &err);

	ck_assert_msg(dir != NULL, "%s", err.msg);
	ck_assert_str_eq(dir, "/sys/fs/cgroup/one");
}
END_TEST

static void
write_file(const char *dir, const char *name, const char *text)
{
	struct hr_err err = {0};
	HR_FREE char *path = hr_path_join(dir, name);

	ck_assert_ptr_nonnull(path);
	ck_assert_msg(hr_path_write(path, text, strlen(text), 0600, &err) == 0, "%s", err.msg);
}

START_TEST(found_by_the_files_of_a_process)
{
	struct hr_err err = {0};
	HR_FREE char *self = hr_path_join(scratch, "self");
	HR_FREE char *own = NULL;
	HR_FREE char *top = NULL;

	ck_assert_int_eq(mkdir(self, 0700), 0);
	write_file(self, "mountinfo", MOUNTS);
	/* the top of a hierarchy needs no group of the process */
	top = hr_hierarchy_find(scratch, "memory", true, &err);
	ck_assert_msg(top != NULL, "%s", err.msg);
	ck_assert_str_eq(top, "/sys/fs/cgroup/memory");
	ck_assert_ptr_null(hr_hierarchy_find(scratch, "memory", false, &err));
	ck_assert_int_ne(err.code, HR_OK);
	write_file(self, "cgroup", GROUPS);
	own = hr_hierarchy_find(scratch, "memory", false, &err);
	ck_assert_ptr_nonnull(own);
	ck_assert_str_eq(own, "/sys/fs/cgroup/memory/one");
}
END_TEST

START_TEST(controllers_of_a_directory)
{
	ck_assert(!hr_hierarchy_has(scratch, "memory"));
	write_file(scratch, "cgroup.controllers", "cpu memory.x pids\n");
	ck_assert(hr_hierarchy_has(scratch, "cpu"));
	ck_assert(hr_hierarchy_has(scratch, "pids"));
	ck_assert(!hr_hierarchy_has(scratch, "memory"));
	write_file(scratch, "cgroup.controllers", "");
	ck_assert(!hr_hierarchy_has(scratch, "cpu"));
}
END_TEST

START_TEST(subgroups_and_their_files)
{
	struct hr_err err = {0};
	HR_FREE char *one = hr_hierarchy_make(scratch, "one", &err);
	HR_FREE char *again = hr_hierarchy_make(scratch, "one", &err);
	HR_FREE char *path = NULL;
	HR_BUF(text, 64);

	ck_assert_ptr_nonnull(one);
	ck_assert_ptr_nonnull(again);
	ck_assert_str_eq(one, again);
	ck_assert_ptr_null(hr_hierarchy_make(scratch, "no/such", &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "no/such"));
	/* a file of the kernel is there already, and is never made */
	ck_assert_int_eq(hr_hierarchy_put(one, "pids.max", "7", &err), -1);
	write_file(one, "pids.max", "");
	ck_assert_int_eq(hr_hierarchy_put_number(one, "pids.max", 18446744073709551615u, &err), 0);
	path = hr_path_join(one, "pids.max");
	ck_assert_int_eq(hr_path_read(path, &text, &err), 0);
	ck_assert_str_eq(hr_buf_str(&text), "18446744073709551615");
}
END_TEST

/* The kernel's side of a group with processes: it refuses controllers `busy` times. */
static int busy, sys_error;
static char moved[64];

ssize_t
write(int fd, const void *p, size_t len)
{
	const char *text = p;

	if (busy > 0 && len > 0 && text[0] == '+') {
		busy--;
		errno = EBUSY;
		return -1;
	}
	if (len == 2 && memcmp(text, "22", 2) == 0) {
		errno = sys_error;
		return -1;
	}
	if (len <= 2 && strlen(moved) + len + 1 < sizeof(moved))
		(void)strcat(strncat(moved, text, len), " ");
	return (ssize_t)syscall(SYS_write, fd, p, len);
}

/* A group with processes gets controllers after they have moved; one may have ended meanwhile. */
START_TEST(processes_make_room)
{
	struct hr_err err = {0};
	HR_FREE char *top = hr_hierarchy_make(scratch, "top", &err);
	HR_FREE char *server = hr_hierarchy_make(top, "handrail-server", &err);

	ck_assert_ptr_nonnull(server);
	write_file(top, "cgroup.subtree_control", "");
	write_file(top, "cgroup.procs", "11\n22\n33\n");
	write_file(server, "cgroup.procs", "");
	sys_error = ESRCH;
	moved[0] = '\0';
	busy = 2;
	ck_assert_msg(hr_hierarchy_share(top, "+memory", true, &err) == 0, "%s", err.msg);
	ck_assert_str_eq(moved, "11 33 11 33 ");
	moved[0] = '\0';
	busy = 1;
	ck_assert_int_eq(hr_hierarchy_share(top, "+memory", false, &err), 0);
	ck_assert_str_eq(moved, "0 ");
	moved[0] = '\0';
	ck_assert_int_eq(hr_hierarchy_share(top, "+memory", true, &err), 0);
	ck_assert_str_eq(moved, "");
	sys_error = EPERM;
	busy = 1;
	ck_assert_int_eq(hr_hierarchy_share(top, "+memory", true, &err), -1);
	ck_assert_int_eq(busy, 0);
	ck_assert_str_eq(moved, "11 ");
	sys_error = ESRCH;
	busy = 100;
	ck_assert_int_eq(hr_hierarchy_share(top, "+memory", true, &err), -1);
	ck_assert_int_eq(err.sys, EBUSY);
	ck_assert_int_eq(busy, 96);
	busy = 0;
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("hierarchy");
	TCase *tc = tcase_create("hierarchy");
	SRunner *r;
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_loop_test(tc, parsed, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_test(tc, a_group_that_the_mount_does_not_show);
	tcase_add_test(tc, a_covered_mount);
	tcase_add_test(tc, found_by_the_files_of_a_process);
	tcase_add_test(tc, controllers_of_a_directory);
	tcase_add_test(tc, subgroups_and_their_files);
	tcase_add_test(tc, processes_make_room);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
