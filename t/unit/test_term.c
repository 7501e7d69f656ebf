/* hr_term beyond the recorded screens: rules, numbering, rows, change, memory, answers. */
#include "config.h"

#include "term/term.h"
#include "lines.h"
#include "term_history.h"

#include <stdint.h>

static struct hr_term *t;
static struct hr_buf text;

static void
open_term(unsigned cols, unsigned rows, unsigned history, size_t max_bytes)
{
	struct hr_term_config config = {cols, rows, history, max_bytes, true};

	hr_term_free(t);
	t = hr_term_new(&config);
	ck_assert_ptr_nonnull(t);
}

static void
setup(void)
{
	hr_buf_init(&text, (size_t)64 << 20);
	open_term(0, 0, 0, 0);
}

static void
teardown(void)
{
	hr_term_free(t);
	t = NULL;
	hr_buf_done(&text);
}

static void
feed(const char *s)
{
	hr_term_feed(t, s, strlen(s));
}

static void
feed_lines(unsigned from, unsigned to)
{
	char line[32];

	for (; from <= to; from++) {
		(void)snprintf(line, sizeof(line), "line %u\n", from);
		feed(line);
	}
}

static void
feed_many(const char *s, size_t times)
{
	while (times-- > 0)
		feed(s);
}

static const char *
now(void)
{
	hr_buf_reset(&text);
	hr_term_text(t, &text);
	ck_assert_int_eq(text.fail, HR_OK);
	return hr_buf_str(&text);
}

static const char *
from_row(uint64_t row)
{
	hr_buf_reset(&text);
	hr_term_text_from(t, row, &text);
	return hr_buf_str(&text);
}

static void
shows(const char *bytes, const char *want)
{
	hr_term_reset(t);
	feed(bytes);
	ck_assert_str_eq(now(), want);
}

/* --- rendering --- */

START_TEST(controls_move_and_leave_no_text)
{
	shows("ab\rX\n\tY\bZ\n", "Xb\n        Z");
	shows("\001\002\016a\017\177b\005", "ab");
	shows("a\vb\fc", "a\n b\n  c");
}
END_TEST

START_TEST(backspace_crosses_an_automatic_wrap_only)
{
	open_term(10, 4, 10, 0);
	shows("0123456789a\b\bX", "012345678Xa");
	shows("0123\n\bX", "0123\nX");
}
END_TEST

START_TEST(utf8_errors_are_dropped)
{
	shows("a\303(b", "a(b");
	shows("a\300\200\355\240\200\364\220\200\200\370b", "ab");
	shows("a\342\202b\342\202", "ab");
	shows("a\303\033[31m\251b", "a\303\251b"); /* a sequence between its bytes does no harm */
	shows("a\360\237\230", "a");
	feed("\200b"); /* the last byte comes later */
	ck_assert_str_eq(now(), "a\360\237\230\200b");
}
END_TEST

START_TEST(a_byte_of_a_bad_sequence_swallows_its_length)
{
	shows("\342\303\251x", "x");
	shows("\342\303\251\303\251", "\303\251");
	shows("x\342a\202\254b", "xab"); /* but not beyond what is ASCII */
	shows("x\342a\033[1mb\202\254c", "xabc");
}
END_TEST

START_TEST(wide_characters_are_whole)
{
	open_term(10, 4, 10, 0);
	shows("123456789\344\275\240", "123456789\344\275\240"); /* wraps whole: joined again */
	shows("\344\275\240\345\245\275\033[1;4HX", "\344\275\240 X");
	shows("\344\275\240\345\245\275\033[1;3HX", "\344\275\240X");
	shows("\344\275\240\033[1;2HX", "\344\275\240X"); /* column 0: tmux looks one short */
	shows("a\344\275\240\033[1;3HX", "a X");
	shows("a\344\275\240\033[1;2H\303\251", "a\303\251");
	shows("\033[?7l123456789\344\275\240", "123456789");
}
END_TEST

START_TEST(combining_characters_stay_with_their_base)
{
	shows("e\314\201x", "e\314\201x");
	shows("\314\201x", "x");
	shows("a\342\200\215b", "ab");
	shows("\360\237\221\250\342\200\215\360\237\221\251",
	    "\360\237\221\250\342\200\215\360\237\221\251");
	shows("\342\230\203\357\270\217", "\342\230\203\357\270\217");
	/* 21 bytes a cell: the base and ten marks */
	shows("e\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201"
	      "\314\202z",
	    "e\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201z");
}
END_TEST

