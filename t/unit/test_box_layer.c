/* box/layer: a box's own file is made again if a power failure has emptied it, and no link of an
 * earlier box is followed. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clean.h"
#include "base/fd.h"
#include "base/path.h"
#include "box/layer.h"
#include "box/spec.h"

static char top[] = "/tmp/test_box_layer.XXXXXX";
/* directories there: what lies below a box, its upper layer, and that of the launcher */
static int root, upper, scratch;

static int
directory(const char *name)
{
	int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	ck_assert_int_eq(mkdirat(dir, name, 0755), 0);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)close(dir);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void
make(void)
{
	(void)strcpy(top, "/tmp/test_box_layer.XXXXXX"); /* the tests may be in one process */
	ck_assert_ptr_nonnull(mkdtemp(top));
	root = directory("root");
	upper = directory("upper");
	scratch = directory("scratch");
}

static void
remove_all(void)
{
	(void)close(root);
	(void)close(upper);
	(void)close(scratch);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

START_TEST(emptied_file_is_made_again)
{
	const struct box_spec spec = {.name = "name", .root = top};
	int file;
	struct hr_err err = {0};
	struct stat st, again;

	ck_assert_int_eq(mkdirat(root, "etc", 0755), 0);
	ck_assert_int_eq(box_layer_prepare(&spec, false, "", false, root, upper, scratch, &err), 0);
	ck_assert_int_eq(fstatat(upper, "etc/hosts", &st, 0), 0);
	ck_assert_int_gt(st.st_size, 0);
	file = openat(upper, "etc/hosts", O_WRONLY | O_TRUNC | O_CLOEXEC);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(box_layer_prepare(&spec, false, "", false, root, upper, scratch, &err), 0);
	ck_assert_int_eq(fstatat(upper, "etc/hosts", &again, 0), 0);
	ck_assert_int_eq(again.st_size, st.st_size);
	(void)close(file);
}
END_TEST

/* A layer that has the file, hides it, or has something else in the place of its directory. */
START_TEST(files_of_a_layer_stay)
{
	static const char *const paths[] = {"layer/etc/hosts", "layer/etc", "layer/other"};
	char layer[sizeof(top) + 8];
	struct box_spec spec = {.name = "name", .root = top, .below = {layer}, .nbelow = 1};
	int file;
	struct hr_err err = {0};
	struct stat st;

	(void)snprintf(layer, sizeof(layer), "%s/layer", top);
	(void)close(directory("layer"));
	ck_assert_int_eq(mkdirat(root, "etc", 0755), 0);
	if (_i == 0)
		ck_assert_int_eq(mkdirat(root, "../layer/etc", 0755), 0);
	file = openat(root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mknodat(file, paths[_i], S_IFREG | 0644, 0), 0);
	ck_assert_int_eq(
	    box_layer_prepare(&spec, false, ".", false, root, upper, scratch, &err), 0);
	ck_assert_int_eq(fstatat(upper, "etc/hosts", &st, 0), _i < 2 ? -1 : 0);
	(void)close(file);
}
END_TEST

/* A box does not see /etc/shadow, which the password "x" refers to. */
START_TEST(passwords_are_locked)
{
	static const char lines[] = "root:x:0:0:root:/root:/bin/bash\n"
				    "sys:*:3:3:x:/dev:/usr/sbin/nologin\n"
				    "some:x:1000:1000::/home/some:/bin/sh";
	const struct box_spec spec = {.name = "name"};
	int file;
	HR_BUF(text, 4096);
	struct hr_err err = {0};

	file = openat(root, "passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_eq(hr_fd_write_full(file, lines, strlen(lines), NULL), 0);
	(void)close(file);
	ck_assert_int_eq(
	    box_layer_prepare(&spec, false, "etc", false, root, upper, scratch, &err), 0);
	file = openat(upper, "passwd", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(hr_path_read_fd(file, "passwd", &text, &err), 0);
	ck_assert_str_eq(hr_buf_str(&text), "root:*:0:0:root:/root:/bin/bash\n"
					    "sys:*:3:3:x:/dev:/usr/sbin/nologin\n"
					    "some:*:1000:1000::/home/some:/bin/sh");
	(void)close(file);
}
END_TEST

START_TEST(links_are_not_followed)
{
	struct hr_err err = {0};
	struct stat st;

	(void)close(directory("outside"));
	ck_assert_int_eq(mkdirat(root, "var", 0755), 0);
	ck_assert_int_eq(box_layer_link(root, "bin", "usr/bin", &err), 0);
	ck_assert_int_eq(box_layer_link(root, "bin", "usr/bin", &err), 0);
	ck_assert_int_eq(box_layer_link(root, "var/cache/apt", "/mnt/apt", &err), 0);
	ck_assert_int_eq(fstatat(root, "var/cache/apt", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(symlinkat("../../outside", root, "var/lib"), 0);
	ck_assert_int_eq(box_layer_link(root, "var/lib/dpkg", "/mnt/dpkg", &err), -1);
	ck_assert_int_eq(fstatat(root, "../outside/dpkg", &st, AT_SYMLINK_NOFOLLOW), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("box_layer");
	TCase *tc = tcase_create("box_layer"), *native = tcase_create("native");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, make, remove_all);
	tcase_add_test(tc, emptied_file_is_made_again);
	tcase_add_test(tc, passwords_are_locked);
	tcase_add_test(tc, links_are_not_followed);
	suite_add_tcase(s, tc);
	tcase_set_tags(native, "no-valgrind"); /* it knows no openat2 */
	tcase_add_checked_fixture(native, make, remove_all);
	tcase_add_loop_test(native, files_of_a_layer_stay, 0, 3);
	suite_add_tcase(s, native);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
