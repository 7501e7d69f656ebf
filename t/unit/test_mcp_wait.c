/* The handles of commands, the arguments of tools, and the parts of output that wait returns. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "actions/shell.h"
#include "files/revise/plaintext.h"
#include "lines.h"
#include "mcp/call.h"

#define PART 16384u /* bytes in the head and in the tail of long output */
#define ID "01234567-89ab-cdef-0123-456789abcdef"

/* The output of the only process, and the parts of it that were read. */
static struct hr_span output;
static uint64_t reads[4][2];
static size_t nreads;

static int
read_output(
    void *server, const char *id, uint64_t from, size_t len, struct hr_buf *raw, struct hr_err *err)
{
	ck_assert_ptr_null(server);
	ck_assert_str_eq(id, ID);
	if (from > output.len)
		return hr_err_set(err, HR_E_RUNTIME, "there is no byte %zu", (size_t)from);
	ck_assert_uint_lt(nreads, 4);
	reads[nreads][0] = from;
	reads[nreads++][1] = len;
	hr_buf_add(raw, output.p + from, len < output.len - from ? len : output.len - from);
	return 0;
}

static int there; /* the result of the next look */

static int
look(void *server, const char *id, struct hr_mcp_process *ret)
{
	ck_assert_ptr_null(server);
	ck_assert_str_eq(id, ID);
	*ret = (struct hr_mcp_process){.over = true, .exit_code = 7, .bytes = 9};
	return there;
}

static const struct hr_mcp_beside beside = {.look = look, .read = read_output};
static const struct hr_mcp_env env = {.run_dir = "/run", .work_dir = "/", .beside = &beside};

static void
begin(struct hr_mcp_call *c, const char *args)
{
	memset(c, 0, sizeof(*c));
	c->env = &env;
	ck_assert_int_eq(hr_json_decode(args, strlen(args), &c->args, NULL), 0);
	hr_buf_init(&c->text, 100000);
	hr_buf_init(&c->blocks, 100000);
	hr_buf_init(&c->structured, 100000);
	nreads = 0;
}

static void
end(struct hr_mcp_call *c)
{
	json_object_put(c->args);
	hr_buf_done(&c->text);
	hr_buf_done(&c->blocks);
	hr_buf_done(&c->structured);
}

/* ---- handles ---- */

/* A handle that is put is the one that was read. */
START_TEST(handles)
{
	static const char *const good[] = {
	    "1-0-0@default",
	    "12-5f3a-345@s1",
	    "9223372036854775807-7fffffffffffffff-9223372036854775807@a",
	    "1-1-1@abcdefghijklmnopqrstuvwxyz012345",
	    "b-" ID "-0",
	    "b-" ID "-70000",
	};
	struct hr_mcp_call c;
	struct hr_mcp_wait w;
	HR_BUF(args, 200);
	HR_BUF(b, 200);

	hr_buf_addf(&args, "{\"handle\":\"%s\"}", good[_i]);
	begin(&c, hr_buf_str(&args));
	ck_assert(hr_mcp_handle_read(&c, &w));
	ck_assert(!c.is_error);
	hr_mcp_handle_put(&b, &w);
	ck_assert_str_eq(hr_buf_str(&b), good[_i]);
	end(&c);
}
END_TEST

START_TEST(parts_of_handles)
{
	struct hr_mcp_call c;
	struct hr_mcp_wait w;

	begin(&c, "{\"handle\":\"12-1f-345@s1\"}");
	ck_assert(hr_mcp_handle_read(&c, &w));
	ck_assert_str_eq(w.process, "");
	ck_assert_str_eq(w.session, "s1");
	ck_assert_str_eq(hr_mcp_place(&c, &w).session, "s1");
	ck_assert_int_eq(w.id, 12);
	ck_assert_int_eq(w.started, 31);
	ck_assert_uint_eq(w.from, 345);
	ck_assert(!w.sequential);
	end(&c);
	begin(&c, "{\"handle\":\"2-3-4@default\"}");
	ck_assert(hr_mcp_handle_read(&c, &w));
	ck_assert_str_eq(w.session, "");
	ck_assert_ptr_null(hr_mcp_place(&c, &w).session);
	ck_assert_str_eq(hr_mcp_place(&c, &w).run_dir, "/run");
	end(&c);
	begin(&c, "{\"handle\":\"b-" ID "-7\"}");
	ck_assert(hr_mcp_handle_read(&c, &w));
	ck_assert_str_eq(w.process, ID);
	ck_assert_uint_eq(w.from, 7);
	end(&c);
}
END_TEST

