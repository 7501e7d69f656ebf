/* Waits for a command and returns its output by offsets. A handle always gives the same bytes, so a
 * client that lost an answer can ask again without duplicates. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "actions/command.h"
#include "actions/shell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "mcp/call.h"
#include "proto/channel.h"
#include "base/text/utf8.h"
#include "term/term.h"

#define PART ((size_t)16 << 10) /* bytes in the head and in the tail of long output */
#define FRAME_MAX (2u << 20)
#define TRIES 32            /* times that a keeper may die during one wait */
#define PROGRESS_MS 100     /* milliseconds between two notifications */
#define PROGRESS_MAX 2000   /* bytes of output per notification */
#define TORN_MAX 64         /* bytes of an unfinished escape sequence */
#define SEEN_MAX (4 * PART) /* bytes of a rendered part: few bytes may fill much of a screen */

static const char running[] = "still running",
		  replaced[] = "still running, and this server is being replaced";

/* ---- handles: ID-STARTED-FROM@SESSION, and b-ID-FROM of a process ---- */

void
hr_mcp_handle_put(struct hr_buf *b, const struct hr_mcp_wait *w)
{
	if (w->process[0] != '\0') {
		hr_buf_addf(b, "b-%s-%" PRIu64, w->process, w->from);
		return;
	}
	hr_buf_addf(b, "%" PRId64 "-%" PRIx64 "-%" PRIu64 "@%s", w->id, (uint64_t)w->started,
	    w->from, w->session[0] != '\0' ? w->session : "default");
}

static bool
number(const char **p, int base, char end, uint64_t *ret)
{
	char *stop;

	if (**p == '-' || **p == '+' || **p == ' ')
		return false;
	errno = 0;
	*ret = strtoull(*p, &stop, base);
	if (errno != 0 || stop == *p || *stop != end || *ret > INT64_MAX)
		return false;
	*p = stop + 1;
	return true;
}

/* Parses the handle of a process. */
static bool
read_process(const char *p, struct hr_mcp_wait *ret)
{
	const size_t id = HR_MCP_PROCESS - 1;

	if (strncmp(p, "b-", 2) != 0 || strlen(p) < 2 + id + 1 || p[2 + id] != '-')
		return false;
	memcpy(ret->process, p + 2, id);
	p += 2 + id + 1;
	return number(&p, 10, '\0', &ret->from);
}

bool
hr_mcp_handle_read(struct hr_mcp_call *c, struct hr_mcp_wait *ret)
{
	struct hr_span given = hr_mcp_arg(c, "handle");
	const char *p = given.p;
	uint64_t id, started;
	size_t len;

	memset(ret, 0, sizeof(*ret));
	if (p != NULL && strlen(p) == given.len && read_process(p, ret))
		return true;
	if (p == NULL || strlen(p) != given.len || !number(&p, 10, '-', &id) || id == 0 ||
	    !number(&p, 16, '-', &started) || !number(&p, 10, '@', &ret->from))
		return hr_mcp_fail(
		    c, "That is no handle: take the one of the last answer to run or wait.");
	ret->id = (int64_t)id;
	ret->started = (int64_t)started;
	len = strlen(p);
	if (strcmp(p, "default") != 0) {
		if (!hr_session_name_fits(p, len) || len >= sizeof(ret->session))
			return hr_mcp_fail(c,
			    "That is no handle: take the one of the last answer to run "
			    "or wait.");
		memcpy(ret->session, p, len);
	}
	return true;
}

struct hr_shell_place
hr_mcp_place(const struct hr_mcp_call *c, const struct hr_mcp_wait *w)
{
	return (struct hr_shell_place){
	    .run_dir = c->env->run_dir, .session = w->session[0] != '\0' ? w->session : NULL};
}

/* ---- the output ---- */

/* Returns the number of bytes at the end that belong to an unfinished character, escape sequence or
 * line end. */
