/* Implements the tools run, input and interrupt: commands and their keyboard input. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "actions/command.h"
#include "actions/shell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "mcp/call.h"
#include "shell/keys.h"
#include "shell/quote.h"
#include "shell/split.h"

#define FIRST_S 1.0 /* seconds that the keeper waits for the end; then we follow the output */
/* maximum bytes; longer output is returned as head and tail */
#define LONG_OUTPUT (32u << 10)
#define KEYS_MAX 1000

/* ---- run ---- */

static const struct hr_mcp_param run_params[] = {
    {"command", HR_MCP_STR, true, "Bash, of one or several lines."},
    {"session", HR_MCP_STR, false,
	"Name of the shell, made if it is not there; left out: the default one. One command at a "
	"time runs in each."},
    {"wait_s", HR_MCP_NUM, false,
	"Seconds to wait for the end; 25 if left out, 0 to 300. The command continues afterwards."},
    {"background", HR_MCP_BOOL, false,
	"Run it as a process of its own beside the shell: with the shell's directory, without its "
	"variables and without input. wait_s is then 0 if left out."},
    {"cwd", HR_MCP_STR, false, "Directory to change to first; the shell stays there."},
    {"env", HR_MCP_MAP, false, "Variables to export first; they stay in the shell."},
    {"key", HR_MCP_STR, false,
	"Any name of this call: the same command with the same key is run once, however often it "
	"is "
	"sent."},
    {NULL, HR_MCP_STR, false, NULL},
};

static bool
is_name(const char *p)
{
	size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	return n > 0 && p[n] == '\0' && (*p < '0' || *p > '9');
}

static bool
is_blank(struct hr_span s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (strchr(" \t\r\n", s.p[i]) == NULL || s.p[i] == '\0')
			return false;
	return true;
}

/* Joins directory, variables and command into one command, as a shell takes only one at a time.
 * Returns false after hr_mcp_fail(). */
static bool
compose(struct hr_mcp_call *c, struct hr_span command, struct hr_buf *text)
{
	struct json_object *env = hr_json_at(c->args, "env");
	struct hr_span cwd = hr_mcp_arg(c, "cwd");

	if (cwd.p != NULL) {
		if (memchr(cwd.p, '\0', cwd.len) != NULL)
			return hr_mcp_fail(c, "cwd cannot hold a null character.");
		hr_buf_adds(text, "cd -- ");
		hr_shell_quote(text, cwd.p, cwd.len);
		hr_buf_adds(text, " && ");
	}
	if (env != NULL) {
		json_object_object_foreach(env, key, value)
		{
			struct hr_span v;

			v.p = hr_json_str(value, &v.len);
			if (!is_name(key) || memchr(v.p, '\0', v.len) != NULL)
				return hr_mcp_fail(c, "\"%.100s\" cannot be a variable.", key);
			hr_buf_addf(text, "export %s=", key);
			hr_shell_quote(text, v.p, v.len);
			hr_buf_adds(text, " && ");
		}
	}
	if (hr_shell_add_one(text, command.p, command.len, text->len > 0) == 0)
		return true;
	hr_mcp_fail(c, text->fail == HR_E_TOOLARGE
			   ? "The command is too long: write it to a file and run that."
			   : "Out of memory; nothing was run.");
	return false;
}

/* Creates the shell unless it exists. Returns false after hr_mcp_fail(). */
static bool
find_shell(struct hr_mcp_call *c, struct hr_mcp_wait *w)
{
	struct hr_shell_place place;
	struct hr_err err = {0};
	struct hr_answer answer;
	bool made;
	HR_CLOSE int fd = -1;

	if (!hr_mcp_session(c, w->session))
		return false;
	if (w->session[0] == '\0')
		return true;
	place = hr_mcp_place(c, w);
	fd = hr_shell_connect(&place, &err);
	/* a shell that is being replaced exists, too: the run waits for its successor */
	if (fd >= 0 || err.code != HR_E_NOTFOUND)
		return true;
	hr_answer_init(&answer);
	made = c->env->create(c->env->arg, w->session, &answer);
	if (!made && answer.status == 409)
		hr_mcp_fail(c, "There are as many sessions as may be. Call sessions to see them, "
			       "and end for one "
			       "that is not needed any more.");
	else if (!made)
		hr_mcp_fail(c, "The session cannot be made: %s", hr_buf_str(&answer.body));
	hr_answer_done(&answer);
	return made;
}