static const char *const no_handles[] = {
    "{}",
    "{\"handle\":\"\"}",
    "{\"handle\":\"0-1-1@a\"}",
    "{\"handle\":\"1-1-1\"}",
    "{\"handle\":\"1-1-1@\"}",
    "{\"handle\":\"1-1-1@a/b\"}",
    "{\"handle\":\"1-1-1@abcdefghijklmnopqrstuvwxyz0123456\"}",
    "{\"handle\":\"-1-1-1@a\"}",
    "{\"handle\":\"1--1-1@a\"}",
    "{\"handle\":\"1-1-+1@a\"}",
    "{\"handle\":\"1-1- 1@a\"}",
    "{\"handle\":\"1-g-1@a\"}",
    "{\"handle\":\"1-1-a@a\"}",
    "{\"handle\":\"1-1-@a\"}",
    "{\"handle\":\"9223372036854775808-1-1@a\"}",
    "{\"handle\":\"1-1-99999999999999999999@a\"}",
    "{\"handle\":\"1-1-1@a\\u0000\"}",
    "{\"handle\":\"b-" ID "\"}",
    "{\"handle\":\"b-" ID "-\"}",
    "{\"handle\":\"b-" ID "-1x\"}",
    "{\"handle\":\"b-" ID "01\"}",
    "{\"handle\":\"b-" ID "-1\\u0000\"}",
    "{\"handle\":\"c-" ID "-1\"}",
    "{\"handle\":\"b-1-1\"}",
};

START_TEST(refused_handles)
{
	struct hr_mcp_call c;
	struct hr_mcp_wait w;

	begin(&c, no_handles[_i]);
	c.waits = true;
	hr_mcp_say(&c, "more");
	ck_assert_msg(!hr_mcp_handle_read(&c, &w), "%s", no_handles[_i]);
	ck_assert(c.is_error);
	ck_assert(!c.waits);
	ck_assert_str_eq(hr_buf_str(&c.text),
	    "That is no handle: take the one of the last answer to run or wait.");
	end(&c);
}
END_TEST

/* `after` takes the place of the handle's offset. */
START_TEST(offsets)
{
	static const struct {
		const char *args;
		uint64_t from;
	} rows[] = {{"{\"handle\":\"12-1f-345@s1\"}", 345},
	    {"{\"handle\":\"12-1f-345@s1\",\"after\":0}", 0},
	    {"{\"handle\":\"b-" ID "-7\",\"after\":9}", 9},
	    {"{\"handle\":\"b-" ID "-7\",\"after\":-9}", 0}};
	struct hr_mcp_call c;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin(&c, rows[i].args);
		hr_mcp_wait.call(&c);
		ck_assert(c.waits && c.wait.sequential);
		ck_assert_uint_eq(c.wait.from, rows[i].from);
		end(&c);
	}
}
END_TEST

/* ---- arguments ---- */

