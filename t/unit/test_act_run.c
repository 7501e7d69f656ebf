/* run actions against a keeper that is a thread of this test. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include <json-c/json.h>

#include "actions/plugin.h"
#include "actions/shell.h"
#include "base/fd.h"
#include "proto/channel.h"
#include "proto/frame.h"

#include "handle.h"
#include "lines.h"

#define QUEUE 17 /* more connections than a queue here takes */

static struct handle h;
static int listener;

/* What the keeper was asked, and what it shall do. */
static struct keeper {
	struct hr_buf in;
	struct hr_run_request req;
	struct hr_buf out; /* sent as it is; empty: hangs up */
	bool shuts;        /* reads no more before it answers */
	pthread_t thread;
} keeper;

/* Limits of more seconds than this are shortened. */
static time_t longest = INT32_MAX;

/* Shortens such limits of sends and reads to a hundredth, in place of the function of libc. */
int
setsockopt(int fd, int level, int name, const void *p, socklen_t len)
{
	struct timeval limit;

	if (name == SO_SNDTIMEO || name == SO_RCVTIMEO) {
		memcpy(&limit, p, sizeof(limit));
		if (limit.tv_sec > longest) {
			limit.tv_usec = limit.tv_sec % 100 * 10000;
			limit.tv_sec /= 100;
		}
		p = &limit;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, p, len);
}

static void
keeper_talk(int fd)
{
	struct hr_err err = {0};
	const char *payload;
	uint32_t type;
	size_t len, used, need = HR_FRAME_HEADER;
	ssize_t n;
	int r;

	hr_buf_reset(&keeper.in);
	do {
		n = read(fd, hr_buf_reserve(&keeper.in, need), need);
		ck_assert_int_gt((int)n, 0);
		hr_buf_grew(&keeper.in, (size_t)n);
		r = hr_frame_get(
		    keeper.in.p, keeper.in.len, &type, &payload, &len, &used, &need, &err);
		ck_assert_int_ge(r, 0);
	} while (r == 0);
	if (type != HR_FRAME_STATUS) {
		ck_assert_uint_eq(type, HR_FRAME_RUN);
		ck_assert_int_eq(hr_frame_get_run(payload, len, &keeper.req, &err), 0);
	}
	if (keeper.shuts)
		ck_assert_int_eq(shutdown(fd, SHUT_RD), 0);
	/* in two pieces, so that the reader has to go on */
	if (keeper.out.len > 0) {
		ck_assert_int_eq((int)write(fd, keeper.out.p, 5), 5);
		ck_assert_int_eq(
		    (int)write(fd, keeper.out.p + 5, keeper.out.len - 5), (int)keeper.out.len - 5);
	}
}

static void
keeper_serve(int fd)
{
	keeper_talk(fd);
	(void)close(fd);
}

static void *
keeper_main(void *arg)
{
	(void)arg;
	keeper_serve(accept(listener, NULL, NULL));
	return NULL;
}

static void
setup(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	handle_init(&h, "");
	hr_buf_init(&keeper.in, 1 << 20);
	hr_buf_init(&keeper.out, 32u << 20);
	keeper.shuts = false;
	longest = INT32_MAX;
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/session.sock", h.dir);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(listener, 5), 0);
}

static void
teardown(void)
{
	(void)close(listener);
	hr_buf_done(&keeper.in);
	hr_buf_done(&keeper.out);
	handle_done(&h);
}

static void
keeper_answers(const char *content)
{
	struct hr_run_result r = {.exit_code = 0,
	    .pid = -1,
	    .has_metadata = true,
	    .content = {content, strlen(content)},
	    .command = {"cmd", 3},
	    .username = {"u", 1},
	    .hostname = {"h", 1},
	    .working_dir = {"/w\xff", 3},
	    .py_path = {"", 0},
	    .prefix = {"", 0},
	    .suffix = {"", 0}};

	hr_frame_put_result(&keeper.out, &r);
}

static void
run_with_keeper(const char *json)
{
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_main, NULL), 0);
	ck_assert_int_eq(handle_action(&h, json), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
}

#define RUN(args, more) "{\"action\":{\"action\":\"run\",\"args\":{" args "}" more "}}"