/* Finds the command with this key; with key "" the running command. */
static bool
find_command(const struct hr_shell_place *place, struct hr_span key, struct hr_mcp_wait *ret,
    struct hr_command_state *ret_state, struct hr_buf *frame)
{
	if (hr_command_find(place, key, frame, ret_state) <= 0)
		return false;
	ret->id = ret_state->id;
	ret->started = ret_state->started;
	ret->from = ret_state->log_start;
	return true;
}

/* Reports that the command was not started because another one runs. */
static void
say_busy(struct hr_mcp_call *c, const struct hr_shell_place *place, struct hr_span command,
    struct hr_span said)
{
	struct hr_mcp_wait other = c->wait;
	struct hr_command_state s;
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(handle, 256);

	if (find_command(place, (struct hr_span){"", 0}, &other, &s, &frame)) {
		hr_mcp_handle_put(&handle, &other);
		if (s.length == (int64_t)command.len && s.text.len <= command.len &&
		    memcmp(s.text.p, command.p, s.text.len) == 0)
			hr_mcp_fail(c,
			    "Not started a second time: this very command still runs. "
			    "Call wait with handle \"%s\".",
			    hr_buf_str(&handle));
		else
			hr_mcp_fail(c,
			    "Not started: another command still runs in this shell. Call "
			    "wait or interrupt with handle \"%s\", or run this in another "
			    "session.",
			    hr_buf_str(&handle));
	} else {
		hr_mcp_fail(c, "%s", "");
		hr_buf_add(&c->text, said.p, said.len);
		hr_mcp_say(c, "\nThe command has not completed, and nothing more is known of it.");
	}
}

/* Gives a long output as its head, its tail and a handle. Returns false if that fails. */
static bool
put_long(struct hr_mcp_call *c, struct hr_command_state *s, struct hr_span directory)
{
	struct hr_mcp_wait w = c->wait;
	struct hr_err err = {0};
	HR_BUF(out, 1u << 20);
	HR_BUF(handle, 256);

	hr_mcp_handle_put(&handle, &w);
	if (hr_mcp_put_output(c, &w, s->log_end, true, &out, &err) < 0 || out.fail != HR_OK)
		return false;
	hr_mcp_put_done(c, hr_span_of_buf(&out), s->exit_code, directory, hr_buf_str(&handle));
	return true;
}

/* Makes the result from the observation, or prepares to wait if the command still runs. */
static void
take(struct hr_mcp_call *c, struct json_object *o, struct hr_span text)
{
	struct json_object *meta = hr_json_at(hr_json_at(o, "extras"), "metadata");
	const struct hr_shell_place place = hr_mcp_place(c, &c->wait);
	struct hr_span content = hr_json_span_or(o, "content", ""), key = hr_span_of_buf(&c->key);
	struct hr_span directory = hr_json_span_or(meta, "working_dir", "");
	int64_t exit_code = meta != NULL ? hr_json_int_at(meta, "exit_code") : -1;
	/* The lines after the first one are about memory, processes, the disk or the network. */
	const char *facts = strstr(hr_json_text_or(meta, "suffix", ""), "]\n[");
	bool is_long = content.len > LONG_OUTPUT, found = false;
	struct hr_command_state s;
	HR_BUF(frame, HR_FRAME_MAX);

	if (exit_code < 0 || is_long)
		found = key.len > 0 && find_command(&place, key, &c->wait, &s, &frame);
	if (exit_code < 0 && found) {
		c->waits = true;
	} else if (exit_code < 0) {
		say_busy(c, &place, text, content);
	} else {
		if (!is_long || !found || s.end == HR_COMMAND_RUNNING ||
		    !put_long(c, &s, directory))
			hr_mcp_put_done(c, content, exit_code, directory, "");
		if (facts != NULL)
			hr_mcp_say(c, "%.4000s", facts + 1);
	}
}

