/* host/rest: what is sent, what is repeated and what is not, what errors tell. The service is a
 * thread that gives the answers of a script, one for each connection. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "host/client/rest.h"
#include "proto/json.h"

#define REQUESTS_MAX 16

/* Answers of the script that are none. */
#define HANG_UP ""  /* after the request */
#define SILENT NULL /* until the other side ends */

static struct {
	int fd;
	const char *const *script;
	size_t n, asked;
	char requests[REQUESTS_MAX][4096];
	pthread_t thread;
	char url[64];
} service;

/* Head and body; both are short. */
static void
read_request(int fd, char *to, size_t cap)
{
	const char *end, *length;
	size_t n = 0;
	ssize_t got;

	for (;;) {
		got = read(fd, to + n, cap - 1 - n);
		if (got <= 0)
			return;
		n += (size_t)got;
		to[n] = '\0';
		end = strstr(to, "\r\n\r\n");
		length = strcasestr(to, "\r\nContent-Length: ");
		if (end != NULL && n >= (size_t)(end + 4 - to) +
					    (length != NULL ? strtoul(length + 18, NULL, 10) : 0))
			return;
	}
}

static void *
serve(void *arg)
{
	const char *answer;
	char rest[64];
	int fd;

	(void)arg;
	for (; service.asked < service.n; service.asked++) {
		fd = accept(service.fd, NULL, NULL);
		if (fd < 0)
			return NULL;
		read_request(fd, service.requests[service.asked], sizeof(service.requests[0]));
		answer = service.script[service.asked];
		if (answer == SILENT)
			while (read(fd, rest, sizeof(rest)) > 0)
				;
		else
			(void)!write(fd, answer, strlen(answer));
		(void)shutdown(fd, SHUT_WR);
		while (read(fd, rest, sizeof(rest)) > 0)
			;
		(void)close(fd);
	}
	return NULL;
}

