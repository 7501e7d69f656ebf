/* The parts of the plugin envd that need no process: messages, errors and frames of the Connect
 * protocol, gzip, the records of processes, and watchers. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clean.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "e2b/connect.h"
#include "e2b/gzip.h"
#include "e2b/message.h"
#include "plugins/envd/keep.h"
#include "plugins/envd/record.h"
#include "plugins/envd/watch.h"
#include "proto/json.h"
#include "scratch.h"

static const struct hr_message_enum colours[] = {{"NONE", 0}, {"RED", 4}, {NULL, 0}};
static const struct hr_message_field part_fields[] = {
    {.name = "pid", .type = HR_MESSAGE_UINT32, .oneof = "which"},
    {.name = "tag", .type = HR_MESSAGE_STRING, .oneof = "which"}, {.name = NULL}};
static const struct hr_message part = {"t.Part", part_fields};
static const struct hr_message_field fields[] = {{.name = "oneName", .type = HR_MESSAGE_STRING},
    {.name = "many", .type = HR_MESSAGE_STRINGS}, {.name = "map", .type = HR_MESSAGE_MAP},
    {.name = "data", .type = HR_MESSAGE_BYTES}, {.name = "flag", .type = HR_MESSAGE_BOOL},
    {.name = "number", .type = HR_MESSAGE_UINT32},
    {.name = "colour", .type = HR_MESSAGE_ENUM, .values = colours},
    {.name = "part", .type = HR_MESSAGE_PART, .part = &part}, {.name = NULL}};
static const struct hr_message whole = {"t.Whole", fields};

static const struct {
	const char *text, *read; /* read: as JSON, or NULL: an error */
	const char *error;       /* the end of its text */
} messages[] = {
    {"{}", "{}", NULL},
    {"{\"oneName\":\"a\"}", "{\"oneName\":\"a\"}", NULL},
    {"{\"one_name\":\"a\",\"other\":[{}]}", "{\"oneName\":\"a\"}", NULL},
    {"{\"oneName\":null,\"flag\":true}", "{\"flag\":true}", NULL},
    {"{\"number\":\"17\"}", "{\"number\":17}", NULL},
    {"{\"number\":4294967295}", "{\"number\":4294967295}", NULL},
    {"{\"number\":2.0}", "{\"number\":2}", NULL},
    {"{\"colour\":\"RED\"}", "{\"colour\":4}", NULL},
    {"{\"colour\":99}", "{\"colour\":99}", NULL},
    {"{\"data\":\"aGk=\"}", "{\"data\":\"hi\"}", NULL},
    {"{\"data\":\"aGk\"}", "{\"data\":\"hi\"}", NULL},
    {"{\"data\":\"Pz8_\"}", "{\"data\":\"???\"}", NULL},
    {"{\"many\":[\"a\",\"b\"],\"map\":{\"a\":\"b\"}}",
	"{\"many\":[\"a\",\"b\"],\"map\":{\"a\":\"b\"}}", NULL},
    {"{\"part\":{\"pid\":1}}", "{\"part\":{\"pid\":1}}", NULL},
    {"{\"part\":{\"pid\": 1, \"tag\": \"x\"}}", NULL,
	"(line 1:20): error parsing \"tag\", oneof t.Part.which is already set"},
    {"{\"oneName\": 5}", NULL, "(line 1:13): invalid value for string field oneName: 5"},
    {"{\n \"part\": {\"pid\": -1}}", NULL, "(line 2:18): invalid value for uint32 field pid: -1"},
    {"{\"number\":4294967296}", NULL, "invalid value for uint32 field number: 4294967296"},
    {"{\"number\":1.5}", NULL, "invalid value for uint32 field number: 1.5"},
    {"{\"number\":\"x\"}", NULL, "invalid value for uint32 field number: \"x\""},
    {"{\"colour\":\"BLUE\"}", NULL, "invalid value for enum field colour: \"BLUE\""},
    {"{\"data\":\"!\"}", NULL, "invalid value for bytes field data: \"!\""},
    {"{\"flag\":\"true\"}", NULL, "invalid value for bool field flag: \"true\""},
    {"{\"many\":[1]}", NULL, "invalid value for string field many: [1]"},
    {"{\"map\":{\"a\":1}}", NULL, "invalid value for string field map: {\"a\":1}"},
    {"{nope", NULL, "syntax error (line 1:2): invalid value nope"},
    {"{", NULL, "unexpected EOF"},
    {"", NULL, "unexpected EOF"},
    {"[]", NULL, "unexpected token []"},
};

