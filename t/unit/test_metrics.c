/* worker/metrics and worker/trace: what is counted where, the text's form, trace contexts. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/evclass.h"
#include "worker/metrics.h"
#include "worker/request/trace.h"
#include "worker/worker.h"

#define ID "0123456789abcdef0123456789abcdef"
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define NEXT "00-" TRACE "-0123456789abcdef-"
#define OWN "00-" ID "-0123456789abcdef-00"

START_TEST(traces)
{
	static const struct {
		const char *parent, *id, *want;
	} rows[] = {
	    {"00-" TRACE "-" SPAN "-01", ID, NEXT "01"},
	    {"00-" TRACE "-" SPAN "-00", ID, NEXT "00"},
	    {"01-" TRACE "-" SPAN "-01", ID, NEXT "01"},
	    {"cc-" TRACE "-" SPAN "-01-more", ID, NEXT "01"},
	    {"", ID, OWN},
	    {"00-" TRACE "-" SPAN, ID, OWN},
	    {"00-" TRACE "-" SPAN "-01-more", ID, OWN},
	    {"01-" TRACE "-" SPAN "-01more", ID, OWN},
	    {"ff-" TRACE "-" SPAN "-01", ID, OWN},
	    {"00-00000000000000000000000000000000-" SPAN "-01", ID, OWN},
	    {"00-" TRACE "-0000000000000000-01", ID, OWN},
	    {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", ID, OWN},
	    {"00-" TRACE "-" SPAN "-0x", ID, OWN},
	    {"0x-" TRACE "-" SPAN "-01", ID, OWN},
	    {"00-" TRACE "_" SPAN "-01", ID, OWN},
	    {"00-" TRACE "-" SPAN "-01", "", ""},
	    {"00-" TRACE "-" SPAN "-01", "0123", ""},
	    {"", "0123456789abcdef0123456789abcdeX", ""},
	    {"", "0123456789abcdef0000000000000000", ""},
	};
	char got[HR_TRACE_LEN + 1];

	hr_trace_next(rows[_i].parent, rows[_i].id, got);
	ck_assert_str_eq(got, rows[_i].want);
}
END_TEST

static struct hr_worker w;
static struct hr_scoreboard *board;
static struct hr_answer a, page;

static void
setup(void)
{
	board = calloc(1, sizeof(*board));
	ck_assert_ptr_nonnull(board);
	hr_worker_init(&w, "/nonexistent", "/", board, &board->slots[0]);
	hr_answer_init(&a);
	hr_answer_init(&page);
}

static void
teardown(void)
{
	hr_answer_done(&a);
	hr_answer_done(&page);
	hr_worker_done(&w);
	free(board);
}

static void
look(void)
{
	struct hr_request r = {0};

	hr_answer_reset(&page);
	hr_handle_metrics(&w, &r, &page);
	ck_assert_int_eq(page.status, 200);
}

static bool
says(const char *line)
{
	return strstr(hr_buf_str(&page.body), line) != NULL;
}

static void
ran(int64_t exit_code, enum hr_clock clock, uint64_t output, int64_t ns)
{
	hr_answer_reset(&a);
	a.note.cls = hr_action_class("run", 3);
	a.note.session = "default";
	a.note.clock = clock;
	a.note.exit_code = exit_code;
	a.note.output = output;
	hr_metrics_count(board, &a, ns);
}

START_TEST(commands)
{
	ran(0, HR_CLOCK_NONE, 10, 400000);
	ran(0, HR_CLOCK_NONE, 20, 500000);
	ran(127, HR_CLOCK_NONE, 0, 2000000000);
	ran(-1, HR_CLOCK_NO_OUTPUT, 5, 10000000000);
	ran(-1, HR_CLOCK_HARD, 0, 7200000000000);
	ran(300, HR_CLOCK_NONE, 0, 0);
	look();
	ck_assert(says("\nhandrail_actions_total{action=\"run\",result=\"ok\"} 6\n"));
	ck_assert(says("\nhandrail_command_exits_total{code=\"0\"} 2\n"));
	ck_assert(says("\nhandrail_command_exits_total{code=\"127\"} 1\n"));
	ck_assert(says("\nhandrail_command_exits_total{code=\"other\"} 1\n"));
	ck_assert(says("\nhandrail_command_still_running_total 2\n"));
	ck_assert(says("\nhandrail_clock_fired_total{clock=\"no_output\"} 1\n"));
	ck_assert(says("\nhandrail_clock_fired_total{clock=\"hard\"} 1\n"));
	ck_assert(says("\nhandrail_command_output_bytes_total 35\n"));
	ck_assert(says("_bucket{action=\"run\",le=\"0.0005\"} 3\n"));
	ck_assert(says("_bucket{action=\"run\",le=\"1\"} 3\n"));
	ck_assert(says("_bucket{action=\"run\",le=\"5\"} 4\n"));
	ck_assert(says("_bucket{action=\"run\",le=\"10\"} 5\n"));
	ck_assert(says("_bucket{action=\"run\",le=\"1800\"} 5\n"));
	ck_assert(says("_bucket{action=\"run\",le=\"+Inf\"} 6\n"));
	ck_assert(says("_sum{action=\"run\"} 7212.000900\n"));
	ck_assert(says("_count{action=\"run\"} 6\n"));
	ck_assert(says("\nhandrail_answers_total{status=\"2xx\"} 6\n"));
}
END_TEST

START_TEST(others)
{
	hr_answer_reset(&a);
	a.note.cls = hr_action_class("read", 4);
	a.note.error = true;
	hr_metrics_count(board, &a, 1);
	hr_answer_generic(&a);
	a.note.cls = hr_action_class("read", 4);
	hr_metrics_count(board, &a, 1);
	hr_answer_detail(&a, 404, "Not Found");
	hr_metrics_count(board, &a, 1);
	atomic_store(&board->metrics.restarts[HR_RESTART_NGINX], 3);
	atomic_store(&board->pools[2].busy, 4);
	look();
	ck_assert(says("\nhandrail_actions_total{action=\"read\",result=\"error\"} 1\n"));
	ck_assert(says("\nhandrail_actions_total{action=\"read\",result=\"failed\"} 1\n"));
	ck_assert(!says("action=\"run\""));
	ck_assert(!says("handrail_command_exits_total{"));
	ck_assert(says("\nhandrail_answers_total{status=\"2xx\"} 1\n"));
	ck_assert(says("\nhandrail_answers_total{status=\"4xx\"} 1\n"));
	ck_assert(says("\nhandrail_answers_total{status=\"5xx\"} 1\n"));
	ck_assert(says("\nhandrail_restarts_total{process=\"nginx\"} 3\n"));
	ck_assert(says("\nhandrail_requests_in_flight{pool=\"action\"} 4\n"));
}
END_TEST

#define MINUTE ((int64_t)60000000000)

static void
expect_recent(const struct hr_metrics *m, int64_t now, unsigned want_all, unsigned want_errors)
{
	unsigned all, errors;

	hr_metrics_recent(m, now, &all, &errors);
	ck_assert_uint_eq(all, want_all);
	ck_assert_uint_eq(errors, want_errors);
}

START_TEST(recent_actions)
{
	static struct hr_metrics m;
	int64_t now = 1000 * MINUTE;
	int i;

	expect_recent(&m, now, 0, 0);
	expect_recent(&m, 0, 0, 0);
	for (i = 0; i < 7; i++) {
		hr_metrics_recent_add(&m, now + i * MINUTE, true);
		hr_metrics_recent_add(&m, now + i * MINUTE + MINUTE - 1, false);
	}
	expect_recent(&m, now + 6 * MINUTE, 10, 5);
	expect_recent(&m, now + 8 * MINUTE, 6, 3);
	expect_recent(&m, now + 10 * MINUTE, 2, 1);
	expect_recent(&m, now + 11 * MINUTE, 0, 0);
	/* a minute has an end of counting, which keeps the share */
	for (i = 0; i < 70000; i++)
		hr_metrics_recent_add(&m, now + 20 * MINUTE, i % 2 != 0);
	expect_recent(&m, now + 20 * MINUTE, 65535, 32767);
}
END_TEST

START_TEST(errors_among_actions)
{
	ran(0, HR_CLOCK_NONE, 1, 1);
	ran(1, HR_CLOCK_NONE, 1, 1); /* a command that failed is no error */
	expect_recent(&board->metrics, hr_now_ns(), 2, 0);
	hr_answer_reset(&a);
	a.note.cls = hr_action_class("read", 4);
	a.note.error = true;
	hr_metrics_count(board, &a, 1);
	a.note.error = false;
	a.status = 500;
	hr_metrics_count(board, &a, 1);
	expect_recent(&board->metrics, hr_now_ns(), 4, 2);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("metrics");
	TCase *tc = tcase_create("metrics");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, traces, 0, 19);
	tcase_add_test(tc, commands);
	tcase_add_test(tc, others);
	tcase_add_test(tc, recent_actions);
	tcase_add_test(tc, errors_among_actions);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
