/* The V1 API without commands: parameters of a query, ids, and the files of commands. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lines.h"
#include "request.h"
#include "scratch.h"
#include "worker/beside.h"
#include "files/byteparts.h"
#include "worker/v1/bound.h"
#include "worker/v1/command.h"
#include "worker/v1/v1.h"

#define ID_A "0123456789abcdef0123456789ab0000"
#define DASHED_A "01234567-89ab-cdef-0123-456789ab0000"
#define DASHED_B "11234567-89ab-cdef-0123-456789ab0000"
#define DASHED_C "21234567-89ab-cdef-0123-456789ab0000"

static char dir[64];
static struct hr_worker w;
static struct hr_request r;
static struct hr_answer answer;
static struct hr_rex_call call = {.w = &w, .r = &r, .ret = &answer};

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/run-XXXXXX", scratch);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	w = (struct hr_worker){.run_dir = dir};
	hr_answer_init(&answer);
}

static void
teardown(void)
{
	hr_answer_done(&answer);
}

/* ---- the query ---- */

static void
ask(const char *uri, struct hr_buf *path)
{
	r = request_blank("GET", uri);
	r.path = path;
	ck_assert_int_eq(hr_request_split(&r), 0);
	hr_answer_done(&answer);
	hr_answer_init(&answer);
}

static const struct {
	const char *text;
	int64_t us; /* -1: refused */
} times[] = {
    {"1970-01-01", 0},
    {"1970-01-02", 86400000000},
    {"2026-11-30T05:41:59Z", 1796017319000000},
    {"2026-11-30t05:41:59z", 1796017319000000},
    {"2026-11-30%2005:41:59", 1796017319000000},
    {"2026-11-30T05:41", 1796017260000000},
    {"2026-11-30T05:41Z", 1796017260000000},
    {"2026-11-30T05:41:59.5", 1796017319500000},
    {"2026-11-30T05:41:59.000001Z", 1796017319000001},
    {"2026-11-30T05:41:59.1234567", 1796017319123456},
    {"2026-11-30T05:41:59%2B02:30", 1796008319000000},
    {"2026-11-30T05:41:59-02:30", 1796026319000000},
    {"0", 0},
    {"1.5", 1500000},
    {"99999999999", 99999999999000},
    {"100000000000", 100000000000000},
    {"1e9", -1},
    {"2021-02-29", -1},
    {"2026-11-30T24:00", -1},
    {"2026-11-30T05:41:59-24:00", -1},
    {"nan", -1},
    {"", -1},
    {"1x", -1},
    {"1%00", -1},
    {"2026-11-30T", -1},
    {"2026-11-30X05:41", -1},
    {"2026-11-30T05", -1},
    {"2026-11-30T05:41:59Zx", -1},
    {"2026-11-30T05:41:59*02:30", -1},
    {"2026-11-30T05:41:59%2B2:30", -1},
    {"2026-11-30T05:41:59%2B02", -1},
    {"2026-11-30T05:41:59%2B02:30x", -1},
    {"2026-11-30T05:41:59.x", -1},
};

START_TEST(times_of_a_query)
{
	char uri[100];
	HR_BUF(path, 1000);
	int64_t us = -7;

	(void)snprintf(uri, sizeof(uri), "/x?at=%s", times[_i].text);
	ask(uri, &path);
	ck_assert_int_eq(hr_v1_time(&call, "at", &us), times[_i].us >= 0);
	if (times[_i].us >= 0) {
		ck_assert_int_eq(us, times[_i].us);
	} else {
		ck_assert_int_eq(answer.status, 422);
		ck_assert_ptr_nonnull(strstr(hr_buf_str(&answer.body),
		    "\"loc\":[\"query\",\"at\"],\"msg\":\"Input should be a valid datetime"));
	}
	us = -7;
	ck_assert(hr_v1_time(&call, "other", &us));
	ck_assert_int_eq(us, -7);
}
END_TEST