START_TEST(a_message_is_read_by_its_table)
{
	const char *text = messages[_i].text;
	struct hr_connect_error e;
	struct json_object *o;
	HR_BUF(b, 4096);
	size_t len;
	int r = hr_message_read(&whole, hr_span_of(text), &o, &e);

	if (messages[_i].read != NULL) {
		ck_assert_msg(r == 0, "%s: %s", text, e.text);
		hr_json_put_whole(&b, o);
		ck_assert_str_eq(hr_buf_str(&b), messages[_i].read);
	} else {
		ck_assert_int_eq(r, -1);
		ck_assert_int_eq(e.code, HR_CONNECT_INVALID_ARGUMENT);
		len = strlen(e.text) - strlen(messages[_i].error);
		ck_assert_str_eq(e.text + len, messages[_i].error);
		ck_assert_ptr_null(o);
	}
	json_object_put(o);
}
END_TEST

static const struct {
	struct hr_span body;
	bool packed;
	enum hr_connect_code code;
	size_t rest;
} bodies[] = {
    {{"\0\0\0\0\2{}x", 8}, false, HR_CONNECT_OK, 1},
    {{"\1\0\0\0\2{}", 7}, true, HR_CONNECT_OK, 0},
    {{"\1\0\0\0\2{}", 7}, false, HR_CONNECT_INTERNAL, 0},
    {{"\2\0\0\0\2{}", 7}, false, HR_CONNECT_INVALID_ARGUMENT, 0},
    {{"\0\0\0\0", 4}, false, HR_CONNECT_INVALID_ARGUMENT, 4},
    {{"\0\xff\xff\xff\xff", 5}, false, HR_CONNECT_INVALID_ARGUMENT, 5},
};

START_TEST(a_frame_is_taken_whole)
{
	struct hr_span rest = bodies[_i].body, data;
	struct hr_connect_error e = {.code = HR_CONNECT_OK};
	unsigned flags;
	int r = hr_connect_take(&rest, bodies[_i].packed, &flags, &data, &e);

	ck_assert_int_eq(r, bodies[_i].code == HR_CONNECT_OK ? 0 : -1);
	ck_assert_int_eq(e.code, bodies[_i].code);
	ck_assert_uint_eq(rest.len, bodies[_i].rest);
	if (r == 0)
		ck_assert(hr_span_equal(data, hr_span_of("{}")));
}
END_TEST

START_TEST(errors_have_codes_and_statuses)
{
	struct hr_connect_error e;
	HR_BUF(b, 10000);

	ck_assert_int_eq(hr_connect_fail(&e, HR_CONNECT_NOT_FOUND, "no \"%s\"", "x"), -1);
	ck_assert_int_eq(hr_connect_status(e.code), 404);
	ck_assert_int_eq(hr_connect_status(HR_CONNECT_DEADLINE_EXCEEDED), 504);
	hr_connect_put_error(&b, &e);
	ck_assert_str_eq(hr_buf_str(&b), "{\"code\":\"not_found\",\"message\":\"no \\\"x\\\"\"}");
	hr_buf_reset(&b);
	hr_connect_put_end(&b, NULL);
	ck_assert_int_eq(memcmp(b.p, "\2\0\0\0\2{}", 7), 0);
}
END_TEST

START_TEST(gzip_there_and_back)
{
	HR_BUF(packed, 1u << 20);
	HR_BUF(plain, 1u << 20);
	HR_BUF(small, 1000);
	HR_BUF(text, 1u << 20);
	size_t i;

	for (i = 0; i < 50000; i++)
		hr_buf_addf(&text, "%zu,", i);
	ck_assert_int_eq(hr_gzip(&packed, hr_span_of_buf(&text)), 0);
	ck_assert_uint_lt(packed.len, text.len);
	ck_assert_int_eq(hr_gunzip(&plain, hr_span_of_buf(&packed)), 0);
	ck_assert(hr_span_equal(hr_span_of_buf(&plain), hr_span_of_buf(&text)));
	ck_assert_int_eq(hr_gunzip(&small, hr_span_of_buf(&packed)), -1); /* a bomb */
	hr_buf_reset(&plain);
	ck_assert_int_eq(hr_gunzip(&plain, (struct hr_span){packed.p, packed.len - 9}), -1);
	hr_buf_reset(&plain);
	ck_assert_int_eq(hr_gunzip(&plain, hr_span_of("no gzip")), -1);
}
END_TEST