static size_t
torn(const char *p, size_t len)
{
	size_t back, at;

	for (back = 1; back <= TORN_MAX && back <= len; back++) {
		if (p[len - back] != '\033')
			continue;
		if (back == 1)
			return back;
		at = len - back + 1;
		if (p[at] == '[') {
			for (at++; at < len && (unsigned char)p[at] < 0x40; at++)
				;
			return at == len ? back : 0;
		}
		if (p[at] == ']') {
			for (; at < len && p[at] != '\a'; at++)
				;
			return at == len ? back : 0;
		}
		return 0;
	}
	if (len > 0 && p[len - 1] == '\r')
		return 1;
	return hr_utf8_torn(p, len);
}

/* Renders the bytes as a terminal shows them, as the keeper does for the result of a command. */
static void
put_seen(struct hr_buf *b, const char *p, size_t len)
{
	struct hr_term *t = hr_term_new(&(const struct hr_term_config){.history = 40000});
	HR_BUF(seen, SEEN_MAX);

	if (t == NULL) {
		b->fail = HR_E_NOMEM;
		return;
	}
	hr_term_feed(t, p, len);
	hr_term_text_exact(t, 0, &seen);
	hr_term_free(t);
	hr_buf_add(b, hr_buf_str(&seen), seen.len);
	if (seen.fail == HR_E_TOOLARGE)
		hr_buf_adds(b, "\n[the rest takes up too much room on the screen]\n");
	else if (seen.fail != HR_OK)
		b->fail = seen.fail;
}

/* Appends a part of the output. *io_to is set to its end, which moves back before an unfinished
 * sequence. */
static int
put_part(const struct hr_mcp_call *c, const struct hr_mcp_wait *w, uint64_t from, uint64_t *io_to,
    bool whole, struct hr_buf *out, struct hr_err *err)
{
	const struct hr_shell_place place = hr_mcp_place(c, w);
	bool beside = w->process[0] != '\0';
	HR_BUF(raw, 4 * PART);
	uint64_t at = from;
	size_t cut;
	int r;

	if (beside)
		r = c->env->beside->read(
		    c->env->server, w->process, from, (size_t)(*io_to - from), &raw, err);
	else
		r = hr_command_output(&place, &at, *io_to, (size_t)(*io_to - from), &raw, err);
	if (r == 0) {
		if (at > from)
			hr_buf_addf(out, "[%" PRIu64 " bytes of output are too old to be kept]\n",
			    at - from);
		cut = whole ? 0 : torn(hr_buf_str(&raw), raw.len);
		*io_to = at + raw.len - cut;
		if (beside) /* the output did not go through a terminal */
			hr_utf8_replace(out, hr_buf_str(&raw), raw.len - cut);
		else
			put_seen(out, hr_buf_str(&raw), raw.len - cut);
	}
	return r;
}

int
hr_mcp_put_output(const struct hr_mcp_call *c, struct hr_mcp_wait *w, uint64_t end, bool over,
    struct hr_buf *out, struct hr_err *err)
{
	uint64_t head, tail;

	if (end <= w->from)
		return 0;
	if (end - w->from <= 2 * PART) {
		head = end;
		if (put_part(c, w, w->from, &head, over, out, err) < 0)
			return -1;
		w->from = head;
		return 0;
	}
	head = w->from + (w->sequential ? 2 * PART : PART);
	if (put_part(c, w, w->from, &head, false, out, err) < 0)
		return -1;
	if (w->sequential) {
		w->from = head;
		return 0;
	}
	tail = end - PART;
	hr_buf_addf(out,
	    "\n[%" PRIu64 " bytes are left out here; wait with after=%" PRIu64 " shows them]\n",
	    tail - head, head);
	if (put_part(c, w, tail, &end, over, out, err) < 0)
		return -1;
	w->from = end;
	return 0;
}

/* ---- the result ---- */

/* Ends the last line of the output, if any. */
static void
end_line(struct hr_buf *b)
{
	if (b->len > 0 && b->p[b->len - 1] != '\n')
		hr_buf_addc(b, '\n');
}

