/* session/core while memory is short: each allocation of a whole life of a shell fails in turn.
 * Every request is answered all the same, once, and when there is memory again all is well.
 * Linked with --wrap. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long fuse = -1; /* allocations of the core until one fails; below 0: none does */
static bool lasting;   /* and all after it */
static unsigned away;  /* in the test's own code */

static bool
burnt(void)
{
	if (away > 0 || fuse < 0)
		return false;
	if (fuse > 0) {
		fuse--;
		return false;
	}
	if (!lasting)
		fuse = -1;
	return true;
}

void *
__wrap_malloc(size_t size)
{
	return burnt() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return burnt() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return burnt() ? NULL : __real_realloc(p, size);
}

static void
outside(bool on)
{
	if (on)
		away++;
	else
		away--;
}

/* Answered, in whatever way. */
static void
settle(void)
{
	unsigned i;

	for (i = 0; i < 4 && hr_core_busy(f.core); i++)
		fake_wait(&f, 2 * FAKE_NO_CHANGE_MS);
	outside(true); /* Check allocates */
	ck_assert_uint_eq(f.results, f.requests);
	outside(false);
}

static void
print_much(void)
{
	static char text[8 * 1000];
	unsigned i;

	for (i = 0; i < sizeof(text) - 1; i++)
		text[i] = i % 80 == 79 ? '\n' : (char)('a' + i % 26);
	hr_core_output(f.core, text, sizeof(text) - 1, f.now);
}

/* A command, its output in pieces, input, a screen, a lost hook, an end. */
static void
live(void)
{
	ASK(&f, "ls -l\r\r\r\r\r\r\r\r\r\r", .timeout = 3);
	fake_begin(&f);
	fake_bytes(&f, "out\r\n", 5);
	fake_wait(&f, 3000);
	settle();
	ASK(&f, "input \xc3\xa9", .is_input = true, .timeout = 3);
	print_much();
	fake_wait(&f, 3000);
	ASK(&f, "another");
	settle();
	ASK(&f, "", .hidden = true, .timeout = 3);
	fake_bytes(&f, "\033[?1049hscreen", 14);
	fake_wait(&f, 3000);
	ASK(&f, "", .timeout = 3);
	fake_report(&f, 1);
	fake_readline(&f);
	settle();
	ASK(&f, "a\nb\nc", .timeout = 3);
	settle();
	ASK(&f, "unset PROMPT_COMMAND", .timeout = 3);
	fake_begin(&f);
	fake_readline(&f);
	fake_wait(&f, 100);
	fake_begin(&f);
	fake_report(&f, 0);
	fake_readline(&f);
	settle();
	ASK(&f, "exit", .timeout = 3);
	hr_core_exited(f.core, 3, f.now);
	settle();
	fake_report(&f, 0);
	fake_readline(&f);
}

/* With the k-th allocation failing; false: there are not that many. */
static bool
live_without(long k, bool all_after)
{
	bool reached;

	fake_init(&f);
	fake_start(&f);
	f.outside = outside;
	lasting = all_after;
	fuse = k;
	live();
	reached = all_after ? fuse == 0 : fuse < 0;
	fuse = -1;
	lasting = false;
	/* memory again: whatever state it was left in */
	f.now += 100000;
	hr_core_timer(f.core, f.now);
	settle();
	hr_core_exited(f.core, 1, f.now);
	fake_report(&f, 0);
	fake_readline(&f);
	if (hr_core_running(f.core)) {
		ASK(&f, "");
		settle();
	}
	fake_forget(&f);
	ASK(&f, "echo x");
	ck_assert_msg(f.typed.len > 0, "%ld", k);
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	ck_assert_uint_eq(f.results, f.requests);
	ck_assert_msg(strstr(f.last.content, "x") != NULL, "%ld: %s", k, f.last.content);
	ck_assert_int_eq(f.last.exit_code, 0);
	fake_done(&f);
	return reached;
}

START_TEST(one_allocation_fails)
{
	long k = 0;

	while (live_without(k, false))
		k++;
	ck_assert_int_gt(k, 50);
}
END_TEST

START_TEST(no_allocation_works_any_more)
{
	long k;

	for (k = 0; live_without(k, true); k++)
		;
	ck_assert_int_gt(k, 50);
}
END_TEST

START_TEST(no_core_at_all)
{
	const struct hr_core_config config = {.no_change_ms = 1, .hostname = "h"};
	const struct hr_core_ops ops = {0};
	struct hr_err err = {0};
	struct hr_core *c = NULL;
	long k;

	for (k = 0; c == NULL; k++) {
		fuse = k;
		c = hr_core_new(&config, &ops, NULL, &err);
		fuse = -1;
		ck_assert(c != NULL || err.code == HR_E_NOMEM);
	}
	ck_assert_int_gt(k, 2);
	hr_core_free(c);
	hr_core_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("core_nomem");
	TCase *tc = tcase_create("core_nomem");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, one_allocation_fails);
	tcase_add_test(tc, no_allocation_works_any_more);
	tcase_add_test(tc, no_core_at_all);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