static void
check_error(const char *json, const char *text)
{
	char want[600];

	ck_assert_int_eq(handle_action(&h, json), 200);
	(void)snprintf(want, sizeof(want),
	    "{\"message\":\"%s\",\"observation\":\"error\",\"content\":\"%s\",\"extras\":{"
	    "\"error_id\":\"\"}}",
	    text, text);
	ck_assert_str_eq(hr_buf_str(&h.answer.body), want);
}

START_TEST(plain)
{
	keeper_answers("out");
	run_with_keeper(RUN("\"command\":\" echo \\u00e9 \"", ""));
	ck_assert_str_eq(h.answer.body.p,
	    "{\"message\":\"Command `cmd` executed with exit code 0.\",\"observation\":\"run\","
	    "\"content\":\"out\",\"extras\":{\"command\":\"cmd\",\"metadata\":{\"exit_code\":0,"
	    "\"pid\":-1,\"username\":\"u\",\"hostname\":\"h\",\"working_dir\":\"/w\xEF\xBF\xBD\","
	    "\"py_interpreter_path\":\"\",\"prefix\":\"\",\"suffix\":\"\"},\"hidden\":false},"
	    "\"success\":true}");
	ck_assert_uint_eq(keeper.req.command.len, 7);
	ck_assert_mem_eq(keeper.req.command.p, "echo \xC3\xA9", 7);
	ck_assert(!keeper.req.is_input && !keeper.req.blocking && !keeper.req.hidden);
	ck_assert(keeper.req.timeout == 0);
	ck_assert_mem_eq(keeper.req.key.p, "n:req1", 6);
}
END_TEST

START_TEST(flags_and_timeout)
{
	keeper_answers("");
	run_with_keeper(RUN("\"command\":\"x\",\"is_input\":1,\"blocking\":\"no\",\"hidden\":[1]",
	    ",\"timeout\":\" 7_0 \""));
	ck_assert(keeper.req.is_input && keeper.req.blocking && keeper.req.hidden);
	ck_assert(keeper.req.timeout == 70);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "},\"hidden\":[1]},\"success\":true}"));
}
END_TEST

START_TEST(hidden_is_echoed)
{
	keeper_answers("");
	run_with_keeper(RUN("\"command\":\"x\",\"hidden\":0", ",\"timeout\":null"));
	ck_assert(!keeper.req.hidden && keeper.req.timeout == 0);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"hidden\":0}"));
}
END_TEST

START_TEST(hidden_null)
{
	keeper_answers("");
	run_with_keeper(RUN("\"command\":\"x\",\"hidden\":null", ",\"timeout\":0.5"));
	ck_assert(keeper.req.timeout == 0.5);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"hidden\":null}"));
}
END_TEST

/* Nobody accepts: nothing may be sent for these. */
START_TEST(refused_before_sending)
{
	check_error(RUN("\"command\":5", ""), "'int' object has no attribute 'strip'");
	check_error(RUN("\"command\":null", ",\"timeout\":\"abc\""),
	    "'NoneType' object has no attribute 'strip'");
	check_error(RUN("\"command\":\"a\\u0000b\"", ""), "embedded null byte");
	check_error(RUN("\"command\":\"x\"", ",\"timeout\":\"abc\""),
	    "could not convert string to float: 'abc'");
	check_error(RUN("\"command\":\"x\"", ",\"timeout\":[]"),
	    "float() argument must be a string or a real number, not 'list'");
	check_error(RUN("\"command\":\"  \\u00e9\\ud800\"", ""),
	    "'utf-8' codec can't encode character '\\\\ud800' in position 1: surrogates not "
	    "allowed");
	check_error(RUN("\"command\":\"ab\\udc80\\ud800x\"", ""),
	    "'utf-8' codec can't encode characters in position 2-3: surrogates not allowed");
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\",\"hidden\":NaN", "")), 500);
}
END_TEST

/* The next keeper is asked for what the last one had begun, and has not heard of it. */
static void
next_keeper_knows_nothing(void)
{
	ck_assert(!keeper.req.again);
	hr_buf_reset(&keeper.out);
	hr_frame_put_empty(&keeper.out, HR_FRAME_UNKNOWN);
	keeper_serve(accept(listener, NULL, NULL));
	ck_assert(keeper.req.again);
}

static void *
keeper_dies(void *arg)
{
	keeper_main(arg);
	next_keeper_knows_nothing();
	return NULL;
}