START_TEST(a_joiner_does_not_wait_for_ever)
{
	size_t n;

	feed("a\342\200\215b");
	for (n = 0; n < 5000; n++)
		feed("x\b");
	feed("\n\303\251");
	ck_assert_str_eq(now(), "abx\n\303\251");
}
END_TEST

START_TEST(strings_are_swallowed)
{
	shows("a\033]0;title\007b\033]8;;u\033\\c\033P1;2|\030d\033\\e\033_x\033\\f\033^x\033\\g",
	    "abcefg");
	shows("a\033kname\033\\b\033Xsos\033\\c", "abc");
	shows("a\033]0;never\nended", "a");
	feed("\033\\b");
	ck_assert_str_eq(now(), "ab");
	shows("a\033]0;x\030b", "ab");
	shows("a\033Pq\033\033\\x\033\\b", "ab"); /* ESC ESC \ does not end a DCS */
	shows("a\033P1:2\033\\b", "ab");
}
END_TEST

START_TEST(sequences_out_of_bounds_are_ignored)
{
	shows("a\033[2147483648Cb", "ab");
	shows("a\033[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1Cb", "a b");  /* 23 */
	shows("a\033[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1Cb", "ab"); /* 24 */
	shows("a\033[0000000000000000000000000000000000000000000000000000000000000002Cb", "ab");
	shows("a\033[3:1Cb", "ab");
	shows("a\033[?3Cb\033[1 Cc\033[3!>Cd", "abcd");
	shows("a\033[1\0302Cb", "a2Cb");
	shows("a\033[1\b2Db", "b");
}
END_TEST

START_TEST(editing)
{
	open_term(10, 5, 10, 0);
	shows("abcdef\r\033[2@XY", "XYabcdef");
	shows("abcdef\r\033[2P", "cdef");
	shows("abcdef\r\033[2X\033[4h-\033[4l", "-  cdef");
	shows("0123456789\r\033[7@", "   3456012"); /* tmux leaves what lies between */
	shows("0123456789\r\033[10@", "0123456789");
	shows("ab\033[3b", "abbbb");
	shows("1\n2\n3\n4\033[2;1H\033[L\033[1;1H\033[M", "\n2\n3\n4");
	shows("1\n2\n3\n4\n5\033[2;4r\033[3;1HX\033[T\033[r", "1\n\n2\nX\n5");
	shows("1\n2\n3\033[H\033MX", "X\n1\n2\n3");
	shows("\033#8\033[2;1H\033[J", "EEEEEEEEEE");
	shows("a\tb\033[3g\r\tc", "a       bc");
}
END_TEST

/* Each of these is what tmux shows in a window of this size. */
START_TEST(accidents_that_show)
{
	open_term(10, 5, 10, 0);
	/* in a region of two rows a line loses its continuation when it scrolls, in one of three
	 * not */
	shows("\033[?1049h\033[2;3r\033[3;1H0123456789ab", "\n0123456789\nab");
	shows("\033[?1049h\033[2;4r\033[4;1H0123456789ab", "\n\n0123456789ab");
	/* erasing a row never written to leaves the row above continued */
	shows("0123456789a\033[2;4r\033[4;1H\n\033[2;1H\033[2KX", "a\n0123456789X");
	/* a visit to the alternate screen ends the line that leaves the history */
	open_term(10, 4, 10, 0);
	shows("0123456789abc\n\n\n", "0123456789abc");
	shows("0123456789abc\n\n\n\033[?1049h\033[?1049l", "0123456789\nabc");
	/* without wrapping, blanks of default colour do not make a row count as written to */
	shows("a\n\033[?7l   \n", "a");
	shows("a\n\033[?7l\033[41m   \n", "a\n");
	shows("a\n\033[?7l\033[41m\033[49m   \n", "a");
	shows("a\n\033[?7l\033[1m\033[22;39m   \n", "a");
	shows("a\n\033[?7l\033[4:3m   \n", "a\n");
	shows("a\n\033[?7l\033[38;2;1;2;3m   \n", "a\n");
	shows("a\n\033[?7l\033[38;2;0;0;300m   \n", "a");
	shows("ab\033[31m\033[2b", "ab");
	shows("ab\033[?1;2x\033[2b", "abbb");
}
END_TEST

START_TEST(erased_screens_scroll_off)
{
	shows("1\n2\033[2J3", "1\n2\n\n 3");
	ck_assert_uint_eq(history_rows(t), 2);
	shows("1\n2\033[H\033[2J\033[3Jx", "x");
	shows("1\n2\033cx", "1\n2\nx");
	shows("1\n2\033[H\033[Jx", "1\n2\nx");
}
END_TEST

