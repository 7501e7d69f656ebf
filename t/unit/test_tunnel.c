/* base/tunnel: the time that a tunnel has after one of its directions has ended, and its sockets.
 */
#include "config.h"

#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/tunnel.h"

#define SHORT_MS 200
#define LONG_MS 60000

static struct hr_loop *loop;
static struct hr_tunnel *tunnel;
static int client, server; /* the ends of the test */
static int lead;           /* the tunnel's end of the server's connection */
static bool replaces;      /* the first byte of the client becomes "new" */

static enum hr_tunnel_look
look(void *arg, const char *p, size_t len, bool last)
{
	(void)arg;
	(void)p;
	(void)last;
	if (len == 0)
		return HR_TUNNEL_MORE;
	if (replaces)
		ck_assert_int_eq(hr_tunnel_replace(tunnel, 1, "new", 3), 0);
	hr_tunnel_lead(tunnel, lead);
	return HR_TUNNEL_PASS;
}

static void
on_end(void *arg)
{
	tunnel = NULL;
	hr_loop_stop(arg);
}

static void
pair(int *ret_end, int *ret_own)
{
	int ends[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	*ret_end = ends[0];
	*ret_own = ends[1];
}

/* The same over TCP, which has resets. */
static void
tcp_pair(int *ret_end, int *ret_own)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	*ret_end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(*ret_end, (struct sockaddr *)&a, sizeof(a)), 0);
	*ret_own = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	ck_assert_int_ge(*ret_own, 0);
	hr_fd_close(&listener);
}

static void
begin(int linger_ms, int half_ms, bool resets)
{
	void (*const connected)(int *ret_end, int *ret_own) = resets ? tcp_pair : pair;
	struct hr_err err = {0};
	int own;

	loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(loop);
	connected(&client, &own);
	connected(&server, &lead);
	tunnel = hr_tunnel_new(loop,
	    &(const struct hr_tunnel_with){.client = own,
		.look = look,
		.ended = on_end,
		.arg = loop,
		.linger_ms = linger_ms,
		.half_ms = half_ms,
		.resets = resets},
	    &err);
	ck_assert_ptr_nonnull(tunnel);
	ck_assert_int_eq(send(client, "q", 1, 0), 1);
}

static void
end(void)
{
	struct hr_err err = {0};
	int64_t start = hr_now_ms();
	socklen_t len = sizeof(int);
	char byte;
	int sys;

	ck_assert_int_eq(hr_loop_run(loop, &err), 0);
	ck_assert_ptr_null(tunnel);
	ck_assert_int_ge(hr_now_ms() - start, SHORT_MS - 1);
	ck_assert_int_lt(hr_now_ms() - start, LONG_MS);
	ck_assert_int_eq(recv(server, &byte, 1, 0), 1);
	ck_assert_int_eq(byte, 'q');
	ck_assert_int_eq(recv(client, &byte, 1, 0), 0);
	ck_assert_int_eq(getsockopt(client, SOL_SOCKET, SO_ERROR, &sys, &len), 0);
	ck_assert_int_eq(sys, 0); /* the time ends both connections in order */
	ck_assert_int_eq(getsockopt(server, SOL_SOCKET, SO_ERROR, &sys, &len), 0);
	ck_assert_int_eq(sys, 0);
	hr_fd_close(&client);
	hr_fd_close(&server);
	hr_loop_free(loop);
}

START_TEST(client_that_sends_no_more)
{
	begin(LONG_MS, SHORT_MS, _i != 0);
	ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
	end();
}
END_TEST

START_TEST(server_that_sends_no_more)
{
	begin(SHORT_MS, LONG_MS, _i != 0);
	ck_assert_int_eq(shutdown(server, SHUT_WR), 0);
	end();
}
END_TEST

/* The bytes after the replaced ones follow, and no others. */
START_TEST(a_head_that_is_replaced)
{
	char got[64] = "";
	struct hr_err err = {0};

	replaces = true;
	begin(SHORT_MS, LONG_MS, false);
	ck_assert_int_eq(send(client, " rest", 5, 0), 5);
	ck_assert_int_eq(shutdown(server, SHUT_WR), 0);
	ck_assert_int_eq(hr_loop_run(loop, &err), 0);
	replaces = false;
	ck_assert_int_eq(recv(server, got, sizeof(got) - 1, 0), 8);
	ck_assert_str_eq(got, "new rest");
	hr_fd_close(&client);
	hr_fd_close(&server);
	hr_loop_free(loop);
}
END_TEST

/* A piece does not wait for the acknowledgement of the one before it. */
START_TEST(pieces_are_sent_at_once)
{
	int fd[2], i, on;
	socklen_t len = sizeof(on);

	loop = hr_loop_new(NULL);
	for (i = 0; i < 2; i++)
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	tunnel = hr_tunnel_new(loop,
	    &(const struct hr_tunnel_with){
		.client = fd[0], .look = look, .ended = on_end, .arg = loop},
	    NULL);
	ck_assert_ptr_nonnull(tunnel);
	hr_tunnel_lead(tunnel, fd[1]);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(getsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
		ck_assert_int_ne(on, 0);
	}
	hr_tunnel_free(tunnel);
	hr_loop_free(loop);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tunnel");
	TCase *tc = tcase_create("tunnel");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, client_that_sends_no_more, 0, 2);
	tcase_add_loop_test(tc, server_that_sends_no_more, 0, 2);
	tcase_add_test(tc, pieces_are_sent_at_once);
	tcase_add_test(tc, a_head_that_is_replaced);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