START_TEST(keeper_hangs_up)
{
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_dies, NULL), 0);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "Bash session was likely interrupted..."));
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"observation\":\"error\""));
}
END_TEST

/* ---- a connection that is kept ---- */

static void *
keeper_talks_twice(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	(void)arg;
	keeper_talk(fd);
	ck_assert(keeper.req.stays);
	keeper_serve(fd);
	return NULL;
}

/* Nobody accepts a second one. */
START_TEST(connection_is_kept)
{
	keeper_answers("out");
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_talks_twice, NULL), 0);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 200);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"yy\"", "")), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_uint_eq(keeper.req.command.len, 2);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"content\":\"out\""));
}
END_TEST

START_TEST(kept_connection_was_closed)
{
	int i;

	keeper_answers("out");
	for (i = 0; i < 3; i++) {
		hr_answer_reset(&h.answer);
		run_with_keeper(RUN("\"command\":\"x\"", ""));
		ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"content\":\"out\""));
	}
	(void)close(listener);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 503);
}
END_TEST

static void *
keeper_shuts(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	(void)arg;
	keeper_talk(fd);
	keeper.shuts = false;
	keeper_serve(accept(listener, NULL, NULL));
	(void)close(fd);
	return NULL;
}

/* It is open still, but nobody would read what is sent there. */
START_TEST(kept_connection_was_shut)
{
	keeper_answers("out");
	keeper.shuts = true;
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_shuts, NULL), 0);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 200);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"yy\"", "")), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_uint_eq(keeper.req.command.len, 2);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"content\":\"out\""));
}
END_TEST

static void *
keeper_breaks(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	(void)arg;
	keeper_talk(fd);
	hr_buf_reset(&keeper.out);
	keeper_serve(fd);
	next_keeper_knows_nothing();
	return NULL;
}

/* It had the request, and who knows what came of it: no other may begin it. */
START_TEST(kept_connection_breaks)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	keeper_answers("out");
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_breaks, NULL), 0);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 200);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"yy\"", "")), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "Bash session was likely interrupted..."));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	hr_buf_reset(&keeper.out);
	keeper_answers("out");
	run_with_keeper(RUN("\"command\":\"z\"", ""));
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"content\":\"out\""));
}
END_TEST

/* Only a closed connection means that the keeper is gone, and that another one may be asked. */
START_TEST(request_that_cannot_be_sent)
{
	struct hr_run_request req = {.command = {"x", 1}};
	struct hr_run_result result;
	HR_BUF(frame, 4096);
	struct hr_err err = {0};
	int ends[2], no_socket[2];

	ck_assert_int_eq(pipe2(no_socket, O_CLOEXEC), 0);
	ck_assert_int_eq(hr_shell_run(no_socket[1], NULL, true, &req, &frame, &result, &err), -1);
	ck_assert_int_eq(err.sys, ENOTSOCK);
	ck_assert_int_ne(err.code, HR_E_GONE);
	(void)close(no_socket[0]);
	(void)close(no_socket[1]);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	(void)close(ends[1]);
	(void)signal(SIGPIPE, SIG_IGN); /* as in a worker */
	ck_assert_int_eq(hr_shell_run(ends[0], NULL, true, &req, &frame, &result, &err), 1);
	ck_assert_int_eq(hr_shell_run(ends[0], NULL, false, &req, &frame, &result, &err), -1);
	(void)signal(SIGPIPE, SIG_DFL);
	ck_assert_int_eq(err.code, HR_E_GONE);
	(void)close(ends[0]);
}
END_TEST

START_TEST(keeper_talks_nonsense)
{
	hr_buf_adds(&keeper.out, "HTTP/1.1 200 OK\r\n\r\n");
	run_with_keeper(RUN("\"command\":\"x\"", ""));
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"observation\":\"error\""));
	hr_buf_reset(&keeper.out);
	hr_buf_reset(&keeper.in);
	hr_frame_put_empty(&keeper.out, HR_FRAME_STATUS);
	run_with_keeper(RUN("\"command\":\"x\"", ""));
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"observation\":\"error\""));
}
END_TEST

START_TEST(no_keeper)
{
	(void)close(listener);
	/* nothing was done: to be tried again */
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 503);
	ck_assert_int_eq(h.answer.retry_after_s, 1);
	ck_assert_str_eq(
	    h.answer.body.p, "{\"detail\":\"the shell cannot be reached: Connection refused\"}");
}
END_TEST