static void
put_key(const struct hr_mcp_call *c, struct hr_span text, struct hr_buf *key)
{
	struct hr_span given = hr_mcp_arg(c, "key");

	if (given.p == NULL || given.len == 0)
		return;
	hr_buf_adds(key, "m:");
	if (given.len <= 64 && memchr(given.p, '\0', given.len) == NULL)
		hr_buf_add(key, given.p, given.len);
	else
		hr_buf_addf(
		    key, "%zu.%016" PRIx64, given.len, hr_hash(HR_HASH, given.p, given.len));
	/* the same key with another command is another call */
	hr_buf_addf(key, ":%zu.%016" PRIx64, text.len, hr_hash(HR_HASH, text.p, text.len));
}

static void
run_text(struct hr_mcp_call *c, struct hr_span text, double wait_s)
{
	double first_s = wait_s > FIRST_S ? FIRST_S : wait_s;
	struct json_object *args = hr_json_object(NULL, "command", hr_mcp_json_str(text),
	    "blocking", json_object_new_boolean(true), NULL);
	HR_PUT struct json_object *o = NULL;
	HR_BUF(key, 256);

	if (args == NULL) {
		hr_mcp_fail(c, "Out of memory; nothing was run.");
		return;
	}
	put_key(c, text, &key);
	c->wait.until_ms = hr_now_ms() + (int64_t)(wait_s * 1000);
	/* a timeout of 0 would mean no limit */
	o = hr_mcp_perform(c, c->wait.session[0] != '\0' ? c->wait.session : NULL, "run", args,
	    first_s < 0.05 ? 0.05 : first_s, wait_s > HR_SHELL_READY_S ? wait_s : HR_SHELL_READY_S,
	    hr_span_of_buf(&key));
	if (o != NULL && !hr_mcp_is_error(c, o))
		take(c, o, text);
}

/* Starts the command as a process beside the shells, in the directory of the session's shell if it
 * has one. */
static void
run_beside(struct hr_mcp_call *c, struct hr_span text, double wait_s)
{
	const struct hr_shell_place place = hr_mcp_place(c, &c->wait);
	struct hr_session_state state = {.working_dir = {"", 0}};
	HR_CLEAN(hr_answer_done) struct hr_answer answer;
	HR_BUF(frame, HR_FRAME_MAX);
	struct hr_err err = {0};
	HR_BUF(key, 256);

	hr_answer_init(&answer);
	put_key(c, text, &key);
	if (hr_shell_state(&place, &frame, &state, &err) < 0)
		state.working_dir = (struct hr_span){"", 0};
	c->env->start(c->env->arg, text, state.working_dir, hr_span_of_buf(&key), &answer);
	if (answer.status != 200) {
		hr_mcp_fail_status(c, &answer);
	} else if (answer.body.len != HR_MCP_PROCESS - 1) {
		hr_mcp_fail(c, "The sandbox's answer cannot be read.");
	} else {
		memcpy(c->wait.process, answer.body.p, answer.body.len);
		c->wait.until_ms = hr_now_ms() + (int64_t)(wait_s * 1000);
		c->waits = true;
	}
	if (!answer.replayed)
		hr_mcp_count_as(c, "run");
}

