/* session/prompt/report, shell/exports: what the shell writes into its FIFO, and what others do.
 */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "shell/exports.h"
#include "session/prompt/hook.h"
#include "session/prompt/report.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define FIELDS                                                                                     \
	NONCE "\0"                                                                                 \
	      "42\0"                                                                               \
	      "7\0"                                                                                \
	      "99\0"                                                                               \
	      "1000\0"                                                                             \
	      "/w\0"                                                                               \
	      "/bin\0"                                                                             \
	      "dumb\0"                                                                             \
	      "himBs\0"                                                                            \
	      "emacs:vi"
#define WHOLE HR_REPORT_PROMPT "\0" FIELDS
#define LOOKED HR_REPORT_LOOKED "\0" FIELDS "\0"

static struct hr_report_reader reader;

static void
setup(void)
{
	hr_report_reader_init(&reader);
}

static void
teardown(void)
{
	hr_report_reader_done(&reader);
}

static struct hr_report
check_fields(void)
{
	struct hr_report r;

	hr_report_next(&reader, &r);
	ck_assert_ptr_nonnull(r.nonce);
	ck_assert_str_eq(r.nonce, NONCE);
	ck_assert_int_eq(r.pid, 42);
	ck_assert_int_eq(r.exit_code, 7);
	ck_assert_int_eq(r.job, 99);
	ck_assert_uint_eq(r.euid, 1000);
	ck_assert_str_eq(r.pwd, "/w");
	ck_assert_str_eq(r.path, "/bin");
	ck_assert_str_eq(r.hook, "dumb");
	ck_assert_str_eq(r.flags, "himBs");
	ck_assert_str_eq(r.options, "emacs:vi");
	return r;
}

static void
check_whole(void)
{
	struct hr_report r = check_fields();

	ck_assert(!r.pwd_right);
	ck_assert_ptr_null(r.python);
	ck_assert_int_eq(r.taken, -1);
}

static void
check_none(void)
{
	struct hr_report r;

	hr_report_next(&reader, &r);
	ck_assert_ptr_null(r.nonce);
}

START_TEST(byte_by_byte)
{
	size_t i;

	for (i = 0; i < sizeof(WHOLE); i++) {
		check_none();
		hr_report_feed(&reader, &WHOLE[i], 1);
	}
	check_whole();
	check_none();
}
END_TEST

START_TEST(one_after_the_other)
{
	hr_report_feed(&reader, WHOLE "\0" WHOLE, sizeof(WHOLE "\0" WHOLE));
	check_whole();
	check_whole();
	check_none();
}
END_TEST

START_TEST(of_a_shell_that_looked)
{
	static const struct {
		const char *pwd, *python;
		bool right;
		const char *found;
	} rows[] = {{"=", "=/bin/python", true, "/bin/python"}, {"", "=", false, ""},
	    {"=", "", true, NULL}, {"", "", false, NULL}, {"x", "/bin/python", false, NULL}};
	struct hr_report r;
	size_t i, at;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (at = 0; at < sizeof(LOOKED) - 1; at++) {
			hr_report_feed(&reader, &LOOKED[at], 1);
			check_none();
		}
		hr_report_feed(&reader, rows[i].pwd, strlen(rows[i].pwd) + 1);
		check_none();
		hr_report_feed(&reader, rows[i].python, strlen(rows[i].python) + 1);
		check_none();
		hr_report_feed(&reader, "17", sizeof("17"));
		check_none();
		hr_report_feed(&reader, "2", sizeof("2"));
		hr_report_feed(&reader, WHOLE, sizeof(WHOLE));
		r = check_fields();
		ck_assert_int_eq(r.taken, 17);
		ck_assert_uint_eq(r.hides, HR_HIDES_ERRORS);
		ck_assert_int_eq(r.pwd_right, rows[i].right);
		if (rows[i].found == NULL)
			ck_assert_ptr_null(r.python);
		else
			ck_assert_str_eq(r.python, rows[i].found);
		check_whole();
		check_none();
	}
}
END_TEST

START_TEST(others_write_before_it)
{
	static const struct {
		const char *p;
		size_t len;
	} rows[] = {
#define ROW(text) {text, sizeof(text) - 1}
	    ROW("noise"), ROW("noise\0"), ROW("a\0b\0\0\0c"), ROW(HR_REPORT_PROMPT "\0half"),
	    ROW(HR_REPORT_PROMPT "\0"),
	    ROW(HR_REPORT_PROMPT "\0" NONCE "\0"
				 "1\0"
				 "2\0"),
	    ROW(HR_REPORT_PROMPT "\0\0\0\0\0\0\0\0\0\0"), ROW("\0\0\0"), ROW(HR_REPORT_LOOKED "\0"),
	    ROW(HR_REPORT_LOOKED "\0half"), ROW(LOOKED "=\0=\0x\0"),
	    ROW(HR_REPORT_LOOKED "\0" HR_REPORT_PROMPT "\0")};
#undef ROW
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hr_report_feed(&reader, rows[i].p, rows[i].len);
		check_none();
		hr_report_feed(&reader, WHOLE, sizeof(WHOLE));
		check_whole();
		check_none();
	}
}
END_TEST

