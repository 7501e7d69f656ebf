/* Checks the server of WebSockets with clients at the other end of a Unix socket. */
#include "config.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lines.h"
#include "base/loop.h"
#include "http/wsframe.h"
#include "http/wsserve.h"

#define OPENING "GET /x HTTP/1.1\r\nUpgrade: websocket\r\n"
#define THIRTEEN "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
#define REQUEST OPENING THIRTEEN KEY "\r\n\r\n"

static struct hr_loop *loop;
static struct hr_wsserve *server;
static struct sockaddr_un addr;
static struct hr_wsconn *first;
static bool trusts;
static int left;

static void
asked(void *arg, struct hr_wsconn *c)
{
	(void)arg;
	first = c;
	hr_wsconn_accept(c);
	if (trusts)
		hr_wsconn_trust(c);
}

static void
message(void *arg, struct hr_wsconn *c, const char *p, size_t len)
{
	(void)arg;
	(void)c;
	(void)p;
	(void)len;
}

static void
drained(void *arg, struct hr_wsconn *c)
{
	(void)arg;
	(void)c;
}

static void
gone(void *arg, struct hr_wsconn *c)
{
	(void)arg;
	(void)c;
	left++;
	hr_loop_stop(loop);
}

static void
stop(void *arg)
{
	hr_loop_stop(arg);
}

static void
begin(int64_t ping_ms)
{
	static const struct hr_wsserve_calls calls = {asked, message, drained, gone};
	struct hr_err err = {0};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* the kernel chooses an abstract name */
	memset(&addr, 0, sizeof(addr));
	addr.sun_family = AF_UNIX;
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(loop);
	server = hr_wsserve_open(loop, fd, 4, ping_ms, &calls, NULL, &err);
	ck_assert_ptr_nonnull(server);
}

/* Runs the server until a callback above or `w` stops it. */
static void
run(struct hr_watch *w)
{
	ck_assert_ptr_nonnull(w);
	ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	hr_watch_free(w);
}

static void
run_for(int64_t ms)
{
	struct hr_watch *timer = hr_loop_timer(loop, stop, loop, NULL);

	ck_assert_ptr_nonnull(timer);
	ck_assert_int_eq(hr_watch_arm(timer, ms, NULL), 0);
	run(timer);
}

static void
until_readable(int fd)
{
	run(hr_loop_readable(loop, fd, stop, loop, NULL));
}

static int
client_that_sends(const char *request)
{
	socklen_t len = sizeof(sa_family_t) + 6; /* a NUL and five digits */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	return fd;
}

static int
client(void)
{
	return client_that_sends(REQUEST);
}

/* Runs the server until the client has its answer and then `n` bytes more. */
static void
hear(int fd, char *ret, size_t n)
{
	char buf[1024];
	size_t at = 0;
	ssize_t more;
	char *end = NULL;

	while (end == NULL || at - (size_t)(end + 4 - buf) < n) {
		until_readable(fd);
		more = recv(fd, buf + at, sizeof(buf) - at, MSG_DONTWAIT);
		ck_assert_int_gt(more, 0);
		at += (size_t)more;
		end = memmem(buf, at, "\r\n\r\n", 4);
	}
	memcpy(ret, end + 4, n);
}

/* A client behind a network that has gone keeps its place for two pings and no longer. */
START_TEST(one_that_vanished_is_noticed)
{
	static const char want[] = "\x89\x00\x88\x15\x03\xf3No answer to a ping";
	char got[sizeof(want) - 1];
	int fd;

	trusts = true;
	begin(50);
	fd = client();
	hear(fd, got, sizeof(got));
	ck_assert_mem_eq(got, want, sizeof(got));
	(void)close(fd);
	while (left == 0)
		ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	ck_assert_int_eq(left, 1);
}
END_TEST

/* One that answers keeps its place, whatever it sends. */
START_TEST(one_that_answers_stays)
{
	static const char pong[] = "\x8a\x80\1\2\3\4";
	char buf[64] = "";
	int fd, pings = 0;

	trusts = true;
	begin(500); /* enough time for a pong on a busy machine */
	fd = client();
	hear(fd, buf, 2);
	for (; pings < 3; pings++) {
		ck_assert_mem_eq(buf, "\x89\x00", 2);
		ck_assert_int_eq(write(fd, pong, 6), 6);
		until_readable(fd);
		ck_assert_int_eq(recv(fd, buf, 2, MSG_DONTWAIT), 2);
	}
	ck_assert_int_eq(left, 0);
	(void)close(fd);
}
END_TEST

