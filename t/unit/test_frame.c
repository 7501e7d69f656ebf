/* Frames and the scoreboard. */
#include "config.h"

#include "proto/frame.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/channel.h"
#include "proto/scoreboard.h"

#include "lines.h"

static void
frame_whole(const struct hr_buf *b, uint32_t want_type, const char **ret_p, size_t *ret_len)
{
	struct hr_err err = {0};
	uint32_t type = 0;
	size_t used = 0, need = 0, i;

	for (i = 0; i < b->len; i++) {
		ck_assert_int_eq(
		    hr_frame_get(b->p, i, &type, ret_p, ret_len, &used, &need, &err), 0);
		ck_assert_uint_eq(need, i < HR_FRAME_HEADER ? HR_FRAME_HEADER : b->len);
	}
	ck_assert_int_eq(hr_frame_get(b->p, b->len, &type, ret_p, ret_len, &used, &need, &err), 1);
	ck_assert_uint_eq(type, want_type);
	ck_assert_uint_eq(used, b->len);
}

START_TEST(run_round_trip)
{
	struct hr_run_request in = {.command = {"echo \xff\n", 7},
				  .is_input = true,
				  .hidden = true,
				  .timeout = -0.5,
				  .key = {"k\0y", 3}},
			      out;
	struct hr_err err = {0};
	HR_BUF(b, 1 << 20);
	const char *p;
	size_t len;

	hr_frame_put_run(&b, &in);
	frame_whole(&b, HR_FRAME_RUN, &p, &len);
	ck_assert_int_eq(hr_frame_get_run(p, len, &out, &err), 0);
	ck_assert_uint_eq(out.command.len, 7);
	ck_assert_mem_eq(out.command.p, in.command.p, 7);
	ck_assert(out.is_input && !out.blocking && out.hidden);
	ck_assert(out.timeout == -0.5);
	ck_assert_uint_eq(out.key.len, 3);
	ck_assert_mem_eq(out.key.p, "k\0y", 3);
	hr_buf_reset(&b);
	in.timeout = 0;
	in.blocking = true;
	hr_frame_put_run(&b, &in);
	frame_whole(&b, HR_FRAME_RUN, &p, &len);
	ck_assert_int_eq(hr_frame_get_run(p, len, &out, &err), 0);
	ck_assert(out.blocking && out.timeout == 0 && out.ready_s == 0);
	hr_buf_reset(&b);
	in.ready_s = 1.5;
	hr_frame_put_run(&b, &in);
	frame_whole(&b, HR_FRAME_RUN, &p, &len);
	ck_assert_int_eq(hr_frame_get_run(p, len, &out, &err), 0);
	ck_assert(out.ready_s == 1.5);
}
END_TEST

START_TEST(result_round_trip)
{
	struct hr_run_result in = {.hidden = true,
				 .has_metadata = true,
				 .exit_code = -130,
				 .pid = INT64_MAX,
				 .clock = HR_CLOCK_HARD,
				 .id = 7,
				 .log_start = 1,
				 .log_end = UINT64_MAX,
				 .content = {"out", 3},
				 .command = {"cmd", 3},
				 .username = {"u", 1},
				 .hostname = {"h", 1},
				 .working_dir = {"/w", 2},
				 .py_path = {"/p", 2},
				 .prefix = {"", 0},
				 .suffix = {"\n[s]", 4}},
			     out;
	struct hr_err err = {0};
	HR_BUF(b, 1 << 20);
	const char *p;
	size_t len;

	hr_frame_put_result(&b, &in);
	frame_whole(&b, HR_FRAME_RESULT, &p, &len);
	ck_assert_int_eq(hr_frame_get_result(p, len, &out, &err), 0);
	ck_assert(out.hidden && out.has_metadata && !out.is_error);
	ck_assert_int_eq(out.exit_code, -130);
	ck_assert(out.pid == INT64_MAX);
	ck_assert_int_eq(out.clock, HR_CLOCK_HARD);
	ck_assert(out.id == 7 && out.log_start == 1 && out.log_end == UINT64_MAX);
	ck_assert_uint_eq(out.content.len, 3);
	ck_assert_mem_eq(out.content.p, "out", 3);
	ck_assert_mem_eq(out.command.p, "cmd", 3);
	ck_assert_mem_eq(out.username.p, "u", 1);
	ck_assert_mem_eq(out.hostname.p, "h", 1);
	ck_assert_mem_eq(out.working_dir.p, "/w", 2);
	ck_assert_mem_eq(out.py_path.p, "/p", 2);
	ck_assert_uint_eq(out.prefix.len, 0);
	ck_assert_mem_eq(out.suffix.p, "\n[s]", 4);
	hr_buf_reset(&b);
	in.clock = HR_CLOCKS;
	hr_frame_put_result(&b, &in);
	frame_whole(&b, HR_FRAME_RESULT, &p, &len);
	ck_assert_int_eq(hr_frame_get_result(p, len, &out, &err), -1);
	ck_assert_int_eq(err.code, HR_E_PROTO);
}
END_TEST

