/* Messages to the door for agents. The first byte chooses the headers. What must hold for any
 * message: the answer is complete, has a status that means what it says, and is JSON-RPC or
 * nothing; nothing is performed but what was asked for by name. There is no shell and no run
 * directory. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "mcp/mcp.h"
#include "proto/json.h"
#include "base/text/utf8.h"
#include "fuzz.h"

static void
perform(void *arg, const char *session, struct json_object *action, struct hr_span key,
    struct hr_answer *ret)
{
	const char *type = hr_json_text_at(action, "action");

	(void)arg;
	(void)session;
	must(key.len < 256 && type != NULL && hr_json_at(action, "args") != NULL);
	hr_buf_adds(&ret->body, strcmp(type, "run") == 0
				    ? "{\"observation\":\"run\",\"content\":\"x\",\"extras\":{"
				      "\"metadata\":{\"exit_code\":0,"
				      "\"working_dir\":\"/\"}}}"
				    : "{\"observation\":\"read\",\"content\":\"data:image/"
				      "png;base64,AAAA\",\"extras\":{}}");
}

static bool
enter(void *arg, struct hr_answer *ret)
{
	(void)arg;
	(void)ret;
	return true;
}

static void
leave(void *arg, const struct hr_answer *ret)
{
	(void)arg;
	must(ret->status >= 200);
}

static void
nothing(void *arg)
{
	(void)arg;
}

static bool
create(void *arg, const char *name, struct hr_answer *ret)
{
	(void)arg;
	must(strlen(name) <= 32);
	hr_answer_detail(ret, 503, "no");
	return false;
}

static const char process[] = "00000000-0000-4000-8000-000000000000";

static void
start(void *arg, struct hr_span command, struct hr_span directory, struct hr_span key,
    struct hr_answer *ret)
{
	(void)arg;
	(void)directory;
	(void)key;
	must(command.len > 0);
	hr_buf_adds(&ret->body, process);
}

static int
look(void *server, const char *id, struct hr_mcp_process *ret)
{
	(void)server;
	must(strlen(id) == sizeof(process) - 1);
	*ret = (struct hr_mcp_process){
	    .over = id[0] == '0', .left = id[0] != '0', .exit_code = -1, .bytes = 5};
	return strcmp(id + 1, process + 1) == 0;
}

static int
read_output(
    void *server, const char *id, uint64_t from, size_t len, struct hr_buf *raw, struct hr_err *err)
{
	static const char bytes[] = "\xe2\x82\xac\xe2\x82";

	(void)server;
	(void)err;
	must(strlen(id) == sizeof(process) - 1 && from + len <= 5);
	hr_buf_add(raw, bytes + from, len);
	return 0;
}

static int
stop(void *server, const char *id)
{
	(void)server;
	must(id[0] != '\0');
	return 0;
}

static bool
wait_end(void *server, const char *id, int64_t until_ms, int client, int signals)
{
	(void)server;
	(void)until_ms;
	(void)client;
	(void)signals;
	return id[0] == '1';
}

static const struct hr_mcp_beside beside = {look, read_output, stop, wait_end};

struct memory {
	struct hr_sink sink;
	struct hr_buf b;
};

static int
memory_write(struct hr_sink *sink, const void *p, size_t len)
{
	hr_buf_add(&((struct memory *)sink)->b, p, len);
	return 0;
}

static void
check_json(const char *p, size_t len)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_json_error e;

	must(hr_utf8_valid(p, len) && hr_json_decode(p, len, &o, &e) == 0);
	must(hr_json_str_is(hr_json_at(o, "jsonrpc"), "2.0"));
	must((hr_json_at(o, "result") != NULL) != (hr_json_at(o, "error") != NULL));
}

/* The last event is the answer; without events it is all there is. */
static void
check_stream(struct hr_answer *a, bool events)
{
	static const char head[] = "event: message\ndata: ";
	struct memory m = {.sink = {memory_write, -1}};
	struct hr_err err = {0};

	hr_buf_init(&m.b, 1u << 28);
	must(a->stream.send(a->stream.arg, &m.sink, &err) == 0 && m.b.len > sizeof(head));
	if (events) {
		must(memcmp(m.b.p, head, sizeof(head) - 1) == 0 && m.b.p[m.b.len - 1] == '\n');
		check_json(m.b.p + sizeof(head) - 1, m.b.len - sizeof(head) - 1);
	} else {
		check_json(m.b.p, m.b.len);
	}
	hr_buf_done(&m.b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const texts[] = {"", "2026-07-28", "2025-11-25", "tools/call",
	    "tools/list", "run", "x", "=?base64?cnVu?="};
	static const struct hr_mcp_env env = {.run_dir = "/nonexistent",
	    .work_dir = "/nonexistent",
	    .shell_uid = 65534,
	    .perform = perform,
	    .enter = enter,
	    .leave = leave,
	    .begin = enter,
	    .mark = nothing,
	    .active = nothing,
	    .create = create,
	    .start = start,
	    .beside = &beside};
	struct hr_mcp_request q;
	struct hr_answer a;

	if (size < 2)
		return 0;
	q = (struct hr_mcp_request){.body = {(const char *)data + 2, size - 2},
	    .version = texts[data[0] % 8],
	    .method = texts[data[1] % 8],
	    .name = texts[data[1] / 8 % 8],
	    .events = data[0] / 8 % 2 == 1};
	hr_answer_init(&a);
	hr_mcp_handle(&env, &q, &a);
	must(a.status == 200 || a.status == 202 || a.status == 400 || a.status == 404);
	if (a.stream.send != NULL)
		check_stream(&a, q.events);
	else if (a.status == 202)
		must(a.body.len == 0);
	else
		check_json(hr_buf_str(&a.body), a.body.len);
	hr_answer_done(&a);
	return 0;
}
