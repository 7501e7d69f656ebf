/* Percent-decoding: the cases are what urllib.parse.unquote() and unquote_plus() answer. */
#include "config.h"

#include "base/text/percent.h"

#include <string.h>

#include "lines.h"

static const struct {
	const char *in, *plain, *form;
} cases[] = {
    {"", "", ""},
    {"a%20b+c", "a b+c", "a b c"},
    {"%C3%a9", "\xC3\xA9", "\xC3\xA9"},
    {"%2", "%2", "%2"},
    {"%", "%", "%"},
    {"%%41", "%A", "%A"},
    {"%zz%4g%41", "%zz%4gA", "%zz%4gA"},
    {"%2B%25", "+%", "+%"},
};

START_TEST(decode)
{
	HR_BUF(plain, 64);
	HR_BUF(form, 64);

	hr_percent_decode(&plain, cases[_i].in, strlen(cases[_i].in), false);
	hr_percent_decode(&form, cases[_i].in, strlen(cases[_i].in), true);
	ck_assert_str_eq(hr_buf_str(&plain), cases[_i].plain);
	ck_assert_str_eq(hr_buf_str(&form), cases[_i].form);
}
END_TEST

START_TEST(a_null_character_is_one)
{
	HR_BUF(b, 64);

	hr_percent_decode(&b, "a%00b", 5, false);
	ck_assert_uint_eq(b.len, 3);
	ck_assert_int_eq(memcmp(b.p, "a\0b", 3), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("percent");
	TCase *tc = tcase_create("percent");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, decode, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_test(tc, a_null_character_is_one);
	return lines_run(s);
}