START_TEST(sessions)
{
	static const struct {
		const char *args, *name; /* NULL: refused */
	} rows[] = {
	    {"{}", ""},
	    {"{\"session\":\"\"}", ""},
	    {"{\"session\":\"default\"}", ""},
	    {"{\"session\":\"Default\"}", "Default"},
	    {"{\"session\":\"default1\"}", "default1"},
	    {"{\"session\":\"abcdefghijklmnopqrstuvwxyz012345\"}",
		"abcdefghijklmnopqrstuvwxyz012345"},
	    {"{\"session\":\"abcdefghijklmnopqrstuvwxyz0123456\"}", NULL},
	    {"{\"session\":\"a b\"}", NULL},
	    {"{\"session\":\".a\"}", NULL},
	};
	struct hr_mcp_call c;
	char name[HR_MCP_SESSION];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin(&c, rows[i].args);
		ck_assert_int_eq(hr_mcp_session(&c, name), rows[i].name != NULL);
		ck_assert_int_eq(c.is_error, rows[i].name == NULL);
		if (rows[i].name != NULL)
			ck_assert_str_eq(name, rows[i].name);
		end(&c);
	}
}
END_TEST

START_TEST(numbers)
{
	struct hr_mcp_call c;

	begin(&c, "{\"n\":7,\"wait_s\":2.5,\"yes\":true,\"no\":false}");
	ck_assert_int_eq(hr_mcp_arg_int(&c, "n", 3, 1, 10), 7);
	ck_assert_int_eq(hr_mcp_arg_int(&c, "n", 3, 8, 10), 8);
	ck_assert_int_eq(hr_mcp_arg_int(&c, "n", 3, 1, 6), 6);
	ck_assert_int_eq(hr_mcp_arg_int(&c, "other", 3, 1, 10), 3);
	ck_assert(hr_mcp_wait_s(&c, 0) == 2.5);
	ck_assert(hr_mcp_wait_s(&c, 4) == 4);
	ck_assert(hr_mcp_arg_true(&c, "yes") && !hr_mcp_arg_true(&c, "no"));
	ck_assert(!hr_mcp_arg_true(&c, "other"));
	end(&c);
	begin(&c, "{\"wait_s\":301}");
	ck_assert(hr_mcp_wait_s(&c, 0) == 300);
	end(&c);
	begin(&c, "{}");
	ck_assert(hr_mcp_wait_s(&c, 0) == 25);
	end(&c);
}
END_TEST

START_TEST(paths)
{
	struct hr_mcp_call c;
	char *path;

	begin(&c, "{\"absolute\":\"/a/b\",\"null\":\"/a\\u0000b\"}");
	path = hr_mcp_path(&c, "absolute");
	ck_assert_str_eq(path, "/a/b");
	free(path);
	ck_assert_ptr_null(hr_mcp_path(&c, "null"));
	ck_assert(c.is_error);
	ck_assert_str_eq(hr_buf_str(&c.text), "A path cannot hold a null character.");
	end(&c);
}
END_TEST

START_TEST(statuses)
{
	static const struct {
		int status;
		unsigned retry_s;
		const char *body, *text;
	} rows[] = {
	    {503, 2, "{\"detail\":\"full\"}",
		"Not now, nothing was done: full. Call again in a moment."},
	    {503, 1, "", "Not now, nothing was done: the sandbox is busy. Call again in a moment."},
	    {503, 0, "{\"detail\":\"full\"}", "full"},
	    {500, 2, "{\"detail\":\"broken\"}", "broken"},
	    {500, 0, "{}", "The sandbox could not do that."},
	};
	struct hr_mcp_call c;
	HR_CLEAN(hr_answer_done) struct hr_answer a;
	size_t i;

	hr_answer_init(&a);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin(&c, "{}");
		a.status = rows[i].status;
		a.retry_after_s = rows[i].retry_s;
		hr_buf_reset(&a.body);
		hr_buf_adds(&a.body, rows[i].body);
		hr_mcp_fail_status(&c, &a);
		ck_assert(c.is_error);
		ck_assert_str_eq(hr_buf_str(&c.text), rows[i].text);
		end(&c);
	}
}
END_TEST

/* ---- output of a process ---- */

