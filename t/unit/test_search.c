/* files/search: it ends, whatever a tree and its .gitignore were made for. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"
#include "base/clock.h"
#include "files/search/search.h"

#define SOON_MS 200
#define RULE "xxxxxxxxxxyyyyyyyyyyxxxxxxxxxxyyyyyyyyyyxxxxxxxxxx"
#define ENDED_MS                                                                                   \
	5000 /* of a processor, on any machine; without a bound these take minutes to days */

static char top[sizeof(scratch) + 8];

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "%s/top", scratch);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0); /* of one that failed */
	ck_assert_int_eq(mkdir(top, 0700), 0);
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

/* `count` times the text in a file below the top. */
static void
file(const char *name, const char *text, size_t count)
{
	char path[4096];
	FILE *f;
	size_t i;

	ck_assert_int_lt(snprintf(path, sizeof(path), "%s/%s", top, name), (int)sizeof(path));
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (i = 0; i < count; i++)
		(void)fputs(text, f);
	ck_assert(!ferror(f) && fclose(f) == 0);
}

/* What this thread has had of a processor: others may have all of them meanwhile. */
static int64_t
worked_ms(void)
{
	struct timespec t;

	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
on_line(void *arg, const char *rel, const struct hr_grep_line *l)
{
	(void)rel;
	*(size_t *)arg += l->match;
}

static bool
on_name(void *arg, int dir, const char *name, const char *rel, bool is_dir)
{
	(void)dir;
	(void)name;
	(void)rel;
	(void)is_dir;
	++*(size_t *)arg;
	return true;
}

START_TEST(an_expression_that_takes_for_ever)
{
	static const char *const patterns[] = {"a\\w*\\w*[:=]", "\\w+[:=]", "(a|a)+$", "a++b"};
	struct hr_search s = {.top = top};
	struct hr_grep g = {.pattern = hr_span_of(patterns[_i]), .max = 10};
	struct hr_grep_end end;
	struct hr_err err = {0};
	size_t told = 0;
	int64_t before;

	file("line", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 50000);
	before = worked_ms();
	s.until_ms = hr_now_ms() + SOON_MS;
	ck_assert_int_eq(hr_grep(&s, &g, on_line, &told, &end, &err), 0);
	ck_assert_int_lt(worked_ms() - before, ENDED_MS);
	ck_assert(end.walk.late || end.walk.costly > 0 || end.searched == 1);
	ck_assert_uint_eq(told, 0);
}
END_TEST

START_TEST(lines_are_found)
{
	struct hr_search s = {.top = top, .until_ms = hr_now_ms() + 60000};
	struct hr_grep g = {.pattern = hr_span_of("n(ee)dle"), .max = 10, .literal = _i == 1};
	struct hr_grep_end end;
	struct hr_err err = {0};
	size_t told = 0;

	file("a", "a needle\nnone\n", 3);
	file("b", "n(ee)dle\n", 2);
	ck_assert_int_eq(hr_grep(&s, &g, on_line, &told, &end, &err), 0);
	ck_assert_uint_eq(told, _i == 1 ? 2 : 3);
	ck_assert(!end.walk.late && end.walk.costly == 0);
}
END_TEST

/* Each takes a look at 10^8 characters and more. */
START_TEST(rules_that_take_for_ever)
{
	struct hr_search s = {.top = top};
	struct hr_search_end end;
	struct hr_err err = {0};
	size_t seen = 0;
	int64_t before;

	file(".gitignore", "/**[bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb]*[bbbbbbbbbbbbbbbbbbbbbb]*z\n",
	    15000);
	file("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	     "aaaaa",
	    "", 0);
	before = worked_ms();
	s.until_ms = hr_now_ms() + SOON_MS;
	ck_assert_int_eq(hr_search_walk(&s, on_name, &seen, &end, &err), 0);
	ck_assert_int_lt(worked_ms() - before, ENDED_MS);
}
END_TEST

START_TEST(a_rule_of_a_megabyte)
{
	struct hr_search s = {.top = top, .until_ms = hr_now_ms() + 60000};
	struct hr_search_end end;
	struct hr_err err = {0};
	size_t seen = 0;

	file(".gitignore", "b", 1 << 20); /* is none: it is longer than any name */
	file("bbb", "", 0);
	ck_assert_int_eq(hr_search_walk(&s, on_name, &seen, &end, &err), 0);
	ck_assert_uint_eq(seen, 1);
}
END_TEST

/* Ends and beginnings of lines in .gitignore; each of these files is there beside the file of the
 * rule. */
START_TEST(a_line_of_rules)
{
	static const struct {
		const char *line, *name;
		bool ignored;
	} rows[] = {{"a", "a", true}, {"a ", "a", true}, {"a\r", "a", true}, {"a ", "a ", false},
	    {"a\\ ", "a ", true}, {"\\ ", " ", true}, {" ", " ", false}, {"#a", "#a", false},
	    {"\\#a", "#a", true}, {"/", "a", false}, {"/a", "a", true}, {"a/", "a", false},
	    {"!", "!", false}, {"*\n!a", "a", false}, {"*\n!b", "a", true}};
	struct hr_search s = {.top = top, .until_ms = hr_now_ms() + 60000};
	struct hr_search_end end;
	struct hr_err err = {0};
	size_t seen = 0;

	file(".gitignore", rows[_i].line, 1);
	file(rows[_i].name, "", 0);
	ck_assert_int_eq(hr_search_walk(&s, on_name, &seen, &end, &err), 0);
	ck_assert_uint_eq(seen, rows[_i].ignored ? 0 : 1);
}
END_TEST

/* The rules of all directories on the way down share what there is for them. */
START_TEST(rules_on_the_way_down)
{
	struct hr_search s = {.top = top, .until_ms = hr_now_ms() + 60000};
	struct hr_search_end end;
	struct hr_err err = {0};
	char name[512] = "", path[600];
	size_t seen = 0, i;

	for (i = 0; i < 6; i++) {
		(void)snprintf(path, sizeof(path), "%s.gitignore", name);
		file(path, RULE RULE "\n", 4000);
		(void)strncat(name, "d/", sizeof(name) - strlen(name) - 1);
		(void)snprintf(path, sizeof(path), "%s/%s", top, name);
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	ck_assert_int_eq(hr_search_walk(&s, on_name, &seen, &end, &err), 0);
	ck_assert_uint_eq(seen, 6);
	ck_assert_uint_eq(end.large, 4); /* two of 400 kB fit into a megabyte */
}
END_TEST

/* So do those that hold from above, and of all repositories on the way. */
START_TEST(rules_of_repositories)
{
	static const struct {
		unsigned above, global, inner; /* thousands of rules of 100 bytes and a line feed */
		size_t seen, large;
	} rows[] = {
	    {6, 0, 6, 2, 1},  /* not both */
	    {6, 0, 2, 1, 0},  /* both */
	    {2, 0, 30, 2, 1}, /* it alone is too much */
	    {4, 6, 30, 2, 2}, /* the global ones twice: from above, and in a repository */
	    {6, 6, 30, 2, 3},
	    {0, 6, 30, 2, 2},
	    {0, 12, 2, 1, 1},
	};
	static const char *const made[] = {"r", "r/.git", "r/d", "r/d/.git", "home", "home/git"};
	char home[sizeof(top) + 8], walked[sizeof(top) + 8], path[sizeof(top) + 16];
	struct hr_search s = {
	    .top = walked, .config_home = home, .named = "d", .until_ms = hr_now_ms() + 60000};
	struct hr_search_end end;
	struct hr_err err = {0};
	size_t seen = 0, i;
	FILE *f;

	for (i = 0; i < sizeof(made) / sizeof(*made); i++) {
		if (i == 3 && rows[_i].global == 0)
			continue; /* one repository */
		(void)snprintf(path, sizeof(path), "%s/%s", top, made[i]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	(void)snprintf(home, sizeof(home), "%s/home", top);
	(void)snprintf(walked, sizeof(walked), rows[_i].global > 0 ? "%s/r" : "%s/r/d", top);
	file("r/.gitignore", RULE RULE "\n", rows[_i].above * (size_t)1000);
	file("home/git/ignore", RULE RULE "\n", rows[_i].global * (size_t)1000);
	file("r/d/.gitignore", RULE RULE "\n", rows[_i].inner * (size_t)1000);
	(void)snprintf(path, sizeof(path), "%s/r/d/.gitignore", top);
	f = fopen(path, "a");
	ck_assert_ptr_nonnull(f);
	ck_assert(fputs("gone\n", f) >= 0 && fclose(f) == 0);
	file("r/d/gone", "", 0);
	file("r/d/stays", "", 0);
	ck_assert_int_eq(hr_search_walk(&s, on_name, &seen, &end, &err), 0);
	ck_assert_uint_eq(seen, rows[_i].seen + (rows[_i].global > 0));
	ck_assert_uint_eq(end.large, rows[_i].large);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("search");
	TCase *tc = tcase_create("search");
	SRunner *sr;
	int failed;

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, lines_are_found, 0, 2);
	tcase_add_loop_test(tc, a_line_of_rules, 0, 15);
	tcase_add_test(tc, a_rule_of_a_megabyte);
	tcase_add_test(tc, rules_on_the_way_down);
	tcase_add_loop_test(tc, rules_of_repositories, 0, 7);
	tcase_add_loop_test(tc, an_expression_that_takes_for_ever, 0, 4);
	tcase_add_test(tc, rules_that_take_for_ever);
	suite_add_tcase(suite, tc);
	sr = srunner_create(suite);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
