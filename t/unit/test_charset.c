/* files/charset, guess, encoding: what a file is written in, and the words for what cannot be. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "files/binary.h"
#include "files/charset/charset.h"
#include "files/charset/detect.h"
#include "files/charset/encoding.h"
#include "files/charset/guess.h"
#include "base/module.h"

#include "lines.h"

static const struct hr_charset *
named(const char *name)
{
	bool is_text = false;
	const struct hr_charset *c = hr_charset_find(name, strlen(name), &is_text);

	ck_assert_msg(c != NULL && is_text, "%s", name);
	return c;
}

START_TEST(names)
{
	bool is_text;

	ck_assert_str_eq(named("latin1")->name, "latin_1");
	ck_assert_str_eq(named("windows_1251")->name, "cp1251");
	ck_assert_str_eq(named("koi8_r")->name, "koi8_r");
	ck_assert_str_eq(named("sjis")->name, "shift_jis");
	ck_assert_str_eq(named("gbk")->name, "gbk");
	ck_assert_ptr_null(hr_charset_find("klingon", 7, &is_text));
	ck_assert_ptr_null(hr_charset_find("", 0, &is_text));
	ck_assert_ptr_nonnull(hr_charset_find("utf8", 4, &is_text));
	ck_assert(!is_text);
	ck_assert_ptr_nonnull(hr_charset_find("rot13", 5, &is_text));
	ck_assert(!is_text);
}
END_TEST

/* Python's own messages, recorded with its 3.11. */
START_TEST(cannot_be_decoded)
{
	static const struct {
		const char *charset, *hex, *want;
	} rows[] = {
	    {"utf8", "61e9",
		"'utf-8' codec can't decode byte 0xe9 in position 1: unexpected end of data"},
	    {"utf8", "61e962",
		"'utf-8' codec can't decode byte 0xe9 in position 1: invalid continuation byte"},
	    {"utf8", "ff",
		"'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"},
	    {"utf8", "80",
		"'utf-8' codec can't decode byte 0x80 in position 0: invalid start byte"},
	    {"utf8", "e28262",
		"'utf-8' codec can't decode bytes in position 0-1: invalid continuation byte"},
	    {"utf8", "e282",
		"'utf-8' codec can't decode bytes in position 0-1: unexpected end of data"},
	    {"utf8", "eda080",
		"'utf-8' codec can't decode byte 0xed in position 0: invalid continuation byte"},
	    {"utf8", "f09f98",
		"'utf-8' codec can't decode bytes in position 0-2: unexpected end of data"},
	    {"utf8", "c0af",
		"'utf-8' codec can't decode byte 0xc0 in position 0: invalid start byte"},
	    {"utf8", "f4908080",
		"'utf-8' codec can't decode byte 0xf4 in position 0: invalid continuation byte"},
	    {"cp1252", "6181",
		"'charmap' codec can't decode byte 0x81 in position 1: character maps to "
		"<undefined>"},
	};
	const struct hr_charset *c =
	    strcmp(rows[_i].charset, "utf8") == 0 ? &hr_charset_utf8 : named(rows[_i].charset);
	HR_BUF(bytes, 1000);
	HR_BUF(text, 1000);
	HR_BUF(why, 1000);

	lines_unhex(&bytes, rows[_i].hex);
	ck_assert_int_eq(hr_charset_decode(c, bytes.p, bytes.len, &text, &why), -1);
	ck_assert_str_eq(hr_buf_str(&why), rows[_i].want);
	ck_assert(!hr_charset_fits(c, bytes.p, bytes.len));
}
END_TEST

START_TEST(cannot_be_encoded)
{
	static const struct {
		const char *charset, *text, *want;
	} rows[] = {
	    {"cp1252",
		"ab\xE4\xB8\xAD\xE6\x96\x87"
		"c",
		"'charmap' codec can't encode characters in position 2-3: character maps to "
		"<undefined>"},
	    {"cp1252", "\xC3\xA9\xE4\xB8\xAD",
		"'charmap' codec can't encode character '\\u4e2d' in position 1: character maps to "
		"<undefined>"},
	    {"cp1251", "\xC3\xA9",
		"'charmap' codec can't encode character '\\xe9' in position 0: character maps to "
		"<undefined>"},
	    {"latin1", "\xC3\xA9\xE2\x82\xAC",
		"'latin-1' codec can't encode character '\\u20ac' in position 1: ordinal not in "
		"range(256)"},
	    {"latin1", "\xF0\x9F\x98\x80",
		"'latin-1' codec can't encode character '\\U0001f600' in position 0: ordinal not "
		"in range(256)"},
	    {"big5", "a\xF0\x9F\x98\x80\xF0\x9F\x98\x80",
		"'big5' codec can't encode character '\\U0001f600' in position 1: illegal "
		"multibyte sequence"},
	};
	HR_BUF(bytes, 1000);
	HR_BUF(why, 1000);

	ck_assert_int_eq(hr_charset_encode(named(rows[_i].charset), false, rows[_i].text,
			     strlen(rows[_i].text), &bytes, &why),
	    -1);
	ck_assert_str_eq(hr_buf_str(&why), rows[_i].want);
}
END_TEST

