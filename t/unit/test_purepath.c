/* files/purepath, pytext, oserror: names and texts by Python's rules. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/purepath.h"
#include "files/place/oserror.h"
#include "files/pytext.h"

#include "lines.h"

START_TEST(normalise)
{
	static const struct {
		const char *path, *want;
	} rows[] = {{"", "."}, {".", "."}, {"./", "."}, {"/", "/"}, {"//", "//"}, {"///", "/"},
	    {"//a", "//a"}, {"///a", "/a"}, {"/a/./b/../c", "/a/b/../c"}, {"a//b/", "a/b"},
	    {"/..", "/.."}, {"..", ".."}, {" a ", " a "}, {"~/x", "~/x"}, {"/a/", "/a"},
	    {"./.a/...", ".a/..."}};
	HR_BUF(b, 1000);

	hr_purepath_put(&b, rows[_i].path, strlen(rows[_i].path));
	ck_assert_str_eq(hr_buf_str(&b), rows[_i].want);
}
END_TEST

START_TEST(join)
{
	static const struct {
		const char *base, *path, *want;
	} rows[] = {{"/w", "a", "/w/a"}, {"/w", "", "/w"}, {"/w", ".", "/w"},
	    {"/w/", "./a/", "/w/a"}, {"/w", "/a/", "/a"}, {"/", "a", "/a"}, {"/w", "..", "/w/.."},
	    {".", "a", "a"}, {"", "", "."}, {"//", "a", "//a"}, {"/w", "//a", "//a"}};
	struct hr_span base = {rows[_i].base, strlen(rows[_i].base)};
	HR_BUF(b, 1000);

	hr_purepath_join(&b, base, rows[_i].path, strlen(rows[_i].path));
	ck_assert_str_eq(hr_buf_str(&b), rows[_i].want);
}
END_TEST

START_TEST(suffix)
{
	static const struct {
		const char *path, *want;
	} rows[] = {{"/a/.pdf", ""}, {"/a/..pdf", ".pdf"}, {"b.tar.gz", ".gz"}, {"b.", ""},
	    {"/a.b/c", ""}, {"a.PDF", ".PDF"}, {"", ""}, {"/", ""}, {"..", ""}, {"a..", ""}};
	struct hr_span s = hr_purepath_suffix(rows[_i].path, strlen(rows[_i].path));

	ck_assert_uint_eq(s.len, strlen(rows[_i].want));
	ck_assert_mem_eq(s.p, rows[_i].want, s.len);
}
END_TEST

START_TEST(bytes_and_back)
{
	static const char text[] = "/a/\xED\xB3\xBF\xC3\xA9"; /* U+DCFF, e acute */
	HR_BUF(b, 1000);
	HR_BUF(why, 1000);
	char *bytes;

	bytes = hr_purepath_bytes(text, sizeof(text) - 1, &why);
	ck_assert_str_eq(bytes, "/a/\xFF\xC3\xA9");
	hr_purepath_text(&b, bytes, strlen(bytes));
	ck_assert_str_eq(hr_buf_str(&b), text);
	free(bytes);
	bytes = hr_purepath_bytes("", 0, &why);
	ck_assert_str_eq(bytes, "");
	free(bytes);
	ck_assert_ptr_null(hr_purepath_bytes("a\0b", 3, &why));
	ck_assert_str_eq(hr_buf_str(&why), "embedded null byte");
	hr_buf_reset(&why);
	ck_assert_ptr_null(hr_purepath_bytes("ab\xED\xA0\x80", 5, &why));
	ck_assert_str_eq(hr_buf_str(&why), "'utf-8' codec can't encode character '\\ud800' in "
					   "position 2: surrogates not allowed");
}
END_TEST

START_TEST(os_errors)
{
	HR_BUF(b, 1000);

	hr_oserror_add(&b, ENOTDIR, "/a'b", 4);
	ck_assert_str_eq(hr_buf_str(&b), "[Errno 20] Not a directory: \"/a'b\"");
	hr_buf_reset(&b);
	hr_oserror_add(&b, ENOSPC, "/a", 2);
	ck_assert_str_eq(hr_buf_str(&b), "[Errno 28] No space left on device");
}
END_TEST

START_TEST(universal_newlines)
{
	static const struct {
		const char *text, *want;
	} rows[] = {{"", ""}, {"a\r\nb\rc\n", "a\nb\nc\n"}, {"\r\r\n\r", "\n\n\n"},
	    {"\n\r", "\n\n"}, {"plain\n", "plain\n"}};
	HR_BUF(b, 1000);

	hr_buf_adds(&b, rows[_i].text);
	hr_pytext_universal(&b, 0);
	ck_assert_str_eq(hr_buf_str(&b), rows[_i].want);
	ck_assert_uint_eq(b.len, strlen(rows[_i].want));
}
END_TEST