/* One that has much to read before the ping keeps its place while it reads. */
START_TEST(one_that_reads_slowly_stays)
{
	static const char pong[] = "\x8a\x80\1\2\3\4";
	const size_t len = 900000, all = 10 + len + 2; /* the text, and a ping */
	char *text = calloc(1, len), buf[20000];
	size_t got = 0;
	ssize_t n = 0;
	int fd;

	ck_assert_ptr_nonnull(text);
	trusts = true;
	begin(1000); /* the kernel takes more when three quarters of 200 KB are read */
	fd = client();
	hear(fd, buf, 0);
	hr_wsconn_send(first, text, len);
	free(text);
	for (; got < all; got += (size_t)n) {
		run_for(90);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		ck_assert_int_gt(n, 1);
	}
	ck_assert_uint_eq(got, all);
	ck_assert_mem_eq(buf + n - 2, "\x89\x00", 2);
	ck_assert_int_eq(write(fd, pong, 6), 6);
	run_for(375);
	ck_assert_int_eq(left, 0);
	(void)close(fd);
}
END_TEST

struct ending {
	const char *frames; /* after a mask of four NULs in each */
	size_t n;
	const char *want;
};

#define ENDING(frames, want)                                                                       \
	{                                                                                          \
		frames, sizeof(frames) - 1, want                                                   \
	}

/* A client's close is repeated, and the frame that ends a connection says why. */
START_TEST(endings)
{
	static const struct ending all[] = {
	    ENDING("\x88\x80\0\0\0\0", "\x88"),
	    ENDING("\x88\x85\0\0\0\0\x03\xe8"
		   "bye",
		"\x88\x05\x03\xe8"
		"bye"),
	    ENDING("\x88\x82\0\0\0\0\x0f\xa0", "\x88\x02\x0f\xa0"),
	    ENDING("\x88\x81\0\0\0\0\x03", "\x88\x1e\x03\xeaThe close frame is malformed"),
	    ENDING("\x88\x82\0\0\0\0\x03\xed", "\x88\x1e\x03\xeaThe close frame is malformed"),
	    ENDING("\x88\x82\0\0\0\0\x0b\xb7", "\x88\x1e\x03\xeaThe close frame is malformed"),
	    ENDING("\x88\x83\0\0\0\0\x03\xe8\xff", "\x88\x1e\x03\xeaThe close frame is malformed"),
	    ENDING("\x81\x81\0\0\0\0\xff", "\x88\x17\x03\xefThe text is not UTF-8"),
	    ENDING("\x83\x80\0\0\0\0", "\x88\x1c\x03\xea"
				       "a frame of an unknown type"),
	    ENDING("\x81\xff\0\0\0\0\0\x10\0\0\0\0\0\0", "\x88\x1a\x03\xf1"
							 "a frame of 1048576 bytes"),
	};
	char got[64];
	size_t i;
	int fd;

	trusts = false;
	begin(60000);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fd = client();
		hear(fd, got, 0);
		ck_assert_int_eq(write(fd, all[i].frames, all[i].n), (ssize_t)all[i].n);
		until_readable(fd);
		memset(got, 0, sizeof(got));
		ck_assert_int_gt(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 1);
		ck_assert_str_eq(got, all[i].want);
		until_readable(fd);
		ck_assert_int_eq(recv(fd, got, sizeof(got), MSG_DONTWAIT), 0);
		(void)close(fd);
		while (left <= (int)i)
			ck_assert_int_eq(hr_loop_run(loop, NULL), 0);
	}
}
END_TEST

/* A WebSocket of another version, or without a key, is refused before the caller sees it. */
START_TEST(handshakes)
{
	static const char *const all[][2] = {
	    {OPENING "Sec-WebSocket-Version: 12\r\n" KEY "\r\n\r\n",
		"HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\n"},
	    {OPENING KEY "\r\n\r\n", "HTTP/1.1 426 "},
	    {OPENING THIRTEEN "\r\n", "HTTP/1.1 400 "},
	    {OPENING THIRTEEN KEY "=\r\n\r\n", "HTTP/1.1 400 "},
	};
	char got[256];
	size_t i;
	int fd;

	begin(60000);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fd = client_that_sends(all[i][0]);
		until_readable(fd);
		memset(got, 0, sizeof(got));
		ck_assert_int_gt(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 0);
		ck_assert_msg(strncmp(got, all[i][1], strlen(all[i][1])) == 0, "%zu: %s", i, got);
		(void)close(fd);
	}
	ck_assert_ptr_null(first);
}
END_TEST

