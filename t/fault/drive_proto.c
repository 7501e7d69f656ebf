/* proto: frames, JSON, events, observations, shared memory, the channel. */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "failcalls.h"
#include "fault.h"
#include "proto/channel.h"
#include "proto/event.h"
#include "proto/frame.h"
#include "proto/journal.h"
#include "proto/json.h"
#include "proto/mcpserver.h"
#include "proto/obs.h"
#include "proto/python/literal.h"
#include "proto/python/repr.h"
#include "proto/scoreboard.h"

#define BIG (1u << 24)

static int
frames(struct hr_err *err)
{
	struct hr_run_request run = {.command = {"ls\n", 3}, .key = {"k", 1}};
	struct hr_run_result result = {
	    .exit_code = 7, .content = {"text", 4}, .working_dir = {"/w", 2}};
	struct hr_session_state state = {.ready = true, .reason = {"", 0}};
	HR_BUF(b, BIG);
	const char *p;
	uint32_t type;
	size_t len, used, need, at = 0;
	int r;

	hr_frame_put_run(&b, &run);
	hr_frame_put_result(&b, &result);
	hr_frame_put_empty(&b, HR_FRAME_STATUS);
	hr_frame_put_state(&b, &state);
	r = hr_buf_check(&b, err);
	while (r == 0 && at < b.len) {
		r = hr_frame_get(b.p + at, b.len - at, &type, &p, &len, &used, &need, err) == 1
			? 0
			: -1;
		fault_tell("%u %zu\n", type, len);
		at += used;
	}
	return r;
}

/* A value that json-c alone would lose parts of. */
static const char document[] =
    "{\"a\": [1, -0.5, 1e400, 123456789012345678901234567890, true, null],"
    " \"b\\u0000c\": {\"\\ud800\": \"x\\ud83d\\ude00\\n\"}, \"d\": \"plain\", \"e\": {}, \"e\": "
    "[]}";

static int
decode(const char *text, struct json_object **ret, struct hr_err *err)
{
	struct hr_json_error e;

	if (hr_json_decode(text, strlen(text), ret, &e) == 0)
		return 0;
	if (e.verdict == HR_JSON_NOMEM)
		return hr_err_nomem(err);
	fault_tell("verdict %d: %s", (int)e.verdict, e.text != NULL ? e.text : "");
	return -1; /* without an error: wrong */
}

static int
json(struct hr_err *err)
{
	HR_BUF(b, BIG);
	HR_PUT struct json_object *v = NULL;
	int r = decode(document, &v, err);

	if (r == 0) {
		hr_pyrepr(&b, v);
		r = hr_buf_check(&b, err);
		fault_tell("%s", hr_buf_str(&b));
	}
	return r;
}

static int
json_text(struct hr_err *err)
{
	HR_BUF(b, BIG);
	HR_PUT struct json_object *v = NULL;
	int r = decode("{\"a\":[1,2.5,\"\\u00e9\\n\"],\"k\":{\"x\":null}}", &v, err);

	if (r == 0) {
		if (hr_json_put(&b, v) != 0 && b.fail == HR_OK)
			fault_tell("refused");
		r = hr_buf_check(&b, err);
		fault_tell("%s", hr_buf_str(&b));
	}
	return r;
}

/* Its failures have one name only. */
static int
literal(struct hr_err *err)
{
	static const char text[] =
	    "{'a': [1, (2, 3.5)], 'b': u'\\u00e9' \"x\", 'c': {'d': None, 'e': True}, 'f': 0x1f}";
	HR_BUF(b, BIG);
	HR_PUT struct json_object *v = NULL;
	int r = 0;

	if (hr_pyliteral(text, sizeof(text) - 1, &v) != 0)
		return hr_err_set(err, HR_E_INVAL, "no literal");
	hr_pyrepr(&b, v);
	r = hr_buf_check(&b, err);
	fault_tell("%s", hr_buf_str(&b));
	return r;
}

static int
event_of(struct json_object *d, struct hr_err *err)
{
	struct hr_event ev;
	HR_BUF(why, BIG);
	struct hr_arg command;
	int r;

	if (hr_event_decode(d, &ev, &why) == 0) {
		hr_event_arg(&ev, "command", &command);
		fault_tell("%s: ", ev.cls->cls);
		fault_tell_bytes(command.text.p, command.text.len);
		r = 0;
	} else {
		fault_tell("refused: %s", hr_buf_str(&why));
		r = hr_buf_check(&why, err);
	}
	return r;
}

static int
event_in(const char *text, struct hr_err *err)
{
	HR_PUT struct json_object *d = NULL;
	int r = decode(text, &d, err);

	if (r == 0)
		r = event_of(d, err);
	return r;
}

static int
event(struct hr_err *err)
{
	return event_in("{\"action\":\"run\",\"args\":{\"command\":\"ls -l\",\"is_input\":false,"
			"\"thought\":\"\",\"blocking\":true},\"timeout\":3,\"id\":7}",
	    err);
}

static int
bad_event(struct hr_err *err)
{
	return event_in(
	    "{\"action\":\"run\",\"args\":{\"command\":\"ls\",\"bogus\":[1,{\"a\":null}]}}", err);
}

