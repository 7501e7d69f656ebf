/* Keys: every line of the contract's tables. */
#include "config.h"

#include "shell/keys.h"

#include "lines.h"

static void
check(const char *text, bool app, const char *want, size_t want_len)
{
	char out[HR_KEY_MAX];
	size_t len = 99;

	ck_assert_int_eq(hr_key_bytes(text, strlen(text), app, out, sizeof out, &len, NULL), 0);
	ck_assert_msg(len == want_len && memcmp(out, want, len) == 0, "%s", text);
}

START_TEST(control_keys)
{
	char text[] = "C-?";
	int i;

	for (i = 0; i < 26; i++) {
		char want = (char)(i + 1);

		text[2] = (char)('a' + i);
		check(text, false, &want, 1);
		text[2] = (char)('A' + i);
		check(text, true, &want, 1);
	}
	check("C-@", false, "\0", 1);
	check("C-2", false, "\0", 1);
	check("C-[", false, "\x1B", 1);
	check("C-\\", false, "\x1C", 1);
	check("C-]", false, "\x1D", 1);
	check("C-^", false, "\x1E", 1);
	check("C-_", false, "\x1F", 1);
	check("C-/", false, "\x1F", 1);
	check("C--", false, "\x1F", 1);
	check("C-?", false, "\x7F", 1);
	check("c-c", false, "\x03", 1);
	check("^C", false, "\x03", 1);
}
END_TEST

START_TEST(named_keys)
{
	size_t i;

	static const struct {
		const char *name, *bytes, *app;
	} t[] = {
	    {"Enter", "\r", "\r"},
	    {"Tab", "\t", "\t"},
	    {"BTab", "\033[Z", "\033[Z"},
	    {"Space", " ", " "},
	    {"BSpace", "\x7F", "\x7F"},
	    {"Escape", "\033", "\033"},
	    {"Up", "\033[A", "\033OA"},
	    {"Down", "\033[B", "\033OB"},
	    {"Right", "\033[C", "\033OC"},
	    {"Left", "\033[D", "\033OD"},
	    {"Home", "\033[1~", "\033[1~"},
	    {"End", "\033[4~", "\033[4~"},
	    {"PageUp", "\033[5~", "\033[5~"},
	    {"PageDown", "\033[6~", "\033[6~"},
	    {"Insert", "\033[2~", "\033[2~"},
	    {"Delete", "\033[3~", "\033[3~"},
	    {"F1", "\033OP", "\033OP"},
	    {"F2", "\033OQ", "\033OQ"},
	    {"F3", "\033OR", "\033OR"},
	    {"F4", "\033OS", "\033OS"},
	    {"F5", "\033[15~", "\033[15~"},
	    {"F6", "\033[17~", "\033[17~"},
	    {"F7", "\033[18~", "\033[18~"},
	    {"F8", "\033[19~", "\033[19~"},
	    {"F9", "\033[20~", "\033[20~"},
	    {"F10", "\033[21~", "\033[21~"},
	    {"F11", "\033[23~", "\033[23~"},
	    {"F12", "\033[24~", "\033[24~"},
	};

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		check(t[i].name, false, t[i].bytes, strlen(t[i].bytes));
		check(t[i].name, true, t[i].app, strlen(t[i].app));
	}
}
END_TEST

START_TEST(text_is_no_key)
{
	size_t i;

	static const char *const t[] = {"", "up", "ENTER", "F13", "F0", "Enter ", " Tab", "PgUp",
	    "IC", "C-Left", "M-x", "0x41", "C-", "C-cc", "c-d", "c-C", "^c", "^D", "-5", "C",
	    "\xC3\xA9", "C+c"};

	for (i = 0; i < sizeof t / sizeof t[0]; i++)
		check(t[i], false, "", 0);
}
END_TEST

START_TEST(special)
{
	size_t i;

	static const char *const yes[] = {
	    "C-c", "C-1", "C-;", "C--", "C-\xC3\xA9", "C-\xE2\x82\xAC"};
	static const char *const no[] = {"", "C-", "c-c", "C-ab", "^C", "Up", "C- \xC3\xA9"};

	for (i = 0; i < sizeof yes / sizeof yes[0]; i++)
		ck_assert_msg(hr_key_is_special(yes[i], strlen(yes[i])), "%s", yes[i]);
	for (i = 0; i < sizeof no / sizeof no[0]; i++)
		ck_assert_msg(!hr_key_is_special(no[i], strlen(no[i])), "%s", no[i]);
}
END_TEST

START_TEST(unknown_keys_are_named)
{
	size_t i;

	static const char *const t[] = {"C-1", "C-3", "C-8", "C-,", "C-;", "C-\xC3\xA9"};

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct hr_err err = {0};
		char out[HR_KEY_MAX];
		size_t len;

		ck_assert_int_eq(
		    hr_key_bytes(t[i], strlen(t[i]), false, out, sizeof out, &len, &err), -1);
		ck_assert_int_eq(err.code, HR_E_INVAL);
		ck_assert_ptr_nonnull(strstr(err.msg, t[i]));
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("keys");
	TCase *c = tcase_create("keys");

	tcase_add_test(c, control_keys);
	tcase_add_test(c, named_keys);
	tcase_add_test(c, text_is_no_key);
	tcase_add_test(c, special);
	tcase_add_test(c, unknown_keys_are_named);
	suite_add_tcase(s, c);
	return lines_run(s);
}