/* Compares the only error of the answer. */
static void
assert_error(const char *type, const char *msg)
{
	HR_BUF(wanted, 1000);

	ck_assert_int_eq(answer.status, 422);
	hr_buf_addf(&wanted, "{\"detail\":[{\"type\":\"%s\",\"loc\":[\"query\",", type);
	ck_assert_msg(
	    strncmp(hr_buf_str(&answer.body), wanted.p, wanted.len) == 0, "%s", answer.body.p);
	hr_buf_reset(&wanted);
	hr_buf_addf(&wanted, "\"msg\":\"%s\",\"input\":", msg);
	ck_assert_msg(strstr(answer.body.p, wanted.p) != NULL, "%s", answer.body.p);
	ck_assert_str_eq(answer.body.p + answer.body.len - 3, "}]}");
}

static const char no_int[] =
    "Input should be a valid integer, unable to parse string as an integer";

START_TEST(numbers_of_a_query)
{
	static const struct {
		const char *text;
		long long n;
		bool fine;
	} rows[] = {{"1", 1, true}, {"-7", -7, true}, {"%20+7", 7, true}, {"%2B5", 5, true},
	    {"5%C2%A0", 5, true}, {"1_0", 10, true}, {"1_0_0", 100, true}, {"007", 7, true},
	    {"5.00", 5, true}, {"-0.0", 0, true}, {"10", 10, true}, {"100.0%20", 100, true},
	    {"99999999999999999999", LLONG_MAX, true}, {"-99999999999999999999", -LLONG_MAX, true},
	    {"", 0, false}, {"x", 0, false}, {"5.", 0, false}, {".0", 0, false}, {"-", 0, false},
	    {"1.5", 0, false}, {"1__0", 0, false}, {"_1", 0, false}, {"1_", 0, false},
	    {"1e1", 0, false}, {"--5", 0, false}, {"%2B%2B5", 0, false}, {"1%00", 0, false},
	    {"%D9%A3", 0, false}};
	HR_BUF(path, 1000);
	char uri[64];
	long long n;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(uri, sizeof(uri), "/x?n=%s", rows[i].text);
		ask(uri, &path);
		ck_assert_msg(hr_v1_number(&call, "n", &n) == rows[i].fine, "%s", rows[i].text);
		if (rows[i].fine)
			ck_assert_int_eq(n, rows[i].n);
		else
			assert_error("int_parsing", no_int);
	}
	n = 5;
	ck_assert(hr_v1_number(&call, "other", &n));
	ck_assert_int_eq(n, 5);
}
END_TEST

START_TEST(limits_of_a_query)
{
	HR_BUF(path, 1000);
	long long n = 5;

	ask("/x", &path);
	ck_assert(hr_v1_limit(&call, true, 100, &n));
	ck_assert_int_eq(n, 5);
	ask("/x?limit=100", &path);
	ck_assert(hr_v1_limit(&call, true, 100, &n));
	ck_assert_int_eq(n, 100);
	ask("/x?limit=0", &path);
	ck_assert(!hr_v1_limit(&call, true, 100, &n));
	assert_error("greater_than", "Input should be greater than 0");
	ask("/x?limit=0", &path);
	ck_assert(!hr_v1_limit(&call, false, 200, &n));
	assert_error("greater_than_equal", "Input should be greater than or equal to 1");
	ask("/x?limit=201", &path);
	ck_assert(!hr_v1_limit(&call, false, 200, &n));
	assert_error("less_than_equal", "Input should be less than or equal to 200");
	ask("/x?limit=x", &path);
	ck_assert(!hr_v1_limit(&call, true, 100, &n));
	assert_error("int_parsing", no_int);
}
END_TEST