START_TEST(surrogates)
{
	HR_BUF(why, 1000);

	ck_assert_int_eq(hr_charset_check_text("a\xED\xA0\x80\xED\xB0\x80", 7, &why), -1);
	ck_assert_str_eq(hr_buf_str(&why), "'utf-8' codec can't encode characters in position 1-2: "
					   "surrogates not allowed");
	ck_assert_int_eq(hr_charset_check_text("a\xC3\xA9", 3, NULL), 0);
}
END_TEST

/* Every byte that a charset has comes back. */
START_TEST(round_trip)
{
	static const char *const charsets[] = {
	    "cp1251", "koi8_r", "cp866", "latin_1", "iso8859_7", "cp437", "mac_cyrillic"};
	const struct hr_charset *c = named(charsets[_i]);
	HR_BUF(text, 4000);
	HR_BUF(bytes, 4000);
	HR_BUF(why, 4000);
	char all[256];
	size_t i, n = 0;

	for (i = 0; i < 256; i++) {
		all[n] = (char)i;
		n += hr_charset_fits(c, all + n, 1);
	}
	ck_assert_uint_gt(n, 240);
	ck_assert_int_eq(hr_charset_decode(c, all, n, &text, &why), 0);
	ck_assert_int_eq(hr_charset_encode(c, false, text.p, text.len, &bytes, &why), 0);
	ck_assert_uint_eq(bytes.len, n);
	ck_assert_mem_eq(bytes.p, all, n);
}
END_TEST

/* More than one chunk of iconv, and a charset with states. */
START_TEST(long_texts)
{
	static const char *const charsets[] = {"cp1251", "iso2022_jp", "gb18030", "utf_16"};
	const struct hr_charset *c =
	    _i == 3 ? hr_charset_of_bom(HR_BOM_UTF16BE) : named(charsets[_i]);
	const char *piece = _i == 1 ? "\xE3\x81\x82z" : "\xD0\x96z";
	HR_BUF(text, 1u << 20);
	HR_BUF(bytes, 1u << 20);
	HR_BUF(again, 1u << 20);
	int i;

	for (i = 0; i < 20000; i++)
		hr_buf_adds(&text, piece);
	ck_assert_int_eq(hr_charset_encode(c, false, text.p, text.len, &bytes, NULL), 0);
	ck_assert_int_eq(hr_charset_decode(c, bytes.p, bytes.len, &again, NULL), 0);
	ck_assert_uint_eq(again.len, text.len);
	ck_assert_mem_eq(again.p, text.p, text.len);
	if (_i == 3)
		ck_assert_mem_eq(bytes.p, "\xFF\xFE", 2);
}
END_TEST

START_TEST(detection)
{
	static const struct {
		const char *bytes, *want;
	} rows[] = {
	    {"plain", "utf_8"},
	    {"caf\xC3\xA9", "utf_8"},
	    {"# coding: latin-1\nx = 'caf\xC3\xA9'", "utf_8"}, /* the bytes know better */
	    {"# coding: latin-1\nx = 'caf\xE9'", "latin_1"},
	    {"# coding: nonsense\n# coding: cp1251\n", "cp1251"}, /* unknown names are skipped */
	    {"# coding: utf-8\n# coding: cp1251\n", "utf_8"},
	    {"<meta charset=\"windows-1252\">", "cp1252"},
	    {"ENCODING = 'koi8-r'", "koi8_r"},
	    {"coding latin-1", "latin_1"},
	    {"codinglatin-1", "utf_8"},
	    {"coding:           latin-1", "utf_8"},   /* eleven separators */
	    {"coding: big5\n\xFF\xFF\xFF", "cp1252"}, /* does not decode */
	    {"Le caf\xE9 est pr\xEAt, d\xE9j\xE0 servi.\n", "cp1252"},
	    {"\xEF\xBB\xBFtext", "utf_8_sig"},
	    {"\xFF\xFEt\0", "utf-16"},
	};
	size_t len = _i == 14 ? 4 : strlen(rows[_i].bytes);
	struct hr_encoding e;

	hr_encoding_detect(rows[_i].bytes, len, &e);
	ck_assert_str_eq(e.charset->name, rows[_i].want);
	ck_assert(e.mark == (_i == 13));
}
END_TEST

