/* The store of secrets: names, values, both sources, and who can read a file. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "host/records/secret.h"
#include "lines.h"

static char top[64], state[80], pool[96], credentials[160];
static const char *const env[] = {credentials, NULL};

static void
set_up(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test_secret.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(state, sizeof(state), "%s/state", top);
	(void)snprintf(pool, sizeof(pool), "%s/warm", state);
	(void)snprintf(credentials, sizeof(credentials), "CREDENTIALS_DIRECTORY=%s/given", top);
	ck_assert_int_eq(mkdir(strchr(credentials, '=') + 1, 0700), 0);
}

static void
tear_down(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static void
given(const char *name, const char *value)
{
	HR_FREE char *path = hr_path_join(strchr(credentials, '=') + 1, name);

	ck_assert_int_eq(hr_path_write(path, value, strlen(value), 0600, NULL), 0);
}

static int
set(const char *name, const char *value, struct hr_err *err)
{
	return hr_secret_set(state, name, value, strlen(value), err);
}

/* Checks the value that a reader of this directory gets. */
static void
is(const char *dir, const char *const *variables, const char *name, const char *want)
{
	HR_BUF(b, HR_SECRET_MAX);
	struct hr_err err = {0};

	ck_assert_msg(hr_secret_get(dir, variables, name, &b, &err) == 0, "%s", err.msg);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

static void
list_is(const char *want)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	HR_BUF(b, 4096);
	size_t i;

	ck_assert_int_eq(hr_secret_list(state, env, &names, NULL), 0);
	for (i = 0; i < names.n; i++)
		hr_buf_addf(&b, "%s ", names.v[i]);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

START_TEST(life)
{
	HR_FREE char *path = NULL;
	HR_BUF(b, HR_SECRET_MAX);
	struct hr_err err = {0};
	struct stat st;

	list_is("");
	ck_assert_int_eq(hr_secret_get(state, env, "github", &b, &err), -1);
	ck_assert_int_eq(err.code, HR_E_NOTFOUND);
	ck_assert_ptr_nonnull(strstr(err.msg, "\"handrail secret set github\""));
	ck_assert_int_eq(set("github", "ghp_first", NULL), 0);
	ck_assert_int_eq(set("github", "ghp_second", NULL), 0);
	ck_assert_int_eq(set("a-B_9", "12345678", NULL), 0);
	is(state, NULL, "github", "ghp_second");
	is(pool, NULL, "github", "ghp_second");
	list_is("a-B_9 github ");
	path = hr_path_join(state, "secrets/github");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(hr_secret_remove(state, "github", NULL), 0);
	ck_assert_int_eq(hr_secret_remove(state, "github", &err), -1);
	ck_assert_str_eq(
	    err.msg, "there is no secret \"github\"; \"handrail secret list\" lists them");
	list_is("a-B_9 ");
}
END_TEST

/* The removal of a secret removes the file that a killed "secret set" has left. */
START_TEST(removed_whole)
{
	HR_FREE char *path = hr_path_join(state, "secrets/github" HR_PATH_UNFINISHED);

	ck_assert_int_eq(set("github", "ghp_first", NULL), 0);
	ck_assert_int_eq(hr_path_write(path, "ghp_half", 8, 0600, NULL), 0);
	list_is("github ");
	ck_assert_int_eq(hr_secret_remove(state, "github", NULL), 0);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* A credential counts where the store has no such name, without the end of its line. */
START_TEST(credentials_of_systemd)
{
	struct hr_err err = {0};
	HR_BUF(b, HR_SECRET_MAX);

	given("github", "from-systemd\r\n");
	given("other", "of-systemd");
	given("not.a.name", "of-systemd");
	is(state, env, "github", "from-systemd");
	is(NULL, env, "other", "of-systemd");
	ck_assert_int_eq(set("github", "of-the-store", NULL), 0);
	is(state, env, "github", "of-the-store");
	list_is("github other ");
	given("short", "x\n");
	ck_assert_int_eq(hr_secret_get(state, env, "short", &b, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "has 1 bytes"));
	ck_assert_int_eq(hr_secret_get(NULL, NULL, "other", &b, NULL), -1);
}
END_TEST

/* No error has the value. */
START_TEST(refused)
{
	static const char *const names[] = {"", "a/b", "..", "a.b", "a b", "\303\244",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	static const char *const values[] = {"1234567", "hidden-\n-value", "hidden-\r-value",
	    "hidden-\t-value", "hidden-\377-value", "hidden-\177-value"};
	HR_FREE char *large = calloc(1, HR_SECRET_MAX + 2);
	struct hr_err err = {0};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		ck_assert_int_eq(set(names[i], "hidden-value", &err), -1);
		ck_assert_ptr_nonnull(strstr(err.msg, "invalid name of a secret"));
		ck_assert_int_eq(hr_secret_remove(state, names[i], NULL), -1);
	}
	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		ck_assert_int_eq(set("name", values[i], &err), -1);
		ck_assert_ptr_null(strstr(err.msg, "hidden"));
		ck_assert_ptr_null(strstr(err.msg, "1234567"));
	}
	ck_assert_int_eq(hr_secret_set(state, "name", "hidden\0value", 12, &err), -1);
	memset(large, 'x', HR_SECRET_MAX + 1);
	ck_assert_int_eq(set("name", large, &err), -1);
	large[HR_SECRET_MAX] = '\0';
	ck_assert_int_eq(set("name", large, NULL), 0);
	is(state, NULL, "name", large);
	list_is("name ");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("secret");
	TCase *tc = tcase_create("secret");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, life);
	tcase_add_test(tc, removed_whole);
	tcase_add_test(tc, credentials_of_systemd);
	tcase_add_test(tc, refused);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