/* Puts all of `text` from `*io_from` on. Returns 0, or -1 with *err set. */
static int
put(const char *text, size_t len, uint64_t *io_from, bool sequential, bool over, struct hr_buf *out,
    struct hr_err *err)
{
	struct hr_mcp_call c;
	struct hr_mcp_wait w = {.process = ID, .from = *io_from, .sequential = sequential};
	int r;

	begin(&c, "{}");
	output = (struct hr_span){text, len};
	r = hr_mcp_put_output(&c, &w, len, over, out, err);
	*io_from = w.from;
	end(&c);
	return r;
}

/* Unfinished sequences at the end stay for the next part, unless there is none. */
START_TEST(unfinished_ends)
{
	static const struct {
		const char *text;
		size_t kept; /* bytes at the end that wait for more */
	} rows[] = {
	    {"abc", 0},
	    {"abc\n", 0},
	    {"abc\r", 1},
	    {"abc\r\n", 0},
	    {"abc\xC3", 1},
	    {"abc\xC3\xA9", 0},
	    {"abc\xE2\x82", 2},
	    {"abc\xE2\x82\xAC", 0},
	    {"abc\xF0\x9F\x98", 3},
	    {"abc\xF0\x9F\x98\x80", 0},
	    {"abc\x80\x80\x80\x80", 0},
	    {"abc\xC1", 0},
	    {"abc\033", 1},
	    {"abc\033[", 2},
	    {"abc\033[1;3", 5},
	    {"abc\033[1m", 0},
	    {"abc\033[1mde", 0},
	    {"abc\033]0;t", 5},
	    {"abc\033]0;t\a", 0},
	    {"abc\033]0;t\ade", 0},
	    {"abc\0337", 0},
	    {"\033[1m\033[", 2},
	    {"\033]123456789 123456789 123456789 123456789 123456789 123456789 12", 64},
	    {"\033]123456789 123456789 123456789 123456789 123456789 123456789 123", 0},
	};
	const char *text = rows[_i].text;
	size_t len = strlen(text);
	HR_BUF(out, 1000);
	struct hr_err err = {0};
	uint64_t from = 0;

	ck_assert_int_eq(put(text, len, &from, false, false, &out, &err), 0);
	ck_assert_uint_eq(from, len - rows[_i].kept);
	from = 0;
	ck_assert_int_eq(put(text, len, &from, false, true, &out, &err), 0);
	ck_assert_uint_eq(from, len);
}
END_TEST

START_TEST(nothing_new)
{
	HR_BUF(out, 1000);
	struct hr_err err = {0};
	uint64_t from = 3;

	ck_assert_int_eq(put("abc", 3, &from, false, true, &out, &err), 0);
	ck_assert_uint_eq(from, 3);
	ck_assert_uint_eq(nreads, 0);
	ck_assert_uint_eq(out.len, 0);
}
END_TEST

static void
check_read(size_t i, uint64_t from, uint64_t len)
{
	ck_assert_uint_lt(i, nreads);
	ck_assert_uint_eq(reads[i][0], from);
	ck_assert_uint_eq(reads[i][1], len);
}