START_TEST(lines)
{
	ck_assert_uint_eq(hr_pytext_lines("", 0), 0);
	ck_assert_uint_eq(hr_pytext_lines("a", 1), 1);
	ck_assert_uint_eq(hr_pytext_lines("a\n", 2), 1);
	ck_assert_uint_eq(hr_pytext_lines("a\n\nb", 4), 3);
	ck_assert_uint_eq(hr_pytext_line_at("a\nbc\n", 5, 0), 0);
	ck_assert_uint_eq(hr_pytext_line_at("a\nbc\n", 5, 1), 2);
	ck_assert_uint_eq(hr_pytext_line_at("a\nbc\n", 5, 2), 5);
	ck_assert_uint_eq(hr_pytext_line_at("a\nbc", 4, 9), 4);
}
END_TEST

START_TEST(rejoin)
{
	static const struct {
		const char *text, *want;
	} rows[] = {{"", ""}, {"a\n", "a"}, {"a\n\n", "a\n"}, {"a\r\nb\x0B", "a\nb"},
	    {"a\x1C"
	     "b\xC2\x85"
	     "c\xE2\x80\xA8"
	     "d\xE2\x80\xA9",
		"a\nb\nc\nd"},
	    {"\x0C", ""}, {"a\xC2\xA0\xE2\x80\xA7", "a\xC2\xA0\xE2\x80\xA7"}};
	HR_BUF(b, 1000);

	hr_pytext_rejoin(&b, rows[_i].text, strlen(rows[_i].text));
	ck_assert_str_eq(hr_buf_str(&b), rows[_i].want);
}
END_TEST

START_TEST(characters)
{
	static const char text[] = "a\xC3\xA9\xF0\x9F\x98\x80z";

	ck_assert_uint_eq(hr_pytext_prefix(text, 8, 0), 0);
	ck_assert_uint_eq(hr_pytext_prefix(text, 8, 2), 3);
	ck_assert_uint_eq(hr_pytext_prefix(text, 8, 3), 7);
	ck_assert_uint_eq(hr_pytext_prefix(text, 8, 4), 8);
	ck_assert_uint_eq(hr_pytext_prefix(text, 8, 9), 8);
	ck_assert_uint_eq(hr_pytext_rstrip("a \t\xC2\xA0", 5), 1);
	ck_assert_uint_eq(hr_pytext_rstrip("  ", 2), 0);
	ck_assert_uint_eq(hr_pytext_rstrip(" a", 2), 2);
	ck_assert_uint_eq(hr_pytext_rstrip(" \xC3\xA9\xE3\x80\x80", 6), 3);
	ck_assert_uint_eq(hr_pytext_rstrip("", 0), 0);
}
END_TEST

START_TEST(slices)
{
	static const struct {
		size_t n;
		int64_t start, end;
		size_t from, to;
	} rows[] = {{5, 0, 5, 0, 5}, {5, 1, 3, 1, 3}, {5, -2, 5, 3, 5}, {5, 0, -1, 0, 4},
	    {5, -9, 9, 0, 5}, {5, 4, 2, 4, 4}, {0, 3, -3, 0, 0}, {5, INT64_MIN, INT64_MAX, 0, 5},
	    {5, -1, INT64_MAX, 4, 5}};
	size_t from, to;

	hr_pytext_slice(rows[_i].n, rows[_i].start, rows[_i].end, &from, &to);
	ck_assert_uint_eq(from, rows[_i].from);
	ck_assert_uint_eq(to, rows[_i].to);
}
END_TEST

START_TEST(integers)
{
	static const struct {
		const char *text;
		int ok;
		int64_t want;
	} rows[] = {{"5", 1, 5}, {" 2 ", 1, 2}, {"+3", 1, 3}, {"-4", 1, -4}, {"1_0", 1, 10},
	    {"", 0, 0}, {"_1", 0, 0}, {"1_", 0, 0}, {"1__0", 0, 0}, {"- 1", 0, 0}, {"1.0", 0, 0},
	    {"0x1", 0, 0},
	    {"\xC2\xA0"
	     "7",
		1, 7},
	    {"99999999999999999999", 1, INT64_MAX}, {"1 2", 0, 0}, {"+", 0, 0},
	    {"\x1C"
	     "7",
		0, 0},
	    {"7\x1F", 0, 0}, {"\f7\v", 1, 7}, {"\u0661\uFF12", 1, 12}, {"-\u0967_\u0968", 1, -12},
	    {"\u00B2", 0, 0}, {"\u2167", 0, 0}};
	int64_t got = 0;

	ck_assert_int_eq(
	    hr_pytext_int(rows[_i].text, strlen(rows[_i].text), &got), rows[_i].ok ? 0 : -1);
	if (rows[_i].ok)
		ck_assert_int_eq(got, rows[_i].want);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("purepath");
	TCase *tc = tcase_create("purepath");

	tcase_add_loop_test(tc, normalise, 0, 16);
	tcase_add_loop_test(tc, join, 0, 11);
	tcase_add_loop_test(tc, suffix, 0, 10);
	tcase_add_test(tc, bytes_and_back);
	tcase_add_test(tc, os_errors);
	tcase_add_loop_test(tc, universal_newlines, 0, 5);
	tcase_add_test(tc, lines);
	tcase_add_loop_test(tc, rejoin, 0, 7);
	tcase_add_test(tc, characters);
	tcase_add_loop_test(tc, slices, 0, 9);
	tcase_add_loop_test(tc, integers, 0, 23);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