START_TEST(looking_on)
{
	/* the keeper makes milliseconds of it */
	static const int64_t no_limits[] = {-1, INT64_MIN, HR_EXEC_LIMIT_MAX + 1LL, INT64_MAX};
	struct hr_follow_request follow = {.offset = 1ULL << 40, .stays = true}, f;
	struct hr_output_piece piece = {.offset = 77, .bytes = {"a\0b", 3}}, o;
	struct hr_exec_request exec = {{"ls", 2}, {"/", 1}, 300, {"/k", 2}, {"/m", 2}}, x;
	struct hr_press_request press = {.what = HR_PRESS_TEXT, .text = {"x\n", 2}}, q;
	struct hr_err err = {0};
	const char *p;
	size_t len, used, need, i;
	uint32_t type;
	HR_BUF(b, 4096);

	hr_frame_put_follow(&b, &follow);
	ck_assert_int_eq(hr_frame_get(b.p, b.len, &type, &p, &len, &used, &need, &err), 1);
	ck_assert_uint_eq(type, HR_FRAME_FOLLOW);
	ck_assert_int_eq(hr_frame_get_follow(p, len, &f, &err), 0);
	ck_assert(f.offset == follow.offset && f.stays);

	hr_buf_reset(&b);
	hr_frame_put_exec(&b, &exec);
	frame_whole(&b, HR_FRAME_EXEC, &p, &len);
	ck_assert_int_eq(hr_frame_get_exec(p, len, &x, &err), 0);
	ck_assert(hr_span_equal(x.command, exec.command) && x.limit_s == exec.limit_s);
	ck_assert(hr_span_equal(x.working_dir, exec.working_dir));
	ck_assert(hr_span_equal(x.kept, exec.kept) && hr_span_equal(x.minder, exec.minder));
	hr_buf_reset(&b);
	exec.kept = (struct hr_span){"/\0k", 3};
	hr_frame_put_exec(&b, &exec);
	frame_whole(&b, HR_FRAME_EXEC, &p, &len);
	ck_assert_int_eq(hr_frame_get_exec(p, len, &x, &err), -1);
	ck_assert_int_eq(err.code, HR_E_PROTO);
	exec.kept = (struct hr_span){"", 0};
	for (i = 0; i < sizeof(no_limits) / sizeof(*no_limits); i++) {
		hr_buf_reset(&b);
		exec.limit_s = no_limits[i];
		hr_frame_put_exec(&b, &exec);
		frame_whole(&b, HR_FRAME_EXEC, &p, &len);
		ck_assert_int_eq(hr_frame_get_exec(p, len, &x, &err), -1);
		ck_assert_int_eq(err.code, HR_E_PROTO);
	}
	hr_buf_reset(&b);
	hr_frame_put_output(&b, &piece);
	ck_assert_int_eq(hr_frame_get(b.p, b.len, &type, &p, &len, &used, &need, &err), 1);
	ck_assert_uint_eq(type, HR_FRAME_OUTPUT);
	ck_assert_int_eq(hr_frame_get_output(p, len, &o, &err), 0);
	ck_assert_uint_eq(o.offset, 77);
	ck_assert_uint_eq(o.bytes.len, 3);
	ck_assert(memcmp(o.bytes.p, "a\0b", 3) == 0);
	hr_buf_reset(&b);
	hr_frame_put_press(&b, &press);
	ck_assert_int_eq(hr_frame_get(b.p, b.len, &type, &p, &len, &used, &need, &err), 1);
	ck_assert_uint_eq(type, HR_FRAME_PRESS);
	ck_assert_int_eq(hr_frame_get_press(p, len, &q, &err), 0);
	ck_assert(q.what == HR_PRESS_TEXT && q.text.len == 2 && memcmp(q.text.p, "x\n", 2) == 0);
	ck_assert_int_eq(hr_frame_get_press(p, len - 1, &q, &err), -1);
	hr_buf_reset(&b);
}
END_TEST