/* The clients of a server that ends hear of it. */
START_TEST(one_hears_of_the_end)
{
	char got[4];
	int fd;

	trusts = true;
	begin(60000);
	fd = client();
	hear(fd, got, 0);
	hr_wsserve_leave(server);
	ck_assert_int_eq(recv(fd, got, sizeof(got), MSG_DONTWAIT), 4);
	ck_assert_mem_eq(got, "\x88\x02\x03\xf4", 4);
	(void)close(fd);
}
END_TEST

/* Only a client that is trusted is pinged: others have the limit of their first message. */
START_TEST(one_that_is_not_trusted_hears_no_ping)
{
	char buf[64] = "";
	int fd, other;

	trusts = false;
	begin(50);
	other = client();
	hear(other, buf, 0);
	trusts = true;
	fd = client();
	hear(fd, buf, 2);
	ck_assert_mem_eq(buf, "\x89\x00", 2);
	run_for(1); /* whatever the same tick wrote to the other client is sent */
	ck_assert_int_eq(recv(other, buf, sizeof(buf), MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	(void)close(fd);
	(void)close(other);
}
END_TEST

/* A length takes 7, 16 or 64 bits, in the network's order. */
START_TEST(lengths_of_frames)
{
	static const struct {
		size_t len, nhead;
		const char *head;
	} rows[] = {{125, 2, "\x81\x7d"}, {126, 4, "\x81\x7e\x00\x7e"},
	    {65535, 4, "\x81\x7e\xff\xff"}, {65536, 10, "\x81\x7f\0\0\0\0\0\1\0\0"},
	    {0x012345, 10, "\x81\x7f\0\0\0\0\0\x01\x23\x45"}};
	static const char text[0x012345];
	HR_BUF(b, 1 << 20);
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hr_buf_reset(&b);
		hr_wsframe_put(&b, HR_WS_TEXT, NULL, text, rows[i].len);
		ck_assert_uint_eq(b.len, rows[i].nhead + rows[i].len);
		ck_assert_mem_eq(b.p, rows[i].head, rows[i].nhead);
	}
}
END_TEST

static double
seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int
ignore(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	(void)arg;
	(void)op;
	(void)p;
	(void)len;
	return 0;
}

/* Returns the processor time that the frames take in pieces of `piece` bytes. */
static double
parse(const char *frames, size_t n, size_t piece)
{
	struct hr_wsframes f;
	double begun = seconds();
	size_t at;

	hr_wsframes_init(&f);
	f.server = true;
	for (at = 0; at < n; at += piece)
		ck_assert_int_eq(hr_wsframes_feed(&f, frames + at, n - at < piece ? n - at : piece,
				     ignore, NULL, NULL),
		    0);
	hr_wsframes_done(&f);
	return seconds() - begun;
}

/* The time of all clients is taken by their number, and not by its square. */
START_TEST(tiny_frames_take_little_time)
{
	static char flood[6 * 200000];
	size_t at;
	double little;

	for (at = 0; at < sizeof(flood); at += 6)
		memcpy(flood + at, "\x89\x80\1\2\3\4", 6);
	little = parse(flood, sizeof(flood), 4096);
	ck_assert_double_lt(parse(flood, sizeof(flood), 1u << 18), 10 * little + 0.01);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wsserve");
	TCase *tc = tcase_create("wsserve");

	tcase_set_timeout(tc, 120);
	/* each has a server that serves until the process ends, and times of its own */
	tcase_set_tags(tc, "no-valgrind");
	tcase_add_test(tc, one_that_vanished_is_noticed);
	tcase_add_test(tc, one_that_answers_stays);
	tcase_add_test(tc, one_that_reads_slowly_stays);
	tcase_add_test(tc, one_that_is_not_trusted_hears_no_ping);
	tcase_add_test(tc, lengths_of_frames);
	tcase_add_test(tc, endings);
	tcase_add_test(tc, handshakes);
	tcase_add_test(tc, one_hears_of_the_end);
	tcase_add_test(tc, tiny_frames_take_little_time);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
