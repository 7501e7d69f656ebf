/* What a VS Code server is told. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "plugins/vscode/words.h"

START_TEST(users)
{
	ck_assert(hr_vscode_user_ok("root", NULL));
	ck_assert(hr_vscode_user_ok("openhands", ""));
	ck_assert(hr_vscode_user_ok("dev", "dev"));
	ck_assert(!hr_vscode_user_ok("dev", NULL));
	ck_assert(!hr_vscode_user_ok("", ""));
	ck_assert(!hr_vscode_user_ok("dev", "devel"));
}
END_TEST

static const struct {
	const char *text;
	int port;
} ports[] = {{"49220", 49220}, {" 1\n", 1}, {"+80", 80}, {"4_0", 40}, {"65535", 65535},
    {"65536", 0}, {"99999999999999999999", 0}, {"0", 0}, {"-1", 0}, {"", 0}, {NULL, 0},
    {"80 80", 0}, {"80x", 0}, {"_8", 0}, {"8_", 0}, {"8__0", 0}, {"1.0", 0}};

START_TEST(a_port)
{
	ck_assert_int_eq(hr_vscode_port(ports[_i].text), ports[_i].port);
}
END_TEST

static const struct {
	const char *wanted, *url, *id, *path;
} paths[] = {
    {NULL, NULL, NULL, ""},
    {"", "", "", ""},
    {"/a/b", NULL, NULL, "/a/b"},
    {"a//", "http://h/rid", "rid", "/a"},
    {"/", NULL, NULL, ""},
    {NULL, "http://h/rid/x", "rid", "/rid/vscode"},
    {NULL, "https://h:80/rid", "rid", "/rid/vscode"},
    {NULL, "http://h/ridge", "rid", "/rid/vscode"}, /* as the original: begins with */
    {NULL, "http://rid/x", "rid", ""},
    {NULL, "http://h/x/rid", "rid", ""},
    {NULL, "http://h?/rid", "rid", ""},
    {NULL, "http://h/rid", NULL, ""},
    {NULL, "http://h/rid", "", ""},
    {NULL, NULL, "rid", ""},
};

START_TEST(a_base_path)
{
	HR_BUF(b, 100);

	hr_vscode_base_path(&b, paths[_i].wanted, paths[_i].url, paths[_i].id);
	ck_assert_str_eq(hr_buf_str(&b), paths[_i].path);
}
END_TEST

START_TEST(no_token_in_a_line)
{
	HR_BUF(b, 100);

	hr_vscode_line(&b, "at http://x/?tkn=T-1&a=T-1", "T-1");
	ck_assert_str_eq(hr_buf_str(&b), "at http://x/?tkn=...&a=...");
	hr_buf_reset(&b);
	hr_vscode_line(&b, "plain", "T-1");
	ck_assert_str_eq(hr_buf_str(&b), "plain");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("vscode");
	TCase *tc = tcase_create("vscode");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, users);
	tcase_add_loop_test(tc, a_port, 0, sizeof(ports) / sizeof(ports[0]));
	tcase_add_loop_test(tc, a_base_path, 0, sizeof(paths) / sizeof(paths[0]));
	tcase_add_test(tc, no_token_in_a_line);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
