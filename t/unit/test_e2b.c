/* src/e2b: paths, users, entries and the setup of the dialect of E2B. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/path.h"
#include "e2b/entry.h"
#include "e2b/gzip.h"
#include "e2b/path.h"
#include "e2b/setup.h"
#include "e2b/who.h"
#include "proto/json.h"

#include "lines.h"
#include "scratch.h"

START_TEST(paths)
{
	static const struct {
		const char *given, *directory, *want;
	} cases[] = {
	    {"", NULL, "/home/u"},
	    {"", "/work/", "/work"},
	    {"~", "/work", "/home/u"},
	    {"~/a//b/", NULL, "/home/u/a/b"},
	    {"a", "/work", "/home/u/a"},
	    {"./a/../b", NULL, "/home/u/b"},
	    {"../../../..", NULL, "/"},
	    {"/", NULL, "/"},
	    {"//a/./b/../c/", NULL, "/a/c"},
	    {"/..a/...", NULL, "/..a/..."},
	};
	struct hr_e2b_who who = {.name = (char[]){"u"}, .home = (char[]){"/home/u"}};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		HR_BUF(path, 4096);
		HR_BUF(why, 4096);

		ck_assert_int_eq(
		    hr_e2b_path(&path, hr_span_of(cases[i].given), &who, cases[i].directory, &why),
		    0);
		ck_assert_str_eq(hr_buf_str(&path), cases[i].want);
	}
}
END_TEST

START_TEST(refused_paths)
{
	struct hr_e2b_who who = {.name = (char[]){"u"}, .home = (char[]){"/home/u"}};
	HR_BUF(path, 4096);
	HR_BUF(why, 4096);

	ck_assert_int_eq(hr_e2b_path(&path, hr_span_of("~bob/x"), &who, NULL, &why), -1);
	ck_assert_str_eq(hr_buf_str(&why),
	    "failed to expand path '' for user 'u': cannot expand user-specific home dir");
	ck_assert_int_eq(hr_e2b_path(&path, (struct hr_span){"a\0b", 3}, &who, NULL, &why), -1);
	ck_assert_uint_eq(path.len, 0);
}
END_TEST

START_TEST(names)
{
	static const struct {
		const char *header, *want; /* NULL: names no user */
	} cases[] = {{"Basic cm9vdDo=", "root"}, {"basic cm9vdDpwdw==", "root"}, {"Basic Og==", ""},
	    {"Basic cm9vdA==", NULL}, {"Basic !", NULL}, {"Bearer x", NULL}, {"", NULL}};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		HR_BUF(name, 4096);

		ck_assert_int_eq(hr_e2b_who_named(cases[i].header, &name), cases[i].want != NULL);
		if (cases[i].want != NULL)
			ck_assert_str_eq(hr_buf_str(&name), cases[i].want);
	}
}
END_TEST

START_TEST(accounts)
{
	struct hr_e2b_setup setup = {.user = "root"};
	struct hr_e2b_who who;

	ck_assert(hr_e2b_who_find(&who, NULL, &setup, 4242));
	ck_assert_uint_eq(who.uid, 0);
	ck_assert_str_eq(who.home, "/root");
	hr_e2b_who_done(&who);
	ck_assert(!hr_e2b_who_find(&who, "nobody-of-this-name", &setup, 0));
	hr_e2b_who_done(&who);
	ck_assert(!hr_e2b_who_find(&who, "", &setup, 0));
	hr_e2b_who_done(&who);
	setup.user = NULL;
	ck_assert(hr_e2b_who_find(&who, NULL, &setup, 4242424)); /* of no account */
	ck_assert_uint_eq(who.uid, 4242424);
	ck_assert_str_eq(who.name, "4242424");
	hr_e2b_who_done(&who);
}
END_TEST

START_TEST(modes)
{
	static const struct {
		mode_t mode;
		const char *want;
	} cases[] = {{S_IFREG | 0644, "-rw-r--r--"}, {S_IFDIR | 0755, "drwxr-xr-x"},
	    {S_IFLNK | 0777, "Lrwxrwxrwx"}, {S_IFDIR | 01777, "dtrwxrwxrwx"},
	    {S_IFREG | 04755, "urwxr-xr-x"}, {S_IFREG | 02750, "grwxr-x---"},
	    {S_IFIFO | 0600, "prw-------"}, {S_IFCHR | 0666, "Dcrw-rw-rw-"}};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		HR_BUF(text, 64);

		hr_e2b_entry_mode(&text, cases[i].mode);
		ck_assert_str_eq(hr_buf_str(&text), cases[i].want);
	}
}
END_TEST

