/* Watches a session and its commands, and sends keys to the running one. doc/live.md describes this
 * interface, which is not part of the original's. */
#include "config.h"

#include "worker/live.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/channel.h"
#include "proto/json.h"
#include "shell/keys.h"

#define BODY_MAX (1u << 20)
#define KEYS_MAX 1000
#define COMMENT_MS 15000

static const char *
name_of(const struct hr_shell_place *place)
{
	return place->session != NULL ? place->session : "default";
}

bool
hr_live_place(struct hr_worker *w, const struct hr_request *r, struct hr_shell_place *ret_place,
    struct hr_answer *ret)
{
	*ret_place = (struct hr_shell_place){.run_dir = w->run_dir};
	hr_buf_reset(&w->session);
	if (!hr_request_query(r, "session", &w->session) ||
	    (strcmp(hr_buf_str(&w->session), "default") == 0 &&
		w->session.len == strlen("default")))
		return true;
	ret_place->session = hr_buf_str(&w->session);
	if (hr_session_name_fits(ret_place->session, w->session.len))
		return true;
	return hr_answer_detail(ret, 404, "there is no session of that name");
}

void
hr_live_put_state(struct hr_buf *b, const char *name, const struct hr_session_state *s)
{
	hr_buf_addf(b, "{\"name\":\"%s\",\"ready\":%s,\"running\":%s", name,
	    s->ready ? "true" : "false", s->running ? "true" : "false");
	hr_json_put_member(b, "working_dir", s->working_dir);
	hr_buf_addf(b,
	    ",\"output\":{\"start\":%" PRIu64 ",\"end\":%" PRIu64
	    "},\"terminal\":{\"rows\":%" PRId64 ",\"columns\":%" PRId64 "}}",
	    s->log_start, s->log_end, s->rows, s->columns);
}

bool
hr_live_refuse(struct hr_answer *ret, const struct hr_err *err)
{
	return err->code == HR_E_NOTFOUND ? hr_answer_detail(ret, 404, err->msg)
					  : hr_answer_later(ret, err->msg);
}

bool
hr_live_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9' && *ret <= INT64_MAX;
}

bool
hr_live_wait(int fd, const struct hr_live_end *end, struct hr_sink *sink)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN},
	    {.fd = sink->fd, .events = POLLIN | POLLRDHUP}, {.fd = end->signals, .events = POLLIN}};
	int n;

	do {
		n = poll(p, 3, end->events || end->stay.signed_in ? COMMENT_MS : -1);
		if (!hr_stay_lasts(end->w, &end->stay))
			return false;
		if (n == 0 && end->events && sink->write(sink, ":\n\n", 3) < 0)
			return false;
	} while (n <= 0); /* the other results are EINTR */
	return p[1].revents == 0 && p[2].revents == 0;
}

void
hr_handle_live_session(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_session_state state;
	struct hr_shell_place place;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);

	if (!hr_live_place(w, r, &place, ret))
		return;
	if (hr_shell_state(&place, &frame, &state, &err) < 0)
		hr_live_refuse(ret, &err);
	else
		hr_live_put_state(&ret->body, name_of(&place), &state);
}

static void
put_seconds(struct hr_buf *b, const char *name, int64_t ms)
{
	ms = ms > 0 ? ms : 0;
	hr_buf_addf(b, "\"%s\":%" PRId64 ".%03d", name, ms / 1000, (int)(ms % 1000));
}

void
hr_live_put_command(struct hr_buf *b, const char *session, const struct hr_command_state *c)
{
	static const char *const states[] = {"running", "completed", "shell ended"};

	hr_buf_addf(b, "{\"id\":%" PRId64 ",\"session\":\"%s\"", c->id, session);
	hr_json_put_member(b, "key", c->key);
	hr_json_put_member(b, "command", c->text);
	hr_buf_addf(b, ",\"length\":%" PRId64 ",\"state\":\"%s\",\"exit_code\":", c->length,
	    c->end >= 0 && c->end <= HR_COMMAND_SHELL_ENDED ? states[c->end] : "unknown");
	if (c->end == HR_COMMAND_RUNNING)
		hr_buf_adds(b, "null");
	else
		hr_buf_addf(b, "%" PRId64, c->exit_code);
	hr_buf_addf(b, ",\"output\":{\"start\":%" PRIu64 ",\"end\":%" PRIu64 "},\"clock\":{",
	    c->log_start, c->log_end);
	put_seconds(b, "started", c->started);
	hr_buf_addc(b, ',');
	put_seconds(b, "elapsed", c->elapsed);
	hr_buf_addc(b, ',');
	put_seconds(b, "silent", c->silent);
	hr_buf_adds(b, "}}");
}

void
hr_handle_live_commands(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_shell_place place;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);
	size_t n = 0, i;

	if (!hr_live_place(w, r, &place, ret))
		return;
	if (hr_shell_commands(&place, &frame, list, &n, &err) < 0) {
		hr_live_refuse(ret, &err);
		return;
	}
	hr_buf_adds(&ret->body, "{\"commands\":[");
	for (i = 0; i < n; i++) {
		hr_buf_adds(&ret->body, i > 0 ? "," : "");
		hr_live_put_command(&ret->body, name_of(&place), &list[i]);
	}
	hr_buf_adds(&ret->body, "]}");
}

/* ---- keys and signals ---- */

static const struct {
	const char *name;
	int number;
} signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"KILL", SIGKILL},
    {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"CONT", SIGCONT}, {"STOP", SIGSTOP},
    {"TSTP", SIGTSTP}};