START_TEST(a_directory_named_like_the_word)
{
	static const char text[] = HR_REPORT_PROMPT "\0" NONCE "\0"
						    "42\0"
						    "7\0"
						    "99\0"
						    "1000\0"
						    "/w/" HR_REPORT_PROMPT "\0"
						    "/bin\0"
						    "t\0"
						    "h\0"
						    "emacs";
	struct hr_report r;

	hr_report_feed(&reader, text, sizeof(text));
	hr_report_next(&reader, &r);
	ck_assert_ptr_nonnull(r.nonce);
	ck_assert_str_eq(r.pwd, "/w/" HR_REPORT_PROMPT);
}
END_TEST

START_TEST(a_nonce_that_was_changed)
{
	static const char text[] = HR_REPORT_PROMPT "\0"
						    "x y\0"
						    "42\0"
						    "7\0"
						    "99\0"
						    "1000\0"
						    "/w\0"
						    "/bin\0"
						    "t\0"
						    "h\0"
						    "emacs";
	struct hr_report r;

	hr_report_feed(&reader, text, sizeof(text));
	hr_report_next(&reader, &r);
	ck_assert_ptr_nonnull(r.nonce);
	ck_assert_str_eq(r.nonce, "x y"); /* it waits for an answer */
}
END_TEST

START_TEST(too_long_is_dropped)
{
	static char much[65536];
	size_t i;

	memset(much, 'x', sizeof(much));
	hr_report_feed(&reader, HR_REPORT_PROMPT, sizeof(HR_REPORT_PROMPT));
	for (i = 0; i < 2 * (HR_REPORT_MAX / sizeof(much)); i++)
		hr_report_feed(&reader, much, sizeof(much));
	check_none();
	ck_assert_uint_le(reader.in.len, HR_REPORT_MAX);
	hr_report_feed(&reader, "", 1);
	hr_report_feed(&reader, WHOLE, sizeof(WHOLE));
	check_whole();
}
END_TEST

/* ---- what a new shell is given ---- */

static void
check_kept(const char *exports, const char *want)
{
	HR_BUF(out, 4096);

	hr_exports_keep(exports, strlen(exports), &out);
	ck_assert_str_eq(hr_buf_str(&out), want);
}

START_TEST(variables_of_the_old_shell)
{
	check_kept("", "");
	check_kept("declare -x A=\"1\"\ndeclare -x B\n", "declare -x A=\"1\"\ndeclare -x B\n");
	/* the prompt is ours, the directory may be another */
	check_kept("declare -x PROMPT_COMMAND=\"x\"\ndeclare -x PS1=\"\"\ndeclare -x PS1X=\"\"\n"
		   "declare -x PWD=\"/\"\ndeclare -x PS2\ndeclare -x OLDPWD=\"/a\"\n",
	    "declare -x PS1X=\"\"\ndeclare -x OLDPWD=\"/a\"\n");
	check_kept(
	    "declare -x TMOUT=\"1\"\ndeclare -x __hr_n=\"x\"\ndeclare -ix SHLVL=\"3\"\n", "");
	/* in POSIX mode */
	check_kept("export A=\"1\"\nexport PS1=\"\"\n", "export A=\"1\"\n");
	/* what could not be changed can be again */
	check_kept("declare -rx A=\"1\"\ndeclare -rx PS1=\"\"\n", "declare -x A=\"1\"\n");
	/* no newline at its end */
	check_kept("declare -x A=\"1\"", "declare -x A=\"1\"");
	check_kept("declare -x PS1", "");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("report");
	TCase *tc = tcase_create("report");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, byte_by_byte);
	tcase_add_test(tc, one_after_the_other);
	tcase_add_test(tc, of_a_shell_that_looked);
	tcase_add_test(tc, others_write_before_it);
	tcase_add_test(tc, a_directory_named_like_the_word);
	tcase_add_test(tc, a_nonce_that_was_changed);
	tcase_add_test(tc, too_long_is_dropped);
	tcase_add_test(tc, variables_of_the_old_shell);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
