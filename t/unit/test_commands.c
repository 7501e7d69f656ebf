/* session/commands: the record of the last commands. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "session/commands.h"

static const struct hr_span none = {"", 0};

START_TEST(one)
{
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_commands c = {0};

	ck_assert_uint_eq(hr_commands_list(&c, 5, 5, 5, list), 0);
	hr_commands_end(&c, HR_COMMAND_COMPLETED, 1, 5, 5); /* of none: nothing */
	ck_assert_uint_eq(hr_commands_list(&c, 5, 5, 5, list), 0);
	ck_assert_ptr_null(hr_commands_completed(&c, (struct hr_span){"k", 1}));
	hr_commands_begin(&c, (struct hr_span){"k", 1}, (struct hr_span){"a\0b", 3}, 1000, 70);
	ck_assert_ptr_null(hr_commands_completed(&c, (struct hr_span){"k", 1})); /* it runs */
	ck_assert_uint_eq(hr_commands_list(&c, 1500, 1200, 90, list), 1);
	ck_assert(list[0].id == 1 && list[0].end == HR_COMMAND_RUNNING && list[0].exit_code == -1);
	ck_assert(list[0].log_start == 70 && list[0].log_end == 90);
	ck_assert(list[0].elapsed == 500 && list[0].silent == 300 && list[0].started > 0);
	ck_assert(list[0].key.len == 1 && list[0].key.p[0] == 'k');
	ck_assert(list[0].text.len == 3 && memcmp(list[0].text.p, "a\0b", 3) == 0);
	/* what was printed before it began says nothing of it */
	ck_assert_uint_eq(hr_commands_list(&c, 1500, 900, 90, list), 1);
	ck_assert_int_eq(list[0].silent, 500);
	hr_commands_end(&c, HR_COMMAND_COMPLETED, 3, 1700, 95);
	hr_commands_end(&c, HR_COMMAND_SHELL_ENDED, 4, 1800, 99); /* it has ended */
	ck_assert_uint_eq(hr_commands_list(&c, 9000, 1700, 200, list), 1);
	ck_assert(list[0].end == HR_COMMAND_COMPLETED && list[0].exit_code == 3);
	ck_assert(list[0].log_end == 95 && list[0].elapsed == 700 && list[0].silent == 0);
	ck_assert_int_eq(hr_commands_completed(&c, (struct hr_span){"k", 1})->id, 1);
	ck_assert_ptr_null(hr_commands_completed(&c, (struct hr_span){"ka", 2}));
	ck_assert_ptr_null(hr_commands_completed(&c, (struct hr_span){"a", 1}));
	/* neither requests without a key nor an ended shell's commands are found */
	hr_commands_begin(&c, none, none, 2000, 95);
	hr_commands_end(&c, HR_COMMAND_COMPLETED, 0, 2000, 95);
	ck_assert_ptr_null(hr_commands_completed(&c, none));
	hr_commands_begin(&c, (struct hr_span){"k", 1}, none, 2000, 95);
	hr_commands_end(&c, HR_COMMAND_SHELL_ENDED, 0, 2000, 95);
	ck_assert_ptr_null(hr_commands_completed(&c, (struct hr_span){"k", 1}));
}
END_TEST

START_TEST(many)
{
	struct hr_command_state list[HR_COMMANDS_MAX];
	char text[HR_COMMAND_TEXT + 1];
	struct hr_commands c = {0};
	size_t n, i;

	memset(text, 'x', sizeof(text));
	for (n = 1; n <= 3 * HR_COMMANDS_MAX; n++) {
		size_t want = n < HR_COMMANDS_MAX ? n : HR_COMMANDS_MAX;

		/* the one before has not ended: it does so now */
		hr_commands_begin(&c, none, (struct hr_span){text, sizeof(text)}, (int64_t)n, n);
		ck_assert_uint_eq(hr_commands_list(&c, (int64_t)n, 0, n, list), want);
		for (i = 0; i < want; i++) {
			ck_assert_int_eq(list[i].id, (int64_t)(n - want + i + 1));
			ck_assert_uint_eq(list[i].text.len, HR_COMMAND_TEXT);
			ck_assert_int_eq(list[i].length, HR_COMMAND_TEXT + 1);
			ck_assert_int_eq(list[i].end,
			    i + 1 < want ? HR_COMMAND_SHELL_ENDED : HR_COMMAND_RUNNING);
		}
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("commands");
	TCase *tc = tcase_create("record");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, one);
	tcase_add_test(tc, many);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