/* Output of two parts is shown whole, longer one only head and tail, or in parts. */
START_TEST(long_output)
{
	static char text[3 * PART + 1];
	HR_BUF(out, 1u << 20);
	struct hr_err err = {0};
	uint64_t from = 0;
	size_t i;

	for (i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	ck_assert_int_eq(put(text, (size_t)2 * PART, &from, false, true, &out, &err), 0);
	ck_assert_uint_eq(nreads, 1);
	check_read(0, 0, (uint64_t)2 * PART);
	ck_assert_uint_eq(out.len, 2 * PART);
	ck_assert_mem_eq(out.p, text, out.len);

	hr_buf_reset(&out);
	from = 0;
	ck_assert_int_eq(put(text, (size_t)2 * PART + 1, &from, false, true, &out, &err), 0);
	ck_assert_uint_eq(from, 2 * PART + 1);
	ck_assert_uint_eq(nreads, 2);
	check_read(0, 0, PART);
	check_read(1, PART + 1, PART);
	ck_assert_mem_eq(out.p, text, PART);
	ck_assert_mem_eq(out.p + out.len - PART, text + PART + 1, PART);
	ck_assert_ptr_nonnull(
	    strstr(out.p, "\n[1 bytes are left out here; wait with after=16384 shows them]\n"));

	hr_buf_reset(&out);
	from = 5;
	ck_assert_int_eq(put(text, sizeof(text), &from, true, true, &out, &err), 0);
	ck_assert_uint_eq(from, 2 * PART + 5);
	ck_assert_uint_eq(nreads, 1);
	check_read(0, 5, (uint64_t)2 * PART);
	ck_assert_uint_eq(out.len, 2 * PART);
	ck_assert_mem_eq(out.p, text + 5, out.len);
	ck_assert_int_eq(put(text, sizeof(text), &from, true, true, &out, &err), 0);
	ck_assert_uint_eq(from, sizeof(text));
	ck_assert_uint_eq(out.len, sizeof(text) - 5);
}
END_TEST

/* The last line ends with the text, not with the memory that it is in. */
START_TEST(numbered_lines)
{
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
	HR_BUF(out, 1000);

	hr_plaintext_init(&t);
	ck_assert(hr_plaintext_decode(&t, "a\r\nb\nlast", 9));
	hr_buf_adds(&t.text, "no part\n");
	t.text.len = 9;
	ck_assert_uint_eq(hr_mcp_put_lines(&out, &t, 2, 9, 1000), 3);
	ck_assert_str_eq(hr_buf_str(&out), "     2\tb\n     3\tlast\n");
	hr_buf_reset(&out);
	ck_assert_uint_eq(hr_mcp_put_lines(&out, &t, 1, 9, 8), 1);
	ck_assert_str_eq(hr_buf_str(&out), "     1\ta\n");
	ck_assert_uint_eq(hr_mcp_put_lines(&out, &t, 4, 9, 1000), 0);
}
END_TEST

/* A CR alone ends a line only in a file without any LF. */
START_TEST(ends_of_lines)
{
	static const struct {
		const char *text, *ends, *want;
	} rows[] = {{"x\ry", "\r", "     1\tx\n     2\ty\n"},
	    {"x\r\ny\nz", "\n", "     1\tx\n     2\ty\n     3\tz\n"},
	    {"x\r\ny\r\nz\n", "\r\n", "     1\tx\n     2\ty\n     3\tz\n"},
	    {"x", "", "     1\tx\n"}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
		HR_BUF(out, 1000);

		hr_plaintext_init(&t);
		ck_assert(hr_plaintext_decode(&t, rows[i].text, strlen(rows[i].text)));
		ck_assert_str_eq(t.ends, rows[i].ends);
		(void)hr_mcp_put_lines(&out, &t, 1, 9, 1000);
		ck_assert_str_eq(hr_buf_str(&out), rows[i].want);
	}
}
END_TEST

/* A head ends before a character that it would cut. */
START_TEST(heads_end_with_a_character)
{
	static char text[3 * PART];
	HR_BUF(out, 1u << 20);
	struct hr_err err = {0};
	uint64_t from = 0;

	memset(text, 'a', sizeof(text));
	memcpy(text + PART - 1, "\xC3\xA9", 2);
	ck_assert_int_eq(put(text, sizeof(text), &from, false, true, &out, &err), 0);
	ck_assert_ptr_nonnull(strstr(
	    out.p, "a\n[16385 bytes are left out here; wait with after=16383 shows them]\na"));
	memcpy(text + 2 * PART - 1, "\xC3\xA9", 2);
	from = 0;
	ck_assert_int_eq(put(text, sizeof(text), &from, true, true, &out, &err), 0);
	ck_assert_uint_eq(from, 2 * PART - 1);
}
END_TEST

START_TEST(output_that_cannot_be_read)
{
	struct hr_mcp_call c;
	struct hr_mcp_wait w = {.process = ID, .from = 10};
	struct hr_err err = {0};
	HR_BUF(out, 1000);

	begin(&c, "{}");
	output = (struct hr_span){"abc", 3};
	ck_assert_int_eq(hr_mcp_put_output(&c, &w, 20, false, &out, &err), -1);
	ck_assert_str_eq(err.msg, "there is no byte 10");
	ck_assert_uint_eq(w.from, 10);
	ck_assert_int_eq(hr_mcp_put_output(&c, &w, 20 + 2 * PART, false, &out, &err), -1);
	ck_assert_uint_eq(w.from, 10);
	end(&c);
}
END_TEST

START_TEST(processes)
{
	static const char *const why[] = {
	    "The state of the command cannot be read now. Call again in a moment.",
	    ("The result of that command is no longer available: later commands needed its "
	     "room, or the sandbox was restarted."),
	    ""};
	struct hr_mcp_call c;
	const struct hr_mcp_wait w = {.process = ID};
	struct hr_mcp_process p;

	for (there = -1; there <= 1; there++) {
		begin(&c, "{}");
		ck_assert_int_eq(hr_mcp_look_beside(&c, &w, &p), there == 1);
		ck_assert_int_eq(c.is_error, there < 1);
		ck_assert_str_eq(hr_buf_str(&c.text), why[there + 1]);
		ck_assert_int_eq(p.exit_code, 7);
		end(&c);
	}
}
END_TEST

/* ---- results ---- */

static void
check_done(const char *text, bool sequential, const char *directory, const char *handle,
    const char *want, const char *structured)
{
	struct hr_mcp_call c;

	begin(&c, "{}");
	c.wait.sequential = sequential;
	hr_mcp_put_done(&c, (struct hr_span){text, strlen(text)}, 3,
	    (struct hr_span){directory, strlen(directory)}, handle);
	ck_assert_str_eq(hr_buf_str(&c.text), want);
	ck_assert_str_eq(hr_buf_str(&c.structured), structured);
	end(&c);
}

START_TEST(results)
{
	check_done("a\n", false, "/w", "", "a\n[exit code 3, in /w]",
	    "{\"output\":\"a\",\"running\":false,\"exit_code\":3,\"working_dir\":\"/w\","
	    "\"handle\":null}");
	check_done("a\n", true, "", "h",
	    "a\n[exit code 3; all of the output: wait with handle \"h\"]",
	    "{\"output\":\"a\\n\",\"running\":false,\"exit_code\":3,\"working_dir\":\"\","
	    "\"handle\":\"h\"}");
	check_done("", false, "/", "", "[exit code 3, in /]",
	    "{\"output\":\"\",\"running\":false,\"exit_code\":3,\"working_dir\":\"/\","
	    "\"handle\":null}");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mcp_wait");
	TCase *t = tcase_create("handles");

	tcase_add_loop_test(t, handles, 0, 6);
	tcase_add_test(t, parts_of_handles);
	tcase_add_loop_test(t, refused_handles, 0, (int)(sizeof(no_handles) / sizeof(*no_handles)));
	tcase_add_test(t, offsets);
	suite_add_tcase(s, t);
	t = tcase_create("arguments");
	tcase_add_test(t, sessions);
	tcase_add_test(t, numbers);
	tcase_add_test(t, paths);
	tcase_add_test(t, statuses);
	suite_add_tcase(s, t);
	t = tcase_create("output");
	tcase_add_loop_test(t, unfinished_ends, 0, 24);
	tcase_add_test(t, nothing_new);
	tcase_add_test(t, long_output);
	tcase_add_test(t, heads_end_with_a_character);
	tcase_add_test(t, numbered_lines);
	tcase_add_test(t, ends_of_lines);
	tcase_add_test(t, output_that_cannot_be_read);
	tcase_add_test(t, processes);
	tcase_add_test(t, results);
	suite_add_tcase(s, t);
	return lines_run(s);
}
