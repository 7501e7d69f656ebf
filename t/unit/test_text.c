/* Trimming, counting, cutting, quoting, and numbers as Python writes them. */
#include "config.h"

#include "shell/text.h"

#include <math.h>

#include "lines.h"
#include "base/strv.h"
#include "base/text/floatrepr.h"
#include "base/text/quote.h"
#include "base/text/tame.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "shell/quote.h"

/* All of Python's white space. */
static const char *const spaces[] = {"\t", "\n", "\v", "\f", "\r", "\x1C", "\x1D", "\x1E", "\x1F",
    " ", "\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

/* Neighbours of white space, invisible characters, and bytes that are no UTF-8. */
static const char *const others[] = {"\x08", "\x0E", "\x1B", "!", "\x7F", "\xC2\x84", "\xC2\x86",
    "\xC2\x9F", "\xC2\xA1", "\xE1\x9A\x81", "\xE2\x80\x8B", "\xE2\x80\xA7", "\xE2\x80\xAA",
    "\xE2\x80\xAE", "\xE2\x80\xB0", "\xE2\x81\x9E", "\xE2\x81\xA0", "\xE3\x80\x81", "\xEF\xBB\xBF",
    "\xE2\x80", "\xE3\x80", "\x80", "\x85", "\xA0", "\xC2", "\xFF", "\xC0\xA0", "\xE0\x82\xA0",
    "\xF0\x80\x80\xA0", "\xF0\x9F\x98\x80"};

static void
check_strip(const char *text, size_t left, size_t right)
{
	const char *p = text;
	size_t len = strlen(text);

	ck_assert_uint_eq(hr_utf8_lstrip(text, len), left);
	ck_assert_uint_eq(hr_utf8_rstrip(text, len), right);
	hr_utf8_strip(&p, &len);
	ck_assert_ptr_eq(p, text + left);
	ck_assert_uint_eq(len, right - left);
}

START_TEST(strips_white_space)
{
	char text[64];
	size_t i;

	for (i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
		size_t j;

		for (j = 0; j < sizeof others / sizeof others[0]; j++) {
			size_t s = strlen(spaces[i]), o = strlen(others[j]);

			(void)snprintf(text, sizeof text, "%s %s%sx%s %s", spaces[i], spaces[i],
			    others[j], others[j], spaces[i]);
			/* A cut sequence must not join the byte behind it. */
			check_strip(text, 2 * s + 1, 2 * s + 1 + 2 * o + 1);
		}
	}
}
END_TEST

START_TEST(strips_all)
{
	const char *p = "";
	size_t n = 0, i;

	for (i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
		ck_assert_uint_eq(hr_utf8_lstrip(spaces[i], strlen(spaces[i])), strlen(spaces[i]));
		ck_assert_uint_eq(hr_utf8_rstrip(spaces[i], strlen(spaces[i])), 0);
	}
	ck_assert_uint_eq(hr_utf8_rstrip("", 0), 0);
	ck_assert_uint_eq(hr_utf8_lstrip("", 0), 0);
	hr_utf8_strip(&p, &n);
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(hr_utf8_rstrip("a\0 ", 3), 2); /* NUL is no white space */
}
END_TEST

/* The start of a character at the end of a text, which the next bytes may complete. */
START_TEST(finds_torn_ends)
{
	static const struct {
		const char *text;
		size_t torn;
	} ends[] = {{"", 0}, {"a", 0}, {"a\xC3", 1}, {"\xC3\xA4", 0}, {"\xE2", 1}, {"x\xE2\x82", 2},
	    {"\xE2\x82\xAC", 0}, {"\xF0\x9F\x98", 3}, {"\xF0\x9F\x98\x80", 0}, {"\xE0\x80", 0},
	    {"\xC0", 0}, {"\xF5", 0}, {"\x80", 0}, {"\xA4\xA4\xA4\xA4", 0}};
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		ck_assert_uint_eq(hr_utf8_torn(ends[i].text, strlen(ends[i].text)), ends[i].torn);
}
END_TEST

START_TEST(counts_points)
{
	size_t i;

	static const struct {
		const char *text;
		size_t n;
	} t[] = {
	    {"", 0},
	    {"abc", 3},
	    {"\xC3\xA9", 1},
	    {"\xE2\x82\xAC"
	     "a",
		2},
	    {"\xF0\x9F\x98\x80", 1},
	    {"\xED\xA0\x80", 1}, /* a surrogate */
	    {"\xF4\x8F\xBF\xBF", 1},
	    {"\xF4\x90\x80\x80", 4},
	    {"\xC0\xAF", 2}, /* overlong */
	    {"\xE2\x82", 2},
	    {"\xE2\x82zz", 4},
	    {"\xFF\xFE", 2},
	    {"12345678\xC3\xA9"
	     "12345678",
		17},
	    {"e\xCC\x81", 2},
	};

	for (i = 0; i < sizeof t / sizeof t[0]; i++)
		ck_assert_msg(
		    hr_shell_count(t[i].text, strlen(t[i].text)) == t[i].n, "case %zu", i);
}
END_TEST

/* n times the pattern, which is one code point. */
static char *
repeated(const char *pattern, size_t n, size_t *ret_len)
{
	size_t unit = strlen(pattern), i;
	char *p = malloc(n * unit + 1);

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < n; i++)
		memcpy(p + i * unit, pattern, unit);
	p[n * unit] = '\0';
	*ret_len = n * unit;
	return p;
}