START_TEST(the_alternate_screen_leaves_nothing)
{
	shows("a\n\033[?1049hX\nY\033[2J\033[HZ", "Z");
	ck_assert(hr_term_alternate(t));
	feed("\033[?1049lb");
	ck_assert_str_eq(now(), "a\nb");
	ck_assert(!hr_term_alternate(t));
}
END_TEST

START_TEST(lines_end_as_the_contract_says)
{
	shows("   \n  \n\n", "\n"); /* blank lines were written to, empty ones not */
	shows("x\302\240\n\343\200\200y \n", "x\n\343\200\200y");
	shows("x \342\200\203\342\200\257\n", "x");
	open_term(4, 4, 10, 0);
	shows("ab  cd  \r\nx", "ab  cd\nx"); /* the blanks in the middle of the line are kept */
}
END_TEST

START_TEST(line_feeds_can_be_bare)
{
	const struct hr_term_config config = {.lf_is_crlf = false};

	hr_term_free(t);
	t = hr_term_new(&config);
	ck_assert_ptr_nonnull(t);
	shows("a\nb\r\nc", "a\n b\nc");
}
END_TEST

/* --- history --- */

START_TEST(the_oldest_tenth_goes_when_full)
{
	feed_lines(1, 11000);
	ck_assert_uint_eq(history_rows(t), 9001); /* 10000 before the last line feed */
	ck_assert_uint_eq(hr_term_rows_dropped(t), 1000);
	ck_assert_uint_eq(hr_term_first_row(t), 1000);
	ck_assert_int_eq(strncmp(now(), "line 1001\n", 10), 0);
	feed_lines(11001, 11999);
	ck_assert_uint_eq(history_rows(t), 10000);
	ck_assert_uint_eq(hr_term_rows_dropped(t), 1000);
	feed("x\n");
	ck_assert_uint_eq(history_rows(t), 9001);
	ck_assert_int_eq(strncmp(now(), "line 2001\n", 10), 0);
}
END_TEST

/* As recorded: a prompt of eleven rows and the typed line before, a prompt after. */
START_TEST(fifty_thousand_lines_keep_the_last_ten)
{
	feed_many("\n", 12);
	feed_lines(1, 50000);
	feed_many("\n", 11);
	ck_assert_int_eq(strncmp(now(), "line 39989\n", 11), 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&text), "\nline 50000"));
}
END_TEST

START_TEST(clearing_is_not_dropping)
{
	feed_lines(1, 2000);
	ck_assert_uint_eq(history_rows(t), 1001);
	feed("\033[3J");
	ck_assert_uint_eq(history_rows(t), 0);
	ck_assert_uint_eq(hr_term_rows_dropped(t), 0);
	ck_assert_uint_eq(hr_term_first_row(t), 1001);
	ck_assert_uint_eq(hr_term_cursor_row(t), 2000);
}
END_TEST

START_TEST(rows_keep_their_numbers)
{
	feed_lines(0, 4999);
	hr_buf_reset(&text);
	hr_term_text_from(t, 4998, &text);
	ck_assert_str_eq(hr_buf_str(&text), "line 4998\nline 4999");
	hr_buf_reset(&text);
	hr_term_text_screen(t, &text);
	ck_assert_int_eq(strncmp(hr_buf_str(&text), "line 4001\n", 10), 0);
	ck_assert_uint_eq(hr_term_cursor_row(t), 5000);
}
END_TEST

/* --- a row to read from --- */

START_TEST(text_from_the_cursors_row)
{
	uint64_t row;

	feed("before\nprompt$ ");
	row = hr_term_cursor_row(t);
	ck_assert_uint_eq(row, 1);
	feed("command\n  out\n");
	ck_assert_str_eq(from_row(row), "prompt$ command\n  out");
	feed_lines(1, 3000); /* now the row is in the history */
	ck_assert_int_eq(strncmp(from_row(row), "prompt$ command\n  out\nline 1\n", 29), 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&text), "line 3000"));
}
END_TEST

START_TEST(text_from_a_dropped_row_is_what_there_is)
{
	uint64_t row;

	open_term(20, 3, 10, 0);
	feed("$ ");
	row = hr_term_cursor_row(t);
	feed_lines(1, 30);
	ck_assert_int_eq(strncmp(from_row(row), "line 19\n", 8), 0);
}
END_TEST

START_TEST(text_from_a_row_on_the_alternate_screen)
{
	uint64_t row;

	feed("1\n2\n3\n");
	row = hr_term_cursor_row(t);
	feed("\033[?1049h\033[Hfull");
	ck_assert_str_eq(from_row(0), "full");
	feed("\033[?1049lafter");
	ck_assert_str_eq(from_row(row), "after");
}
END_TEST

