/* session/core under random events: what must hold for every play, and that a well-behaved shell's
 * lines reach the client once each and in order, however it asks. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"
#include "core_play.h"

static uint64_t seed;

/* xorshift64*: the same on every machine */
static unsigned
pick(unsigned n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (unsigned)(seed * UINT64_C(2685821657736338717) >> 33) % n;
}

START_TEST(random_plays)
{
	uint8_t bytes[2000];
	size_t i;

	seed = (uint64_t)_i + 1;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)pick(256);
	core_play(bytes, sizeof(bytes));
}
END_TEST

/* ---- a well-behaved shell ---- */

static unsigned printed, seen; /* numbers */

static void
print_numbers(unsigned n)
{
	char line[32];

	while (n-- > 0) {
		(void)snprintf(line, sizeof(line), "%u\n", ++printed);
		fake_out(&f, line);
	}
}

/* Each number of the content is the one after the last seen. The echo of input stays where output
 * had come before it: it is removed at the very start only. */
static void
check_numbers(void)
{
	const char *p = f.last.content;
	char *end;

	for (; *p != '\0'; p = end + strspn(end, "\n")) {
		end = (char *)(uintptr_t)p + 2;
		if (strncmp(p, "in", 2) == 0)
			continue;
		ck_assert_msg(strtoul(p, &end, 10) == seen + 1, "after %u came %.40s", seen, p);
		seen++;
	}
}

static void
check_answer(unsigned *answered)
{
	if (f.results == *answered)
		return;
	*answered = f.results;
	ck_assert_str_eq(
	    f.last.prefix + (strcmp(f.last.prefix, FAKE_BELOW) == 0 ? strlen(FAKE_BELOW) : 0), "");
	check_numbers();
}

START_TEST(lines_come_once_and_in_order)
{
	bool runs = false;
	unsigned answered = 0, i;

	seed = (uint64_t)_i + 1;
	printed = seen = 0;
	for (i = 0; i < 1500; i++) {
		switch (pick(6)) {
		case 0:
			if (hr_core_busy(f.core))
				break;
			/* rows 4, 5, 7, 8, and 6 only while it runs */
			if (pick(2) == 0)
				ASK(&f, "go", .timeout = 1 + pick(3));
			else if (runs && pick(2) == 0)
				ASK(&f, "in", .is_input = true, .timeout = 1 + pick(3));
			else if (hr_core_running(f.core) || runs)
				ASK(&f, "", .timeout = 1 + pick(3));
			if (!runs && f.typed.len > 0) {
				fake_begin(&f);
				runs = true;
			} else if (f.typed.len > 0) {
				fake_forget(&f);
				fake_out(&f, "in\n");
			}
			break;
		case 1:
		case 2: print_numbers(runs ? 1 + pick(4) : pick(2)); break;
		case 3: fake_wait(&f, (int64_t)pick(4000)); break;
		case 4:
			if (runs && pick(3) == 0) {
				fake_prompt(&f, 0);
				runs = false;
			}
			break;
		default: fake_out(&f, "\033[1m\033[0m"); break;
		}
		check_answer(&answered);
	}
	if (runs)
		fake_prompt(&f, 0);
	check_answer(&answered);
	if (!hr_core_busy(f.core))
		ASK(&f, "last");
	if (f.typed.len > 0) {
		fake_begin(&f);
		fake_prompt(&f, 0);
	}
	check_answer(&answered);
	ck_assert_uint_eq(f.results, f.requests);
	ck_assert_uint_eq(seen, printed);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("core_model");
	TCase *plays = tcase_create("plays"), *lines = tcase_create("lines");
	SRunner *sr;
	int failed;

	tcase_set_timeout(plays, 60);
	tcase_add_loop_test(plays, random_plays, 0, 200);
	tcase_add_checked_fixture(lines, core_setup, core_teardown);
	tcase_add_loop_test(lines, lines_come_once_and_in_order, 0, 60);
	suite_add_tcase(s, plays);
	suite_add_tcase(s, lines);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