static void
call_run(struct hr_mcp_call *c)
{
	struct hr_span command = hr_mcp_arg(c, "command");
	bool beside = hr_mcp_arg_true(c, "background");
	double wait_s = beside && hr_json_at(c->args, "wait_s") == NULL ? 0 : hr_mcp_wait_s(c, 0);
	HR_BUF(text, HR_MCP_BODY_MAX + (1u << 20));

	if (is_blank(command)) {
		hr_mcp_fail(c, "The command is empty. To wait for a running one, call wait.");
		return;
	}
	if (beside)
		hr_buf_adds(&text, "exec 2>&1 && ");
	if (!compose(c, command, &text))
		return;
	if (!beside && find_shell(c, &c->wait))
		run_text(c, hr_span_of_buf(&text), wait_s);
	else if (beside && hr_mcp_session(c, c->wait.session))
		run_beside(c, hr_span_of_buf(&text), wait_s);
}

const struct hr_mcp_tool hr_mcp_run = {.name = "run",
    .title = "Run a command",
    .help =
	"Runs bash in a shell that lasts: directory, variables and jobs stay. Returns output and "
	"exit "
	"code. A command that takes longer than wait_s continues, and the answer has a handle: "
	"call "
	"wait with it. Never send a command again because it takes long.",
    .destroys = true,
    .open_world = true,
    .params = run_params,
    .output = HR_MCP_RUN_SCHEMA,
    .call = call_run};

/* ---- input, interrupt ---- */

static void
press(struct hr_mcp_call *c, const struct hr_mcp_wait *w, struct hr_press_request *req)
{
	const struct hr_shell_place place = hr_mcp_place(c, w);
	struct hr_session_state state;
	struct hr_command_state known;
	struct hr_err err = {0};
	struct hr_answer answer;
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(handle, 256);
	bool is_there = true;

	req->command = w->id;
	hr_answer_init(&answer);
	hr_mcp_handle_put(&handle, w);
	if (c->env->enter(c->env->arg, &answer)) {
		hr_answer_reset(&answer);
		/* a shell that started later may have another command with the same number */
		is_there = hr_mcp_look(c, &place, w, &known);
		if (!is_there) {
			hr_answer_detail(&answer, 409, "nothing was sent");
		} else if (hr_shell_press(&place, req, &frame, &state, &err) < 0) {
			hr_answer_detail(&answer, err.code == HR_E_NOTFOUND ? 404 : 500, err.msg);
		} else if (state.reason.len > 0) {
			hr_answer_detail(&answer, 409, "the command has ended");
		}
		c->env->leave(c->env->arg, &answer);
	}
	if (!is_there) {
		/* hr_mcp_look() has reported the error */
	} else if (answer.status == 200) {
		hr_mcp_say(c, "Sent. Call wait with handle \"%s\" to see what comes of it.",
		    hr_buf_str(&handle));
	} else if (answer.status == 409) {
		hr_mcp_fail(c,
		    "Nothing was sent: the command has ended. Call wait with handle \"%s\" for "
		    "its result.",
		    hr_buf_str(&handle));
	} else {
		hr_mcp_fail(c,
		    "It is not known whether it was sent: %s. Look with wait, handle \"%s\".",
		    hr_buf_str(&answer.body), hr_buf_str(&handle));
	}
	hr_answer_done(&answer);
}

/* Stops a process beside the shells; repeated after its end, what the first stop has spared. */
static void
stop_process(struct hr_mcp_call *c, const struct hr_mcp_wait *w)
{
	struct hr_mcp_process p;
	HR_BUF(handle, 256);

	hr_mcp_handle_put(&handle, w);
	if (!hr_mcp_look_beside(c, w, &p))
		return;
	if (!p.left)
		hr_mcp_fail(c,
		    "Nothing was sent: the command has ended, and has left no process. Call wait "
		    "with handle \"%s\" for its result.",
		    hr_buf_str(&handle));
	else if (c->env->beside->stop(c->env->server, w->process) < 0)
		hr_mcp_fail(c, "The command was not stopped: %s. Try again.", strerror(errno));
	else if (p.over)
		hr_mcp_say(c, "Sent to the processes that the command has left; it has ended.");
	else
		hr_mcp_say(c, "Sent. Call wait with handle \"%s\" to see what comes of it.",
		    hr_buf_str(&handle));
}

