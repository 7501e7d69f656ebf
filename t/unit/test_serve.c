/* http/serve: an answer that is sent before the body of its request has arrived. */
#include "config.h"

#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/loop.h"
#include "http/serve.h"

static struct hr_loop *loop;
static struct hr_buf got;
static int client, status;
static const char *text;

static void
answer(void *arg, struct hr_serve_request *q)
{
	(void)arg;
	hr_serve_answer(q, status, NULL, text, strlen(text));
}

/* Ends the client's side of the connection once the head is there: whatever was sent with the head
 * comes before the end of the server's side. */
static void
on_answer(void *arg)
{
	char piece[4096];
	ssize_t n = read(client, piece, sizeof(piece));
	bool had_head = strstr(hr_buf_str(&got), "\r\n\r\n") != NULL;

	(void)arg;
	ck_assert_int_ge(n, 0);
	hr_buf_add(&got, piece, (size_t)n);
	if (n == 0)
		hr_loop_stop(loop);
	else if (!had_head && strstr(hr_buf_str(&got), "\r\n\r\n") != NULL)
		ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
}

/* Sends the head of a request and a part of its body. Returns what is after the answer's head. */
static const char *
early(const char *version)
{
	struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	struct hr_err err = {0};
	struct hr_watch *w;
	struct hr_serve *s;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	HR_BUF(request, 1024);

	ck_assert_int_eq(bind(listener, (const struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(client, (const struct sockaddr *)&at, sizeof(at)), 0);
	loop = hr_loop_new(&err);
	s = hr_serve_open(loop, listener, 100, answer, NULL, &err);
	ck_assert_ptr_nonnull(s);
	w = hr_loop_readable(loop, client, on_answer, NULL, &err);
	hr_buf_init(&got, 65536);
	hr_buf_addf(&request,
	    "TRACE / HTTP/%s\r\nHost: a\r\nX-HTTP-Method-Override: POST\r\n"
	    "Content-Length: 10\r\n\r\nhalf",
	    version);
	ck_assert_int_eq(hr_fd_write_full(client, request.p, request.len, &err), 0);
	ck_assert_int_eq(hr_loop_run(loop, &err), 0);
	hr_watch_free(w);
	hr_serve_close(s);
	hr_loop_free(loop);
	(void)close(client);
	return strstr(hr_buf_str(&got), "\r\n\r\n") + 4;
}

static const struct {
	const char *version;
	int status;
	const char *text, *rest;
} answers[] = {
    {"1.1", 400, "no", "2\r\nno\r\n0\r\n\r\n"},
    {"1.1", 400, "", "0\r\n\r\n"},
    {"1.1", 204, "", ""},
    {"1.1", 304, "", ""},
    {"1.0", 400, "no", "no"},
};

START_TEST(an_early_answer_has_its_own_body_alone)
{
	status = answers[_i].status;
	text = answers[_i].text;
	ck_assert_str_eq(early(answers[_i].version), answers[_i].rest);
	hr_buf_done(&got);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("serve");
	TCase *tc = tcase_create("serve");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(
	    tc, an_early_answer_has_its_own_body_alone, 0, sizeof(answers) / sizeof(*answers));
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