static void
start(const char *const *script, size_t n)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	memset(&service, 0, sizeof(service));
	service.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(service.fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(service.fd, 8), 0);
	ck_assert_int_eq(getsockname(service.fd, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(
	    service.url, sizeof(service.url), "http://127.0.0.1:%d/api/", ntohs(a.sin_port));
	service.script = script;
	service.n = n;
	ck_assert_int_eq(pthread_create(&service.thread, NULL, serve, NULL), 0);
}

/* How many requests there were. */
static size_t
stop(void)
{
	(void)shutdown(service.fd, SHUT_RDWR);
	(void)pthread_join(service.thread, NULL);
	(void)close(service.fd);
	return service.asked;
}

/* Waits of one millisecond. */
static const struct hr_rest_rule quick[] = {
    {.failures = HR_REST_UNSENT,
	.always = HR_REST_UNSENT,
	.attempts = 3,
	.first_ms = 1,
	.most_ms = 1},
    {.failures = HR_REST_LIMITED,
	.always = HR_REST_LIMITED,
	.attempts = 3,
	.first_ms = 1,
	.most_ms = 1},
    {.failures = HR_REST_LOST | HR_REST_FAILED, .attempts = 3, .first_ms = 1, .most_ms = 1},
    {0},
};

static struct hr_rest *
client(void)
{
	struct hr_rest_options o = {.url = service.url, .rules = quick, .watch_fd = -1};
	struct hr_rest *rest = hr_rest_new(&o, NULL);

	ck_assert_ptr_nonnull(rest);
	ck_assert_int_eq(hr_rest_header(rest, "X-API-Key", "sesame-1234", true, NULL), 0);
	return rest;
}

#define ANSWER(status, headers, body)                                                              \
	"HTTP/1.1 " status "\r\n" headers "Connection: close\r\n\r\n" body
#define OK ANSWER("200 OK", "", "{\"a\": [1, \"x\"]}")
#define LIMITED ANSWER("429 Too Many Requests", "Retry-After: 0\r\n", "{\"detail\": \"slowly\"}")
#define BUSY ANSWER("503 Service Unavailable", "", "")
#define CUT "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\""
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

START_TEST(json_travels_both_ways)
{
	static const char *const script[] = {OK};
	HR_PUT struct json_object *body = json_object_new_object();
	HR_PUT struct json_object *answer = NULL;
	struct hr_rest *rest;

	start(script, COUNT(script));
	rest = client();
	json_object_object_add(body, "sid", json_object_new_string("é"));
	ck_assert_int_eq(hr_rest_send(rest, "POST", "/start?w=1", body, &answer, NULL), 0);
	ck_assert_str_eq(hr_json_text(hr_json_entry(hr_json_at(answer, "a"), 1)), "x");
	ck_assert_uint_eq(stop(), 1);
	ck_assert_ptr_nonnull(strstr(service.requests[0], "POST /api/start?w=1 HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strstr(service.requests[0], "\r\nX-API-Key: sesame-1234\r\n"));
	ck_assert_ptr_nonnull(
	    strstr(service.requests[0], "\r\nContent-Type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(service.requests[0], "\r\n\r\n{\"sid\":\"é\"}"));
	hr_rest_free(rest);
}
END_TEST

/* What is repeated: a row is a method, whether it may be done twice, the answers, how many of them
 * are asked for, and the error at the end. */
static const struct {
	const char *method;
	bool idempotent;
	const char *script[4];
	size_t asked;
	enum hr_errc code;
	int status;
} repeats[] = {
    {"GET", false, {BUSY, HANG_UP, OK}, 3, HR_OK, 0},
    {"DELETE", false, {CUT, OK}, 2, HR_OK, 0},
    {"GET", false, {BUSY, BUSY, BUSY, OK}, 3, HR_E_HTTP_STATUS, 503},
    {"GET", false, {CUT, CUT, CUT, OK}, 3, HR_E_PROTO, 0},
    {"POST", false, {BUSY, OK}, 1, HR_E_HTTP_STATUS, 503},
    {"POST", false, {HANG_UP, OK}, 1, HR_E_PROTO, 0},
    {"POST", false, {LIMITED, LIMITED, OK}, 3, HR_OK, 0},
    {"POST", false, {LIMITED, LIMITED, LIMITED, OK}, 3, HR_E_HTTP_STATUS, 429},
    {"POST", true, {HANG_UP, BUSY, OK}, 3, HR_OK, 0},
    {"PATCH", false, {BUSY, OK}, 1, HR_E_HTTP_STATUS, 503},
    {"GET", false, {ANSWER("404 Not Found", "", "no")}, 1, HR_E_HTTP_STATUS, 404},
    {"GET", false, {ANSWER("307 Elsewhere", "Location: /b\r\n", "")}, 1, HR_E_HTTP_STATUS, 307},
    {"GET", false, {ANSWER("200 OK", "", "<html>")}, 1, HR_E_RUNTIME, 0},
    {"GET", false, {ANSWER("204 No Content", "", "")}, 1, HR_OK, 0},
};

START_TEST(text_that_is_not_utf8_is_replaced)
{
	static const char *const script[] = {
	    ANSWER("200 OK", "", "{\"log\": \"\xe9tat\", \"a\": 1}"),
	    ANSWER("409 Conflict", "", "{\"detail\": \"caf\xe9\"}")};
	HR_PUT struct json_object *answer = NULL;
	struct hr_err err = {0};
	struct hr_rest *rest;

	start(script, COUNT(script));
	rest = client();
	ck_assert_int_eq(hr_rest_get(rest, "/x", &answer, NULL), 0);
	ck_assert_str_eq(hr_json_text_at(answer, "log"), "\xef\xbf\xbdtat");
	ck_assert_int_eq(hr_json_int_at(answer, "a"), 1);
	ck_assert_int_eq(hr_rest_get(rest, "/x", NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "caf\xef\xbf\xbd"));
	ck_assert_uint_eq(stop(), 2);
	hr_rest_free(rest);
}
END_TEST

START_TEST(is_repeated_where_nothing_is_done_twice)
{
	struct hr_rest_call c = {
	    .method = repeats[_i].method, .path = "/x", .idempotent = repeats[_i].idempotent};
	struct hr_err err = {0};
	struct hr_rest_answer a;
	struct hr_rest *rest;
	int r;

	start(repeats[_i].script, COUNT(repeats[_i].script));
	rest = client();
	r = hr_rest_call(rest, &c, &a, &err);
	ck_assert_int_eq(r, repeats[_i].code == HR_OK ? 0 : -1);
	hr_rest_answer_done(&a);
	hr_rest_free(rest);
	ck_assert_uint_eq(stop(), repeats[_i].asked);
	if (r != 0) {
		ck_assert_int_eq(err.code, repeats[_i].code);
		ck_assert_int_eq(err.status, repeats[_i].status);
	}
}
END_TEST

START_TEST(nobody_there_is_asked_again)
{
	struct hr_rest_options o = {.url = service.url, .rules = quick, .watch_fd = -1};
	struct hr_err err;
	struct hr_rest *rest;

	start(NULL, 0);
	(void)stop();
	rest = hr_rest_new(&o, NULL);
	ck_assert_int_eq(hr_rest_send(rest, "POST", "/x", NULL, NULL, &err), -1);
	ck_assert_int_eq(err.code, HR_E_HTTP_NETWORK);
	ck_assert_str_eq(hr_err_class(&err), "ConnectError");
	hr_rest_free(rest);
}
END_TEST

/* Later than the caller waits: it is told of at once. */
START_TEST(a_long_retry_after_is_an_error_now)
{
	static const char *const script[] = {
	    ANSWER("429 Too Many", "Retry-After: 3600\r\n", "{\"message\": \"quota\"}"), OK};
	struct hr_err err;
	struct hr_rest *rest;

	start(script, COUNT(script));
	rest = client();
	ck_assert_int_eq(hr_rest_get(rest, "/x", NULL, &err), -1);
	ck_assert_int_eq(err.status, 429);
	ck_assert_ptr_nonnull(strstr(err.msg, "status 429 Too Many: quota"));
	hr_rest_free(rest);
	ck_assert_uint_eq(stop(), 1);
}
END_TEST

START_TEST(errors_hold_neither_secrets_nor_escapes)
{
	static const char *const script[] = {ANSWER("400 Bad Request", "",
	    "{\"error\": {\"message\": \"key sesame-1234 of \\u001b[31mbearer tok-9\\nx\"}}")};
	struct hr_err err;
	struct hr_rest *rest;

	start(script, COUNT(script));
	rest = client();
	ck_assert_int_eq(hr_rest_header(rest, "Authorization", "Bearer tok-9", true, NULL), 0);
	ck_assert_int_eq(hr_rest_get(rest, "/x?key=sesame-1234", NULL, &err), -1);
	(void)stop();
	ck_assert_ptr_null(strstr(err.msg, "sesame"));
	ck_assert_ptr_null(strstr(err.msg, "tok-9"));
	ck_assert_ptr_null(strchr(err.msg, '\033'));
	ck_assert_ptr_null(strchr(err.msg, '\n'));
	ck_assert_ptr_null(strchr(err.msg, '?'));
	ck_assert_ptr_nonnull(strstr(err.msg, "status 400 Bad Request: key ****** of "));
	hr_rest_free(rest);
}
END_TEST

START_TEST(no_header_or_url_ends_a_line)
{
	struct hr_rest_call c = {.method = "GET", .path = "/x"};
	size_t i;
	const char *const headers[] = {"A: b\r\nC: d", NULL};
	static const char *const paths[] = {"/x\r\nA: b", "/x y", "/\x7f"};
	struct hr_err err;
	struct hr_rest *rest;

	start(NULL, 0);
	rest = client();
	ck_assert_int_eq(hr_rest_header(rest, "A", "b\r\nC: d", false, &err), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	ck_assert_int_eq(hr_rest_header(rest, "A\n", "b", false, NULL), -1);
	for (i = 0; i < COUNT(paths); i++) {
		ck_assert_int_eq(hr_rest_get(rest, paths[i], NULL, &err), -1);
		ck_assert_int_eq(err.code, HR_E_INVAL);
	}
	c.headers = headers;
	ck_assert_int_eq(hr_rest_call(rest, &c, NULL, &err), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	hr_rest_free(rest);
	(void)stop();
}
END_TEST

START_TEST(a_header_takes_the_place_of_another)
{
	static const char *const script[] = {OK, OK};
	struct hr_rest *rest;

	start(script, COUNT(script));
	rest = client();
	ck_assert_int_eq(hr_rest_header(rest, "x-api-key", "other", true, NULL), 0);
	ck_assert_int_eq(hr_rest_get(rest, "/x", NULL, NULL), 0);
	ck_assert_int_eq(hr_rest_header(rest, "X-API-KEY", NULL, true, NULL), 0);
	ck_assert_int_eq(hr_rest_get(rest, "/x", NULL, NULL), 0);
	hr_rest_free(rest);
	ck_assert_uint_eq(stop(), 2);
	ck_assert_ptr_nonnull(strstr(service.requests[0], "\r\nx-api-key: other\r\n"));
	ck_assert_ptr_null(strstr(service.requests[0], "sesame"));
	ck_assert_ptr_null(strcasestr(service.requests[1], "x-api-key"));
}
END_TEST

struct lines {
	size_t n, enough;
	char text[8][64];
};

static int
on_line(void *arg, const char *line, size_t len)
{
	struct lines *l = arg;

	(void)snprintf(l->text[l->n++], sizeof(l->text[0]), "%.*s", (int)len, line);
	return l->n == l->enough;
}

START_TEST(a_stream_comes_by_lines)
{
	static const char *const script[] = {ANSWER("200 OK", "", "one\r\n\ntwo\nrest"),
	    ANSWER("200 OK", "", "one\ntwo\nthree\n"),
	    ANSWER("409 Conflict", "", "{\"detail\": \"is paused\"}"),
	    "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\none\n"};
	struct lines l = {0};
	struct hr_rest_call c = {.method = "GET", .path = "/x", .line = on_line, .arg = &l};
	struct hr_err err;
	struct hr_rest *rest;

	start(script, COUNT(script));
	rest = client();
	ck_assert_int_eq(hr_rest_call(rest, &c, NULL, NULL), 0);
	ck_assert_uint_eq(l.n, 4);
	ck_assert_str_eq(l.text[0], "one");
	ck_assert_str_eq(l.text[1], "");
	ck_assert_str_eq(l.text[3], "rest");
	l = (struct lines){.enough = 2};
	ck_assert_int_eq(hr_rest_call(rest, &c, NULL, NULL), 0);
	ck_assert_uint_eq(l.n, 2);
	/* an error is no line */
	l.n = 0;
	ck_assert_int_eq(hr_rest_call(rest, &c, NULL, &err), -1);
	ck_assert_uint_eq(l.n, 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "is paused"));
	/* a line that was told is not told again */
	ck_assert_int_eq(hr_rest_call(rest, &c, NULL, &err), -1);
	ck_assert_uint_eq(l.n, 1);
	ck_assert_int_eq(err.code, HR_E_PROTO);
	hr_rest_free(rest);
	ck_assert_uint_eq(stop(), 4);
}
END_TEST

START_TEST(an_answer_has_a_limit)
{
	static const char *const script[] = {OK};
	struct hr_rest_options o = {.rules = quick, .watch_fd = -1, .answer_max = 8};
	struct hr_err err;
	struct hr_rest *rest;

	start(script, COUNT(script));
	o.url = service.url;
	rest = hr_rest_new(&o, NULL);
	ck_assert_int_eq(hr_rest_get(rest, "/x", NULL, &err), -1);
	ck_assert_int_eq(err.code, HR_E_RUNTIME);
	ck_assert_ptr_nonnull(strstr(err.msg, "too long"));
	hr_rest_free(rest);
	ck_assert_uint_eq(stop(), 1);
}
END_TEST

START_TEST(calls_and_waits_are_given_up)
{
	static const char *const script[] = {
	    SILENT, ANSWER("429 Too Many Requests", "Retry-After: 100\r\n", ""), OK};
	struct hr_err err;
	struct hr_rest *rest;
	int p[2];

	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(write(p[1], "x", 1), 1);
	start(script, COUNT(script));
	rest = client();
	hr_rest_watch(rest, p[0]);
	ck_assert_int_eq(hr_rest_get(rest, "/x", NULL, &err), -1);
	ck_assert_int_eq(err.code, HR_E_RUNTIME);
	ck_assert(hr_rest_wait(p[0], 100000));
	ck_assert(!hr_rest_wait(-1, 1));
	hr_rest_free(rest);
	(void)stop();
	(void)close(p[0]);
	(void)close(p[1]);
}
END_TEST

static const char *
date_in(long seconds, char text[64])
{
	time_t t = time(NULL) + seconds;
	struct tm tm;

	ck_assert_ptr_nonnull(gmtime_r(&t, &tm));
	ck_assert_uint_gt(strftime(text, 64, "%a, %d %b %Y %H:%M:%S GMT", &tm), 0);
	return text;
}

static unsigned long
wait_ms(const struct hr_rest_rule *rule, unsigned k, const char *after, const char *after_ms)
{
	struct hr_rest_failure f = {0};

	(void)snprintf(f.after, sizeof(f.after), "%s", after);
	(void)snprintf(f.after_ms, sizeof(f.after_ms), "%s", after_ms);
	return hr_rest_wait_ms(rule, k, &f);
}

START_TEST(waits)
{
	static const struct hr_rest_rule rule = {
	    .first_ms = 100, .most_ms = 1000, .after_max_s = 60};
	static const struct hr_rest_rule original = {
	    .first_ms = 1000, .least_ms = 4000, .most_ms = 15000};
	static const unsigned seconds[] = {4, 4, 4, 8, 15, 15};
	struct hr_rest_rule shaken = rule;
	char text[64];
	int i;

	ck_assert_uint_eq(wait_ms(&rule, 1, "", ""), 100);
	ck_assert_uint_eq(wait_ms(&rule, 3, "", ""), 400);
	ck_assert_uint_eq(wait_ms(&rule, 60, "", ""), 1000);
	ck_assert_uint_eq(wait_ms(&rule, 1, "7", ""), 7000);
	ck_assert_uint_eq(wait_ms(&rule, 1, "0", ""), 0);
	ck_assert_uint_eq(wait_ms(&rule, 1, "1.5", ""), 1500);
	ck_assert_uint_eq(wait_ms(&rule, 1, "7", "250"), 250);
	/* what is too long, or none, does not count */
	ck_assert_uint_eq(wait_ms(&rule, 1, "61", ""), 100);
	ck_assert_uint_eq(wait_ms(&rule, 1, "-1", ""), 100);
	ck_assert_uint_eq(wait_ms(&rule, 1, "nan", ""), 100);
	ck_assert_uint_eq(wait_ms(&rule, 1, "soon", "later"), 100);
	/* a date: what is left of the time; one of a clock that is far off does not count */
	ck_assert_uint_le(wait_ms(&rule, 1, date_in(40, text), ""), 40000);
	ck_assert_uint_ge(wait_ms(&rule, 1, text, ""), 10000);
	ck_assert_uint_eq(wait_ms(&rule, 1, date_in(4000, text), ""), 100);
	ck_assert_uint_eq(wait_ms(&rule, 1, date_in(-4000, text), ""), 100);
	for (i = 0; i < 6; i++)
		ck_assert_uint_eq(wait_ms(&original, (unsigned)i + 1, "", ""), seconds[i] * 1000);
	ck_assert_uint_eq(wait_ms(&original, 40, "3600", ""), 3600000);
	shaken.jitter_percent = 50;
	for (i = 0; i < 100; i++) {
		ck_assert_uint_ge(wait_ms(&shaken, 2, "", ""), 100);
		ck_assert_uint_le(wait_ms(&shaken, 2, "", ""), 200);
	}
}
END_TEST

/* What is repeated after which failure: a row is the failure, the header that decides, whether the
 * call may be done twice, and the number of attempts. */
static const struct {
	unsigned bit;
	const char *should;
	bool idempotent;
	unsigned attempts;
} decisions[] = {
    {HR_REST_UNSENT, "", false, 3},
    {HR_REST_BUSY, "", false, 3},
    {HR_REST_GATEWAY, "", false, 1},
    {HR_REST_GATEWAY, "", true, 3},
    {HR_REST_LOST, "", true, 1},
    {HR_REST_BROKEN, "", true, 1},
    {HR_REST_BROKEN, "True", true, 3},
    {HR_REST_BROKEN, "true", false, 1},
    {HR_REST_REFUSED, "true", false, 3},
    {HR_REST_BUSY, "false", true, 1},
    {HR_REST_BUSY, "perhaps", true, 3},
    {HR_REST_LOST, "true", true, 1},
    {HR_REST_UNSENT, "false", true, 3},
    {0, "", true, 1},
};

START_TEST(rules_decide)
{
	static const struct hr_rest_rule rules[] = {
	    {.failures = HR_REST_UNSENT | HR_REST_BUSY | HR_REST_GATEWAY,
		.always = HR_REST_UNDONE,
		.attempts = 3},
	    {0}};
	struct hr_rest_tries tries = {.rules = rules, .watch_fd = -1};
	struct hr_rest_failure f = {.bit = decisions[_i].bit};

	(void)snprintf(f.should, sizeof(f.should), "%s", decisions[_i].should);
	while (hr_rest_again(&tries, &f, decisions[_i].idempotent))
		;
	ck_assert_uint_eq(tries.failed, decisions[_i].attempts);
	ck_assert(tries.spent == (decisions[_i].attempts == 3));
}
END_TEST

START_TEST(retry_after_is_a_number_or_a_date)
{
	ck_assert_int_eq(hr_http_seconds("17"), 17);
	ck_assert_int_eq(hr_http_seconds(" 0"), 0);
	ck_assert_int_eq(hr_http_seconds(""), -1);
	ck_assert_int_eq(hr_http_seconds("-5"), -1);
	ck_assert_int_eq(hr_http_seconds("5 minutes"), -1);
	ck_assert_int_eq(hr_http_seconds("soon"), -1);
	ck_assert_int_eq(hr_http_seconds("Wed, 21 Oct 2015 07:28:00 GMT"), 0);
	ck_assert_int_gt(hr_http_seconds("Fri, 21 Oct 2095 07:28:00 GMT"), 1000000);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rest");
	TCase *tc = tcase_create("rest");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, json_travels_both_ways);
	tcase_add_test(tc, text_that_is_not_utf8_is_replaced);
	tcase_add_loop_test(tc, is_repeated_where_nothing_is_done_twice, 0, (int)COUNT(repeats));
	tcase_add_test(tc, nobody_there_is_asked_again);
	tcase_add_test(tc, a_long_retry_after_is_an_error_now);
	tcase_add_test(tc, errors_hold_neither_secrets_nor_escapes);
	tcase_add_test(tc, no_header_or_url_ends_a_line);
	tcase_add_test(tc, a_header_takes_the_place_of_another);
	tcase_add_test(tc, a_stream_comes_by_lines);
	tcase_add_test(tc, an_answer_has_a_limit);
	tcase_add_test(tc, calls_and_waits_are_given_up);
	tcase_add_test(tc, waits);
	tcase_add_loop_test(tc, rules_decide, 0, (int)COUNT(decisions));
	tcase_add_test(tc, retry_after_is_a_number_or_a_date);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
