/* The parts of handrail-egress that decide nothing: its names, its log, its requests to a proxy,
 * and base/tunnel. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/tunnel.h"
#include "egress/log.h"
#include "egress/names.h"
#include "egress/proxy.h"
#include "lines.h"
#include "scratch.h"

static const char *
in_scratch(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

/* ---- names ---- */

static uint32_t
address(struct egress_names *n, const char *name)
{
	struct in_addr a = {0};

	ck_assert_int_eq(egress_names_address(n, name, &a), 0);
	ck_assert(egress_names_has(a));
	return ntohl(a.s_addr);
}

static const char *
name_at(struct egress_names *n, uint32_t a)
{
	static char name[EGRESS_NAME_MAX + 1];

	return egress_names_find(n, (struct in_addr){htonl(a)}, name) ? name : NULL;
}

START_TEST(names_are_kept)
{
	struct egress_names *n = egress_names_open(in_scratch("names"), NULL);
	char name[32], longest[EGRESS_NAME_MAX + 1];
	uint32_t first = 0xc6120002, i;
	int fd;

	ck_assert_ptr_nonnull(n);
	for (i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "n%u.test", i);
		ck_assert_uint_eq(address(n, name), first + i);
	}
	for (i = 0; i < EGRESS_NAME_MAX; i++)
		longest[i] = i % 10 == 9 ? '.' : 'a';
	longest[EGRESS_NAME_MAX] = '\0';
	longest[EGRESS_NAME_MAX - 1] = 'b';
	ck_assert_uint_eq(address(n, longest), first + 1000);
	ck_assert_uint_eq(address(n, "n7.test"), first + 7);
	egress_names_free(n);

	fd = open(in_scratch("names"), O_RDWR);
	ck_assert_int_eq(pwrite(fd, "\xff\xff", 2, 256 * 5), 2);
	ck_assert_int_eq(pwrite(fd, "cut", 3, 256 * 1001), 3);
	(void)close(fd);
	n = egress_names_open(in_scratch("names"), NULL);
	ck_assert_uint_eq(egress_names_count(n), 1001);
	ck_assert_str_eq(name_at(n, first + 7), "n7.test");
	ck_assert_str_eq(name_at(n, first + 1000), longest);
	ck_assert_ptr_null(name_at(n, first + 5));
	ck_assert_ptr_null(name_at(n, first + 1001));
	ck_assert_ptr_null(name_at(n, first - 1));
	ck_assert_ptr_null(name_at(n, 0x7f000001));
	ck_assert_uint_eq(address(n, "n5.test"), first + 1001);
	ck_assert_uint_eq(address(n, "n999.test"), first + 999);
	egress_names_free(n);
}
END_TEST

START_TEST(names_are_bounded)
{
	struct egress_names *n = egress_names_open(in_scratch("full"), NULL);
	struct in_addr a;
	char name[32];
	unsigned i;

	for (i = 0; i < EGRESS_NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u.test", i);
		(void)address(n, name);
	}
	ck_assert_int_eq(egress_names_address(n, "more.test", &a), -1);
	ck_assert_uint_eq(address(n, "65535.test"), 0xc6130001);
	ck_assert_str_eq(name_at(n, 0xc6130001), "65535.test");
	egress_names_free(n);
	ck_assert_ptr_null(egress_names_open(in_scratch("none/names"), NULL));
}
END_TEST

/* ---- the log ---- */

static void
keep_line(void *arg, const char *line, size_t len)
{
	hr_buf_add(arg, line, len);
}