/* Fills the queue of a listener. Returns the number of descriptors. */
static int
fill_queue(const struct sockaddr_un *sa, int fds[QUEUE])
{
	int n = 0, r;

	do {
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		r = connect(fds[n++], (const struct sockaddr *)sa, sizeof(*sa));
	} while (r == 0 && n < QUEUE);
	ck_assert(r < 0 && errno == EAGAIN);
	return n;
}

/* A stopped keeper takes no connection beyond its queue. */
START_TEST(stopped_keeper_with_a_full_queue)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fds[QUEUE], n;

	longest = 0;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/session.sock", h.dir);
	n = fill_queue(&sa, fds);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", "")), 503);
	ck_assert_int_eq(h.answer.retry_after_s, 1);
	ck_assert_str_eq(h.answer.body.p, "{\"detail\":\"the shell's keeper does not answer\"}");
	while (n > 0)
		(void)close(fds[--n]);
}
END_TEST

/* It gets a part of the request only, and so does nothing. */
START_TEST(stopped_keeper_of_a_long_command)
{
	size_t len = 4u << 20;
	HR_FREE char *json = malloc(len + 64);
	int at;

	longest = 0;
	ck_assert_ptr_nonnull(json);
	at = sprintf(json, "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"");
	memset(json + at, 'x', len);
	(void)strcpy(json + at + len, "\"}}}");
	ck_assert_int_eq(handle_action(&h, json), 503);
	ck_assert_str_eq(h.answer.body.p, "{\"detail\":\"the shell's keeper does not answer\"}");
}
END_TEST

/* It has the request, and may do it when it continues. */
START_TEST(stopped_keeper_of_a_limited_command)
{
	longest = 0;
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", ",\"timeout\":1")), 500);
	ck_assert_str_eq(h.answer.body.p,
	    "{\"detail\":\"The shell's keeper does not answer, so that the result is not known. "
	    "The "
	    "command may have been started; it is not run a second time.\"}");
}
END_TEST

/* Answers a request after it was asked twice if it is alive. */
static void *
keeper_is_slow(void *arg)
{
	const struct hr_session_state state = {
	    .ready = true, .working_dir = {"/", 1}, .reason = {"", 0}};
	int fd = accept(listener, NULL, NULL), i;
	HR_BUF(result, 1 << 20);

	(void)arg;
	result = keeper.out;
	hr_buf_init(&keeper.out, 1 << 20);
	keeper_talk(fd);
	hr_frame_put_state(&keeper.out, &state);
	for (i = 0; i < 2; i++)
		keeper_serve(accept(listener, NULL, NULL));
	ck_assert_int_eq((int)write(fd, result.p, result.len), (int)result.len);
	(void)close(fd);
	return NULL;
}

START_TEST(slow_keeper_of_a_limited_command)
{
	longest = HR_SHELL_READY_S;
	keeper_answers("late");
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_is_slow, NULL), 0);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"x\"", ",\"timeout\":1")), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"content\":\"late\""));
}
END_TEST

/* A session that is gone has the result of no command with it: a client that asks for one that has
 * begun learns that it is lost, and another one that there is no such session. */
START_TEST(no_session)
{
	static const struct {
		bool again;
		int status;
		const char *body;
	} rows[] = {{false, 404, "{\"detail\":\"there is no session of that name\"}"},
	    {true, 500,
		"{\"detail\":\"The command was started, but its result is lost: the processes that "
		"had it were killed. It is not run a second time.\"}"}};
	HR_PUT struct json_object *action = json_tokener_parse(RUN("\"command\":\"x\"", ""));
	HR_BUF(why, 4096);
	struct hr_event ev;
	size_t i;

	ck_assert_ptr_nonnull(action);
	ck_assert_int_eq(hr_event_decode(json_object_object_get(action, "action"), &ev, &why), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct hr_action_env env = {.run_dir = h.dir,
		    .channel = -1,
		    .key = {"k", 1},
		    .session = "gone",
		    .again = rows[i].again};

		hr_action_perform(&env, &ev, &h.answer);
		ck_assert_int_eq(h.answer.status, rows[i].status);
		ck_assert_str_eq(hr_buf_str(&h.answer.body), rows[i].body);
	}
}
END_TEST