static void
put_record(struct hr_buf *b)
{
	static char shell[] = "/bin/sh", option[] = "-c", nothing[] = "", variable[] = "A=b";
	char *const argv[] = {shell, option, nothing, NULL}, *const env[] = {variable, NULL};
	static const gid_t groups[] = {4, 5};
	const struct envd_record r = {.uid = 7,
	    .gid = 8,
	    .groups = groups,
	    .ngroups = 2,
	    .identity = true,
	    .pty = true,
	    .deadline_ms = 123,
	    .argv = argv,
	    .env = env,
	    .tag = {"", 0},
	    .config = {"{}", 2}};

	envd_record_put(b, &r);
}

START_TEST(a_record_reads_back)
{
	HR_BUF(b, 4096);
	struct envd_record r;
	void *store;

	put_record(&b);
	ck_assert_int_eq(envd_record_get(&r, hr_span_of_buf(&b), &store), 0);
	ck_assert(r.uid == 7 && r.gid == 8 && r.ngroups == 2 && r.groups[1] == 5);
	ck_assert(r.identity && r.pty && !r.has_stdin && r.deadline_ms == 123);
	ck_assert(r.tag.p != NULL && r.tag.len == 0 && hr_span_equal(r.config, hr_span_of("{}")));
	ck_assert_str_eq(r.argv[2], "");
	ck_assert_ptr_null(r.argv[3]);
	ck_assert_str_eq(r.env[0], "A=b");
	ck_assert_ptr_null(r.env[1]);
	free(store);
}
END_TEST

START_TEST(a_cut_record_is_none)
{
	HR_BUF(b, 4096);
	struct envd_record r;
	void *store;
	size_t len;

	put_record(&b);
	for (len = 0; len < b.len; len++) {
		ck_assert_int_eq(envd_record_get(&r, (struct hr_span){b.p, len}, &store), -1);
		ck_assert_ptr_null(store);
	}
}
END_TEST

/* ---- packets ---- */