static unsigned
count(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

START_TEST(equal_events_are_counted)
{
	struct hr_loop *loop = hr_loop_new(NULL);
	HR_BUF(lines, 1u << 20);
	HR_BUF(file, 1u << 20);
	HR_BUF(since, 1u << 20);
	struct egress_log *l =
	    egress_log_open(loop, in_scratch("log"), "/nowhere", keep_line, &lines, NULL);
	struct egress_event e = {
	    .kind = "http", .name = "a.test", .port = 80, .method = "GET", .rule = "no rule"};
	char long_path[5000];
	unsigned long long last;
	unsigned i;

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	for (i = 0; i < 10; i++)
		egress_log_add(l, &e);
	ck_assert_uint_eq(count(hr_buf_str(&lines), "\n"), 1);
	egress_log_flush(l);
	egress_log_flush(l);
	ck_assert_uint_eq(count(hr_buf_str(&lines), "\"count\":9}\n"), 1);
	e.path = "/\"\n\xff{\"seq\":1}";
	egress_log_add(l, &e);
	e.path = long_path;
	egress_log_add(l, &e);
	ck_assert_uint_eq(count(hr_buf_str(&lines), "\n"), 4);
	ck_assert_ptr_nonnull(
	    strstr(hr_buf_str(&lines), "\"path\":\"/\\\"\\n\xef\xbf\xbd{\\\"seq"));
	ck_assert_uint_lt(lines.len, 2500);
	ck_assert_int_eq(hr_path_read(in_scratch("log"), &file, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&file), hr_buf_str(&lines));
	egress_log_free(l);

	/* a line that was cut does not spoil the next one, nor the numbers */
	ck_assert_int_eq(truncate(in_scratch("log"), (off_t)file.len - 3), 0);
	hr_buf_reset(&lines);
	l = egress_log_open(loop, in_scratch("log"), "/nowhere", keep_line, &lines, NULL);
	egress_log_since(l, 0, &since);
	ck_assert_uint_eq(count(hr_buf_str(&since), "\n"), 4);
	last = strtoull(strrchr(hr_buf_str(&since), '{') + 7, NULL, 10);
	e.path = NULL;
	egress_log_add(l, &e);
	hr_buf_reset(&since);
	egress_log_since(l, last, &since);
	ck_assert_str_eq(hr_buf_str(&since), hr_buf_str(&lines));
	egress_log_free(l);
	hr_loop_free(loop);
}
END_TEST

START_TEST(the_log_is_bounded)
{
	static char full[(4 << 20) + 1];
	struct hr_loop *loop = hr_loop_new(NULL);
	HR_BUF(lines, 64u << 20);
	HR_BUF(since, 1u << 20);
	struct egress_log *l;
	char name[32];
	struct stat st;
	unsigned i;

	memset(full, '\n', sizeof(full));
	ck_assert_int_eq(hr_path_write(in_scratch("big"), full, sizeof(full), 0600, NULL), 0);
	l = egress_log_open(loop, in_scratch("big"), "/nowhere", keep_line, &lines, NULL);
	for (i = 0; i < 100000; i++) {
		(void)snprintf(name, sizeof(name), "%u.test", i);
		egress_log_add(l, &(const struct egress_event){
				      .kind = "tcp", .name = name, .port = 443, .rule = "no rule"});
	}
	/* the first thousand, what some seconds allow, and few lines about all others */
	ck_assert_uint_ge(count(hr_buf_str(&lines), "\n"), 1001);
	ck_assert_uint_lt(count(hr_buf_str(&lines), "\n"), 3000);
	egress_log_flush(l);
	ck_assert_uint_ge(count(hr_buf_str(&lines), "more events than the log takes"), 2);
	ck_assert_uint_lt(count(hr_buf_str(&lines), "more events than the log takes"), 100);
	ck_assert_int_eq(stat(in_scratch("big"), &st), 0);
	ck_assert_int_lt(st.st_size, 5 << 20);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(stat(in_scratch("big.1"), &st), 0);
	ck_assert_int_lt(st.st_size, 5 << 20);
	egress_log_since(l, 0, &since);
	ck_assert_uint_lt(since.len, 64u << 10);
	ck_assert_uint_gt(since.len, 16u << 10);
	/* they are the last lines, whole */
	ck_assert_str_eq(lines.p + lines.len - since.len, since.p);
	ck_assert_int_eq(since.p[0], '{');
	egress_log_free(l);
	hr_loop_free(loop);
}
END_TEST

/* ---- tunnels ---- */

struct play {
	struct hr_loop *loop;
	struct hr_tunnel *tunnel;
	int client, server; /* the test's ends */
	int led;            /* the tunnel's end of the server; -1: the tunnel has it */
	unsigned ends;
	enum hr_tunnel_look verdict;
	char seen[64];
};

static enum hr_tunnel_look
look_at(void *arg, const char *p, size_t len, bool last)
{
	struct play *t = arg;

	(void)snprintf(t->seen, sizeof(t->seen), "%s%.*s", last ? "!" : "", (int)len, p);
	return t->verdict;
}

static void
on_end(void *arg)
{
	struct play *t = arg;

	t->ends++;
	t->tunnel = NULL;
}

static void
stop(void *arg)
{
	hr_loop_stop(arg);
}

/* Lets the loop do all that it can do now. */
static void
go(struct play *t)
{
	struct hr_watch *timer = hr_loop_timer(t->loop, stop, t->loop, NULL);

	ck_assert_int_eq(hr_watch_arm(timer, 20, NULL), 0);
	ck_assert_int_eq(hr_loop_run(t->loop, NULL), 0);
	hr_watch_free(timer);
}

static void
play_start(struct play *t, enum hr_tunnel_look verdict)
{
	int a[2], b[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
	*t = (struct play){.loop = hr_loop_new(NULL),
	    .client = a[0],
	    .server = b[0],
	    .led = b[1],
	    .verdict = verdict};
	t->tunnel = hr_tunnel_new(t->loop,
	    &(const struct hr_tunnel_with){.client = a[1],
		.look = look_at,
		.ended = on_end,
		.arg = t,
		.linger_ms = 60000,
		.half_ms = 60000},
	    NULL);
	ck_assert_ptr_nonnull(t->tunnel);
}

static void
lead(struct play *t)
{
	int fd = t->led;

	t->led = -1;
	hr_tunnel_lead(t->tunnel, fd);
}

static void
play_end(struct play *t)
{
	hr_tunnel_free(t->tunnel);
	hr_fd_close(&t->client);
	hr_fd_close(&t->server);
	hr_fd_close(&t->led);
	hr_loop_free(t->loop);
}

static void
sends(int fd, const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Asserts that these bytes have come, "" for the end, NULL for nothing. */
static void
arrives(int fd, const char *want)
{
	char got[64];
	ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	if (want == NULL) {
		ck_assert_int_eq(n, -1);
		return;
	}
	ck_assert_int_ge(n, 0);
	got[n] = '\0';
	ck_assert_str_eq(got, want);
}

START_TEST(first_bytes_are_looked_at)
{
	struct play t;

	play_start(&t, HR_TUNNEL_MORE);
	sends(t.client, "head");
	go(&t);
	ck_assert_str_eq(t.seen, "head");
	lead(&t);
	sends(t.server, "banner");
	go(&t);
	arrives(t.client, "banner");
	arrives(t.server, NULL);
	t.verdict = HR_TUNNEL_PASS;
	sends(t.client, "+tail");
	go(&t);
	ck_assert_str_eq(t.seen, "head+tail");
	arrives(t.server, "head+tail");
	ck_assert_int_eq(shutdown(t.client, SHUT_WR), 0);
	go(&t);
	arrives(t.server, "");
	sends(t.server, "answer");
	go(&t);
	arrives(t.client, "answer");
	hr_fd_close(&t.server);
	go(&t);
	arrives(t.client, "");
	ck_assert_uint_eq(t.ends, 1);
	play_end(&t);
}
END_TEST

START_TEST(a_client_can_wait_and_be_answered)
{
	struct play t;

	play_start(&t, HR_TUNNEL_WAIT);
	sends(t.client, "a");
	go(&t);
	sends(t.client, "b");
	ck_assert_int_eq(shutdown(t.client, SHUT_WR), 0);
	go(&t);
	ck_assert_str_eq(t.seen, "a");
	t.verdict = HR_TUNNEL_PASS;
	lead(&t);
	go(&t);
	arrives(t.server, "ab");
	arrives(t.server, "");
	play_end(&t);

	play_start(&t, HR_TUNNEL_WAIT);
	sends(t.client, "a");
	go(&t);
	hr_tunnel_answer(t.tunnel, "no", 2);
	sends(t.client, "dropped");
	go(&t);
	arrives(t.client, "no");
	arrives(t.client, "");
	ck_assert_uint_eq(t.ends, 0);
	hr_fd_close(&t.client);
	go(&t);
	ck_assert_uint_eq(t.ends, 1);
	play_end(&t);

	play_start(&t, HR_TUNNEL_MORE);
	hr_fd_close(&t.client);
	go(&t);
	ck_assert_str_eq(t.seen, "!");
	ck_assert_uint_eq(t.ends, 1);
	play_end(&t);
}
END_TEST

START_TEST(a_slow_receiver_stops_the_reader)
{
	struct play t;
	char piece[4096] = {0};
	size_t sent = 0, got = 0;
	ssize_t n;

	play_start(&t, HR_TUNNEL_PASS);
	lead(&t);
	for (;;) {
		while ((n = write(t.server, piece, sizeof(piece))) > 0)
			sent += (size_t)n;
		go(&t);
		n = write(t.server, piece, 1);
		if (n < 0)
			break;
		sent++;
	}
	ck_assert_uint_lt(sent, 4u << 20); /* the buffers of the kernel, no more */
	hr_fd_close(&t.server);
	do {
		while ((n = recv(t.client, piece, sizeof(piece), MSG_DONTWAIT)) > 0)
			got += (size_t)n;
		go(&t);
	} while (n != 0);
	ck_assert_uint_eq(got, sent);
	play_end(&t);
}
END_TEST

/* ---- the operator's proxy ---- */

/* Reads what a talk has sent to the proxy. */
static size_t
sent(int fd, char *bytes, size_t size)
{
	const ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT);

	ck_assert_int_gt(n, 0);
	return (size_t)n;
}

#define BYTES(text) (text), sizeof(text) - 1

static const struct {
	bool http;
	const char *address, *request;
	size_t len;
} talks[] = {
    {false, "192.0.2.7", BYTES("\5\1\0\1\300\0\2\7\1\273")},
    {false, "2001:db8::5", BYTES("\5\1\0\4\x20\1\r\xb8\0\0\0\0\0\0\0\0\0\0\0\5\1\273")},
    {true, "192.0.2.7", BYTES("CONNECT 192.0.2.7:443 HTTP/1.1\r\nHost: 192.0.2.7:443\r\n\r\n")},
    {true, "2001:db8::5",
	BYTES("CONNECT [2001:db8::5]:443 HTTP/1.1\r\nHost: [2001:db8::5]:443\r\n\r\n")},
};

/* The proxy gets the address alone, with nothing of what follows it here. */
START_TEST(requests_to_a_proxy)
{
	const struct egress_proxy p = {.http = talks[_i].http};
	struct egress_talk *t = egress_talk_new(&p, NULL);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(443)};
	struct sockaddr_in6 in6 = {
	    .sin6_family = AF_INET6, .sin6_port = htons(443), .sin6_scope_id = 0x41414141};
	const bool v6 = strchr(talks[_i].address, ':') != NULL;
	const char *why = NULL, *answer = talks[_i].http ? "HTTP/1.1 200 OK\r\n\r\n" : NULL;
	char bytes[256];
	int ends[2];

	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, talks[_i].address,
			     v6 ? (void *)&in6.sin6_addr : (void *)&in.sin_addr),
	    1);
	ck_assert_int_eq(egress_talk_start(t, ends[0],
			     v6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in, &why),
	    0);
	if (!talks[_i].http) {
		ck_assert_uint_eq(sent(ends[1], bytes, sizeof(bytes)), 3);
		ck_assert_mem_eq(bytes, "\5\1\0", 3);
		ck_assert_int_eq(send(ends[1], "\5\0", 2, 0), 2);
		ck_assert_int_eq(egress_talk(t, ends[0], &why), 0);
	}
	ck_assert_uint_eq(sent(ends[1], bytes, sizeof(bytes)), talks[_i].len);
	ck_assert_mem_eq(bytes, talks[_i].request, talks[_i].len);
	if (answer != NULL)
		ck_assert_int_eq(send(ends[1], answer, strlen(answer), 0), (int)strlen(answer));
	else
		ck_assert_int_eq(send(ends[1], "\5\0\0\1\0\0\0\0\0\0", 10, 0), 10);
	ck_assert_int_eq(egress_talk(t, ends[0], &why), 1);
	egress_talk_free(t);
	(void)close(ends[0]);
	(void)close(ends[1]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_broker");
	TCase *c = tcase_create("egress_broker");

	tcase_add_unchecked_fixture(c, scratch_make, scratch_remove);
	tcase_add_test(c, names_are_kept);
	tcase_add_test(c, names_are_bounded);
	tcase_add_test(c, equal_events_are_counted);
	tcase_add_test(c, the_log_is_bounded);
	tcase_add_test(c, first_bytes_are_looked_at);
	tcase_add_test(c, a_client_can_wait_and_be_answered);
	tcase_add_test(c, a_slow_receiver_stops_the_reader);
	tcase_add_loop_test(c, requests_to_a_proxy, 0, (int)(sizeof(talks) / sizeof(*talks)));
	suite_add_tcase(s, c);
	return lines_run(s);
}