START_TEST(big_answer)
{
	HR_FREE char *big = malloc((16u << 20) + 1);

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', 16u << 20);
	big[16u << 20] = '\0';
	keeper_answers(big);
	run_with_keeper(RUN("\"command\":\"x\",\"hidden\":true", ""));
	ck_assert_uint_gt(h.answer.body.len, 16u << 20);
	/* its memory goes back */
	hr_answer_reset(&h.answer);
	ck_assert_uint_lt(h.answer.body.room, 2u << 20);
}
END_TEST

START_TEST(keys_of_requests)
{
	static const struct {
		const char *client, *idempotency, *json, *want;
	} t[] = {
	    {"abc", "def", RUN("\"command\":\"x\"", ",\"id\":1,\"timestamp\":\"t\""), "x:abc:"},
	    {"", "def", RUN("\"command\":\"x\"", ""), "i:def:"},
	    {"", "", RUN("\"command\":\"x\"", ",\"id\":1"), "n:req1"},
	    {"", "", RUN("\"command\":\"x\"", ",\"id\":1,\"timestamp\":\"t\""), "e:"},
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		hr_buf_reset(&keeper.out);
		hr_buf_reset(&keeper.in);
		keeper_answers("");
		ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_main, NULL), 0);
		handle_begin(&h, "POST", "/execute_action");
		handle_body(&h, t[i].json, strlen(t[i].json));
		h.r.client_id = t[i].client;
		h.r.idempotency_key = t[i].idempotency;
		ck_assert_int_eq(handle_perform(&h), 200);
		ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
		ck_assert_mem_eq(keeper.req.key.p, t[i].want, strlen(t[i].want));
		/* the rest tells one body from another */
		ck_assert(keeper.req.key.len == strlen(t[i].want) || t[i].want[0] != 'n');
	}
}
END_TEST

/* The supervisor of these tests. */
static struct supervisor {
	int fd;
	char asked[HR_CHANNEL_MAX];
	ssize_t len;
	const char *answer;
	int pass;
} supervisor;

static void *
supervisor_main(void *arg)
{
	struct hr_err err = {0};

	(void)arg;
	supervisor.len = recv(supervisor.fd, supervisor.asked, sizeof(supervisor.asked), 0);
	ck_assert_int_eq(hr_fd_send(supervisor.fd, supervisor.answer, strlen(supervisor.answer),
			     supervisor.pass, &err),
	    0);
	return NULL;
}

static void
setup_channel(void)
{
	int sv[2];

	setup();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	h.w.channel = sv[0];
	supervisor.fd = sv[1];
	supervisor.pass = -1;
}

static void
teardown_channel(void)
{
	(void)close(h.w.channel);
	if (supervisor.fd >= 0)
		(void)close(supervisor.fd);
	teardown();
}

static void *
static_keeper_main(void *arg)
{
	keeper_serve(*(int *)arg);
	return NULL;
}

START_TEST(static_shell)
{
	pthread_t t;
	int sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	supervisor.answer = "s";
	supervisor.pass = sv[0];
	keeper_answers("static");
	ck_assert_int_eq(pthread_create(&t, NULL, supervisor_main, NULL), 0);
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, static_keeper_main, &sv[1]), 0);
	ck_assert_int_eq(handle_action(&h, RUN("\"command\":\"pwd\",\"is_static\":1,"
					       "\"cwd\":\"/some where\"",
					       "")),
	    200);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	(void)close(sv[0]);
	ck_assert_int_eq((int)supervisor.len, 12);
	ck_assert_mem_eq(supervisor.asked, "S/some where", 12);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"content\":\"static\""));
}
END_TEST

START_TEST(static_refused)
{
	pthread_t t;

	supervisor.answer = "sno \"room\"";
	ck_assert_int_eq(pthread_create(&t, NULL, supervisor_main, NULL), 0);
	check_error(RUN("\"command\":\"pwd\",\"is_static\":true", ""), "no \\\"room\\\"");
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq((int)supervisor.len, 1);
	check_error(RUN("\"command\":\"pwd\",\"is_static\":true,\"cwd\":5", ""),
	    "expected str, bytes or os.PathLike object, not int");
	check_error(RUN("\"command\":\"pwd\",\"is_static\":true,\"cwd\":\"a\\u0000\"", ""),
	    "embedded null byte");
}
END_TEST

