/* One command or several: the recorded verdicts, and the rules that only running a command knows.
 */
#include "config.h"

#include "shell/split.h"

#include <json-c/json.h>

#include "base/buf.h"
#include "lines.h"

static const char *const verdicts[] = {
    [HR_SHELL_PARSED] = "parsed",
    [HR_SHELL_UNPARSABLE] = "unparsable",
    [HR_SHELL_BLANK] = "blank",
};

static struct json_object *
field(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	ck_assert_msg(json_object_object_get_ex(o, name, &v), "no field %s", name);
	return v;
}

/* Splits a copy of exactly the right size, so that a sanitizer sees reads behind its end. */
static void
split_copy(const char *text, size_t len, struct hr_shell_pieces *ret)
{
	char *copy = malloc(len > 0 ? len : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, len);
	ck_assert_int_eq(hr_shell_split(copy, len, ret, NULL), 0);
	free(copy);
}

static void
check_line(const char *line, const char *want_field)
{
	struct json_object *o = json_tokener_parse(line), *want, *input, *parse;
	struct hr_shell_pieces p;
	size_t i;

	ck_assert_ptr_nonnull(o);
	if (!json_object_object_get_ex(o, "ours", &want))
		want = field(o, want_field);
	input = field(o, "input");
	split_copy(json_object_get_string(input), (size_t)json_object_get_string_len(input), &p);
	ck_assert_msg(p.n == json_object_array_length(want), "%zu pieces: %s", p.n, line);
	for (i = 0; i < p.n; i++) {
		struct json_object *w = json_object_array_get_idx(want, i);

		ck_assert_msg(p.v[i].len == (size_t)json_object_get_string_len(w) &&
				  memcmp(p.v[i].text, json_object_get_string(w), p.v[i].len) == 0 &&
				  p.v[i].text[p.v[i].len] == '\0',
		    "piece %zu is \"%s\": %s", i, p.v[i].text, line);
	}
	if (json_object_object_get_ex(o, "ours_parse", &parse) ||
	    json_object_object_get_ex(o, "parse", &parse))
		ck_assert_msg(strcmp(verdicts[p.verdict], json_object_get_string(parse)) == 0,
		    "%s: %s", verdicts[p.verdict], line);
	hr_shell_pieces_done(&p);
	json_object_put(o);
}

static void
check_file(const char *name, const char *want_field, unsigned at_least)
{
	FILE *f = lines_open(name);
	char *line = NULL;
	size_t cap = 0;
	unsigned n = 0;

	for (; lines_next(f, &line, &cap); n++)
		check_line(line, want_field);
	ck_assert_uint_ge(n, at_least);
	free(line);
	fclose(f);
}

START_TEST(recorded_commands)
{
	check_file("shell/split_commands.jsonl", "pieces", 418);
}
END_TEST

START_TEST(recorded_table)
{
	check_file("shell/split_table.jsonl", "pieces", 74);
}
END_TEST

START_TEST(recorded_extra)
{
	check_file("shell/split_extra.jsonl", "pieces", 500);
}
END_TEST

START_TEST(hazards)
{
	check_file("shell/split_hazards.jsonl", "want", 11);
}
END_TEST

/* pieces: joined by |; refused: are they too many? */
static const struct {
	const char *text, *pieces;
	bool refused;
} runs[] = {
    {"ls", "ls", false},
    {"", "", false},
    {" \n ", "", false},
    {"# build\nmake", "# build|make", false},
    {"# a\n# b\n\nmake", "# a\n# b|make", false},
    {"# only", "# only", false},
    {"# a\nmake\n# b", "# a|make\n# b", false},
    {"# a\nmake\n# b\nmake test", "# a|make\n# b|make test", true},
    {"\\\nls", "\\|ls", false},
    {"ls\npwd", "ls|pwd", true},
    {"ls;# c", "ls;# c", false},
    {"ls;# c\n", "ls;# c", false},
    {"(ls)# c", "(ls)# c", false},
    {"sleep 1 &# c\nls", "sleep 1 &# c|ls", true},
    {"ls;#\npwd", "ls;#|pwd", true},
    {"cat>\\\nf", "cat>\\\nf", false},
    {"cat <<A $(b <<B\ny\nB\n)\nx\nA\nls", "cat <<A $(b <<B\ny\nB\n)\nx\nA|ls", true},
    {"cat <<A $(b <<B\ny\nB\n)\nx\nA", "cat <<A $(b <<B\ny\nB\n)\nx\nA", false},
    {"ls\n[[ x ]]\npwd", "ls\n[[ x ]]\npwd", false},
    {"while read l\ndo\necho $l\ndone <f", "while read l\ndo\necho $l\ndone <f", false},
    {"while read l\ndo\necho $l\ndone <f\nls", "while read l\ndo\necho $l\ndone <f|ls", true},
    {"until ! (a)\ndo c; done\nls", "until ! (a)\ndo c; done|ls", true},
    {"x='${a'\nls", "x='${a'|ls", true},
};