/* A packet without bytes is no end of the connection if it has a descriptor, which is closed. */
START_TEST(an_empty_packet_with_a_descriptor)
{
	struct envd_packet packet;
	int pair[2], way[2], fds[ENVD_FDS];
	char byte;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(pipe2(way, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(hr_fd_send(pair[0], "", 0, way[1], NULL), 0);
	ck_assert_int_eq(close(way[1]), 0);
	errno = 0;
	ck_assert_int_eq(envd_packet_recv(pair[1], &packet, fds, 0), -1);
	ck_assert_int_eq(errno, EPROTO);
	ck_assert_int_eq(read(way[0], &byte, 1), 0);
	ck_assert_int_eq(close(way[0]), 0);
	ck_assert_int_eq(close(pair[0]), 0);
	ck_assert_int_eq(envd_packet_recv(pair[1], &packet, fds, 0), 0);
	ck_assert_int_eq(close(pair[1]), 0);
}
END_TEST

/* ---- watchers ---- */

#define MORE_MAX 3000 /* events that a report makes, before a test gives up */

struct watching {
	struct hr_loop *loop;
	struct envd_watchers *all;
	struct envd_watcher *one;
	char top[64];
	char name[80];          /* a directory in it */
	unsigned created, lost; /* reports of `name` and of losses */
	unsigned reports, more;
	bool makes; /* each report makes a new event */
};

static void
on_report(void *arg, const char *name, const char *path, const char *type)
{
	struct watching *w = arg;

	(void)path;
	w->reports++;
	w->lost += type == NULL;
	w->created += type != NULL && strcmp(type, "CREATE") == 0 && strcmp(name, "d/e") == 0;
	if (w->makes && w->more < MORE_MAX)
		ck_assert_int_eq(w->more++ % 2 == 0 ? rmdir(w->name) : mkdir(w->name, 0700), 0);
}

static void
watching_start(struct watching *w)
{
	const struct envd_watch_options o = {.recursive = true};
	struct hr_connect_error e;

	memset(w, 0, sizeof(*w));
	(void)snprintf(w->top, sizeof(w->top), "%s/XXXXXX", scratch);
	ck_assert_ptr_nonnull(mkdtemp(w->top));
	(void)snprintf(w->name, sizeof(w->name), "%s/d", w->top);
	w->loop = hr_loop_new(NULL);
	ck_assert_ptr_nonnull(w->loop);
	w->all = envd_watchers_new(w->loop, NULL);
	ck_assert_ptr_nonnull(w->all);
	w->one = envd_watcher_open(w->all, w->top, &o, on_report, w, &e);
	ck_assert_ptr_nonnull(w->one);
}

static void
watching_end(struct watching *w)
{
	envd_watchers_free(w->all);
	hr_loop_free(w->loop);
}

static void
stop(void *arg)
{
	hr_loop_stop(arg);
}

/* Lets the loop handle events until a timer fires, which a loop that is held would not reach. */
static void
run_until_timer(struct watching *w)
{
	struct hr_watch *timer = hr_loop_timer(w->loop, stop, w->loop, NULL);

	ck_assert_ptr_nonnull(timer);
	ck_assert_int_eq(hr_watch_arm(timer, 0, NULL), 0);
	ck_assert_int_eq(hr_loop_run(w->loop, NULL), 0);
	hr_watch_free(timer);
}

START_TEST(a_question_gets_the_events_before_it)
{
	struct watching w;

	watching_start(&w);
	ck_assert_int_eq(mkdir(w.name, 0700), 0);
	w.makes = true;
	envd_watchers_drain(w.all);
	ck_assert_uint_eq(w.reports, 1);
	ck_assert_uint_eq(w.more, 1);
	w.makes = false;
	envd_watchers_drain(w.all);
	ck_assert_uint_eq(w.reports, 2);
	watching_end(&w);
}
END_TEST

START_TEST(a_turn_of_the_loop_ends)
{
	struct watching w;
	unsigned turns;

	watching_start(&w);
	ck_assert_int_eq(mkdir(w.name, 0700), 0);
	w.makes = true;
	for (turns = 0; w.reports == 0; turns++)
		run_until_timer(&w);
	ck_assert_uint_lt(w.reports, MORE_MAX);
	w.makes = false;
	watching_end(&w);
}
END_TEST

START_TEST(a_turn_of_the_loop_takes_some_events)
{
	struct watching w;
	unsigned i;

	watching_start(&w);
	for (i = 0; i < MORE_MAX; i++)
		ck_assert_int_eq(i % 2 == 0 ? mkdir(w.name, 0700) : rmdir(w.name), 0);
	while (w.reports == 0)
		run_until_timer(&w);
	ck_assert_uint_lt(w.reports, MORE_MAX);
	while (w.reports < MORE_MAX)
		run_until_timer(&w);
	ck_assert_uint_eq(w.reports, MORE_MAX);
	ck_assert_uint_eq(w.lost, 0);
	watching_end(&w);
}
END_TEST

START_TEST(a_found_entry_is_reported_once_each_time)
{
	const struct envd_watch_options o = {.recursive = false};
	struct watching w;
	struct hr_connect_error e;
	char outside[80], below[100];

	watching_start(&w);
	(void)snprintf(outside, sizeof(outside), "%s-outside", w.top);
	(void)snprintf(below, sizeof(below), "%s/e", w.name);
	ck_assert_int_eq(mkdir(outside, 0700), 0);
	/* the directory is watched already, so that the event of the found entry comes, too */
	ck_assert_ptr_nonnull(envd_watcher_open(w.all, outside, &o, on_report, &w, &e));
	ck_assert_int_eq(rename(outside, w.name), 0);
	ck_assert_int_eq(mkdir(below, 0700), 0);
	envd_watchers_drain(w.all);
	ck_assert_uint_eq(w.created, 1);
	ck_assert_int_eq(rmdir(below), 0);
	ck_assert_int_eq(mkdir(below, 0700), 0);
	envd_watchers_drain(w.all);
	ck_assert_uint_eq(w.created, 2);
	ck_assert_uint_eq(w.lost, 0);
	watching_end(&w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("envd");
	TCase *t = tcase_create("messages");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(
	    t, a_message_is_read_by_its_table, 0, (int)(sizeof(messages) / sizeof(*messages)));
	tcase_add_loop_test(t, a_frame_is_taken_whole, 0, (int)(sizeof(bodies) / sizeof(*bodies)));
	tcase_add_test(t, errors_have_codes_and_statuses);
	tcase_add_test(t, gzip_there_and_back);
	suite_add_tcase(s, t);
	t = tcase_create("records");
	tcase_add_test(t, a_record_reads_back);
	tcase_add_test(t, a_cut_record_is_none);
	tcase_add_test(t, an_empty_packet_with_a_descriptor);
	suite_add_tcase(s, t);
	t = tcase_create("watchers");
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_test(t, a_question_gets_the_events_before_it);
	tcase_add_test(t, a_turn_of_the_loop_ends);
	tcase_add_test(t, a_turn_of_the_loop_takes_some_events);
	tcase_add_test(t, a_found_entry_is_reported_once_each_time);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
