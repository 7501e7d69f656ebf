/* The small words of base: digests, digits, random names, what was meant. */
#include "config.h"

#include "base/grow.h"
#include "base/hash.h"
#include "base/text/nearest.h"
#include "base/text/quote.h"
#include "base/random.h"
#include "base/span.h"
#include "base/process/spawn.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

/* The published values of FNV-1a. */
START_TEST(hash)
{
	ck_assert(hr_hash(HR_HASH, "", 0) == 0xcbf29ce484222325u);
	ck_assert(hr_hash(HR_HASH, "a", 1) == 0xaf63dc4c8601ec8cu);
	ck_assert(hr_hash(HR_HASH, "foobar", 6) == 0x85944171f73967e8u);
	ck_assert(hr_hash(hr_hash(HR_HASH, "foo", 3), "bar", 3) == 0x85944171f73967e8u);
}
END_TEST

START_TEST(hexadecimal)
{
	char text[7] = "xxxxxx";

	hr_quote_hex(text, "\x00\x9a\xff", 3);
	ck_assert_str_eq(text, "009aff");
	hr_quote_hex(text, "", 0);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(random_names_differ)
{
	char a[33], b[33], uuid[HR_UUID_TEXT];
	struct hr_err err = {0};

	ck_assert_int_eq(hr_random_hex(a, 32, &err), 0);
	ck_assert_int_eq(hr_random_hex(b, 32, &err), 0);
	ck_assert_uint_eq(strspn(a, "0123456789abcdef"), 32);
	ck_assert_str_ne(a, b);
	ck_assert_int_eq(hr_random_uuid(uuid, &err), 0);
	ck_assert_uint_eq(strlen(uuid), 36);
	ck_assert_uint_eq(strspn(uuid, "0123456789abcdef-"), 36);
	ck_assert(uuid[8] == '-' && uuid[13] == '-' && uuid[18] == '-' && uuid[23] == '-');
	ck_assert_int_eq(uuid[14], '4');
	ck_assert_ptr_nonnull(strchr("89ab", uuid[19]));
}
END_TEST

START_TEST(what_was_meant)
{
	static const char *const words[] = {"listen", "listen_port", "log_level"};
	char longest[80];

	ck_assert_str_eq(hr_nearest("lisen", words, 3), "listen");
	ck_assert_str_eq(hr_nearest("listn_port", words, 3), "listen_port");
	ck_assert_ptr_null(hr_nearest("workers", words, 3));
	ck_assert_ptr_null(hr_nearest("", words, 0));
	memset(longest, 'l', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_ptr_null(hr_nearest(longest, words, 3));
}
END_TEST

START_TEST(spans)
{
	ck_assert(hr_span_equal(hr_span_of("ab"), (struct hr_span){"abc", 2}));
	ck_assert(hr_span_equal((struct hr_span){NULL, 0}, hr_span_of("")));
	ck_assert(!hr_span_equal(hr_span_of("ab"), hr_span_of("ac")));
}
END_TEST

static int
end_of(int how)
{
	pid_t pid = fork();
	int status = 0;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (how < 0)
			(void)raise(-how);
		_exit(how);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return hr_exit_code(status);
}

START_TEST(exit_codes)
{
	ck_assert_int_eq(end_of(0), 0);
	ck_assert_int_eq(end_of(7), 7);
	ck_assert_int_eq(end_of(-SIGKILL), 137);
}
END_TEST

START_TEST(an_array_grows)
{
	size_t i, n = 0, room = 0;
	long *v = NULL;

	for (i = 0; i < 1000; i++) {
		ck_assert_int_eq(hr_grow(&v, n, &room, sizeof(*v)), 0);
		ck_assert_uint_lt(n, room);
		v[n++] = (long)i;
	}
	for (i = 0; i < n; i++)
		ck_assert_int_eq(v[i], i);
	free(v);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("words");
	TCase *tc = tcase_create("words");

	suite_add_tcase(s, tc);
	tcase_add_test(tc, hash);
	tcase_add_test(tc, hexadecimal);
	tcase_add_test(tc, random_names_differ);
	tcase_add_test(tc, what_was_meant);
	tcase_add_test(tc, spans);
	tcase_add_test(tc, exit_codes);
	tcase_add_test(tc, an_array_grows);
	return lines_run(s);
}