static int
press_again(const struct hr_press_request *r, struct hr_press_request *ret)
{
	struct hr_err err = {0};
	const char *p;
	size_t len, used, need;
	uint32_t type;
	HR_BUF(b, 4096);
	int got;

	hr_frame_put_press(&b, r);
	ck_assert_int_eq(hr_frame_get(b.p, b.len, &type, &p, &len, &used, &need, &err), 1);
	ck_assert_uint_eq(type, HR_FRAME_PRESS);
	got = hr_frame_get_press(p, len, ret, &err);
	ret->text = (struct hr_span){"", 0}; /* goes with the buffer */
	return got;
}

START_TEST(presses)
{
	struct hr_press_request q, r = {.what = HR_PRESS_SIGNAL, .text = {"", 0}};

	for (r.signal = 1; r.signal <= 64; r.signal++)
		ck_assert(press_again(&r, &q) == 0 && q.signal == r.signal);
	ck_assert_int_eq(press_again(&r, &q), -1);
	r.signal = 0;
	ck_assert_int_eq(press_again(&r, &q), -1);
	r.signal = 9;
	ck_assert(press_again(&r, &q) == 0 && !q.spares);
	r.spares = true;
	ck_assert(press_again(&r, &q) == 0 && q.spares);
	r = (struct hr_press_request){.what = HR_PRESS_SIZE, .rows = 1, .columns = 1000};
	ck_assert(press_again(&r, &q) == 0 && q.rows == 1 && q.columns == 1000);
	r.columns++;
	ck_assert_int_eq(press_again(&r, &q), -1);
	r.columns = 80;
	r.rows = 0;
	ck_assert_int_eq(press_again(&r, &q), -1);
	r = (struct hr_press_request){.what = HR_PRESS_KEYS, .text = {"C-c\0Up", 7}};
	ck_assert_int_eq(press_again(&r, &q), 0);
	r.text.len = 6; /* the last name has no end */
	ck_assert_int_eq(press_again(&r, &q), -1);
	r.what = HR_PRESS_END + 1;
	ck_assert_int_eq(press_again(&r, &q), -1);
	r.what = -1;
	ck_assert_int_eq(press_again(&r, &q), -1);
}
END_TEST

START_TEST(commands)
{
	struct hr_command_state in[HR_COMMANDS_MAX + 1], out[HR_COMMANDS_MAX];
	struct hr_err err = {0};
	const char *p;
	HR_BUF(b, 1 << 20);
	size_t len, n, i;

	hr_frame_put_empty(&b, HR_FRAME_COMMANDS);
	frame_whole(&b, HR_FRAME_COMMANDS, &p, &len);
	ck_assert_uint_eq(len, 0);
	for (i = 0; i <= HR_COMMANDS_MAX; i++)
		in[i] = (struct hr_command_state){.id = (int64_t)i + 7,
		    .key = {"k", 1},
		    .text = {"a\0b", 3},
		    .length = 99,
		    .end = HR_COMMAND_COMPLETED,
		    .exit_code = 3,
		    .log_start = 5,
		    .log_end = UINT64_C(1) << 40,
		    .started = 1234567,
		    .elapsed = 12,
		    .silent = 3};
	for (n = 0; n <= HR_COMMANDS_MAX; n += HR_COMMANDS_MAX) {
		size_t got = 99;

		hr_buf_reset(&b);
		hr_frame_put_list(&b, in, n);
		frame_whole(&b, HR_FRAME_LIST, &p, &len);
		ck_assert_int_eq(hr_frame_get_list(p, len, out, &got, &err), 0);
		ck_assert_uint_eq(got, n);
	}
	for (i = 0; i < HR_COMMANDS_MAX; i++) {
		ck_assert_int_eq(out[i].id, in[i].id);
		ck_assert(out[i].text.len == 3 && memcmp(out[i].text.p, "a\0b", 3) == 0);
		ck_assert(out[i].key.len == 1 && out[i].key.p[0] == 'k');
		ck_assert(out[i].length == 99 && out[i].end == HR_COMMAND_COMPLETED);
		ck_assert(out[i].exit_code == 3 && out[i].log_start == 5);
		ck_assert(out[i].log_end == UINT64_C(1) << 40 && out[i].started == 1234567);
		ck_assert(out[i].elapsed == 12 && out[i].silent == 3);
	}
	ck_assert_int_eq(hr_frame_get_list(p, len - 1, out, &n, &err), -1);
	hr_buf_reset(&b);
	hr_frame_put_list(&b, in, HR_COMMANDS_MAX + 1);
	frame_whole(&b, HR_FRAME_LIST, &p, &len);
	ck_assert_int_eq(hr_frame_get_list(p, len, out, &n, &err), -1);
}
END_TEST