START_TEST(running)
{
	const char *text = runs[_i].text, *want = runs[_i].pieces;
	struct hr_shell_pieces p;
	size_t i;

	split_copy(text, strlen(text), &p);
	for (i = 0; i < p.n; i++) {
		const char *bar = strchr(want, '|');
		size_t n = i + 1 < p.n && bar ? (size_t)(bar - want) : strlen(want);

		ck_assert_msg(p.v[i].len == n && memcmp(p.v[i].text, want, n) == 0,
		    "piece %zu of \"%s\" is \"%s\"", i, text, p.v[i].text);
		want += n + (i + 1 < p.n);
	}
	ck_assert_msg(hr_shell_pieces_refused(&p) == runs[_i].refused, "\"%s\"", text);
	hr_shell_pieces_done(&p);
}
END_TEST

START_TEST(refusal)
{
	static const char text[] = "# c\nls\n\npwd  \nx='a\nb'";
	struct hr_shell_pieces p;
	struct hr_err err;
	size_t len;
	char *s;

	split_copy(text, strlen(text), &p);
	s = hr_shell_refusal_text(&p, &len, &err);
	ck_assert_str_eq(s, "ERROR: Cannot execute multiple commands at once.\n"
			    "Please run each command separately OR chain them into a single "
			    "command via && or ;\n"
			    "Provided commands:\n"
			    "(1) # c\n"
			    "(2) ls\n"
			    "(3) pwd\n"
			    "(4) x='a\nb'");
	ck_assert_uint_eq(len, strlen(s));
	free(s);
	hr_shell_pieces_done(&p);
}
END_TEST

/* A piece keeps bytes that are no text. */
START_TEST(odd_bytes)
{
	struct hr_shell_pieces p;

	split_copy("a\0b\xff\nc", 6, &p);
	ck_assert_uint_eq(p.n, 2);
	ck_assert_uint_eq(p.v[0].len, 4);
	ck_assert_mem_eq(p.v[0].text, "a\0b\xff", 5);
	ck_assert_str_eq(p.v[1].text, "c");
	hr_shell_pieces_done(&p);
	hr_shell_pieces_done(&p);
}
END_TEST

/* What stands first, in the middle (often) and last in texts of a megabyte; and the verdict. All
 * must be read without deep recursion and in about the same time: the whole table takes seconds if
 * one of them is quadratic in a single factor, and the test's time-out ends it. */
static const struct {
	const char *pre, *often, *post;
	enum hr_shell_verdict verdict;
	size_t pieces;
} bulk[] = {
    {"", "a ", "", HR_SHELL_PARSED, 1},
    {"", "a\n", "", HR_SHELL_PARSED, 500000},
    {"echo '", "a\n", "'", HR_SHELL_PARSED, 1},
    {"cat <<E\n", "a (\n", "E\nls", HR_SHELL_PARSED, 2},
    {"", "(", "", HR_SHELL_UNPARSABLE, 1},
    {"", "{ ", "", HR_SHELL_UNPARSABLE, 1},
    {"", "if ", "", HR_SHELL_UNPARSABLE, 1},
    {"", "a() ", "", HR_SHELL_UNPARSABLE, 1},
    {"", "$(", "", HR_SHELL_UNPARSABLE, 1},
    {"", "\"$(", "", HR_SHELL_UNPARSABLE, 1},
    {"", "\"${x:-", "", HR_SHELL_UNPARSABLE, 1},
    {"", "<(", "", HR_SHELL_UNPARSABLE, 1},
    {"", "$(<<E\n", "", HR_SHELL_UNPARSABLE, 1},
    {"", "<<E ", "", HR_SHELL_UNPARSABLE, 1},
    {"", "a <<E\nE\n", "", HR_SHELL_PARSED, 125000},
    {"", "# c\n", "ls", HR_SHELL_PARSED, 2},
    {"", "\\\n", "ls", HR_SHELL_PARSED, 2},
    {"a", "\\\n", "", HR_SHELL_UNPARSABLE, 1},
    {"", "! ", "a", HR_SHELL_PARSED, 1},
    {"a", "|a", "", HR_SHELL_PARSED, 1},
    {"a", " &&\na", "", HR_SHELL_PARSED, 1},
    {"", "$(a) ", "", HR_SHELL_PARSED, 1},
    {"", "`a`", "", HR_SHELL_PARSED, 1},
    {"x'", "$(a\n", "'", HR_SHELL_PARSED, 1},
    {"a", " ", "", HR_SHELL_PARSED, 1},
    {"a", "\r\n", "b", HR_SHELL_PARSED, 0},
    {"", "a;#", "", HR_SHELL_PARSED, 0},
    {"", "a <<E $(b <<F\nF\n)\n", "", HR_SHELL_UNPARSABLE, 1},
};