static int
signal_number(struct json_object *v)
{
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (hr_json_str_is(v, signals[i].name))
			return signals[i].number;
	return 0;
}

static void
press(struct hr_worker *w, const struct hr_request *r, const struct hr_press_request *req,
    struct hr_answer *ret)
{
	struct hr_shell_place place;
	struct hr_session_state state;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);

	if (!hr_live_place(w, r, &place, ret))
		return;
	hr_journal_mark(&w->journal, &w->once);
	if (hr_shell_press(&place, req, &frame, &state, &err) < 0) {
		hr_live_refuse(ret, &err);
	} else if (state.reason.len > 0) {
		ret->status = 409;
		hr_buf_addc(&ret->body, '{');
		hr_json_put_member(&ret->body, "detail", state.reason);
		hr_buf_addc(&ret->body, '}');
	} else {
		hr_live_put_state(&ret->body, name_of(&place), &state);
	}
}

struct json_object *
hr_live_object(struct hr_worker *w, const struct hr_request *r, struct hr_answer *ret)
{
	struct json_object *body = NULL;

	if (!hr_worker_body(w, r, BODY_MAX, ret))
		return NULL;
	if (hr_json_decode(hr_buf_str(&w->body), w->body.len, &body, NULL) < 0 ||
	    hr_json_type(body) != HR_PY_DICT) {
		hr_answer_detail(ret, 400, "the body must be a JSON object");
		json_object_put(body);
		return NULL;
	}
	return body;
}

/* Returns the member of that type, or NULL after sending an error. */
static struct json_object *
member(struct json_object *body, const char *name, enum hr_py_type type, struct hr_answer *ret)
{
	struct json_object *v = hr_json_typed_at(body, name, type);

	if (v == NULL && body != NULL)
		hr_answer_detail(ret, 400, "the body lacks a member, or it is of the wrong type");
	return v;
}

/* Reads the command number, if any. An invalid one must not mean "any command". */
static bool
read_command(struct json_object *body, int64_t *ret_id, struct hr_answer *ret)
{
	*ret_id = hr_json_int_at(body, "command");
	if (hr_json_at(body, "command") == NULL || *ret_id > 0)
		return true;
	return hr_answer_detail(ret, 400, "command is the id of one, from 1 on");
}

void
hr_handle_live_input(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_press_request req = {.what = HR_PRESS_TEXT};
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct json_object *v = member(body, "text", HR_PY_STR, ret);

	if (v == NULL)
		return;
	req.text.p = hr_json_str(v, &req.text.len);
	press(w, r, &req, ret);
}

void
hr_handle_live_signal(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct json_object *v = member(body, "signal", HR_PY_STR, ret);
	struct hr_press_request req = {
	    .what = HR_PRESS_SIGNAL, .signal = v != NULL ? signal_number(v) : 0, .text = {"", 0}};

	if (v != NULL && req.signal == 0)
		hr_answer_detail(ret, 400, "no signal of that name");
	else if (v != NULL && read_command(body, &req.command, ret))
		press(w, r, &req, ret);
}

/* Checks the name only: the bytes depend on the terminal, so the keeper looks the key up again. */
static bool
is_key(struct json_object *v)
{
	char bytes[HR_KEY_MAX];
	const char *name;
	size_t len, n = 0;

	if (hr_json_type(v) != HR_PY_STR)
		return false;
	name = hr_json_str(v, &len);
	return memchr(name, '\0', len) == NULL &&
	       hr_key_bytes(name, len, false, bytes, sizeof(bytes), &n, NULL) == 0 && n > 0;
}

void
hr_handle_live_keys(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct json_object *v = member(body, "keys", HR_PY_LIST, ret);
	size_t i, len, n = hr_json_count(v);
	struct hr_press_request req = {.what = HR_PRESS_KEYS};
	HR_BUF(names, BODY_MAX + KEYS_MAX);
	const char *name;

	if (v == NULL)
		return;
	for (i = 0; i < n && n <= KEYS_MAX; i++) {
		if (!is_key(hr_json_entry(v, i)))
			break;
		name = hr_json_str(hr_json_entry(v, i), &len);
		hr_buf_add(&names, name, len + 1); /* the size includes the NUL */
	}
	req.text = hr_span_of_buf(&names);
	if (n > KEYS_MAX)
		hr_answer_detail(ret, 400, "too many keys");
	else if (i < n)
		hr_answer_detail(ret, 400, "no key of that name");
	else if (names.fail != HR_OK)
		hr_answer_generic(ret);
	else
		press(w, r, &req, ret);
}

void
hr_handle_live_resize(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct json_object *rows = member(body, "rows", HR_PY_INT, ret), *columns = NULL;
	struct hr_press_request req = {.what = HR_PRESS_SIZE, .text = {"", 0}};

	if (rows != NULL)
		columns = member(body, "columns", HR_PY_INT, ret);
	if (columns == NULL)
		return;
	req.rows = json_object_get_int64(rows); /* larger numbers become INT64_MAX, strings 0 */
	req.columns = json_object_get_int64(columns);
	if (req.rows < 1 || req.rows > HR_TERMINAL_MAX || req.columns < 1 ||
	    req.columns > HR_TERMINAL_MAX)
		hr_answer_detail(ret, 400, "rows and columns are numbers from 1 to 1000");
	else if (read_command(body, &req.command, ret))
		press(w, r, &req, ret);
}