START_TEST(errors_of_times)
{
	static const struct {
		const char *text, *error;
	} rows[] = {{"1e9", "input is too short"}, {"", "input is too short"},
	    {"abcd-01-01", "invalid character in year"},
	    {"-2020-01-01", "invalid character in year"},
	    {"2020-xx-01", "invalid character in month"},
	    {"2020-01-xx", "invalid character in day"},
	    {"2020x01-01", "invalid date separator, expected `-`"},
	    {"2020-01x01", "invalid date separator, expected `-`"},
	    {"9999999999999999999999999", "invalid date separator, expected `-`"},
	    {"2020-13-01", "month value is outside expected range of 1-12"},
	    {"2021-02-29", "day value is outside expected range"},
	    {"2020-01-00", "day value is outside expected range"},
	    {"2020-01-01T24:00", "unexpected extra characters at the end of the input"},
	    {"2020-01-01%00", "unexpected extra characters at the end of the input"},
	    {"99999999999999999", "dates after 9999 are not supported as unix timestamps"},
	    {"-99999999999999999", "dates before 0000 are not supported as unix timestamps"}};
	HR_BUF(path, 1000);
	HR_BUF(msg, 200);
	char uri[128];
	int64_t us;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(uri, sizeof(uri), "/x?at=%s", rows[i].text);
		ask(uri, &path);
		ck_assert_msg(!hr_v1_time(&call, "at", &us), "%s", rows[i].text);
		hr_buf_reset(&msg);
		hr_buf_addf(&msg, "Input should be a valid datetime or date, %s", rows[i].error);
		assert_error("datetime_from_date_parsing", msg.p);
	}
	ask("/x?at=0000-01-01", &path);
	ck_assert(!hr_v1_time(&call, "at", &us));
	assert_error(
	    "datetime_parsing", "Input should be a valid datetime, year 0 is out of range");
}
END_TEST

START_TEST(uuids_of_a_query)
{
	static const struct {
		const char *text, *error; /* error NULL: a UUID */
	} rows[] = {{ID_A, NULL}, {DASHED_A, NULL}, {"urn:uuid:" DASHED_A, NULL},
	    {"{" DASHED_A "}", NULL}, {"", "invalid length: found 0"},
	    {ID_A "0", "invalid length: found 33"}, {"x", "invalid character: found `x` at 0"},
	    {"urn:uuid:x", "invalid character: found `x` at 9"},
	    {"{0x}", "invalid character: found `x` at 2"},
	    {"URN:UUID:" DASHED_A, "invalid character: found `U` at 0"},
	    {"{" DASHED_A, "invalid character: found `{` at 0"},
	    {"00\xc3\xa9g", "invalid character: found `\xc3\xa9` at 2"},
	    {"{" ID_A "}", "invalid group count: expected 5, found 1"},
	    {"urn:uuid:" ID_A, "invalid group count: expected 5, found 1"},
	    {"0-0", "invalid group count: expected 5, found 2"},
	    {DASHED_A "-0", "invalid group count: expected 5, found 6"},
	    {"----", "invalid group length in group 0: expected 8, found 0"},
	    {"01234567-89-abcdef-0123-456789ab0000",
		"invalid group length in group 1: expected 4, found 2"},
	    {DASHED_A "0", "invalid group length in group 4: expected 12, found 13"},
	    {"urn:uuid:" DASHED_A "0", "invalid group length in group 4: expected 12, found 22"}};
	struct hr_v1_input in = {"query", "id", {NULL, 0}};
	struct hr_v1_command m;
	struct hr_span id;
	HR_BUF(path, 1000);
	HR_BUF(msg, 200);
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ask("/x", &path);
		in.text = hr_span_of(rows[i].text);
		ck_assert_msg(
		    hr_v1_uuid(&call, &in, &id) == (rows[i].error == NULL), "%s", rows[i].text);
		if (rows[i].error == NULL) {
			ck_assert(hr_v1_parse_id(&m, id));
			ck_assert_str_eq(m.id, DASHED_A);
		} else {
			hr_buf_reset(&msg);
			hr_buf_addf(&msg, "Input should be a valid UUID, %s", rows[i].error);
			assert_error("uuid_parsing", msg.p);
		}
	}
}
END_TEST