void
hr_mcp_put_done(struct hr_mcp_call *c, struct hr_span output, int64_t exit_code,
    struct hr_span directory, const char *handle)
{
	/* drop the line feed that ends the last line, which only a client that joins parts needs */
	if (!c->wait.sequential && output.len > 0 && output.p[output.len - 1] == '\n')
		output.len--;
	hr_buf_addc(&c->structured, '{');
	hr_json_put_member(&c->structured, "output", output);
	hr_buf_addf(&c->structured, ",\"running\":false,\"exit_code\":%" PRId64, exit_code);
	hr_json_put_member(&c->structured, "working_dir", directory);
	hr_json_put_named(&c->structured, "handle", handle[0] != '\0' ? handle : NULL);
	hr_buf_addc(&c->structured, '}');
	hr_buf_add(&c->text, output.p, output.len);
	end_line(&c->text);
	hr_mcp_say(c, "[exit code %" PRId64, exit_code);
	if (directory.len > 0 && directory.len < 1024)
		hr_mcp_say(c, ", in %.*s", (int)directory.len, directory.p);
	if (handle[0] != '\0')
		hr_mcp_say(c, "; all of the output: wait with handle \"%s\"", handle);
	hr_mcp_say(c, "]");
}

static void
put_running(struct hr_mcp_call *c, struct hr_span output, const char *handle, const char *why)
{
	hr_buf_addc(&c->structured, '{');
	hr_json_put_member(&c->structured, "output", output);
	hr_buf_adds(&c->structured, ",\"running\":true,\"exit_code\":null,\"working_dir\":null");
	hr_json_put_named(&c->structured, "handle", handle);
	hr_buf_addc(&c->structured, '}');
	hr_buf_add(&c->text, output.p, output.len);
	end_line(&c->text);
	hr_mcp_say(c,
	    "[%s; handle \"%s\". Call wait with it to continue, %sinterrupt to stop it; do not run "
	    "the command again]",
	    why, handle, c->wait.process[0] == '\0' ? "input to type, " : "");
}

/* Looks up the state of the command. Returns false after hr_mcp_fail(). */
bool
hr_mcp_look(struct hr_mcp_call *c, const struct hr_shell_place *place, const struct hr_mcp_wait *w,
    struct hr_command_state *ret)
{
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);
	size_t n = 0, i;
	bool found = false;

	if (hr_shell_commands(place, &frame, list, &n, &err) < 0) {
		if (err.code == HR_E_NOTFOUND)
			hr_mcp_fail(c, "The shell of that handle has ended.");
		else
			hr_mcp_fail(c,
			    "Not now (%s). The command continues: call wait with the same "
			    "handle again.",
			    err.msg);
		return false;
	}
	for (i = 0; i < n && !found; i++)
		found = list[i].id == w->id && list[i].started == w->started;
	if (found) {
		*ret = list[i - 1];
		ret->key = ret->text = (struct hr_span){"", 0};
	} else {
		hr_mcp_fail(c,
		    "The result of that command is no longer available: the shell has run "
		    "64 others since, or the sandbox was restarted.");
	}
	return found;
}

/* Puts the result of an ended command with the current directory of its shell. */
static void
finish(struct hr_mcp_call *c, const struct hr_shell_place *place, struct hr_command_state *s,
    struct hr_span output)
{
	struct hr_session_state state = {.working_dir = {"", 0}};
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(more, 256);

	(void)hr_shell_state(place, &frame, &state, &err); /* an error leaves the directory out */
	if (c->wait.from < s->log_end)
		hr_mcp_handle_put(&more, &c->wait);
	hr_mcp_put_done(c, output, s->exit_code, state.working_dir, hr_buf_str(&more));
	if (s->end == HR_COMMAND_SHELL_ENDED)
		hr_mcp_say(c, "\n[the shell ended; another one has taken its place]");
}

static void
put_state(struct hr_mcp_call *c, const struct hr_shell_place *place, const char *why)
{
	struct hr_command_state s;
	HR_BUF(out, 1u << 20);
	HR_BUF(handle, 256);
	struct hr_err err = {0};
	bool over;

	if (!hr_mcp_look(c, place, &c->wait, &s))
		return;
	over = s.end != HR_COMMAND_RUNNING;
	if (hr_mcp_put_output(c, &c->wait, s.log_end, over, &out, &err) < 0 ||
	    hr_buf_check(&out, &err) < 0) {
		hr_mcp_fail(c, "The output is not available now (%s). Call wait again.", err.msg);
		return;
	}
	(void)hr_shell_returned(
	    place, c->wait.from); /* after a failure a later answer repeats the output */
	if (over) {
		finish(c, place, &s, hr_span_of_buf(&out));
	} else {
		hr_mcp_handle_put(&handle, &c->wait);
		put_running(c, hr_span_of_buf(&out), hr_buf_str(&handle), why);
	}
}