/* The text as an observation shows it. */
static char *
shown(const char *s, size_t len, size_t *ret_len)
{
	size_t head = len, tail = len;
	HR_BUF(b, 8u << 20);

	hr_buf_add(&b, "", 0);
	if (hr_shell_truncation(s, len, &head, &tail)) {
		hr_buf_add(&b, s, head);
		hr_buf_adds(&b, hr_shell_truncated_mark);
		hr_buf_add(&b, s + tail, len - tail);
	} else {
		hr_buf_add(&b, s, len);
	}
	ck_assert_int_eq(hr_buf_check(&b, NULL), 0);
	*ret_len = b.len;
	return hr_buf_take(&b);
}

START_TEST(truncates)
{
	size_t i;

	static const char *const patterns[] = {
	    "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xFF"};
	static const size_t counts[] = {0, 1, 29999, 30000, 30001, 30002, 45000, 1000003};

	for (i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		size_t j;

		for (j = 0; j < sizeof counts / sizeof counts[0]; j++) {
			size_t len, cut_len, again_len, unit = strlen(patterns[i]);
			char *text = repeated(patterns[i], counts[j], &len), *cut, *again;
			const char *mark = "\n[... Observation truncated due to length ...]\n";

			cut = shown(text, len, &cut_len);
			if (counts[j] <= 30000) {
				ck_assert_uint_eq(cut_len, len);
				ck_assert_mem_eq(cut, text, len + 1);
			} else {
				ck_assert_uint_eq(hr_shell_count(cut, cut_len), 30047);
				ck_assert_uint_eq(cut_len, 30000 * unit + strlen(mark));
				ck_assert_mem_eq(cut, text, 15000 * unit);
				ck_assert_mem_eq(cut + 15000 * unit, mark, strlen(mark));
				ck_assert_mem_eq(cut + cut_len - 15000 * unit, text, 15000 * unit);
			}
			again = shown(cut, cut_len, &again_len);
			if (counts[j] <= 30000)
				ck_assert_uint_eq(again_len, cut_len);
			free(again);
			free(cut);
			free(text);
		}
	}
}
END_TEST

/* The first and the last characters are kept, not just any. */
START_TEST(truncation_keeps_both_ends)
{
	HR_BUF(b, 1u << 20);
	size_t len;
	HR_FREE char *cut = NULL;
	int i;

	for (i = 1; i <= 10000; i++)
		hr_buf_addf(&b, "%05d\xC3\xA9", i); /* 6 characters each */
	cut = shown(b.p, b.len, &len);
	ck_assert_int_eq(strncmp(cut, "00001\xC3\xA9", 7), 0);
	ck_assert_ptr_nonnull(strstr(cut, "02500\xC3\xA9\n[... "));
	ck_assert_ptr_nonnull(strstr(cut, " ...]\n07501"));
	ck_assert_str_eq(cut + len - 7, "10000\xC3\xA9");
}
END_TEST