START_TEST(all_errors_of_a_query)
{
	static const char *const kinds[] = {"a", "b", "c", NULL};
	size_t kind = 7;
	long long n = 5;
	HR_BUF(path, 1000);

	ask("/x?kind=&limit=0", &path);
	ck_assert(!hr_v1_required(&call, "path"));
	ck_assert(!hr_v1_one_of(&call, "kind", "enum", kinds, &kind));
	ck_assert(!hr_v1_limit(&call, true, 100, &n));
	ck_assert_str_eq(hr_buf_str(&answer.body),
	    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"query\",\"path\"],"
	    "\"msg\":\"Field required\",\"input\":null},"
	    "{\"type\":\"enum\",\"loc\":[\"query\",\"kind\"],"
	    "\"msg\":\"Input should be 'a', 'b' or 'c'\",\"input\":\"\","
	    "\"ctx\":{\"expected\":\"'a', 'b' or 'c'\"}},"
	    "{\"type\":\"greater_than\",\"loc\":[\"query\",\"limit\"],"
	    "\"msg\":\"Input should be greater than 0\",\"input\":\"0\",\"ctx\":{\"gt\":0}}]}");
	ask("/x?kind=b&path=", &path);
	ck_assert(hr_v1_required(&call, "path"));
	ck_assert(hr_v1_one_of(&call, "kind", "enum", kinds, &kind));
	ck_assert_uint_eq(kind, 1);
	ck_assert(hr_v1_one_of(&call, "other", "enum", kinds, &kind));
	ck_assert_uint_eq(kind, 1);
}
END_TEST

START_TEST(truths_of_a_query)
{
	HR_BUF(path, 1000);
	bool yes = true;

	ask("/x?y=true&n=0&bad=maybe", &path);
	ck_assert(hr_v1_truth(&call, "other", &yes) && yes);
	ck_assert(hr_v1_truth(&call, "n", &yes) && !yes);
	ck_assert(hr_v1_truth(&call, "other", &yes) && !yes);
	ck_assert(hr_v1_truth(&call, "y", &yes) && yes);
	ck_assert(!hr_v1_truth(&call, "bad", &yes));
	assert_error("bool_parsing", "Input should be a valid boolean, unable to interpret input");
}
END_TEST

/* ---- ids ---- */

START_TEST(ids)
{
	static const struct {
		const char *text, *id; /* NULL: not valid and no UUID */
		bool valid;
	} rows[] = {
	    {ID_A, DASHED_A, true},
	    {DASHED_A, DASHED_A, true},
	    {"0123456789ABCDEF0123456789AB0000", DASHED_A, true},
	    {"01234567-89abcdef-0123456789ab0000", DASHED_A, true},
	    {"0123456789abcdef0123456789ab0001", "01234567-89ab-cdef-0123-456789ab0001", false},
	    {"0123456789abcdef0123456789ab1000", "01234567-89ab-cdef-0123-456789ab1000", false},
	    {ID_A "0", DASHED_A, false},
	    {ID_A "-", DASHED_A, false},
	    {"0123456789abcdef0123456789ab000", NULL, false},
	    {"0123456789abcdef0123456789ag0000", NULL, false},
	    {"0-123456789abcdef0123456789ab0000", NULL, false},
	    {"-0123456789abcdef0123456789ab0000", NULL, false},
	    {"", NULL, false},
	};
	struct hr_v1_command m;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		ck_assert_msg(hr_v1_parse_id(&m, hr_span_of(rows[i].text)) == rows[i].valid, "%s",
		    rows[i].text);
		ck_assert_str_eq(m.id, rows[i].id != NULL ? rows[i].id : "");
	}
}
END_TEST

START_TEST(numbered_ids)
{
	struct hr_v1_command m;
	HR_BUF(b, 100);

	ck_assert(hr_v1_parse_id(&m, hr_span_of(ID_A)));
	hr_v1_put_id(&b, &m, 0);
	hr_v1_put_id(&b, &m, 0xfffe);
	ck_assert_str_eq(hr_buf_str(&b),
	    "\"01234567-89ab-cdef-0123-456789ab0001\"\"01234567-89ab-cdef-0123-456789abffff\"");
}
END_TEST

