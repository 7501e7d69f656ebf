/* The reference's doubling of backslashes, as recorded. */
#include "config.h"

#include "shell/escape.h"

#include <json-c/json.h>

#include "lines.h"

static void
check_file(const char *name, unsigned at_least)
{
	FILE *f = lines_open(name);
	char *line = NULL, *s;
	size_t cap = 0, len;
	unsigned n = 0;

	for (; lines_next(f, &line, &cap); n++) {
		struct json_object *o = json_tokener_parse(line), *input, *want;

		ck_assert(json_object_object_get_ex(o, "input", &input));
		ck_assert(json_object_object_get_ex(o, "escaped", &want));
		s = hr_shell_escape(json_object_get_string(input),
		    (size_t)json_object_get_string_len(input), &len, NULL);
		ck_assert_ptr_nonnull(s);
		ck_assert_msg(len == (size_t)json_object_get_string_len(want) &&
				  memcmp(s, json_object_get_string(want), len) == 0,
		    "\"%s\": %s", s, line);
		free(s);
		json_object_put(o);
	}
	ck_assert_uint_ge(n, at_least);
	free(line);
	fclose(f);
}

START_TEST(recorded)
{
	check_file("shell/escape_special.jsonl", 126);
}
END_TEST

START_TEST(recorded_extra)
{
	check_file("shell/split_extra.jsonl", 300);
}
END_TEST

/* The reference raises on these; unchanged is as good as anything. */
START_TEST(no_command)
{
	static const char *const t[] = {"# only \\;", "\\\n", "# a\n# b"};

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		char *s = hr_shell_escape(t[i], strlen(t[i]), NULL, NULL);

		ck_assert_str_eq(s, t[i]);
		free(s);
	}
}
END_TEST

/* Every here-document repeats the rest of the text: there is an end to that. */
START_TEST(repetition_is_bounded)
{
	struct hr_err err = {0};
	struct hr_buf b;

	hr_buf_init(&b, 1u << 24);
	hr_buf_adds(&b, "cat");
	for (int i = 0; i < 50000; i++)
		hr_buf_adds(&b, " <<E");
	for (int i = 0; i < 50000; i++)
		hr_buf_adds(&b, "\nE");
	ck_assert_ptr_null(hr_shell_escape(b.p, b.len, NULL, &err));
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	hr_buf_done(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("escape");
	TCase *c = tcase_create("escape");

	tcase_add_test(c, recorded);
	tcase_add_test(c, recorded_extra);
	tcase_add_test(c, no_command);
	tcase_add_test(c, repetition_is_bounded);
	suite_add_tcase(s, c);
	return lines_run(s);
}
