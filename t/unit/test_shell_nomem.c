/* The functions of shell/ that allocate, with each of their allocations failing in turn: they say
 * so, give nothing out and (under a sanitizer or valgrind) lose nothing. */
#include "config.h"

#include "fuse.h"
#include "lines.h"
#include "shell/split.h"

static const char *const texts[] = {
    "ls",
    "l\\\ns && x=$(cat <<A <<B\n1\nA\n2\nB\n) y\\\nz\n# c\nls `a` \\; b",
    "cat <<A <<B <<C <<D <<E\nA\nB\nC\nD\nE\n{ a\\\nb <<F\n1\nF\n}",
    "if [[ x\\\ny",
    "1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n1\n2\n3\n4\n5\n6\n7\n8\n",
};

static int
run_split(const char *s, struct hr_err *err)
{
	struct hr_shell_pieces p = {0};
	int r = hr_shell_split(s, strlen(s), &p, err);

	hr_shell_pieces_done(&p);
	return r;
}

static int
run_refusal(const char *s, struct hr_err *err)
{
	HR_CLEAN(hr_shell_pieces_done) struct hr_shell_pieces p = {0};
	char *text = NULL;

	if (hr_shell_split(s, strlen(s), &p, err) == 0)
		text = hr_shell_refusal_text(&p, NULL, err);
	free(text);
	return text ? 0 : -1;
}

static int (*const functions[])(const char *, struct hr_err *) = {run_split, run_refusal};

#define PLENTY 1000000

START_TEST(every_allocation)
{
	size_t i;

	for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct hr_err err = {0};
		long n, at;
		int r;

		fuse = PLENTY;
		r = functions[_i](texts[i], &err);
		n = PLENTY - fuse;
		fuse = -1;
		ck_assert_int_eq(r, 0);
		ck_assert_int_gt(n, 0);
		for (at = 0; at < n; at++) {
			err.code = HR_OK;
			fuse = at;
			r = functions[_i](texts[i], &err);
			fuse = -1;
			ck_assert_msg(
			    r == -1 && err.code == HR_E_NOMEM, "text %zu, allocation %ld", i, at);
		}
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("shell_nomem");
	TCase *c = tcase_create("shell_nomem");

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, every_allocation, 0, (int)(sizeof functions / sizeof functions[0]));
	suite_add_tcase(s, c);
	return lines_run(s);
}