static int
observation(struct hr_err *err)
{
	const struct hr_run_result result = {.has_metadata = true,
	    .exit_code = 1,
	    .pid = -1,
	    .content = {"caf\xc3\xa9 \xff\n", 7},
	    .command = {"ls", 2},
	    .username = {"me", 2},
	    .hostname = {"box", 3},
	    .working_dir = {"/w", 2},
	    .suffix = {"\n[x]", 4}};
	const struct hr_arg hidden = {.type = HR_PY_BOOL};
	HR_BUF(b, BIG);
	int r;

	if (hr_obs_put_run(&b, &result, &hidden) != 0)
		fault_tell("refused");
	hr_obs_put_error(&b, "it \"failed\"", 11);
	r = hr_buf_check(&b, err);
	fault_tell("%s", hr_buf_str(&b));
	return r;
}

static int
board(struct hr_err *err)
{
	int fd = -1, r = -1;
	struct hr_scoreboard *a = hr_scoreboard_create(&fd, err), *b = NULL;

	if (a != NULL)
		b = hr_scoreboard_attach(fd, err);
	if (b != NULL) {
		atomic_store(&a->slots[3].requests, 9);
		fault_tell("%u", (unsigned)atomic_load(&b->slots[3].requests));
		r = 0;
	}
	hr_scoreboard_detach(a);
	hr_scoreboard_detach(b);
	hr_fd_close(&fd);
	return r;
}

/* The supervisor's end: one question, one answer with a descriptor. */
static void __attribute__((noreturn)) answer(int fd, int theirs)
{
	char text[64];
	int pass;

	(void)failcalls_disarm();
	hr_fd_close(&theirs);
	if (hr_fd_recv(fd, text, sizeof(text), &pass, NULL) > 0)
		(void)hr_fd_send(fd, "s", 1, STDERR_FILENO, NULL);
	_exit(0);
}

static int
channel(struct hr_err *err)
{
	static struct hr_channel_answer got;
	int s[2], r = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) != 0)
		return hr_err_sys(err, errno, "socketpair");
	pid = fork();
	if (pid == 0)
		answer(s[1], s[0]);
	hr_fd_close(&s[1]);
	if (pid < 0)
		(void)hr_err_sys(err, errno, "fork");
	else
		r = hr_channel_ask(
		    s[0], HR_CHANNEL_STATIC, "/w", 2, HR_CHANNEL_STATIC_ANSWER, 5000, &got, err);
	hr_fd_close(&s[0]);
	if (r == 0) {
		fault_tell("%zu %d", got.len, got.fd >= 0);
		hr_fd_close(&got.fd);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

/* One action, asked for again, and then a next one in its file. */
static int
action(struct hr_journal *j, struct hr_journal *keeper, const char *key, const char *text,
    size_t len, struct hr_err *err)
{
	struct hr_journal_entry e;
	enum hr_journal_found found;
	HR_BUF(again, BIG);
	uint32_t tag = 0;
	int i, r = 0;

	for (i = 0; r == 0 && i < 2; i++) {
		r = hr_journal_enter(j, key, strlen(key), &e, &found, &tag, &again, err);
		if (r != 0)
			break;
		if (i > 0 && found == HR_JOURNAL_NEW)
			fault_wrong("%s would be done twice", key);
		fault_tell("%d %u %zu", (int)found, tag, again.len);
		if (found == HR_JOURNAL_NEW) {
			/* it may fail, and is not done then */
			if (hr_journal_begin(keeper, key, strlen(key), e.attempt) ==
			    hr_journal_begin(keeper, key, strlen(key), e.attempt))
				fault_tell("not begun");
			hr_journal_done(j, &e, 7, text, len);
		}
		hr_journal_leave(j, &e, i > 0);
	}
	return r;
}

static int
journal(struct hr_err *err)
{
	static const char text[9000];
	struct hr_journal j, keeper;
	int r;

	hr_journal_init(&j);
	hr_journal_init(&keeper);
	j.entries_max = j.age_max_ms = 1000;
	j.bytes_max = BIG;
	r = hr_journal_open(&j, fault_dir(), err);
	if (r == 0)
		r = hr_journal_open(&keeper, fault_dir(), err);
	if (r == 0)
		r = action(&j, &keeper, "short", "text", 4, err);
	if (r == 0)
		r = action(&j, &keeper, "long", text, sizeof(text), err);
	hr_journal_close(&j);
	hr_journal_close(&keeper);
	return r;
}

/* One that could not be made whole is none, never one that lacks something. */
static int
mcp_server(struct hr_err *err)
{
	HR_PUT struct json_object *given = hr_json_object(err, "name",
	    json_object_new_string(" files "), "command", json_object_new_string("npx"), "args",
	    json_object_new_string("-y 'a b' \"c\\\"d\" e\\ f"), "env",
	    json_object_new_string("A=1, B=x=2"), NULL);
	HR_PUT struct json_object *server = given != NULL ? hr_mcpserver(given, err) : NULL;
	HR_BUF(b, BIG);
	int r;

	if (server == NULL)
		return -1;
	(void)hr_json_put(&b, server);
	r = hr_buf_check(&b, err);
	if (r == 0)
		fault_tell_bytes(b.p, b.len);
	return r;
}

const struct fault_scenario fault_scenarios[] = {{"frames", frames, 0}, {"json to repr", json, 0},
    {"json to json", json_text, 0}, {"literal", literal, 0}, {"event", event, 0},
    {"refused event", bad_event, 0}, {"observation", observation, 0}, {"scoreboard", board, 0},
    {"channel", channel, 0}, {"journal", journal, FAULT_LOSSY}, {"MCP server", mcp_server, 0},
    {NULL, NULL, 0}};