START_TEST(status_and_state)
{
	struct hr_session_state in = {.ready = true,
				    .running = true,
				    .working_dir = {"/x", 2},
				    .reason = {"r", 1}},
				out;
	struct hr_err err = {0};
	HR_BUF(b, 1 << 20);
	const char *p;
	size_t len;

	hr_frame_put_empty(&b, HR_FRAME_STATUS);
	frame_whole(&b, HR_FRAME_STATUS, &p, &len);
	ck_assert_uint_eq(len, 0);
	hr_buf_reset(&b);
	hr_frame_put_state(&b, &in);
	frame_whole(&b, HR_FRAME_STATE, &p, &len);
	ck_assert_int_eq(hr_frame_get_state(p, len, &out, &err), 0);
	ck_assert(out.ready && out.running);
	ck_assert_mem_eq(out.working_dir.p, "/x", 2);
	ck_assert_mem_eq(out.reason.p, "r", 1);
}
END_TEST

START_TEST(act_and_answers)
{
	struct hr_act_request out, in = {.type = {"greet", 5},
				       .action = {"{\0}", 3},
				       .working_dir = {"/w", 2},
				       .key = {"k", 1},
				       .again = true};
	struct hr_act_answer answer = {.status = 500, .body = {"[]", 2}}, got;
	struct hr_err err = {0};
	HR_BUF(b, 1 << 20);
	const char *p;
	size_t len;

	hr_frame_put_act(&b, &in);
	frame_whole(&b, HR_FRAME_ACT, &p, &len);
	ck_assert_int_eq(hr_frame_get_act(p, len, &out, &err), 0);
	ck_assert_uint_eq(out.type.len, 5);
	ck_assert_mem_eq(out.type.p, "greet", 5);
	ck_assert_uint_eq(out.action.len, 3);
	ck_assert_mem_eq(out.action.p, "{\0}", 3);
	ck_assert_mem_eq(out.working_dir.p, "/w", 2);
	ck_assert_mem_eq(out.key.p, "k", 1);
	ck_assert(out.again);
	ck_assert_int_eq(hr_frame_get_act(p, len - 1, &out, &err), -1);
	hr_buf_reset(&b);
	hr_frame_put_answer(&b, &answer);
	frame_whole(&b, HR_FRAME_ANSWER, &p, &len);
	ck_assert_int_eq(hr_frame_get_answer(p, len, &got, &err), 0);
	ck_assert_int_eq(got.status, 500);
	ck_assert_uint_eq(got.body.len, 2);
	ck_assert_mem_eq(got.body.p, "[]", 2);
	ck_assert_int_eq(hr_frame_get_answer(p, len - 1, &got, &err), -1);
	/* a plugin may leave the status out */
	ck_assert_int_eq(hr_frame_get_answer(p, 0, &got, &err), 0);
	ck_assert_int_eq(got.status, 200);
	ck_assert_uint_eq(got.body.len, 0);
	hr_buf_reset(&b);
	hr_frame_put_refused(&b, "no luck");
	frame_whole(&b, HR_FRAME_REFUSED, &p, &len);
	ck_assert_int_eq(hr_frame_get_answer(p, len, &got, &err), 0);
	ck_assert_uint_eq(got.reason.len, 7);
	ck_assert_mem_eq(got.reason.p, "no luck", 7);
}
END_TEST

START_TEST(session_names)
{
	static const char *const good[] = {"a", "Z", "0", "a.b-c_D",
	    "x23456789012345678901234567890.-", "stati", "stat.static", "Default", "default1",
	    "Static"};
	static const char *const bad[] = {"", "default", "static", "static-1", "statics", ".", "..",
	    ".a", "-a", "_a", "a/b", "a b", "a\n", "\xc3\xa4", "x2345678901234567890123456789012x"};
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(hr_session_name_fits(good[i], strlen(good[i])), "%s", good[i]);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!hr_session_name_fits(bad[i], strlen(bad[i])), "%s", bad[i]);
	ck_assert(!hr_session_name_fits("a\0", 2));
}
END_TEST

static int
get(const void *p, size_t len, struct hr_err *err)
{
	const char *payload;
	uint32_t type;
	size_t n, used, need;

	return hr_frame_get(p, len, &type, &payload, &n, &used, &need, err);
}