START_TEST(bulk_is_linear)
{
	size_t unit = strlen(bulk[_i].often), pre = strlen(bulk[_i].pre),
	       post = strlen(bulk[_i].post);
	size_t n = 1000000 / unit, len = pre + n * unit + post, i;
	char *text = malloc(len);
	struct hr_shell_pieces p;

	ck_assert_ptr_nonnull(text);
	memcpy(text, bulk[_i].pre, pre);
	for (i = 0; i < n; i++)
		memcpy(text + pre + i * unit, bulk[_i].often, unit);
	memcpy(text + pre + n * unit, bulk[_i].post, post);
	split_copy(text, len, &p);
	ck_assert_msg(p.verdict == bulk[_i].verdict, "%s: %s", bulk[_i].often, verdicts[p.verdict]);
	if (bulk[_i].pieces > 0)
		ck_assert_msg(p.n == bulk[_i].pieces, "%s: %zu", bulk[_i].often, p.n);
	hr_shell_pieces_done(&p);
	free(text);
}
END_TEST

/* Nesting that people write is understood, to a limit. */
START_TEST(one_of_our_interfaces)
{
	static const struct {
		const char *text, *want;
		bool braces;
	} cases[] = {{"  echo a \r\n", "echo a", false}, {"a\r\nb", "{\na\nb\n}", false},
	    {"a", "{\na\n}", true}, {"a\\ ", "a\\ ", false}, {"a\\\\ ", "a\\\\", false},
	    {"a \\\n", "{\na \\\n\n}", false}, {"a\rb", "a\rb", false}, {"", "", false},
	    {"cat <<E\r\n\r\nE\r\n", "cat <<E\n\nE", false}};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		HR_BUF(b, 4096);

		hr_buf_adds(&b, "&& ");
		ck_assert_int_eq(
		    hr_shell_add_one(&b, cases[i].text, strlen(cases[i].text), cases[i].braces), 0);
		ck_assert_str_eq(hr_buf_str(&b) + 3, cases[i].want);
	}
}
END_TEST

START_TEST(nesting)
{
	size_t i;

	static const struct {
		const char *open, *close;
		size_t fine, too_deep;
	} t[] = {
	    {"$(", ")", 40, 60},
	    {"\"$(a ", ")\"", 40, 60},
	    {"\"${a:-", "}\"", 400, 600},
	    {"(", ")", 900, 1100},
	    {"{ ", "; }", 900, 1100},
	    {"if a; then ", "; fi", 900, 1100},
	};

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		int deep;

		for (deep = 0; deep <= 1; deep++) {
			struct hr_buf b;
			struct hr_shell_pieces p;
			size_t n = deep ? t[i].too_deep : t[i].fine, k;

			hr_buf_init(&b, 1u << 20);
			for (k = 0; k < n; k++)
				hr_buf_adds(&b, t[i].open);
			hr_buf_addc(&b, 'a');
			for (k = 0; k < n; k++)
				hr_buf_adds(&b, t[i].close);
			hr_buf_adds(&b, "\nls");
			split_copy(b.p, b.len, &p);
			ck_assert_msg(p.n == (deep ? 1 : 2), "%zu times %s", n, t[i].open);
			hr_shell_pieces_done(&p);
			hr_buf_done(&b);
		}
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("split");
	TCase *c = tcase_create("split");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, recorded_commands);
	tcase_add_test(c, recorded_table);
	tcase_add_test(c, recorded_extra);
	tcase_add_test(c, hazards);
	tcase_add_loop_test(c, running, 0, (int)(sizeof runs / sizeof runs[0]));
	tcase_add_test(c, refusal);
	tcase_add_test(c, odd_bytes);
	tcase_add_loop_test(c, bulk_is_linear, 0, (int)(sizeof bulk / sizeof bulk[0]));
	tcase_add_test(c, one_of_our_interfaces);
	tcase_add_test(c, nesting);
	suite_add_tcase(s, c);
	return lines_run(s);
}
