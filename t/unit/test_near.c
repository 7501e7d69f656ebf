/* http/answer and http/near: answers of all shapes, however they are cut; what is asked of libcurl
 * instead; and a server that refuses, hangs up, says nothing, or answers before it has read all. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "http/answer.h"
#include "http/http.h"
#include "http/near.h"

/* ---- answers ---- */

static const struct {
	const char *bytes;
	long status; /* -1: it is none */
	const char *body;
} answers[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, and more", 200, "hi"},
    {"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "until the end"},
    {"HTTP/1.1 200\n\nx", 200, "x"},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n", 201, ""},
    {"HTTP/1.1 204 None\r\nContent-Length: 7\r\n\r\n", 204, ""},
    {"HTTP/1.1 404 Not Found\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x\r\n0123456789\r\n"
     "0\r\nX: y\r\n\r\n",
	404, "abc0123456789"},
    {"", -1, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", -1, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -1, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi", -1, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", -1, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", -1, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", -1, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", -1, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", -1, NULL},
    {"HTTP/2 200\r\n\r\n", -1, NULL},
    {"SSH-2.0-OpenSSH\r\n", -1, NULL},
};

static int
read_answer(const char *bytes, size_t step, const char *method, struct hr_http_answer *a)
{
	struct hr_http_request req = {.method = method, .header = "Retry-After"};
	size_t len = strlen(bytes), at;
	struct hr_err err = {0};
	struct hr_http_reader h;
	int r = 0;

	memset(a, 0, sizeof(*a));
	hr_buf_init(&a->body, 1000);
	hr_http_reader_init(&h, &req, a);
	for (at = 0; r == 0 && at < len; at += step)
		r = hr_http_reader_feed(&h, bytes + at, len - at < step ? len - at : step, &err);
	if (r == 0)
		r = hr_http_reader_end(&h, &err);
	hr_http_reader_done(&h);
	ck_assert(r == 0 || *err.msg != '\0');
	return r;
}

START_TEST(whatever_the_cut)
{
	struct hr_http_answer a;
	size_t i, step;

	for (i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		for (step = 1; step < 100; step += step < 8 ? 1 : 91) {
			ck_assert_msg((read_answer(answers[i].bytes, step, "GET", &a) == 0) ==
					  (answers[i].status > 0),
			    "answer %zu by %zu", i, step);
			if (answers[i].status > 0) {
				ck_assert_int_eq(a.status, answers[i].status);
				ck_assert_str_eq(hr_buf_str(&a.body), answers[i].body);
			} else {
				ck_assert_int_eq(a.fault, HR_HTTP_PROTOCOL);
			}
			hr_http_answer_done(&a);
		}
}
END_TEST

START_TEST(what_is_kept)
{
	static const char bytes[] =
	    "HTTP/1.1 429 Too Many Requests\r\nretry-after:  7 \r\nContent-Length: 4\r\n\r\n";
	struct hr_http_answer a;

	ck_assert_int_eq(read_answer(bytes, 5, "HEAD", &a), 0);
	ck_assert_int_eq(a.status, 429);
	ck_assert_str_eq(a.reason, "Too Many Requests");
	ck_assert_str_eq(a.header, "7");
	hr_http_answer_done(&a);
}
END_TEST

static const struct {
	const char *begin, *line; /* again and again */
} endless[] = {
    {"", "HTTP/1.1 100 Continue\r\n\r\n"},
    {"HTTP/1.1 200 OK\r\n", "X: y\r\n"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"},
};

/* Ten times what an answer may have of it. */
static int
read_endless(const char *begin, const char *line, struct hr_http_answer *a)
{
	size_t n = 10 * HR_HTTP_HEADS_MAX / strlen(line);
	HR_BUF(b, 100 * HR_HTTP_HEADS_MAX);

	hr_buf_adds(&b, begin);
	while (n-- > 0)
		hr_buf_adds(&b, line);
	return read_answer(hr_buf_str(&b), 1000, "GET", a);
}

START_TEST(too_long)
{
	struct hr_http_answer a;
	HR_FREE char *bytes = NULL;
	size_t i;

	ck_assert_int_gt(
	    asprintf(&bytes, "HTTP/1.1 200 OK\r\nX: %*s\r\n\r\n", HR_HTTP_HEAD_MAX, "y"), 0);
	ck_assert_int_eq(read_answer(bytes, 1000, "GET", &a), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_PROTOCOL);
	hr_http_answer_done(&a);
	for (i = 0; i < sizeof(endless) / sizeof(*endless); i++) {
		ck_assert_int_eq(read_endless(endless[i].begin, endless[i].line, &a), -1);
		ck_assert_int_eq(a.fault, HR_HTTP_PROTOCOL);
		hr_http_answer_done(&a);
	}
	free(bytes);
	ck_assert_int_gt(asprintf(&bytes, "HTTP/1.1 200 OK\r\n\r\n%*s", 1001, "y"), 0);
	ck_assert_int_eq(read_answer(bytes, 1000, "GET", &a), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_OTHER);
	hr_http_answer_done(&a);
}
END_TEST

/* ---- which are ours ---- */

START_TEST(what_is_for_libcurl)
{
	size_t i;

	static const struct {
		const char *url, *unix_socket;
		bool ours;
	} urls[] = {
	    {"http://127.0.0.1:3000/alive", NULL, true},
	    {"http://127.0.0.1:3000", NULL, true},
	    {"http://127.0.0.1/x?y=%20", NULL, true},
	    {"http://localhost/containers/json", "/run/docker.sock", true},
	    {"https://127.0.0.1:3000/alive", NULL, false},
	    {"http://localhost:3000/alive", NULL, false},
	    {"http://127.0.0.10:3000/", NULL, false},
	    {"http://127.0.0.1:99999/", NULL, false},
	    {"http://127.0.0.1:/", NULL, false},
	    {"http://127.0.0.1:30@example.org/", NULL, false},
	    {"http://user@127.0.0.1/", NULL, false},
	    {"http://127.0.0.1:3000/../x", NULL, false},
	    {"http://127.0.0.1:3000/x y", NULL, false},
	    {"http://127.0.0.1:3000/x\r\nY: z", NULL, false},
	    {"http://127.0.0.1:3000/#x", NULL, false},
	};

	ck_assert(unsetenv("http_proxy") == 0 && unsetenv("all_proxy") == 0 &&
		  unsetenv("ALL_PROXY") == 0);
	for (i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
		struct hr_http_request req = {
		    .method = "GET", .url = urls[i].url, .unix_socket = urls[i].unix_socket};

		ck_assert_msg(hr_near_can(&req) == urls[i].ours, "%s", urls[i].url);
		req.http2 = true;
		ck_assert(!hr_near_can(&req));
		req.http2 = false;
		ck_assert_int_eq(setenv("http_proxy", "http://proxy:3128", 1), 0);
		ck_assert(hr_near_can(&req) == urls[i].ours);
		req.proxy = "http://proxy:3128";
		ck_assert(hr_near_can(&req) == (urls[i].ours && urls[i].unix_socket != NULL));
		ck_assert_int_eq(unsetenv("http_proxy"), 0);
	}
}
END_TEST

/* ---- servers ---- */

struct server {
	int listener;
	char url[64];
	const char *answer; /* NULL: nothing, until the other side ends */
	bool pours;         /* the answer again and again, until then */
	const char *drips;  /* these bytes again and again after the answer, a few in a second */
	size_t read_first;  /* bytes of the request */
	char got[8192];
	pthread_t thread;
};

static void *
serve(void *arg)
{
	struct server *s = arg;
	int fd = accept(s->listener, NULL, NULL);
	size_t n = 0;
	ssize_t one = 1;
	char rest[4096];

	while (n < s->read_first && one > 0) {
		one = read(fd, s->got + n, sizeof(s->got) - 1 - n);
		n += one > 0 ? (size_t)one : 0;
		if (strstr(s->got, "\r\n\r\n") != NULL)
			break;
	}
	while (s->pours && send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL) > 0)
		;
	if (s->answer != NULL && !s->pours)
		ck_assert_int_ge(send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL), 0);
	for (n = 0; s->drips != NULL && poll(&(struct pollfd){fd, POLLIN, 0}, 1, 100) == 0; n++)
		(void)send(fd, s->drips + n % strlen(s->drips), 1, MSG_NOSIGNAL);
	if (s->answer != NULL)
		(void)shutdown(fd, SHUT_WR);
	while (read(fd, rest, sizeof(rest)) > 0)
		;
	(void)close(fd);
	return NULL;
}

static void
start_listener(struct server *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(s->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(s->listener, 1), 0);
	ck_assert_int_eq(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d/x?y", ntohs(a.sin_port));
}

static void
start(struct server *s)
{
	start_listener(s);
	ck_assert_int_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void
stop(struct server *s)
{
	ck_assert_int_eq(pthread_join(s->thread, NULL), 0);
	ck_assert_int_eq(close(s->listener), 0);
}

static int
ask(struct hr_http_request *req, struct hr_http_answer *a, struct hr_err *err)
{
	int r;

	ck_assert(hr_near_can(req));
	memset(a, 0, sizeof(*a));
	memset(err, 0, sizeof(*err));
	hr_buf_init(&a->body, 1000);
	r = hr_near_do(req, a, err);
	ck_assert(r == 0 ? a->fault == HR_HTTP_NONE : a->fault != HR_HTTP_NONE && *err->msg);
	return r;
}

START_TEST(a_request)
{
	static const char *const headers[] = {"X-Key: secret", "Accept:", NULL};
	struct server s = {
	    .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", .read_first = 100};
	struct hr_http_request req = {
	    .method = "POST", .headers = headers, .watch_fd = -1, .timeout_s = 60, .total_s = 60};
	struct hr_http_answer a;
	struct hr_err err;
	char want[300];

	start(&s);
	req.url = s.url;
	ck_assert_int_eq(ask(&req, &a, &err), 0);
	stop(&s);
	(void)snprintf(want, sizeof(want),
	    "POST /x?y HTTP/1.1\r\nHost: %.*s\r\nX-Key: secret\r\nContent-Type: "
	    "application/x-www-form-urlencoded\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	    (int)strcspn(s.url + 7, "/"), s.url + 7);
	ck_assert_str_eq(s.got, want);
	ck_assert_str_eq(hr_buf_str(&a.body), "hi");
	hr_http_answer_done(&a);
}
END_TEST

/* libcurl serves this name, and takes a proxy from the environment for others. */
START_TEST(no_proxy_here)
{
	struct server s = {
	    .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", .read_first = 100};
	struct hr_http_request req = {.method = "GET", .watch_fd = -1, .timeout_s = 60};
	struct hr_err err = {0};
	struct hr_http *h = hr_http_new(&err);
	struct hr_http_answer a;
	char url[80];

	ck_assert_ptr_nonnull(h);
	start(&s);
	(void)snprintf(url, sizeof(url), "http://localhost%s", strchr(s.url + 7, ':'));
	req.url = url;
	ck_assert(!hr_near_can(&req));
	ck_assert_int_eq(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
	ck_assert_msg(hr_http_do(h, &req, &a, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(unsetenv("http_proxy"), 0);
	hr_http_free(h);
	stop(&s);
	ck_assert_str_eq(hr_buf_str(&a.body), "hi");
	hr_http_answer_done(&a);
}
END_TEST

/* The answer is told, though the server has not read all of the request. */
START_TEST(answered_too_early)
{
	struct server s = {
	    .answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", .read_first = 100};
	size_t len = 8u << 20;
	char *body = calloc(1, len);
	struct hr_http_request req = {
	    .method = "POST", .body = body, .body_len = len, .watch_fd = -1};
	struct hr_http_answer a;
	struct hr_err err;

	start(&s);
	req.url = s.url;
	ck_assert_int_eq(ask(&req, &a, &err), 0);
	ck_assert_int_eq(a.status, 413);
	stop(&s);
	hr_http_answer_done(&a);
	free(body);
}
END_TEST

static int
drink(void *arg, const char *p, size_t len)
{
	unsigned *calls = arg;

	(void)p;
	(void)len;
	if (calls != NULL && ++*calls == 2)
		(void)poll(NULL, 0, 1500); /* as a slow disk, or a reader of a pipe */
	return 0;
}

/* What never ends is ended all the same. */
START_TEST(answered_without_end)
{
	struct server s = {
	    .answer = "HTTP/1.1 200 OK\r\n\r\nand on it goes", .read_first = 100, .pours = true};
	struct hr_http_request req = {
	    .method = "GET", .watch_fd = -1, .timeout_s = 60, .total_s = 1, .sink = drink};
	struct hr_http_answer a;
	struct hr_err err;

	start(&s);
	req.url = s.url;
	ck_assert_int_eq(ask(&req, &a, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TIMEOUT);
	stop(&s);
	hr_http_answer_done(&a);
}
END_TEST

/* A byte now and then does not keep a request waiting, whoever makes it; a sink may wait for each.
 */
START_TEST(answered_drop_by_drop)
{
	static const struct {
		const char *answer, *drips;
	} slow[] = {{"HTTP/1.1 200 OK\r\n", "X: y\r\n"}, {"", "HTTP/1.1 100 Continue\r\n\r\n"},
	    {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", " "},
	    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"}};
	struct hr_http_answer a;
	struct hr_err err = {0};
	struct hr_http *h = hr_http_new(&err);
	char to[64];
	size_t i;

	ck_assert_ptr_nonnull(h);
	for (i = 0; i < 2 * sizeof(slow) / sizeof(*slow); i++) {
		struct server s = {
		    .answer = slow[i / 2].answer, .drips = slow[i / 2].drips, .read_first = 100};
		struct hr_http_request req = {.method = "GET", .watch_fd = -1, .timeout_s = 1};

		start(&s);
		req.url = s.url;
		(void)snprintf(to, sizeof(to), "%.*s", (int)strcspn(s.url + 7, "/"), s.url + 7);
		req.connect_to = i % 2 != 0 ? to : NULL; /* which is libcurl's */
		ck_assert_int_eq(hr_http_do(h, &req, &a, &err), -1);
		ck_assert_int_eq(a.fault, HR_HTTP_READ_TIMEOUT);
		ck_assert_int_eq(err.code, HR_E_TIMEOUT);
		stop(&s);
		hr_http_answer_done(&a);
	}
	for (i = 0; i < 8; i++) {
		struct server s = {
		    .answer =
			i < 6 ? "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n"
			      : "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
		    .drips = " ",
		    .read_first = 100};
		struct hr_http_request req = {
		    .method = "GET", .watch_fd = -1, .timeout_s = 1, .sink = drink};
		unsigned calls = 0;

		/* unless it needs more in that time; the time of the sink does not count */
		req.sink_least = i < 2 ? 0 : i < 6 ? 2 : 1000;
		req.sink_arg = i >= 4 && i < 6 ? &calls : NULL;
		start(&s);
		req.url = s.url;
		(void)snprintf(to, sizeof(to), "%.*s", (int)strcspn(s.url + 7, "/"), s.url + 7);
		req.connect_to = i % 2 != 0 ? to : NULL;
		ck_assert_int_eq(hr_http_do(h, &req, &a, &err), i < 6 ? 0 : -1);
		ck_assert_int_eq(a.fault, i < 6 ? HR_HTTP_NONE : HR_HTTP_READ_TIMEOUT);
		stop(&s);
		hr_http_answer_done(&a);
	}
	hr_http_free(h);
}
END_TEST

/* The last bytes of a request leave the server the whole time for its answer. */
START_TEST(sent_drop_by_drop)
{
	const struct hr_http_request req = {.timeout_s = 10};
	const struct hr_http_answer a = {.status = 0};
	struct hr_http_pace p = {0};

	ck_assert_int_eq(hr_http_late_at(&p, &req, &a, 0, false, 0, 1000), 11000);
	ck_assert_int_eq(hr_http_late_at(&p, &req, &a, 10239, false, 0, 2000), 11000);
	ck_assert_int_eq(hr_http_late_at(&p, &req, &a, 10240, false, 0, 3000), 13000);
	ck_assert_int_eq(hr_http_late_at(&p, &req, &a, 10241, false, 0, 4000), 13000);
	ck_assert_int_eq(hr_http_late_at(&p, &req, &a, 10242, true, 0, 5000), 15000);
	ck_assert_int_eq(hr_http_late_at(&p, &req, &a, 10242, true, 0, 6000), 15000);
}
END_TEST

/* ---- the limit of a request by libcurl ---- */

#define LIMIT_S 60
#define STEP_MS 40000 /* two of them are more than the limit */

static _Atomic int64_t ahead_ms; /* by which the clock is ahead */
static int looks = -1;           /* counts the looks at the clock */

int64_t __real_hr_now_ms(void);
int64_t __wrap_hr_now_ms(void);

int64_t
__wrap_hr_now_ms(void)
{
	const int64_t now = __real_hr_now_ms() + ahead_ms;

	if (looks >= 0)
		(void)eventfd_write(looks, 1);
	return now;
}

/* Accepts the connection of the client after two others, and answers in two parts. A step of the
 * clock comes before its connection, and another one between its request and the answer. */
static void *
serve_late(void *arg)
{
	static const char first[] = "HTTP/1.1 200 OK\r\n", rest[] = "Content-Length: 0\r\n\r\n";
	struct server *s = arg;
	eventfd_t n;
	int i, fd = -1;

	(void)eventfd_read(looks, &n); /* the client waits for its connection */
	ahead_ms = STEP_MS;
	for (i = 0; i < 3; i++) {
		(void)close(fd);
		fd = accept(s->listener, NULL, NULL);
	}
	ck_assert_int_gt(read(fd, s->got, sizeof(s->got)), 0);
	ahead_ms = 2 * STEP_MS;
	(void)eventfd_write(looks, 1);
	(void)eventfd_read(looks, &n); /* forgets the looks so far */
	(void)send(fd, first, strlen(first), MSG_NOSIGNAL);
	(void)eventfd_read(looks, &n);
	(void)send(fd, rest, strlen(rest), MSG_NOSIGNAL);
	(void)close(fd);
	return NULL;
}

/* The time until the connection is there does not count for the answer. */
START_TEST(connected_late)
{
	struct hr_http_request req = {.method = "GET", .watch_fd = -1, .timeout_s = LIMIT_S};
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct hr_err err = {0};
	struct hr_http *h = hr_http_new(&err);
	socklen_t len = sizeof(at);
	struct hr_http_answer a;
	struct server s = {0};
	char to[64];
	int others[2], i;

	start_listener(&s);
	ck_assert_int_eq(getsockname(s.listener, (struct sockaddr *)&at, &len), 0);
	/* they fill the queue: the kernel drops the client's first packet, and it sends another */
	for (i = 0; i < 2; i++) {
		others[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ck_assert_int_eq(connect(others[i], (struct sockaddr *)&at, sizeof(at)), 0);
	}
	looks = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(pthread_create(&s.thread, NULL, serve_late, &s), 0);
	req.url = s.url;
	(void)snprintf(to, sizeof(to), "127.0.0.1:%d", ntohs(at.sin_port));
	req.connect_to = to; /* which is libcurl's */
	ck_assert_msg(hr_http_do(h, &req, &a, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(a.status, 200);
	stop(&s);
	hr_http_answer_done(&a);
	hr_http_free(h);
	for (i = 0; i < 2; i++)
		(void)close(others[i]);
}
END_TEST

#define UPLOAD (32u << 20)

/* Reads a request while the clock goes, 667 bytes a second, and answers at its end. Each piece
 * waits for the client's next look at the clock, or 5 ms: one call could send all to a faster
 * reader. */
static void *
serve_slow_reads(void *arg)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct server *s = arg;
	char piece[65536];
	size_t all = 0;
	ssize_t n = 0;
	struct pollfd look = {.fd = looks, .events = POLLIN};
	int fd = accept(s->listener, NULL, NULL);
	eventfd_t seen;

	for (; all < UPLOAD && (n = read(fd, piece, sizeof(piece))) > 0; all += (size_t)n) {
		ahead_ms += (int64_t)n * 3 / 2;
		if (poll(&look, 1, 5) == 1)
			(void)eventfd_read(looks, &seen);
	}
	(void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
	(void)close(fd);
	return NULL;
}

/* A server that never stops reading must have a rate. */
START_TEST(read_drop_by_drop)
{
	HR_FREE char *body = calloc(1, UPLOAD);
	struct hr_http_request req = {
	    .method = "POST", .body = body, .body_len = UPLOAD, .watch_fd = -1, .timeout_s = 6000};
	struct hr_err err = {0};
	struct hr_http *h = hr_http_new(&err);
	struct hr_http_answer a;
	struct server s = {0};
	const int room = 65536;
	char to[64];

	start_listener(&s);
	/* else the kernel may take all of the request at once */
	ck_assert_int_eq(setsockopt(s.listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	looks = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(pthread_create(&s.thread, NULL, serve_slow_reads, &s), 0);
	req.url = s.url;
	(void)snprintf(to, sizeof(to), "%.*s", (int)strcspn(s.url + 7, "/"), s.url + 7);
	req.connect_to = _i != 0 ? to : NULL; /* which is libcurl's */
	ck_assert_int_eq(hr_http_do(h, &req, &a, &err), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_READ_TIMEOUT);
	stop(&s);
	hr_http_answer_done(&a);
	hr_http_free(h);
}
END_TEST

START_TEST(no_answer)
{
	struct server hangs_up = {.answer = "", .read_first = 1}, silent = {.answer = NULL};
	struct hr_http_request req = {.method = "GET", .watch_fd = -1};
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	struct hr_http_answer a;
	struct hr_err err;
	int deaf;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	start(&hangs_up);
	req.url = hangs_up.url;
	ck_assert_int_eq(ask(&req, &a, &err), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_PROTOCOL);
	hr_http_answer_done(&a);
	stop(&hangs_up);
	/* a port that is taken, and nobody listens there */
	deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(deaf, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(getsockname(deaf, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(
	    hangs_up.url, sizeof(hangs_up.url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	ck_assert_int_eq(ask(&req, &a, &err), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_CONNECT);
	ck_assert_ptr_nonnull(strstr(err.msg, "Connection refused"));
	hr_http_answer_done(&a);
	(void)close(deaf);

	start(&silent);
	req.url = silent.url;
	req.timeout_s = 1;
	ck_assert_int_eq(ask(&req, &a, &err), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_READ_TIMEOUT);
	ck_assert_int_eq(err.code, HR_E_TIMEOUT);
	hr_http_answer_done(&a);
	stop(&silent);

	start(&silent);
	req.url = silent.url;
	req.timeout_s = 0;
	req.watch_fd = eventfd(1, EFD_CLOEXEC);
	ck_assert_int_eq(ask(&req, &a, &err), -1);
	ck_assert_int_eq(a.fault, HR_HTTP_CANCELLED);
	hr_http_answer_done(&a);
	stop(&silent);
	ck_assert_int_eq(close(req.watch_fd), 0);
}
END_TEST

START_TEST(a_header_of_two_lines)
{
	static const char *const headers[] = {"X: y\r\nZ: a", NULL};
	struct hr_http_request req = {
	    .method = "GET", .url = "http://127.0.0.1:1/", .headers = headers, .watch_fd = -1};
	struct hr_http_answer a;
	struct hr_err err;

	ck_assert_int_eq(ask(&req, &a, &err), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	hr_http_answer_done(&a);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("near");
	TCase *t = tcase_create("answers"), *n = tcase_create("requests");
	SRunner *r;
	int failed;

	tcase_add_test(t, whatever_the_cut);
	tcase_add_test(t, what_is_kept);
	tcase_add_test(t, too_long);
	suite_add_tcase(s, t);
	tcase_set_timeout(n, 60);
	tcase_add_test(n, what_is_for_libcurl);
	tcase_add_test(n, a_request);
	tcase_add_test(n, no_proxy_here);
	tcase_add_test(n, answered_too_early);
	tcase_add_test(n, answered_without_end);
	tcase_add_test(n, answered_drop_by_drop);
	tcase_add_test(n, sent_drop_by_drop);
	tcase_add_loop_test(n, read_drop_by_drop, 0, 2);
	tcase_add_test(n, connected_late);
	tcase_add_test(n, no_answer);
	tcase_add_test(n, a_header_of_two_lines);
	suite_add_tcase(s, n);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