START_TEST(bad_headers)
{
	uint32_t h[3] = {HR_FRAME_MAGIC, HR_FRAME_RUN, 0};
	struct hr_err err;

	ck_assert_int_eq(get(h, sizeof(h), &err), 1);
	h[0]++;
	ck_assert_int_eq(get(h, sizeof(h), &err), -1);
	ck_assert_int_eq(err.code, HR_E_PROTO);
	h[0]--;
	h[1] = 0;
	ck_assert_int_eq(get(h, sizeof(h), &err), -1);
	h[1] = HR_FRAME_LIST + 1;
	ck_assert_int_eq(get(h, sizeof(h), &err), -1);
	ck_assert_int_eq(err.code, HR_E_PROTO);
	h[1] = HR_FRAME_RESULT;
	h[2] = HR_FRAME_MAX + 1;
	ck_assert_int_eq(get(h, sizeof(h), &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

START_TEST(bad_fields)
{
	struct hr_run_request r;
	struct hr_run_result res;
	struct hr_err err;
	struct {
		uint32_t tag, len;
		char p[8];
	} f = {1, 8, "abcdefg"};

	/* an unknown tag is skipped, missing fields are zero */
	f.tag = 9999;
	ck_assert_int_eq(hr_frame_get_run(&f, 16, &r, &err), 0);
	ck_assert_uint_eq(r.command.len, 0);
	ck_assert_ptr_nonnull(r.command.p);
	ck_assert(r.timeout == 0);
	ck_assert_int_eq(hr_frame_get_result(&f, 16, &res, &err), 0);
	ck_assert_ptr_nonnull(res.suffix.p);
	/* past the end, cut header */
	f.len = 9;
	ck_assert_int_eq(hr_frame_get_run(&f, 16, &r, &err), -1);
	f.len = UINT32_MAX;
	ck_assert_int_eq(hr_frame_get_result(&f, 16, &res, &err), -1);
	ck_assert_int_eq(hr_frame_get_run(&f, 7, &r, &err), -1);
	ck_assert_int_eq(err.code, HR_E_PROTO);
	/* a command with a null byte; a flag of the wrong size */
	f.tag = 1;
	f.len = 8;
	ck_assert_int_eq(hr_frame_get_run(&f, 16, &r, &err), -1);
	f.tag = 2;
	ck_assert_int_eq(hr_frame_get_run(&f, 16, &r, &err), -1);
}
END_TEST

START_TEST(too_big_to_encode)
{
	struct hr_run_result r = {.content = {"", (size_t)HR_FRAME_MAX + 1}};
	HR_BUF(b, (size_t)HR_FRAME_MAX * 2);

	hr_frame_put_result(&b, &r); /* must look at the length before the bytes */
	ck_assert_int_eq(b.fail, HR_E_TOOLARGE);
}
END_TEST

START_TEST(board)
{
	struct hr_scoreboard *a, *b;
	struct hr_err err = {0};
	int fd = -1, null[2];

	a = hr_scoreboard_create(&fd, &err);
	ck_assert_msg(a != NULL, "%s", err.msg);
	b = hr_scoreboard_attach(fd, &err);
	ck_assert_msg(b != NULL, "%s", err.msg);
	atomic_store(&a->slots[7].requests, 42);
	ck_assert_uint_eq(atomic_load(&b->slots[7].requests), 42);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	hr_scoreboard_detach(b);
	atomic_store(&a->version, HR_SCOREBOARD_VERSION + 1);
	ck_assert_ptr_null(hr_scoreboard_attach(fd, &err));
	ck_assert_int_eq(err.code, HR_E_PROTO);
	hr_scoreboard_detach(a);
	(void)close(fd);
	ck_assert_int_eq(pipe(null), 0);
	ck_assert_ptr_null(hr_scoreboard_attach(null[0], &err));
	(void)close(null[0]);
	(void)close(null[1]);
	hr_scoreboard_detach(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("frame");
	TCase *c = tcase_create("frame");

	tcase_add_test(c, run_round_trip);
	tcase_add_test(c, result_round_trip);
	tcase_add_test(c, looking_on);
	tcase_add_test(c, presses);
	tcase_add_test(c, session_names);
	tcase_add_test(c, commands);
	tcase_add_test(c, status_and_state);
	tcase_add_test(c, act_and_answers);
	tcase_add_test(c, bad_headers);
	tcase_add_test(c, bad_fields);
	tcase_add_test(c, too_big_to_encode);
	tcase_add_test(c, board);
	suite_add_tcase(s, c);
	return lines_run(s);
}