START_TEST(quotes_for_sh)
{
	size_t i;

	static const struct {
		const char *in, *out;
	} t[] = {
	    {"", "''"},
	    {"abc", "abc"},
	    {"/a/b-c_d.e:f,g@h%i+j=k", "/a/b-c_d.e:f,g@h%i+j=k"},
	    {"a b", "'a b'"},
	    {"it's", "'it'\\''s'"},
	    {"'", "''\\'''"},
	    {"$x`y`\"\\\n!", "'$x`y`\"\\\n!'"},
	    {"~", "'~'"},
	    {"\xC3\xA9", "'\xC3\xA9'"},
	};

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		HR_BUF(b, 1000);

		hr_shell_quote(&b, t[i].in, strlen(t[i].in));
		ck_assert_str_eq(hr_buf_str(&b), t[i].out);
	}
}
END_TEST

START_TEST(writes_floats)
{
	size_t i;

	static const struct {
		double d;
		const char *out;
	} t[] = {
	    {5, "5.0"},
	    {2.5, "2.5"},
	    {120, "120.0"},
	    {0.1, "0.1"},
	    {0.1 + 0.2, "0.30000000000000004"},
	    {1e-5, "1e-05"},
	    {1.5e-5, "1.5e-05"},
	    {0.0001, "0.0001"},
	    {0.00012345, "0.00012345"},
	    {1e15, "1000000000000000.0"},
	    {1e16, "1e+16"},
	    {9999999999999998, "9999999999999998.0"},
	    {12345678901234567890.0, "1.2345678901234567e+19"},
	    {1e22, "1e+22"},
	    {1e23, "1e+23"},
	    {1e100, "1e+100"},
	    {-1, "-1.0"},
	    {0, "0.0"},
	    {-0.0, "-0.0"},
	    {5e-324, "5e-324"},
	    {1.7976931348623157e308, "1.7976931348623157e+308"},
	    {0x1p-1017,
		"7.120236347223045e-307"}, /* nearest with 16 digits: ...4, reads back as less */
	    {INFINITY, "inf"},
	    {-INFINITY, "-inf"},
	    {NAN, "nan"},
	};

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		HR_BUF(b, 1000);

		hr_float_repr(&b, t[i].d);
		ck_assert_str_eq(hr_buf_str(&b), t[i].out);
	}
}
END_TEST

static void
check_tame(bool terminal, bool colours, const char *in, const char *out)
{
	int cut;

	/* in one piece, and byte by byte */
	for (cut = 0; cut < 2; cut++) {
		struct hr_tame t = {.terminal = terminal, .colours = colours};
		HR_BUF(b, 1000);
		const char *p;

		if (cut == 0)
			hr_tame_feed(&t, &b, in, strlen(in));
		for (p = in; cut == 1 && *p != '\0'; p++)
			hr_tame_feed(&t, &b, p, 1);
		hr_tame_end(&t, &b);
		ck_assert_str_eq(hr_buf_str(&b), out);
	}
}

#define BAD "\xEF\xBF\xBD"

START_TEST(tames_a_terminal)
{
	size_t i;

	static const struct {
		const char *in, *terminal, *text;
	} t[] = {
	    {"a\r\nb", "a\nb\n", "a\nb\n"},
	    {"10%\r20%\r\n", "10%\r20%\n", "10%\r20%\n"},
	    {"\033[1;31mred\033[0m\r\n", "\033[1;31mred\033[0m\n", "red\n"},
	    {"\033[31mred", "\033[31mred\033[0m\n", "red\n"},
	    {"x\033[2K\033[1A\033[Gy\b", "x\033[2K\033[1A\033[Gy\b\n", "xy\n"},
	    /* a terminal would answer these, into the shell of who looks on */
	    {"a\033[6nb\033[c\033[>c\033[?1$p\033Z\005\033P$qm\033\\c", "abc\n", "abc\n"},
	    /* titles, clipboards, modes, the other screen, a reset, other letters */
	    {"a\033]0;t\ab\033]52;c;eA==\033\\c\033[?1049h\033[?25l\033[20h\033c\033(0d\033#"
	     "8e\0337",
		"abcde\n", "abcde\n"},
	    {"a\xC2\x9B"
	     "6nb\xC2\x9D"
	     "c\xC2\xA0",
		"a6nbc\xC2\xA0\n", "a6nbc\xC2\xA0\n"},
	    {"a\x9B"
	     "6n\xE2\x82",
		"a\xEF\xBF\xBD"
		"6n\xEF\xBF\xBD\n",
		"a\xEF\xBF\xBD"
		"6n\xEF\xBF\xBD\n"},
	    /* each byte that begins no character counts as one, and hides none after it */
	    {"a\xFFz\x80\x80y\xF5\x90x\xE2z", "a" BAD "z" BAD BAD "y" BAD BAD "x" BAD "z\n",
		"a" BAD "z" BAD BAD "y" BAD BAD "x" BAD "z\n"},
	    /* what never ends hides no more than its line */
	    {"a\033]0;title\nb\033P\nc\033[\nd\033_", "a\nb\nc\nd\n", "a\nb\nc\nd\n"},
	    {"\033[1\033[32mg\033\033[0mh", "\033[32mg\033[0mh\n", "gh\n"},
	    {"\360\237\230\200 \342\202\254", "\360\237\230\200 \342\202\254\n",
		"\360\237\230\200 \342\202\254\n"},
	    /* the end of bracketed paste is no line */
	    {"\033[?2004l\r", "", ""},
	    {"a\r\n\r", "a\n", "a\n"},
	    {"", "", ""},
	};

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		check_tame(true, true, t[i].in, t[i].terminal);
		check_tame(false, false, t[i].in, t[i].text);
	}
	check_tame(true, false, "\033[31mred\033[1A\r\n", "red\033[1A\n");
}
END_TEST

