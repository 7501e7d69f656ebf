/* fleet/local/localwork: the name of a sandbox's socket always leads to one that nginx may use. */
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
#include "fleet/edge.h"
#include "fleet/local/localwork.h"

#define ID "00112233445566778899aabbccddeeff"

static char top[32], place[80];
static unsigned renamed;
static ino_t before; /* 0: there is no name yet */

static ino_t
number(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_ino : 0;
}

int
rename(const char *from, const char *to)
{
	struct stat st;

	ck_assert_int_eq(lstat(from, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0666);
	ck_assert_str_eq(to, place);
	ck_assert_uint_eq(number(place), before);
	renamed++;
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void
make_top(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test_fleet_link.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	renamed = 0;
}

static void
socket_file(const char *path)
{
	ck_assert_int_eq(mknod(path, S_IFSOCK | 0600, 0), 0);
}

START_TEST(name_is_replaced_at_once)
{
	char one[64], two[64], rest[100], at[HR_FLEET_PLACE];
	struct hr_err err = {0};

	make_top();
	(void)snprintf(place, sizeof(place), "%s/" ID, top);
	(void)snprintf(one, sizeof(one), "%s/one", top);
	(void)snprintf(two, sizeof(two), "%s/two", top);
	(void)snprintf(rest, sizeof(rest), "%s.new", place);
	socket_file(one);
	socket_file(two);
	ck_assert_int_eq(hr_local_link(top, ID, one, at, sizeof(at), &err), 0);
	ck_assert_uint_eq(number(place), number(one));
	ck_assert_uint_eq(renamed, 1);
	/* nothing changes for the same socket */
	ck_assert_int_eq(hr_local_link(top, ID, one, at, sizeof(at), &err), 0);
	ck_assert_uint_eq(renamed, 1);
	/* a killed process has left its file */
	socket_file(rest);
	before = number(one);
	ck_assert_int_eq(hr_local_link(top, ID, two, at, sizeof(at), &err), 0);
	ck_assert_uint_eq(number(place), number(two));
	ck_assert_uint_eq(renamed, 2);
	ck_assert_uint_eq(number(rest), 0);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}
END_TEST

/* Root of the box can put anything at the path of its direct socket. */
START_TEST(direct_name)
{
	char edge[128], url[160], other[128], beside[160];
	struct hr_err err = {0};

	make_top();
	(void)snprintf(place, sizeof(place), "%s/" ID ".envd", top);
	(void)snprintf(edge, sizeof(edge), "%s/http.sock", top);
	(void)snprintf(url, sizeof(url), "unix:%s", edge);
	(void)snprintf(beside, sizeof(beside), "%s.envd", edge);
	(void)snprintf(other, sizeof(other), "%s/other", top);
	socket_file(other);
	hr_local_link_direct(top, ID, url);
	ck_assert_uint_eq(number(place), 0);
	ck_assert_int_eq(symlink(other, beside), 0);
	hr_local_link_direct(top, ID, url);
	ck_assert_uint_eq(number(place), 0);
	ck_assert_int_eq(unlink(beside), 0);
	socket_file(beside);
	before = 0;
	hr_local_link_direct(top, ID, url);
	ck_assert_uint_eq(number(place), number(beside));
	/* the next server has none */
	ck_assert_int_eq(unlink(beside), 0);
	hr_local_link_direct(top, ID, url);
	ck_assert_uint_eq(number(place), 0);
	socket_file(place);
	ck_assert_int_eq(hr_local_unlink(top, ID, &err), 0);
	ck_assert_uint_eq(number(place), 0);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fleet_link");
	TCase *tc = tcase_create("fleet_link");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, name_is_replaced_at_once);
	tcase_add_test(tc, direct_name);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
