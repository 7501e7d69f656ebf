/* base/trust, base/module: whose word a file is. As root with files of another user; otherwise with
 * modes and links alone. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/module.h"
#include "base/path.h"
#include "base/trust.h"
#include "scratch.h"

#define OTHER 54321 /* has no account */

static char top[40];
static struct hr_err err;

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "%s/XXXXXX", scratch);
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chdir(top), 0);
	(void)umask(022);
	ck_assert_int_eq(mkdir("d", 0755), 0);
	ck_assert_int_eq(hr_path_write("d/f", "text", 4, 0644, NULL), 0);
	memset(&err, 0, sizeof(err));
}

static void
teardown(void)
{
	ck_assert_int_eq(seteuid(getuid()), 0);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static bool
is_root(void)
{
	if (geteuid() == 0)
		return true;
	printf("# other owners are not tried: run it as root\n");
	return false;
}

static void
assert_read(const char *path)
{
	HR_BUF(b, 100);

	ck_assert_msg(hr_trust_read(path, HR_TRUST_NOBODY, &b, &err) == 0, "%s", err.msg);
	ck_assert_str_eq(hr_buf_str(&b), "text");
}

/* Says why, and nothing of the file is read. */
static void
assert_refused(const char *path, const char *why)
{
	HR_BUF(b, 100);

	ck_assert_int_eq(hr_trust_read(path, HR_TRUST_NOBODY, &b, &err), -1);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_int_eq(err.code, HR_E_UNTRUSTED);
	ck_assert_msg(strstr(err.msg, why) != NULL, "%s", err.msg);
	ck_assert_msg(strstr(err.msg, path) != NULL, "%s", err.msg);
}

START_TEST(ones_own)
{
	assert_read("d/f");
	ck_assert_int_eq(chdir("d"), 0);
	assert_read("f");
	assert_read("./f");
	ck_assert_int_eq(chmod("f", 0400), 0);
	assert_read("f");
	ck_assert_int_eq(hr_trust_directory(".", &err), 0);
}
END_TEST

START_TEST(what_others_may_write)
{
	static const struct {
		const char *name, *why;
		mode_t mode;
	} rows[] = {
	    {"d/f", "others may write it (mode 0646)", 0646},
	    {"d/f", "others may write it (mode 0666)", 0666},
	    {"d", "others may write its directory (mode 0757)", 0757},
	    {"d", "others may write its directory (mode 1777)", 01777}, /* as that of /tmp */
	};

	ck_assert_int_eq(chmod(rows[_i].name, rows[_i].mode), 0);
	assert_refused("d/f", rows[_i].why);
	ck_assert_ptr_nonnull(strstr(err.msg, "chmod go-w"));
}
END_TEST

START_TEST(groups)
{
	if (!is_root())
		return;
	/* that of root, in which nobody else is */
	ck_assert_int_eq(chmod("d/f", 0664), 0);
	ck_assert_int_eq(chmod("d", 0775), 0);
	assert_read("d/f");
	ck_assert_int_eq(chown("d/f", 0, OTHER), 0);
	ck_assert_int_eq(chmod("d/f", 0664), 0);
	assert_refused("d/f", "others may write it");
	ck_assert_int_eq(chmod("d/f", 0644), 0);
	assert_read("d/f");
	ck_assert_int_eq(chown("d", 0, OTHER), 0);
	ck_assert_int_eq(chmod("d", 0775), 0);
	assert_refused("d/f", "others may write its directory");
}
END_TEST

START_TEST(owners)
{
	struct hr_trusted t;

	if (!is_root())
		return;
	ck_assert_int_eq(chown("d/f", OTHER, OTHER), 0);
	assert_refused("d/f", "it belongs to user 54321");
	ck_assert_int_eq(hr_trust_open(&t, "d/f", OTHER, &err), 0);
	hr_trusted_done(&t);
	ck_assert_int_eq(chown("d/f", 0, 0), 0);
	ck_assert_int_eq(chown("d", OTHER, OTHER), 0);
	assert_refused("d/f", "its directory belongs to user 54321");
	ck_assert_int_eq(hr_trust_directory("d", &err), -1);
	ck_assert_int_eq(err.code, HR_E_UNTRUSTED);
	/* what is root's is good for all, what is theirs for them */
	ck_assert_int_eq(chmod(top, 0755), 0);
	ck_assert_int_eq(seteuid(OTHER), 0);
	assert_read("d/f");
	ck_assert_int_eq(hr_trust_directory("d", &err), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(seteuid(OTHER + 1), 0);
	assert_refused("d/f", "its directory belongs to user 54321");
}
END_TEST

START_TEST(links)
{
	ck_assert_int_eq(symlink("../d/f", "d/own"), 0);
	ck_assert_int_eq(symlink("d/own", "twice"), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	assert_read("twice");
	ck_assert_int_eq(hr_trust_read("loop", HR_TRUST_NOBODY, &(struct hr_buf){0}, &err), -1);
	ck_assert_int_eq(err.sys, ELOOP);
	/* where somebody else could have made it */
	ck_assert_int_eq(chmod(top, 01777), 0);
	assert_refused("twice", "others may write its directory");
	ck_assert_int_eq(chmod(top, 0700), 0);
	/* what it leads to has to pass as well */
	ck_assert_int_eq(chmod("d", 0777), 0);
	assert_refused("twice", "others may write its directory");
	ck_assert_int_eq(chmod("d", 0755), 0);
	if (!is_root())
		return;
	ck_assert_int_eq(lchown("d/own", OTHER, OTHER), 0);
	assert_refused("d/own", "a link of user 54321");
	assert_refused("twice", "a link of user 54321");
	ck_assert_int_eq(symlink("d", "dir"), 0);
	ck_assert_int_eq(hr_trust_directory("dir", &err), 0);
	ck_assert_int_eq(lchown("dir", OTHER, OTHER), 0);
	ck_assert_int_eq(hr_trust_directory("dir", &err), -1);
	ck_assert_int_eq(err.code, HR_E_UNTRUSTED);
}
END_TEST

START_TEST(no_regular_file)
{
	struct hr_trusted t;

	ck_assert_int_eq(mkfifo("d/fifo", 0600), 0); /* nobody waits for a writer */
	assert_refused("d/fifo", "must be a regular file");
	ck_assert_int_eq(hr_trust_open(&t, "d", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(err.sys, EISDIR);
	ck_assert_int_eq(hr_trust_open(&t, "d/", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(err.sys, EISDIR);
	ck_assert_int_eq(hr_trust_open(&t, "none", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	ck_assert_int_eq(hr_trust_open(&t, "none/f", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	ck_assert_int_eq(hr_trust_open(&t, "", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(t.fd, -1);
	ck_assert_int_eq(t.dir, -1);
}
END_TEST

/* Not one byte of it gets to the loader, which would say that it is no object. */
START_TEST(modules)
{
	struct hr_module m;

	ck_assert_int_eq(hr_module_open(&m, "d/f", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(err.code, HR_E_SYS);
	ck_assert_ptr_null(m.object);
	ck_assert_int_eq(chmod("d/f", 0666), 0);
	ck_assert_int_eq(hr_module_open(&m, "d/f", HR_TRUST_NOBODY, &err), -1);
	ck_assert_int_eq(err.code, HR_E_UNTRUSTED);
	ck_assert_int_eq(m.dir, -1);
	hr_module_close(&m);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("trust");
	TCase *tc = tcase_create("trust");
	SRunner *sr;
	int failed;

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, ones_own);
	tcase_add_loop_test(tc, what_others_may_write, 0, 4);
	tcase_add_test(tc, groups);
	tcase_add_test(tc, owners);
	tcase_add_test(tc, links);
	tcase_add_test(tc, no_regular_file);
	tcase_add_test(tc, modules);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