START_TEST(reads_base64)
{
	const char *const refused[] = {"TWF", "TW!u", "T=Fu", "=", "===="};
	HR_BUF(b, 100);
	size_t i;

	ck_assert(hr_quote_unbase64(&b, "AAECAwQFBgcICQoLDA0ODw==", 24));
	ck_assert_uint_eq(b.len, 16);
	for (i = 0; i < b.len; i++)
		ck_assert_int_eq(b.p[i], (int)i);
	hr_buf_reset(&b);
	ck_assert(hr_quote_unbase64(&b, "TWFuTQ==", 8));
	ck_assert_str_eq(hr_buf_str(&b), "ManM");
	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		ck_assert_msg(
		    !hr_quote_unbase64(&b, refused[i], strlen(refused[i])), "%s", refused[i]);
}
END_TEST

START_TEST(knows_truths)
{
	ck_assert_int_eq(hr_text_truth("Yes", 3), 1);
	ck_assert_int_eq(hr_text_truth("1", 1), 1);
	ck_assert_int_eq(hr_text_truth("OFF", 3), 0);
	ck_assert_int_eq(hr_text_truth("no", 2), 0);
	ck_assert_int_eq(hr_text_truth("nothing", 7), -1);
	ck_assert_int_eq(hr_text_truth("", 0), -1);
}
END_TEST

START_TEST(splits_words)
{
	HR_CLEAN(hr_strv_done) struct hr_strv s = {0};

	hr_strv_add_words(&s, "one b  last");
	ck_assert_uint_eq(s.n, 4);
	ck_assert_str_eq(s.v[0], "one");
	ck_assert_str_eq(s.v[1], "b");
	ck_assert_str_eq(s.v[2], "");
	ck_assert_str_eq(s.v[3], "last");
}
END_TEST

START_TEST(knows_this_machine)
{
	static const char *const here[] = {"localhost", "127.0.0.1", "[::1]", "LocalHost:80",
	    "127.0.0.1:8080/a?b", "[::1]:1/", "localhost/"};
	static const char *const elsewhere[] = {"", "localhos", "localhost.example", "127.0.0.10",
	    "127.0.0.1.example:80", "[::1]x", "[::1", "127.0.0.1:80@example", "localhost@example",
	    "localhost:80x", "example/localhost"};
	size_t i;

	for (i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		ck_assert_msg(hr_text_is_here(here[i]), "%s", here[i]);
	for (i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		ck_assert_msg(!hr_text_is_here(elsewhere[i]), "%s", elsewhere[i]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("text");
	TCase *c = tcase_create("text");

	tcase_set_timeout(c, 30);
	tcase_add_test(c, strips_white_space);
	tcase_add_test(c, strips_all);
	tcase_add_test(c, counts_points);
	tcase_add_test(c, truncates);
	tcase_add_test(c, truncation_keeps_both_ends);
	tcase_add_test(c, quotes_for_sh);
	tcase_add_test(c, writes_floats);
	tcase_add_test(c, tames_a_terminal);
	tcase_add_test(c, reads_base64);
	tcase_add_test(c, finds_torn_ends);
	tcase_add_test(c, knows_truths);
	tcase_add_test(c, splits_words);
	tcase_add_test(c, knows_this_machine);
	suite_add_tcase(s, c);
	return lines_run(s);
}