/* A character that the end of the sample cuts in two is no reason to guess. */
START_TEST(cut_sample)
{
	struct hr_encoding e;
	struct hr_buf b;
	size_t i;

	for (i = 0; i < 4; i++) {
		hr_buf_init(&b, HR_ENCODING_SAMPLE * 2);
		hr_buf_add(&b, "abcd", i);
		while (b.len < HR_ENCODING_SAMPLE + 100)
			hr_buf_adds(&b, "\xF0\x9F\x98\x80");
		hr_encoding_detect(b.p, b.len, &e);
		ck_assert_str_eq(e.charset->name, "utf_8");
		hr_buf_done(&b);
	}
}
END_TEST

/* Noise is in no charset, and binary when it is dense. */
START_TEST(noise)
{
	unsigned seed = 1, i, n;
	char b[HR_BINARY_HEAD];

	for (n = 0; n < 300; n++) {
		for (i = 0; i < sizeof(b); i++) {
			seed = seed * 1103515245u + 12345u;
			b[i] = (char)(seed >> 16);
		}
		ck_assert(!hr_guess_sure(b, sizeof(b)));
		ck_assert(hr_binary_head(b, sizeof(b)));
	}
}
END_TEST

/* A module says what is linked here. */
static void
same_answer(const char *file, const char *symbol,
    void (*ask)(struct hr_buf *, const void *, size_t), const char *p, size_t len)
{
	const char *built = getenv("abs_top_builddir");
	const struct hr_detector *d;
	struct hr_err err = {0};
	HR_BUF(linked, 4096);
	HR_BUF(loaded, 4096);

	ck_assert_ptr_nonnull(built);
	d = hr_module_load(built, file, symbol, HR_DETECT_VERSION, &err);
	ck_assert_msg(d != NULL, "%s", err.msg);
	ask(&linked, p, len);
	d->ask(&loaded, p, len);
	ck_assert_uint_gt(linked.len, 0);
	ck_assert_str_eq(hr_buf_str(&loaded), hr_buf_str(&linked));
	hr_buf_done(&linked);
	hr_buf_done(&loaded);
	ck_assert_ptr_null(hr_module_load(built, file, symbol, HR_DETECT_VERSION + 1, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, " has version 1, not 2"));
	ck_assert_ptr_null(hr_module_load(built, file, "no_such", HR_DETECT_VERSION, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "no_such"));
	ck_assert_ptr_null(hr_module_load("/nonexistent", file, symbol, HR_DETECT_VERSION, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/"));
}

START_TEST(modules)
{
	static const char text[] = "\xcf\xf0\xe8\xe2\xe5\xf2, \xfd\xf2\xee "
				   "\xef\xf0\xee\xf1\xf2\xee\xe9 \xf2\xe5\xea\xf1\xf2";
	static const char picture[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10";

	same_answer(
	    HR_DETECT_CHARSET_FILE, "hr_charset_module", hr_detect_charset, text, sizeof(text) - 1);
	same_answer(
	    HR_DETECT_KIND_FILE, "hr_kind_module", hr_detect_kind, picture, sizeof(picture) - 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("charset");
	TCase *tc = tcase_create("charset");

	tcase_add_test(tc, names);
	tcase_add_loop_test(tc, cannot_be_decoded, 0, 11);
	tcase_add_loop_test(tc, cannot_be_encoded, 0, 6);
	tcase_add_test(tc, surrogates);
	tcase_add_loop_test(tc, round_trip, 0, 7);
	tcase_add_loop_test(tc, long_texts, 0, 4);
	tcase_add_loop_test(tc, detection, 0, 15);
	tcase_add_test(tc, cut_sample);
	tcase_add_test(tc, noise);
	tcase_add_test(tc, modules);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
