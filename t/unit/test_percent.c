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

START_TEST(encode)
{
	static const char stay[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_.~";
	HR_BUF(got, 4096);
	HR_BUF(want, 4096);
	char all[256];
	int c;

	for (c = 1; c <= 255; c++) {
		all[c - 1] = (char)c;
		if (strchr(stay, c) != NULL)
			hr_buf_addc(&want, (char)c);
		else
			hr_buf_addf(&want, "%%%02X", (unsigned)c);
	}
	all[255] = '\0';
	hr_percent_encode(&got, all, "/-_.~");
	ck_assert_str_eq(hr_buf_str(&got), hr_buf_str(&want));
}
END_TEST

START_TEST(hexadecimal_digits)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at;
	int c;

	for (c = 1; c <= 255; c++) {
		at = strchr(digits, c);
		ck_assert_int_eq(hr_hex_value((char)c), at == NULL ? -1 : (at - digits) % 16);
	}
	ck_assert_int_eq(hr_hex_value('\0'), -1);
	ck_assert_int_eq(hr_hex4("0000"), 0);
	ck_assert_int_eq(hr_hex4("fFe1"), 0xffe1);
	ck_assert_int_eq(hr_hex4("g000"), -1);
	ck_assert_int_eq(hr_hex4("000g"), -1);
	ck_assert_int_eq(hr_hex4("12"), -1);
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
	tcase_add_test(tc, encode);
	tcase_add_test(tc, hexadecimal_digits);
	return lines_run(s);
}
