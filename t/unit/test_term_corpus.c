/* Every recorded screen of t/corpus/term, less the exceptions listed there. */
#include "config.h"

#include "term/term.h"
#include "lines.h"
#include "term_history.h"

#include <json-c/json.h>
#include <stdint.h>

enum { MAX_EXCEPTIONS = 6 }; /* 3 % of screen.jsonl */

static struct hr_term *t;

static void
setup(void)
{
	const struct hr_term_config config = {.lf_is_crlf = true};

	t = hr_term_new(&config);
	ck_assert_ptr_nonnull(t);
}

static void
teardown(void)
{
	hr_term_free(t);
}

static int
base64_digit(char c)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c != '\0' ? strchr(digits, c) : NULL;

	return p != NULL ? (int)(p - digits) : -1;
}

static void
unbase64(struct hr_buf *out, const char *s)
{
	uint32_t bits = 0;
	int n = 0, digit;

	for (; (digit = base64_digit(*s)) >= 0; s++) {
		bits = bits << 6 | (uint32_t)digit;
		n += 6;
		if (n < 8)
			continue;
		n -= 8;
		hr_buf_addc(out, (char)(bits >> n & 0xff));
	}
}

static struct json_object *
field(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	ck_assert_msg(json_object_object_get_ex(o, key, &v), "no %s", key);
	return v;
}

static bool
same_text(const struct hr_buf *got, struct json_object *want)
{
	size_t len = (size_t)json_object_get_string_len(want);

	return got->len == len && memcmp(hr_buf_str(got), json_object_get_string(want), len) == 0;
}

static bool
same_state(struct json_object *o)
{
	struct json_object *cursor = field(o, "cursor");
	unsigned col, row;

	hr_term_cursor(t, &col, &row);
	return (int)col == json_object_get_int(json_object_array_get_idx(cursor, 0)) &&
	       (int)row == json_object_get_int(json_object_array_get_idx(cursor, 1)) &&
	       (int)history_rows(t) == json_object_get_int(field(o, "history")) &&
	       hr_term_alternate(t) == json_object_get_boolean(field(o, "alternate"));
}

static bool
screen_fits(struct json_object *o, struct hr_buf *in, struct hr_buf *out)
{
	unbase64(in, json_object_get_string(field(o, "input_b64")));
	hr_term_feed(t, in->p, in->len);
	hr_term_text(t, out);
	while (out->len > 0 && out->p[out->len - 1] == '\n')
		out->len--;
	return same_text(out, field(o, "text")) && same_state(o);
}

static bool
render_fits(struct json_object *o, struct hr_buf *in, struct hr_buf *out)
{
	unbase64(in, json_object_get_string(field(o, "bytes_b64")));
	hr_term_feed(t, in->p, in->len);
	hr_term_text(t, out);
	return same_text(out, field(o, "screen"));
}

/* Whether exceptions.txt has this line of this file; counts those of the file. */
static bool
excepted(const char *file, int number, int *ret_count)
{
	FILE *f = lines_open("term/exceptions.txt");
	char key[64];
	HR_FREE char *line = NULL;
	size_t cap = 0, file_len = strlen(file);
	bool found = false;

	(void)snprintf(key, sizeof(key), "%s:%d ", file, number);
	*ret_count = 0;
	while (lines_next(f, &line, &cap)) {
		found = found || strncmp(line, key, strlen(key)) == 0;
		*ret_count += strncmp(line, file, file_len) == 0 && line[file_len] == ':';
	}
	fclose(f);
	return found;
}

static void
run_file(const char *file, int least,
    bool (*fits)(struct json_object *o, struct hr_buf *in, struct hr_buf *out))
{
	char path[64];
	HR_FREE char *line = NULL;
	size_t cap = 0;
	HR_BUF(in, 1 << 24);
	HR_BUF(out, 1 << 24);
	int number = 0, exceptions = 0, found = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "term/%s", file);
	f = lines_open(path);
	while (lines_next(f, &line, &cap)) {
		struct json_object *o = json_tokener_parse(line);
		bool ok, except;

		ck_assert_ptr_nonnull(o);
		number++;
		hr_term_reset(t);
		hr_buf_reset(&in);
		hr_buf_reset(&out);
		ok = fits(o, &in, &out);
		except = excepted(file, number, &exceptions);
		found += except;
		ck_assert_msg(ok != except, "%s:%d %s: %.300s", file, number,
		    ok ? "is listed as an exception" : "differs", hr_buf_str(&out));
		json_object_put(o);
	}
	ck_assert_int_ge(number, least);
	ck_assert_int_eq(found, exceptions); /* no line is listed that does not exist */
	ck_assert_int_le(exceptions, MAX_EXCEPTIONS);
	fclose(f);
}

START_TEST(screens)
{
	run_file("screen.jsonl", 215, screen_fits);
}
END_TEST

START_TEST(renderings)
{
	run_file("render.jsonl", 245, render_fits);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("term_corpus");
	TCase *tc = tcase_create("corpus");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, screens);
	tcase_add_test(tc, renderings);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