/* --- change --- */

static bool
changes(const char *bytes)
{
	uint64_t before = hr_term_generation(t);

	feed(bytes);
	return hr_term_generation(t) != before;
}

START_TEST(what_is_no_change)
{
	feed("text \344\275\240\n50%");
	ck_assert(!changes("\033[31m"));
	ck_assert(!changes("\033[H\033[2;1H"));
	ck_assert(!changes("\r50%"));
	ck_assert(!changes("\r\033[2K50%"));
	ck_assert(!changes("\033[10;1H   \033[2;4H"));
	ck_assert(!changes("\n\n\n"));
	ck_assert(!changes("\033]0;title\007\007"));
	ck_assert(!changes("\033[Htext \344\275\240 \302\240"));
	ck_assert(!changes("\033[?1049h\033[?1049l"));
}
END_TEST

START_TEST(what_is_a_change)
{
	feed("text\n50%");
	ck_assert(changes("\r51%"));
	ck_assert(changes("\r\033[2P"));
	ck_assert(changes("\033[H\033[L"));
	ck_assert(changes("\033[M"));
	ck_assert(changes("\033[?1049h"));
	ck_assert(changes("x"));
	ck_assert(changes("\033[?1049l"));
	ck_assert(changes("\033[2J\033[3J"));
	ck_assert(!changes("\033[2J\033[3J"));
	/* a row that is empty and not yet looked at when the other screen comes */
	hr_term_reset(t);
	feed("\033[41m\033[X\033[?1049h");
	ck_assert(changes("\033[?1049lhello"));
}
END_TEST

START_TEST(every_column_counts)
{
	unsigned len, i;
	char at[32];

	for (len = 1; len < 40; len++) {
		hr_term_reset(t);
		for (i = 0; i < len; i++)
			feed("a");
		for (i = 1; i <= len; i++) {
			(void)snprintf(at, sizeof(at), "\033[1;%uHb", i);
			ck_assert_msg(changes(at), "column %u of %u", i, len);
			ck_assert(!changes(at));
		}
	}
}
END_TEST

/* As `watch` does it: the rows are new ones each time, the text is not. */
START_TEST(a_screen_repainted_the_same_is_no_change)
{
	int i;

	feed("\033[H\033[2J\033[3Jtitle\n\none \314\201 two\n");
	for (i = 0; i < 5; i++)
		ck_assert(!changes("\033[H\033[2J\033[3Jtitle\n\none \314\201 two\n"));
	ck_assert(changes("\033[H\033[2J\033[3Jtitle\n\none \314\201 two!\n"));
}
END_TEST

START_TEST(dropping_is_a_change_scrolling_is_not)
{
	open_term(10, 3, 10, 0);
	feed("a\nb");
	ck_assert(!changes("\n\n\n\n\n\n\n"));
	ck_assert(changes("\n\n\n\n\n\n\n\n\n"));
	ck_assert_uint_eq(hr_term_rows_dropped(t), 5);
}
END_TEST

/* --- random streams --- */

static uint32_t seed;