static const struct hr_mcp_param input_params[] = {
    {"handle", HR_MCP_STR, true, "Of the last answer to run or wait."},
    {"text", HR_MCP_STR, false, "Typed as it is; end it with a line feed for Enter."},
    {"keys", HR_MCP_LIST, false,
	"Instead of text, keys by name: Enter, Tab, Escape, Up, Down, C-c, C-d, F1 and so on."},
    {NULL, HR_MCP_STR, false, NULL},
};

static bool
put_keys(struct hr_mcp_call *c, struct json_object *list, struct hr_buf *names)
{
	char bytes[HR_KEY_MAX];
	size_t i, len, n = json_object_array_length(list), got;
	const char *name;

	if (n > KEYS_MAX)
		return hr_mcp_fail(c, "At most %d keys at a time.", KEYS_MAX);
	for (i = 0; i < n; i++) {
		name = hr_json_str(json_object_array_get_idx(list, i), &len);
		got = 0;
		if (strlen(name) != len ||
		    hr_key_bytes(name, len, false, bytes, sizeof(bytes), &got, NULL) < 0 ||
		    got == 0) {
			hr_mcp_fail(c, "There is no key \"%.50s\"; nothing was sent.", name);
			return false;
		}
		hr_buf_add(names, name, len);
		hr_buf_addc(names, '\0');
	}
	return names->fail == HR_OK;
}

static void
call_input(struct hr_mcp_call *c)
{
	struct json_object *keys = hr_json_at(c->args, "keys");
	struct hr_press_request req = {.what = HR_PRESS_TEXT, .text = hr_mcp_arg(c, "text")};
	struct hr_mcp_wait w;
	HR_BUF(names, HR_MCP_BODY_MAX + KEYS_MAX);

	if (!hr_mcp_handle_read(c, &w))
		return;
	if (w.process[0] != '\0') {
		hr_mcp_fail(c, "A command in the background has no input. Run it without "
			       "background, in a session of its own, to type for it.");
		return;
	}
	if ((keys != NULL) == (req.text.p != NULL)) {
		hr_mcp_fail(c, "input takes either text or keys.");
		return;
	}
	if (keys == NULL) {
		press(c, &w, &req);
	} else if (put_keys(c, keys, &names)) {
		req.what = HR_PRESS_KEYS;
		req.text = hr_span_of_buf(&names);
		press(c, &w, &req);
	}
}

const struct hr_mcp_tool hr_mcp_input = {.name = "input",
    .title = "Type for a command",
    .help = "Types text, or presses keys, for a command that run started and that still runs. "
	    "Answers at once; call wait to see what came of it.",
    .destroys = true,
    .open_world = true,
    .params = input_params,
    .call = call_input};

static const struct hr_mcp_param interrupt_params[] = {
    {"handle", HR_MCP_STR, true, "Of the last answer to run or wait."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_interrupt(struct hr_mcp_call *c)
{
	struct hr_press_request req = {
	    .what = HR_PRESS_KEYS, .text = {"C-c", sizeof("C-c")}}; /* the size includes the NUL */
	struct hr_mcp_wait w;

	if (!hr_mcp_handle_read(c, &w))
		return;
	if (w.process[0] != '\0')
		stop_process(c, &w);
	else
		press(c, &w, &req);
}

const struct hr_mcp_tool hr_mcp_interrupt = {.name = "interrupt",
    .title = "Interrupt a command",
    .help = "Presses C-c for a command that run started and that still runs. A command in the "
	    "background gets SIGTERM, and a second later SIGKILL; once it has ended, the processes "
	    "that it has left. Call wait then.",
    .destroys = true,
    .params = interrupt_params,
    .call = call_interrupt};