static void
keeper_tells(const struct hr_session_state *state)
{
	hr_buf_reset(&keeper.out);
	hr_frame_put_state(&keeper.out, state);
	ck_assert_int_eq(pthread_create(&keeper.thread, NULL, keeper_main, NULL), 0);
}

START_TEST(ready)
{
	struct hr_err err = {0};
	pthread_t t;

	/* a late answer to something given up must not be taken for this one's */
	ck_assert_int_eq(hr_fd_send(supervisor.fd, "sold", 4, listener, &err), 0);
	supervisor.answer = "r{\"status\":\"ready\",\"reason\":null}";
	ck_assert_int_eq(pthread_create(&t, NULL, supervisor_main, NULL), 0);
	keeper_tells(&(const struct hr_session_state){.ready = true});
	ck_assert_int_eq(handle_simple(&h, "GET", "/ready"), 200);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_str_eq(h.answer.body.p, "{\"status\":\"ready\",\"reason\":null}");
	/* the supervisor does not see a shell that is stopped */
	ck_assert_int_eq(pthread_create(&t, NULL, supervisor_main, NULL), 0);
	keeper_tells(&(const struct hr_session_state){.reason = {"it is stopped", 13}});
	ck_assert_int_eq(handle_simple(&h, "GET", "/ready"), 503);
	ck_assert_int_eq(pthread_join(keeper.thread, NULL), 0);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"reason\":\"it is stopped\""));
	supervisor.answer = "r{\"status\":\"not ready\"}";
	ck_assert_int_eq(pthread_create(&t, NULL, supervisor_main, NULL), 0);
	ck_assert_int_eq(handle_simple(&h, "GET", "/ready"), 503);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	(void)close(supervisor.fd);
	supervisor.fd = -1;
	ck_assert_int_eq(handle_simple(&h, "GET", "/ready"), 503);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "\"reason\":\""));
}
END_TEST