/* ---- processes beside the shells ---- */

bool
hr_mcp_look_beside(struct hr_mcp_call *c, const struct hr_mcp_wait *w, struct hr_mcp_process *ret)
{
	int found = c->env->beside->look(c->env->server, w->process, ret);

	if (found < 0)
		hr_mcp_fail(
		    c, "The state of the command cannot be read now. Call again in a moment.");
	else if (found == 0)
		hr_mcp_fail(c, "The result of that command is no longer available: later commands "
			       "needed its room, or the sandbox was restarted.");
	return found > 0;
}

static void
put_process(struct hr_mcp_call *c, const char *why)
{
	const struct hr_span no_directory = {NULL, 0};
	const struct hr_mcp_wait whole = c->wait;
	struct hr_mcp_process p;
	struct hr_err err = {0};
	HR_BUF(out, 1u << 20);
	HR_BUF(handle, 256);

	if (!hr_mcp_look_beside(c, &c->wait, &p))
		return;
	if (hr_mcp_put_output(c, &c->wait, p.bytes, p.over, &out, &err) < 0 ||
	    hr_buf_check(&out, &err) < 0) {
		hr_mcp_fail(c, "The output is not available now (%s). Call wait again.", err.msg);
		return;
	}
	/* run always returns a handle */
	if (p.over && !c->wait.sequential)
		hr_mcp_handle_put(&handle, &whole);
	else if (!p.over || c->wait.from < p.bytes)
		hr_mcp_handle_put(&handle, &c->wait);
	if (!p.over)
		put_running(c, hr_span_of_buf(&out), hr_buf_str(&handle), why);
	else
		hr_mcp_put_done(
		    c, hr_span_of_buf(&out), p.exit_code, no_directory, hr_buf_str(&handle));
	if (p.over && p.exit_code < 0)
		hr_mcp_say(c, "\n[its exit code is unknown: the server's process that waits for it "
			      "was killed]");
}

/* ---- waiting ---- */

struct waiting {
	struct hr_mcp_call *call;
	struct hr_sink *sink;
	int signals;
	uint64_t at; /* offset up to which the output was seen */
	int64_t told_ms;
	uint64_t told;
};

/* Sends a progress notification. Returns false if the client is gone. */
static bool
progress(struct waiting *w, const struct hr_output_piece *piece)
{
	struct hr_mcp_call *c = w->call;
	struct hr_span s = piece->bytes;
	HR_BUF(b, 1u << 20);
	HR_BUF(seen, 1u << 18);

	if (!c->events || c->token == NULL || s.len == 0 || hr_now_ms() - w->told_ms < PROGRESS_MS)
		return true;
	w->told_ms = hr_now_ms();
	if (s.len > PROGRESS_MAX) {
		s.p += s.len - PROGRESS_MAX;
		s.len = PROGRESS_MAX;
	}
	put_seen(&seen, s.p, s.len);
	hr_buf_adds(&b, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
			"\"notifications/progress\",\"params\":{\"progressToken\":");
	(void)hr_json_put(&b, c->token); /* the token is a string or an integer */
	hr_buf_addf(
	    &b, ",\"progress\":%" PRIu64 ",\"message\":", w->at > w->told ? w->at - w->told : 0);
	(void)hr_json_put_str(&b, hr_buf_str(&seen), seen.len, HR_JSON_REPLACE);
	hr_buf_adds(&b, "}}\n\n");
	return b.fail == HR_OK && w->sink->write(w->sink, b.p, b.len) == 0;
}

enum seen { TIME_IS_OVER, KEEPER_CLOSED, TO_LEAVE };