/* ---- states ---- */

static void
write_file(const char *id, const char *name, const char *text)
{
	HR_FREE char *path = hr_v1_path(&w, id, name);
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* Makes a command as handrail-bound leaves it. */
static void
make(const char *id, const char *status)
{
	HR_FREE char *all = hr_v1_path(&w, "", ""), *path = hr_v1_path(&w, id, "");
	HR_FREE char *begun = hr_v1_path(&w, id, "~");
	HR_BUF(request, 1000);

	(void)mkdir(all, 0700);
	hr_buf_addf(&request,
	    "{\"command\":\"echo %s\",\"cwd\":null,\"timeout\":9,\"key\":\"k-%s\"}", id, id);
	ck_assert_int_eq(hr_v1_make_files(&call, id, &request), 0);
	ck_assert_int_eq(rename(begun, path), 0);
	write_file(id, "/status", status);
}

START_TEST(states)
{
	struct hr_v1_state s;

	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 0);
	make(DASHED_A, "");
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 0);
	write_file(DASHED_A, "/status", "1000 3 2000\n");
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 1);
	ck_assert(s.over);
	ck_assert_int_eq(s.started_us, 1000);
	ck_assert_int_eq(s.code, 3);
	ck_assert_int_eq(s.ended_us, 2000);
}
END_TEST

/* A command runs while its minder holds the lock; without it and without an end it was killed. */
START_TEST(a_lost_minder)
{
	HR_FREE char *path = hr_v1_path(&w, DASHED_A, "/status");
	struct hr_v1_state s, again;
	int minder;

	make(DASHED_A, "1000 ");
	minder = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(minder, LOCK_EX), 0);
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 1);
	ck_assert(!s.over);
	ck_assert_int_eq(s.started_us, 1000);
	ck_assert_int_eq(close(minder), 0);
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 1);
	ck_assert(s.over);
	ck_assert_int_eq(s.started_us, 1000);
	ck_assert_int_eq(s.code, HR_BOUND_NO_CODE);
	ck_assert_int_gt(s.ended_us, 1700000000000000);
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &again), 1);
	ck_assert_int_eq(again.ended_us, s.ended_us);
	ck_assert(again.over);
}
END_TEST

/* On a full disk the record of a killed command's end may be cut at any byte, by its minder or by a
 * caller: all report the end, and the next record that fits is the one that lasts. */
START_TEST(a_lost_minder_on_a_full_disk)
{
	struct rlimit before, least;
	struct hr_v1_state s, again;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	make(DASHED_A, "1000 ");
	for (least = before, least.rlim_cur = 5; least.rlim_cur < 28; least.rlim_cur++) {
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &least), 0);
		ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 1);
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
		ck_assert(s.over);
		ck_assert_int_eq(s.started_us, 1000);
		ck_assert_int_eq(s.code, HR_BOUND_NO_CODE);
		ck_assert_int_gt(s.ended_us, 1700000000000000);
	}
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &s), 1);
	ck_assert_int_eq(hr_v1_look(&call, DASHED_A, &again), 1);
	ck_assert(again.over);
	ck_assert_int_eq(again.code, HR_BOUND_NO_CODE);
	ck_assert_int_eq(again.ended_us, s.ended_us);
}
END_TEST