START_TEST(channel_limits)
{
	struct hr_channel_answer a;
	struct hr_err err = {0};
	char big[HR_CHANNEL_MAX] = "";
	int i;

	ck_assert_int_eq(hr_channel_ask(h.w.channel, HR_CHANNEL_READY, "", 0,
			     HR_CHANNEL_READY_ANSWER, 20, &a, &err),
	    -1);
	ck_assert_int_eq(err.code, HR_E_TIMEOUT);
	ck_assert_int_eq(hr_channel_ask(h.w.channel, HR_CHANNEL_STATIC, big, sizeof(big),
			     HR_CHANNEL_STATIC_ANSWER, 20, &a, &err),
	    -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	/* a supervisor that does not read: telling it never blocks */
	for (i = 0; i < 100000; i++)
		hr_channel_tell(h.w.channel, HR_CHANNEL_FULL);
}
END_TEST

/* Each piece of a command's output goes to the stream that its frame names, in their order. */
START_TEST(streams_of_a_command)
{
	static const struct hr_output_piece pieces[] = {
	    {1, {"out", 3}}, {2, {"err", 3}}, {1, {"put", 3}}, {2, {"ors", 3}}};
	const struct hr_run_result result = {.exit_code = 7};
	HR_BUF(frame, HR_SHELL_FRAME);
	HR_BUF(sent, 4096);
	HR_BUF(out, 100);
	HR_BUF(errors, 100);
	struct hr_buf *const streams[2] = {&out, &errors};
	struct hr_err err = {0};
	int64_t code = -1;
	bool begun = true;
	int ends[2], r;
	size_t i;

	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		hr_frame_put_output(&sent, &pieces[i]);
	hr_frame_put_result(&sent, &result);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	ck_assert_int_eq(hr_fd_write_full(ends[1], sent.p, sent.len, &err), 0);
	hr_fd_close(&ends[1]);
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		ck_assert_int_eq(
		    hr_shell_exec_take(ends[0], &frame, streams, &code, &begun, &err), 1);
	ck_assert_int_eq(hr_shell_exec_take(ends[0], &frame, streams, &code, &begun, &err), 0);
	ck_assert_int_eq(code, 7);
	ck_assert(begun);
	ck_assert_str_eq(hr_buf_str(&out), "output");
	ck_assert_str_eq(hr_buf_str(&errors), "errors");
	hr_buf_reset(&frame);
	r = hr_shell_exec_take(ends[0], &frame, streams, &code, &begun, &err);
	ck_assert_int_eq(r, -1); /* A keeper that ends without a result. */
	hr_fd_close(&ends[0]);
}
END_TEST

/* A plugin that is stopped reads nothing: an action that no buffer holds ends all the same. */
START_TEST(stopped_plugin)
{
	const struct hr_action_env env = {.run_dir = "/nonexistent", .channel = -1};
	HR_FREE char *text = malloc(1 << 20);
	struct json_object *action;
	HR_CLOSE int fd = -1, plugin = -1;
	int ends[2];

	longest = 0;
	ck_assert_ptr_nonnull(text);
	memset(text, 'x', 1 << 20);
	action = json_object_new_string_len(text, 1 << 20);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fd = ends[0];
	plugin = ends[1];
	hr_plugin_perform(&env, fd, "stopped", action, 1, &h.answer);
	ck_assert_ptr_nonnull(
	    strstr(hr_buf_str(&h.answer.body), "the plugin did not read the action in time"));
	json_object_put(action);
}
END_TEST

/* A plugin with a full queue is there: its clients shall try later. Without a listener it is not.
 */
START_TEST(plugin_with_a_full_queue)
{
	static const char type[] = "busy";
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fds[QUEUE], n, fd = -1;
	HR_CLOSE int busy = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/action", h.dir);
	ck_assert(mkdir(sa.sun_path, 0700) == 0 || errno == EEXIST);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/action/%s", h.dir, type);
	ck_assert_int_eq(hr_plugin_reach(h.dir, type, 4, &fd, &h.answer), 0);
	ck_assert_int_eq(bind(busy, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(hr_plugin_reach(h.dir, type, 4, &fd, &h.answer), 0);
	ck_assert_int_eq(listen(busy, 0), 0);
	ck_assert_int_eq(hr_plugin_reach(h.dir, type, 4, &fd, &h.answer), 1);
	hr_fd_close(&fd);
	n = fill_queue(&sa, fds);
	longest = 0;
	ck_assert_int_eq(hr_plugin_reach(h.dir, type, 4, &fd, &h.answer), -1);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(h.answer.status, 503);
	ck_assert_int_eq(h.answer.retry_after_s, 1);
	ck_assert_str_eq(h.answer.body.p, "{\"detail\":\"the plugin does not answer\"}");
	while (n > 0)
		(void)close(fds[--n]);
	(void)unlink(sa.sun_path);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/action", h.dir);
	(void)rmdir(sa.sun_path);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("act_run");
	TCase *c = tcase_create("shell"), *ch = tcase_create("channel");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, plain);
	tcase_add_test(c, flags_and_timeout);
	tcase_add_test(c, hidden_is_echoed);
	tcase_add_test(c, hidden_null);
	tcase_add_test(c, refused_before_sending);
	tcase_add_test(c, keeper_hangs_up);
	tcase_add_test(c, connection_is_kept);
	tcase_add_test(c, kept_connection_was_closed);
	tcase_add_test(c, kept_connection_was_shut);
	tcase_add_test(c, kept_connection_breaks);
	tcase_add_test(c, request_that_cannot_be_sent);
	tcase_add_test(c, keeper_talks_nonsense);
	tcase_add_test(c, no_keeper);
	tcase_add_test(c, stopped_keeper_with_a_full_queue);
	tcase_add_test(c, stopped_keeper_of_a_long_command);
	tcase_add_test(c, stopped_keeper_of_a_limited_command);
	tcase_add_test(c, slow_keeper_of_a_limited_command);
	tcase_add_test(c, no_session);
	tcase_add_test(c, big_answer);
	tcase_add_test(c, keys_of_requests);
	tcase_add_test(c, streams_of_a_command);
	tcase_add_test(c, stopped_plugin);
	tcase_add_test(c, plugin_with_a_full_queue);
	suite_add_tcase(s, c);
	tcase_add_checked_fixture(ch, setup_channel, teardown_channel);
	tcase_add_test(ch, static_shell);
	tcase_add_test(ch, static_refused);
	tcase_add_test(ch, ready);
	tcase_add_test(ch, channel_limits);
	suite_add_tcase(s, ch);
	return lines_run(s);
}