START_TEST(entries)
{
	HR_CLOSE int dir = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HR_CLOSE int fd = -1;
	HR_PUT struct json_object *v = NULL;
	HR_BUF(b, 4096);

	ck_assert_int_eq(symlinkat("gone", dir, "link"), 0);
	fd = openat(dir, "link", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ck_assert_int_eq(hr_e2b_entry_put(&b, "/a/link", fd, -1), 0);
	ck_assert_int_eq(hr_json_decode(hr_buf_str(&b), b.len, &v, NULL), 0);
	ck_assert_str_eq(hr_json_text_at(v, "name"), "link");
	ck_assert_str_eq(hr_json_text_at(v, "symlinkTarget"), "/a/link");
	ck_assert_str_eq(hr_json_text_at(v, "size"), "4");
	ck_assert_ptr_null(hr_json_at(v, "type"));
	ck_assert_ptr_null(hr_json_at(v, "mode"));
}
END_TEST

/* A time has nine digits below the second, or none. */
START_TEST(times_of_entries)
{
	static const struct {
		struct timespec at;
		const char *want;
	} rows[] = {{{0, 0}, "1970-01-01T00:00:00Z"}, {{1700000000, 0}, "2023-11-14T22:13:20Z"},
	    {{1700000000, 7000}, "2023-11-14T22:13:20.000007000Z"}};
	HR_CLOSE int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct timespec both[2] = {rows[i].at, rows[i].at};
		HR_PUT struct json_object *v = NULL;
		HR_BUF(b, 4096);

		ck_assert_int_eq(futimens(fd, both), 0);
		ck_assert_int_eq(hr_e2b_entry_put(&b, "/a", fd, -1), 0);
		ck_assert_int_eq(hr_json_decode(hr_buf_str(&b), b.len, &v, NULL), 0);
		ck_assert_str_eq(hr_json_text_or(v, "modifiedTime", ""), rows[i].want);
	}
}
END_TEST

static struct json_object *
json(const char *text)
{
	struct json_object *v = NULL;

	ck_assert_int_eq(hr_json_decode(text, strlen(text), &v, NULL), 0);
	return v;
}

START_TEST(setups)
{
	struct json_object *doc =
	    json("{\"defaultUser\":\"a\",\"defaultWorkdir\":null,\"sandboxId\":\"i\","
		 "\"envVars\":{\"X\":\"1\",\"E2B_SANDBOX\":\"no\"}}");
	HR_FREE char *path = hr_path_join(scratch, "e2b.json");
	struct hr_e2b_setup s = {0};
	struct json_object *v;
	struct stat st;

	ck_assert_int_eq(hr_e2b_setup_read(&s, scratch, NULL), 0); /* there is none */
	ck_assert_ptr_null(s.doc);
	ck_assert_int_eq(hr_e2b_setup_check(doc, NULL), 0);
	ck_assert_int_eq(hr_e2b_setup_write(scratch, doc, geteuid(), NULL), 0);
	json_object_put(doc);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	ck_assert_int_eq(hr_e2b_setup_read(&s, scratch, NULL), 0);
	ck_assert_str_eq(s.user, "a");
	ck_assert_ptr_null(s.directory);
	v = hr_e2b_setup_variables(&s, NULL);
	ck_assert_str_eq(hr_json_text_at(v, "X"), "1");
	ck_assert_str_eq(hr_json_text_at(v, "E2B_SANDBOX"), "true");
	ck_assert_str_eq(hr_json_text_at(v, "E2B_SANDBOX_ID"), "i");
	json_object_put(v);
	doc = s.doc;
	ck_assert_int_eq(hr_e2b_setup_read(&s, scratch, NULL), 0);
	ck_assert_ptr_eq(doc, s.doc); /* not read again */
	ck_assert_int_eq(hr_path_write(path, "nope", 4, 0600, NULL), 0);
	ck_assert_int_eq(hr_e2b_setup_read(&s, scratch, NULL), -1);
	ck_assert_ptr_null(s.doc);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(hr_e2b_setup_read(&s, scratch, NULL), 0);
	hr_e2b_setup_done(&s);
}
END_TEST

START_TEST(refused_setups)
{
	static const char *const texts[] = {"[]", "{\"envVars\":[]}", "{\"envVars\":{\"A\":1}}",
	    "{\"defaultUser\":1}", "{\"sandboxId\":\"a\\u0000\"}"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		HR_PUT struct json_object *doc = json(texts[i]);

		ck_assert_int_eq(hr_e2b_setup_check(doc, NULL), -1);
	}
}
END_TEST

/* Packed bytes come back, also where a piece of the buffer ends; nothing else is unpacked. */
START_TEST(packed)
{
	static const size_t lens[] = {0, 1, 16383, 16384, 16385, 3 * 16384};
	HR_BUF(text, 1u << 20);
	HR_BUF(one, 1u << 20);
	size_t i, n;

	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		HR_BUF(b, 1u << 20);
		HR_BUF(back, 1u << 20);

		for (n = text.len; n < lens[i]; n++) /* does not shrink much */
			hr_buf_addc(&text, (char)(n * n * 31 >> 7 ^ n * 7));
		ck_assert_int_eq(hr_gzip(&b, hr_span_of_buf(&text)), 0);
		ck_assert_int_eq(hr_gunzip(&back, hr_span_of_buf(&b)), 0);
		ck_assert_uint_eq(back.len, lens[i]);
		ck_assert_mem_eq(hr_buf_str(&back), hr_buf_str(&text), lens[i]);
	}
	ck_assert_int_eq(hr_gzip(&one, hr_span_of("text")), 0);
	for (n = 0; n <= one.len + 1; n++) {
		HR_BUF(back, 1u << 20);

		ck_assert_int_eq(
		    hr_gunzip(&back, (struct hr_span){hr_buf_str(&one), n}), n == one.len ? 0 : -1);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("e2b");
	TCase *tc = tcase_create("e2b");

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_test(tc, paths);
	tcase_add_test(tc, refused_paths);
	tcase_add_test(tc, names);
	tcase_add_test(tc, accounts);
	tcase_add_test(tc, modes);
	tcase_add_test(tc, entries);
	tcase_add_test(tc, times_of_entries);
	tcase_add_test(tc, setups);
	tcase_add_test(tc, refused_setups);
	tcase_add_test(tc, packed);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