/* The list has the order of the starts, and of the ids at the same time. */
START_TEST(lists)
{
	const struct hr_v1_entry *e;
	struct hr_v1_command m;
	HR_BUF(list, HR_V1_LIST_MAX);
	HR_FREE char *other = hr_v1_path(&w, "", "other");

	ck_assert_uint_eq(hr_v1_list(&call, &list), 0);
	make(DASHED_C, "3000 0 4000\n");
	make(DASHED_B, "2000 0 9000\n");
	make(DASHED_A, "3000 0 3500\n");
	ck_assert_int_eq(mkdir(other, 0700), 0);
	ck_assert_uint_eq(hr_v1_list(&call, &list), 3);
	e = (const struct hr_v1_entry *)(const void *)list.p;
	ck_assert_str_eq(e[0].m.id, DASHED_B);
	ck_assert_str_eq(e[1].m.id, DASHED_A);
	ck_assert_str_eq(e[2].m.id, DASHED_C);
	ck_assert_int_eq(e[1].state.ended_us, 3500);
	ck_assert(hr_v1_find(&call, hr_span_of("k-" DASHED_C), &m));
	ck_assert_str_eq(m.id, DASHED_C);
	ck_assert(!hr_v1_find(&call, hr_span_of("k"), &m));
	ck_assert(!hr_v1_find(&call, hr_span_of(""), &m));
	ck_assert(hr_v1_remove(&call, DASHED_C));
	ck_assert(!hr_v1_find(&call, hr_span_of("k-" DASHED_C), &m));
}
END_TEST

START_TEST(files)
{
	struct hr_v1_streams s;
	struct hr_v1_command m;
	HR_FREE char *stop = hr_v1_path(&w, DASHED_A, "/stop");
	HR_BUF(b, 1000);

	ck_assert_uint_eq(hr_v1_bytes(&call, DASHED_A), 0);
	ck_assert_int_eq(hr_v1_stop_file(&call, DASHED_A), -1);
	hr_v1_streams_open(&call, DASHED_A, &s);
	ck_assert_int_eq(s.out, -1);
	ck_assert_uint_eq(s.out_size + s.err_size, 0);
	hr_v1_streams_close(&s);

	make(DASHED_A, "0 0 0\n");
	write_file(DASHED_A, "/out", "12345");
	write_file(DASHED_A, "/err", "67");
	ck_assert_uint_eq(hr_v1_bytes(&call, DASHED_A), 7);
	hr_v1_streams_open(&call, DASHED_A, &s);
	ck_assert_uint_eq(s.out_size, 5);
	ck_assert_uint_eq(s.err_size, 2);
	hr_v1_put_part(&b, s.err, 0, 2);
	ck_assert_str_eq(hr_buf_str(&b), "67");
	hr_v1_streams_close(&s);
	ck_assert_int_eq(hr_v1_stop_file(&call, DASHED_A), 0);
	ck_assert_int_eq(access(stop, F_OK), 0);

	ck_assert(hr_v1_parse_id(&m, hr_span_of(ID_A)));
	hr_buf_reset(&b);
	hr_v1_put_command(&b, &call, &m, 0);
	ck_assert_str_eq(hr_buf_str(&b),
	    "{\"id\":\"" DASHED_A "\",\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"command\":"
	    "\"echo " DASHED_A "\",\"cwd\":null,\"timeout\":9,\"kind\":\"BashCommand\"}");
}
END_TEST

/* ---- parts of output ---- */

/* Each boundary leaves a character whole, in the part of its end. */
START_TEST(parts)
{
	static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\x80\x80\x80\x80\x80y";
	const size_t len = sizeof(text) - 1;
	size_t from, to;
	FILE *f = tmpfile();
	HR_BUF(b, 1000);
	HR_BUF(whole, 1000);

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	ck_assert_int_eq(fflush(f), 0);
	hr_v1_put_part(&whole, fileno(f), 0, len);
	ck_assert_mem_eq(whole.p, text, 11);
	for (from = 0; from < 12; from++) {
		hr_buf_reset(&b);
		hr_v1_put_part(&b, fileno(f), 0, from);
		hr_v1_put_part(&b, fileno(f), from, len);
		ck_assert_str_eq(hr_buf_str(&b), hr_buf_str(&whole));
		for (to = from; to <= len; to++) {
			hr_buf_reset(&b);
			hr_v1_put_part(&b, fileno(f), 0, from);
			hr_v1_put_part(&b, fileno(f), from, to);
			hr_v1_put_part(&b, fileno(f), to, len);
			if (to < 12)
				ck_assert_str_eq(hr_buf_str(&b), hr_buf_str(&whole));
		}
	}
	hr_buf_reset(&b);
	hr_v1_put_part(&b, fileno(f), 0, 2);
	ck_assert_str_eq(hr_buf_str(&b), "a");
	hr_v1_put_part(&b, fileno(f), 2, 2);
	hr_v1_put_part(&b, -1, 0, 2);
	ck_assert_str_eq(hr_buf_str(&b), "a");
	hr_v1_put_part(&b, fileno(f), 5, 6);
	ck_assert_str_eq(hr_buf_str(&b), "a\xE2\x82\xAC");
	(void)fclose(f);
}
END_TEST