static enum seen
wait_piece(struct waiting *w, int fd)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN},
	    {.fd = w->sink->fd, .events = POLLIN | POLLRDHUP},
	    {.fd = w->signals, .events = POLLIN}};
	int64_t left;
	int n;

	do {
		left = w->call->wait.until_ms - hr_now_ms();
		if (left <= 0)
			return TIME_IS_OVER;
		n = poll(p, 3, left > 60000 ? 60000 : (int)left);
	} while ((n < 0 && errno == EINTR) || (n == 0 && left > 60000));
	if (n <= 0)
		return TIME_IS_OVER;
	return p[1].revents != 0 || p[2].revents != 0 ? TO_LEAVE : KEEPER_CLOSED;
}

static enum seen
follow(struct waiting *w, const struct hr_shell_place *place)
{
	const struct hr_follow_request req = {
	    .offset = w->at, .stays = true, .command = w->call->wait.id};
	struct hr_output_piece piece;
	struct hr_err err = {0};
	HR_BUF(frame, FRAME_MAX);
	enum seen how = KEEPER_CLOSED;
	size_t used;
	HR_CLOSE int fd = hr_shell_follow(place, &req, &err);

	if (fd < 0)
		return KEEPER_CLOSED;
	for (;;) {
		if (!hr_frame_waits(&frame)) {
			how = wait_piece(w, fd);
			if (how != KEEPER_CLOSED)
				break;
		}
		if (hr_shell_piece(fd, &frame, &piece, &used, &err) <= 0)
			break;
		w->at = piece.offset + piece.bytes.len;
		if (!progress(w, &piece)) {
			how = TO_LEAVE;
			break;
		}
		hr_buf_drop_front(&frame, used);
	}
	return how;
}

static void
wait_process(struct hr_mcp_call *c, const struct hr_sink *sink)
{
	HR_CLOSE int signals = hr_command_signals(NULL);
	bool leaves = c->env->beside->wait(
	    c->env->server, c->wait.process, c->wait.until_ms, sink->fd, signals);

	put_process(c, leaves ? replaced : running);
}

void
hr_mcp_wait_now(struct hr_mcp_call *c, struct hr_sink *sink)
{
	const struct hr_shell_place place = hr_mcp_place(c, &c->wait);
	struct waiting w = {.call = c, .sink = sink, .at = c->wait.from, .told = c->wait.from};
	struct hr_command_state s;
	const char *why = running;
	enum seen how;
	int tries = TRIES;

	c->waits = false;
	if (c->wait.process[0] != '\0') {
		wait_process(c, sink);
		return;
	}
	/* -1: without a descriptor for signals a reload waits until the command ends */
	w.signals = hr_command_signals(NULL);
	while (hr_mcp_look(c, &place, &c->wait, &s) && s.end == HR_COMMAND_RUNNING && tries-- > 0) {
		how = follow(&w, &place);
		if (how == TO_LEAVE)
			why = replaced;
		if (how != KEEPER_CLOSED)
			break;
	}
	hr_fd_close(&w.signals);
	if (!c->is_error)
		put_state(c, &place, why);
}

/* ---- the tools ---- */

static const struct hr_mcp_param wait_params[] = {
    {"handle", HR_MCP_STR, true, "Of the last answer to run or wait."},
    {"after", HR_MCP_INT, false,
	"Byte offset of the output to continue at, as an answer names it; left out: where the "
	"handle "
	"ended."},
    {"wait_s", HR_MCP_NUM, false, "Seconds to wait for the end at most; 25 if left out, 0 to 300."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_wait(struct hr_mcp_call *c)
{
	double wait_s = hr_mcp_wait_s(c, 0);

	if (!hr_mcp_handle_read(c, &c->wait))
		return;
	if (hr_json_at(c->args, "after") != NULL)
		c->wait.from = (uint64_t)hr_mcp_arg_int(c, "after", 0, 0, INT64_MAX);
	c->wait.until_ms = hr_now_ms() + (int64_t)(wait_s * 1000);
	c->wait.sequential = true;
	c->waits = true;
}

const struct hr_mcp_tool hr_mcp_wait = {.name = "wait",
    .title = "Continue with a command",
    .help =
	"Waits for a command that run started, and returns what it printed since the handle's last "
	"answer. If it still runs, the answer has a new handle: use that one next. Asking twice "
	"with "
	"the same handle does no harm.",
    .reads = true,
    .idempotent = true,
    .params = wait_params,
    .output = HR_MCP_RUN_SCHEMA,
    .call = call_wait};