static unsigned
pick(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* One piece of a stream for a terminal of 20 by 6. */
static size_t
random_piece(char *p, size_t room)
{
	static const char *const plain[] = {"a", "hello", "\n", "\n", "\r", "\b", "\t", " ", "x\n",
	    "\344\275\240", "\303\251", "e\314\201", "\342\200\215", "0123456789012345678901234",
	    "\n\n\n", "\033M", "\033D", "\033E", "\0337", "\0338", "\033c", "\033[41m", "\033[m",
	    "\033[?7l", "\033[?7h", "\033[4h", "\033[4l", "\033[?6h", "\033[?6l", "\033[?1049h",
	    "\033[?1049l", "\033[2;4r", "\033[1;4r", "\033[r", "\033[H\033[2J", "\033[3J", "\033(0",
	    "\033(B", "\303", "\033]0;t\007", "\033Pq\033\\", "plain line\n", "another\n",
	    "\033[31mred\033[0m, \033[1;32mgreen\033[m\n", "\033[Kx\033[m\033[K\n\033[K",
	    "a\033[38;2;1;22;255mb\033[38;5;208mc\n\033[48;5;3md\033[49m\n", "\033[01;35mwarning"};
	static const char finals[] = "@ABCDEFGHJKLMPSTXZbdf";
	unsigned n = sizeof(plain) / sizeof(plain[0]), k = pick(n + 20);

	if (k < n)
		return (size_t)snprintf(p, room, "%s", plain[k]);
	if (k < n + 5)
		return (size_t)snprintf(p, room, "\033[%u;%uH", pick(7), pick(21));
	return (size_t)snprintf(p, room, "\033[%u%c", pick(5), finals[pick(sizeof(finals) - 1)]);
}

/* However a stream is cut into feeds, and whether its lines take the fast way or not. */
START_TEST(pieces_do_not_matter)
{
	char stream[4096];
	size_t len = 0, i, n;
	HR_BUF(whole, 1 << 20);

	seed = (uint32_t)_i + 1;
	while (len < 3000)
		len += random_piece(stream + len, sizeof(stream) - len);
	open_term(20, 6, 30, 0);
	hr_term_feed(t, stream, len);
	hr_term_text(t, &whole);
	hr_term_reset(t);
	for (i = 0; i < len; i += n) {
		n = 1 + pick(9);
		hr_term_feed(t, stream + i, n < len - i ? n : len - i);
	}
	ck_assert_str_eq(now(), hr_buf_str(&whole));
}
END_TEST

/* Colours and attributes, as programs write them and as none does. */
static size_t
random_sgr(char *p, size_t room)
{
	static const char *const words[] = {"", "0", "1", "7", "007", "22", "24", "27", "30", "39",
	    "38;5;208", "38;5;300", "38;5;", "38;5;0001", "58;5;3", "41", "48", "48;2;1;2;3",
	    "48;2;1;2;300", "48;5", "4", "48;5;1", "48:5:1", "49", "55", "56", "101", "123456",
	    "99999999999", "4294967297", "?1", "1 "};
	unsigned n = pick(16) == 0 ? 20 + pick(8) : pick(5), i;
	size_t len = (size_t)snprintf(p, room, "\033[");

	for (i = 0; i < n; i++)
		len += (size_t)snprintf(p + len, room - len, "%s%s", i > 0 ? ";" : "",
		    words[pick(n >= 20 ? 10 : sizeof(words) / sizeof(words[0]))]);
	return len + (size_t)snprintf(p + len, room - len, "m");
}

/* Whole sequences take a fast way. What they left shows in whether blanks count, see
 * accidents_that_show, and in whether there is a character to repeat. */
START_TEST(attributes_are_the_same_in_pieces)
{
	char stream[2048], whole[2][256];
	size_t len, i;
	int round, part;

	seed = (uint32_t)_i + 5;
	open_term(10, 5, 10, 0);
	for (round = 0; round < 200; round++) {
		for (part = 0; part < 2; part++) {
			len = (size_t)snprintf(
			    stream, sizeof(stream), part == 0 ? "a\n\033[?7l" : "a\033[7mb");
			for (i = pick(3) + 1; i > 0; i--)
				len += random_sgr(stream + len, sizeof(stream) - len);
			len += (size_t)snprintf(
			    stream + len, sizeof(stream) - len, part == 0 ? "   \n" : "\033[2b");
			hr_term_reset(t);
			hr_term_feed(t, stream, len);
			(void)snprintf(whole[part], sizeof(whole[part]), "%s", now());
			hr_term_reset(t);
			for (i = 0; i < len; i++)
				hr_term_feed(t, stream + i, 1);
			ck_assert_msg(strcmp(now(), whole[part]) == 0, "'%s': '%s', not '%s'",
			    stream, now(), whole[part]);
		}
	}
}
END_TEST

/* Text, colours and ELs of one row take a fast way together. */
START_TEST(coloured_text_is_the_same_in_pieces)
{
	static const char *const words[] = {"a", "some text", "  ", "\033[K", "\033[K", "\033[41m",
	    "\033[m\033[K", "\r\n", "\r", "\n", "\033[2b", "\033[3D", "\033[1K", "\303\251",
	    "\344\275\240", "\344", "\275\240", "\033[",
	    "a line that is longer than the terminal is wide"};
	char stream[4096], got[2][2048];
	unsigned col[2], row[2], i, way;
	size_t len = 0, at;

	seed = (uint32_t)_i + 99;
	while (len < 2000)
		len += pick(3) == 0 ? random_sgr(stream + len, sizeof(stream) - len)
				    : (size_t)snprintf(stream + len, sizeof(stream) - len, "%s",
					  words[pick(sizeof(words) / sizeof(words[0]))]);
	open_term(24, 6, 30, 0);
	for (i = 0; i < 40; i++) {
		at = pick((unsigned)len);
		for (way = 0; way < 2; way++) {
			size_t k;

			hr_term_reset(t);
			hr_term_feed(t, stream, way == 0 ? at : 0);
			for (k = 0; way == 1 && k < at; k++)
				hr_term_feed(t, stream + k, 1);
			(void)snprintf(got[way], sizeof(got[way]), "%s", now());
			hr_term_cursor(t, &col[way], &row[way]);
		}
		ck_assert_str_eq(got[0], got[1]);
		ck_assert_uint_eq(col[0], col[1]);
		ck_assert_uint_eq(row[0], row[1]);
	}
}
END_TEST

START_TEST(a_flood_is_rendered_like_single_bytes)
{
	HR_BUF(stream, 1 << 20);
	HR_BUF(fast, 1 << 20);
	unsigned cols, rows;
	char line[64];
	size_t i;

	seed = (uint32_t)_i + 77;
	for (i = 0; i < 400; i++) {
		(void)snprintf(line, sizeof(line), "%.*s%s", (int)pick(25),
		    "0123456789abcdefghijklmno",
		    pick(9) == 0    ? "\r\n"
		    : pick(30) == 0 ? " \033[33mx\n"
				    : "\n");
		hr_buf_adds(&stream, line);
	}
	open_term(20, 6, 100, 0);
	hr_term_feed(t, stream.p, stream.len);
	hr_term_text(t, &fast);
	rows = history_rows(t);
	cols = (unsigned)hr_term_rows_dropped(t);
	hr_term_reset(t);
	for (i = 0; i < stream.len; i++)
		hr_term_feed(t, stream.p + i, 1);
	ck_assert_str_eq(now(), hr_buf_str(&fast));
	ck_assert_uint_eq(history_rows(t), rows);
	ck_assert_uint_eq(hr_term_rows_dropped(t), cols);
}
END_TEST

static void
trim_end(struct hr_buf *b)
{
	while (b->len > 0 && (b->p[b->len - 1] == '\n' || b->p[b->len - 1] == ' '))
		b->p[--b->len] = '\0';
}

/* The generation changes whenever the text does. The other way round there are exceptions that do
 * no harm (whether a row of blanks at the end continues another one), but they must be few. */
START_TEST(the_generation_follows_the_text)
{
	HR_BUF(before, 1 << 20);
	char piece[64];
	uint64_t g;
	int i, idle = 0;

	seed = (uint32_t)_i + 1000;
	open_term(20, 6, 12, 0);
	for (i = 0; i < 600; i++) {
		bool same;

		hr_buf_reset(&before);
		hr_term_text(t, &before);
		trim_end(&before);
		g = hr_term_generation(t);
		hr_term_feed(t, piece, random_piece(piece, sizeof(piece)));
		(void)now();
		trim_end(&text);
		same = strcmp(hr_buf_str(&text), hr_buf_str(&before)) == 0;
		if (!same)
			ck_assert_msg(
			    hr_term_generation(t) != g, "'%s' -> '%s' unnoticed", before.p, text.p);
		else if (hr_term_generation(t) != g)
			idle++;
	}
	ck_assert_msg(idle <= 6, "%d changes without one", idle);
}
END_TEST

/* --- memory --- */

START_TEST(an_idle_terminal_is_small)
{
	ck_assert_uint_lt(hr_term_memory(t), 4096);
	feed_lines(1, 20000);
	feed("\033[?1049h\033[1000;1000Hx");
	ck_assert_uint_gt(hr_term_memory(t), 100000);
	hr_term_reset(t);
	ck_assert_uint_lt(hr_term_memory(t), 4096);
	ck_assert_str_eq(now(), "");
}
END_TEST

START_TEST(rows_cost_about_their_text)
{
	feed_many(
	    "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012345678\n", 9000);
	ck_assert_uint_lt(hr_term_memory(t), 9000 * (76 + 64));
	hr_term_reset(t);
	feed_many("\344\275\240\345\245\275\344\270\226\347\225\214\n", 9000);
	ck_assert_uint_lt(hr_term_memory(t), 9000 * (12 + 64) + 1000 * 100);
}
END_TEST

START_TEST(a_line_without_end_is_bounded)
{
	static char piece[1 << 16];
	int i;

	memset(piece, 'x', sizeof(piece));
	for (i = 0; i < 320; i++) /* 20 MB */
		hr_term_feed(t, piece, sizeof(piece));
	ck_assert_uint_lt(hr_term_memory(t), 13000000);
	ck_assert_uint_le(strlen(now()), 11001000);
	ck_assert_uint_ge(text.len, 10000000);
	ck_assert_ptr_null(strchr(text.p, '\n'));
}
END_TEST

START_TEST(the_limit_holds)
{
	static const char *const kinds[] = {"0123456789012345678901234567890123456789\n",
	    "\344\275\240\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201",
	    "\033[999@x\033[5;1000H\344\275\240\n", "\033#8\n\033[2J"};
	const size_t limit = 256 << 10;
	int i;

	open_term(0, 0, 0, limit);
	for (i = 0; i < (_i == 3 ? 100 : 20000); i++) {
		feed(kinds[_i]);
		if (i % 10 == 0)
			(void)hr_term_generation(t);
		ck_assert_uint_le(hr_term_memory(t), limit + 4096);
	}
	if (_i == 0 || _i == 3)
		ck_assert_uint_gt(hr_term_rows_dropped(t), 0);
	(void)now();
	feed("\033c\033[3J\033[Hstill here"); /* and it can be used again */
	ck_assert_str_eq(now(), "still here");
}
END_TEST

/* A row of as many bytes as there can be, with blanks at its end that belong to the line. */
START_TEST(the_largest_row)
{
	static const char cell[] =
	    "e\314\201\314\201\314\201\314\201\314\201\314\201\314\201\314\201"
	    "\314\201\314\201";

	open_term(3000, 3, 10, 0);
	feed_many(cell, 3000);
	feed("x\033[1;2901H\033[K\n\n\n\n");
	ck_assert_uint_eq(strlen(now()), 2900 * 21 + 100 + 1);
	ck_assert_str_eq(text.p + 2900 * 21 + 98, "  x");
}
END_TEST

static int fail_after = -1; /* allocations to go; -1: none fails */
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *
__wrap_realloc(void *p, size_t n)
{
	if (fail_after == 0)
		return NULL;
	if (fail_after > 0)
		fail_after--;
	return __real_realloc(p, n);
}

/* From the nth allocation on there is no memory; afterwards there is again. */
START_TEST(no_memory_loses_text_and_nothing_else)
{
	static char stream[8192];
	size_t len = 0;

	seed = 4711;
	while (len < 6000)
		len += random_piece(stream + len, sizeof(stream) - len);
	open_term(20, 6, 40, 0);
	fail_after = _i;
	hr_term_feed(t, stream, len);
	(void)hr_term_generation(t);
	hr_term_feed(t, stream, len);
	fail_after = -1;
	(void)now();
	(void)hr_term_generation(t);
	hr_term_reset(t);
	feed("fine\n");
	ck_assert_str_eq(now(), "fine");
	ck_assert_uint_lt(hr_term_memory(t), 4096);
}
END_TEST

/* --- answers, modes, width --- */

static const char *
replies(void)
{
	static char buf[300];

	buf[hr_term_replies(t, buf, sizeof(buf) - 1)] = '\0';
	return buf;
}

START_TEST(queries_are_answered)
{
	feed("ab\033[6n");
	ck_assert_str_eq(replies(), "\033[1;3R");
	ck_assert_str_eq(replies(), "");
	feed("\033[c\033[0c\033[>c\033[5n\033[1c\033[7n");
	ck_assert_str_eq(replies(), "\033[?1;2c\033[?1;2c\033[>84;0;0c\033[0n");
	feed("\033[18t");
	ck_assert_str_eq(replies(), "\033[8;1000;1000t");
	ck_assert_str_eq(now(), "ab");
}
END_TEST

START_TEST(answers_are_bounded_and_whole)
{
	const char *p;

	feed_many("\033[6n", 100000);
	p = replies();
	ck_assert_uint_le(strlen(p), 256);
	ck_assert_uint_eq(strlen(p) % 6, 0);
	feed_many("\033[6n", 2);
	char two[7] = {0};
	ck_assert_uint_eq(hr_term_replies(t, two, 6), 6);
	ck_assert_str_eq(two, "\033[1;1R");
	ck_assert_str_eq(replies(), "\033[1;1R");
}
END_TEST

START_TEST(modes_are_known)
{
	ck_assert(!hr_term_bracketed_paste(t) && !hr_term_application_cursor(t));
	feed("\033[?2004;1h");
	ck_assert(hr_term_bracketed_paste(t) && hr_term_application_cursor(t));
	feed("\033[?1l");
	ck_assert(hr_term_bracketed_paste(t) && !hr_term_application_cursor(t));
	feed("\033c");
	ck_assert(!hr_term_bracketed_paste(t));
}
END_TEST

/* The sum over all code points: fails if the table is made anew from another library. */
START_TEST(widths_are_those_of_glibc_2_36)
{
	uint32_t sum = 2166136261u, cp;

	for (cp = 0; cp < 0x110000; cp++)
		sum = (sum ^ (uint32_t)(hr_term_width(cp) + 1)) * 16777619u;
	ck_assert_uint_eq(sum, 0x5b505b28);
}
END_TEST

START_TEST(widths)
{
	static const struct {
		uint32_t cp;
		int width;
	} known[] = {{0, 0}, {'a', 1}, {0x7f, -1}, {0x85, -1}, {0xa0, 1}, {0xad, 1}, {0xe9, 1},
	    {0x301, 0}, {0x378, -1}, {0x1100, 2}, {0x200b, 0}, {0x200d, 0}, {0x2028, -1},
	    {0x20ac, 1}, {0x231a, 2}, {0x2500, 1}, {0x2764, 1}, {0x3000, 2}, {0x4e00, 2},
	    {0x9fff, 2}, {0xa000, 2}, {0xac00, 2}, {0xd800, -1}, {0xe000, 1}, {0xfe0f, 0},
	    {0xff41, 2}, {0xff71, 1}, {0xfffe, -1}, {0x1f1e6, 1}, {0x1f3fd, 2}, {0x1f600, 2},
	    {0x20000, 2}, {0xe0100, 0}, {0x10ffff, -1}, {0x110000, -1}, {0xffffffff, -1}};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_msg(hr_term_width(known[i].cp) == known[i].width, "U+%04X is %d",
		    known[i].cp, hr_term_width(known[i].cp));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("term");
	TCase *render = tcase_create("render"), *history = tcase_create("history"),
	      *rows = tcase_create("rows"), *change = tcase_create("change"),
	      *random = tcase_create("random"), *memory = tcase_create("memory"),
	      *answers = tcase_create("answers");
	TCase *const all[] = {render, history, rows, change, random, memory, answers};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		tcase_add_checked_fixture(all[i], setup, teardown);
		tcase_set_timeout(all[i], 60);
		suite_add_tcase(s, all[i]);
	}
	tcase_add_test(render, controls_move_and_leave_no_text);
	tcase_add_test(render, backspace_crosses_an_automatic_wrap_only);
	tcase_add_test(render, utf8_errors_are_dropped);
	tcase_add_test(render, a_byte_of_a_bad_sequence_swallows_its_length);
	tcase_add_test(render, wide_characters_are_whole);
	tcase_add_test(render, combining_characters_stay_with_their_base);
	tcase_add_test(render, a_joiner_does_not_wait_for_ever);
	tcase_add_test(render, strings_are_swallowed);
	tcase_add_test(render, sequences_out_of_bounds_are_ignored);
	tcase_add_test(render, editing);
	tcase_add_test(render, accidents_that_show);
	tcase_add_test(render, erased_screens_scroll_off);
	tcase_add_test(render, the_alternate_screen_leaves_nothing);
	tcase_add_test(render, lines_end_as_the_contract_says);
	tcase_add_test(render, line_feeds_can_be_bare);
	tcase_add_test(history, the_oldest_tenth_goes_when_full);
	tcase_add_test(history, fifty_thousand_lines_keep_the_last_ten);
	tcase_add_test(history, clearing_is_not_dropping);
	tcase_add_test(history, rows_keep_their_numbers);
	tcase_add_test(rows, text_from_the_cursors_row);
	tcase_add_test(rows, text_from_a_dropped_row_is_what_there_is);
	tcase_add_test(rows, text_from_a_row_on_the_alternate_screen);
	tcase_add_test(change, what_is_no_change);
	tcase_add_test(change, what_is_a_change);
	tcase_add_test(change, every_column_counts);
	tcase_add_test(change, a_screen_repainted_the_same_is_no_change);
	tcase_add_test(change, dropping_is_a_change_scrolling_is_not);
	tcase_add_loop_test(random, pieces_do_not_matter, 0, 100);
	tcase_add_loop_test(random, attributes_are_the_same_in_pieces, 0, 10);
	tcase_add_loop_test(random, coloured_text_is_the_same_in_pieces, 0, 40);
	tcase_add_loop_test(random, a_flood_is_rendered_like_single_bytes, 0, 20);
	tcase_add_loop_test(random, the_generation_follows_the_text, 0, 60);
	tcase_add_test(memory, an_idle_terminal_is_small);
	tcase_add_test(memory, rows_cost_about_their_text);
	tcase_add_test(memory, a_line_without_end_is_bounded);
	tcase_add_test(memory, the_largest_row);
	tcase_add_loop_test(memory, the_limit_holds, 0, 4);
	tcase_add_loop_test(memory, no_memory_loses_text_and_nothing_else, 0, 150);
	tcase_add_test(answers, queries_are_answered);
	tcase_add_test(answers, answers_are_bounded_and_whole);
	tcase_add_test(answers, modes_are_known);
	tcase_add_test(answers, widths);
	tcase_add_test(answers, widths_are_those_of_glibc_2_36);
	return lines_run(s);
}