START_TEST(outputs)
{
	const int64_t code = 3;
	struct hr_v1_command m;
	HR_BUF(b, 1000);
	HR_BUF(out, 100);
	HR_BUF(none, 100);

	ck_assert(hr_v1_parse_id(&m, hr_span_of(ID_A)));
	hr_buf_adds(&out, "a\n");
	hr_v1_put_output(&b, &m, 1, &code, &out, &none, 1500);
	ck_assert_str_eq(hr_buf_str(&b),
	    "{\"id\":\"01234567-89ab-cdef-0123-456789ab0002\",\"timestamp\":"
	    "\"1970-01-01T00:00:01.500Z\",\"command_id\":\"" DASHED_A
	    "\",\"order\":1,\"exit_code\":3,\"stdout\":\"a\\n\",\"stderr\":null,"
	    "\"kind\":\"BashOutput\"}");
	hr_buf_reset(&b);
	hr_v1_put_output(&b, &m, 0, NULL, &none, &out, 0);
	ck_assert_ptr_nonnull(strstr(
	    hr_buf_str(&b), "\"order\":0,\"exit_code\":null,\"stdout\":null,\"stderr\":\"a\\n\","));
}
END_TEST

/* ---- processes of MCP ---- */

START_TEST(processes)
{
	static const char other[] = "0123";
	HR_FREE char *path = hr_v1_path(&w, DASHED_A, "/status");
	HR_FREE char *stop = hr_v1_path(&w, DASHED_A, "/stop");
	HR_BUF(b, 1000);
	struct hr_err err = {0};
	struct hr_mcp_process p;
	int minder;

	ck_assert_int_eq(hr_beside.look(&w, DASHED_A, &p), 0);
	ck_assert_int_eq(hr_beside.stop(&w, DASHED_A), -1);
	make(DASHED_A, "1000 ");
	write_file(DASHED_A, "/out", "12345");
	write_file(DASHED_A, "/err", "67");
	minder = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(minder, LOCK_EX), 0);
	ck_assert_int_eq(hr_beside.look(&w, other, &p), 0);
	ck_assert_int_eq(hr_beside.look(&w, DASHED_A, &p), 1);
	ck_assert(!p.over && p.left);
	ck_assert_uint_eq(p.bytes, 5); /* the note at the end comes with it */
	errno = 0;
	ck_assert_int_eq(hr_beside.stop(&w, other), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_ne(access(stop, F_OK), 0);
	ck_assert_int_eq(hr_beside.stop(&w, DASHED_A), 0);
	ck_assert_int_eq(access(stop, F_OK), 0);
	ck_assert_int_eq(close(minder), 0);
	write_file(DASHED_A, "/status", "1000 7 2000\n");
	ck_assert_int_eq(hr_beside.look(&w, DASHED_A, &p), 1);
	ck_assert(p.over && !p.left);
	ck_assert_int_eq(p.exit_code, 7);
	ck_assert_uint_eq(p.bytes, 7);

	ck_assert_int_eq(hr_beside.read(&w, other, 0, 10, &b, &err), 0);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_int_eq(hr_beside.read(&w, DASHED_A, 0, 7, &b, &err), 0);
	hr_buf_addc(&b, '|');
	ck_assert_int_eq(hr_beside.read(&w, DASHED_A, 0, 5, &b, &err), 0);
	hr_buf_addc(&b, '|');
	ck_assert_int_eq(hr_beside.read(&w, DASHED_A, 3, 3, &b, &err), 0);
	hr_buf_addc(&b, '|');
	ck_assert_int_eq(hr_beside.read(&w, DASHED_A, 5, 1, &b, &err), 0);
	hr_buf_addc(&b, '|');
	ck_assert_int_eq(hr_beside.read(&w, DASHED_A, 6, 9, &b, &err), 0);
	hr_buf_addc(&b, '|');
	ck_assert_int_eq(hr_beside.read(&w, DASHED_A, 7, 9, &b, &err), 0);
	ck_assert_str_eq(hr_buf_str(&b), "1234567|12345|456|6|7|");
}
END_TEST

/* The parts of a file of 10 bytes. */
START_TEST(ranges)
{
	static const struct {
		const char *header;
		int n;
		struct hr_bytepart to[2];
		const char *why; /* of -2 */
	} rows[] = {{"bytes=0-0", 1, {{0, 1}}, NULL}, {" BYTES =0-99", 1, {{0, 10}}, NULL},
	    {"bytes=8-", 1, {{8, 2}}, NULL}, {"bytes=-3", 1, {{7, 3}}, NULL},
	    {"bytes=6-7,0-1", 2, {{0, 2}, {6, 2}}, NULL}, {"bytes=5-9, ,0-4", 1, {{0, 10}}, NULL},
	    {"bytes=0-5,2-3", 1, {{0, 6}}, NULL}, {"bytes=0-3,2-5,7-7", 2, {{0, 6}, {7, 1}}, NULL},
	    {"bytes=0-0,10-", -1, {{0, 0}}, NULL},
	    {"bytes 0-0", -2, {{0, 0}}, "Malformed range header."},
	    {"lines=0-0", -2, {{0, 0}}, "Only support bytes range"},
	    {"byte=0-0", -2, {{0, 0}}, "Only support bytes range"},
	    {"bytes=", -2, {{0, 0}}, "Range header: range must be requested"},
	    {"bytes=5-4", -2, {{0, 0}}, "Range header: start must be less than end"}};
	struct hr_bytepart to[HR_V1_RANGES];
	const char *why;
	size_t k;
	int i, n;

	for (k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		n = hr_v1_ranges(rows[k].header, 10, to, &why);
		ck_assert_msg(n == rows[k].n, "%s: %d", rows[k].header, n);
		for (i = 0; i < n; i++)
			ck_assert_msg(
			    to[i].from == rows[k].to[i].from && to[i].len == rows[k].to[i].len,
			    "%s", rows[k].header);
		if (n == -2)
			ck_assert_str_eq(why, rows[k].why);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("v1");
	TCase *t = tcase_create("v1");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, times_of_a_query, 0, (int)(sizeof(times) / sizeof(*times)));
	tcase_add_test(t, numbers_of_a_query);
	tcase_add_test(t, limits_of_a_query);
	tcase_add_test(t, errors_of_times);
	tcase_add_test(t, uuids_of_a_query);
	tcase_add_test(t, all_errors_of_a_query);
	tcase_add_test(t, truths_of_a_query);
	tcase_add_test(t, ids);
	tcase_add_test(t, numbered_ids);
	tcase_add_test(t, states);
	tcase_add_test(t, a_lost_minder);
	tcase_add_test(t, a_lost_minder_on_a_full_disk);
	tcase_add_test(t, lists);
	tcase_add_test(t, files);
	tcase_add_test(t, parts);
	tcase_add_test(t, outputs);
	tcase_add_test(t, processes);
	tcase_add_test(t, ranges);
	suite_add_tcase(s, t);
	return lines_run(s);
}
