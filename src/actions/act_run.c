/* Performs run: checked here, executed by the keeper of a shell. Errors are a 200 with an error
 * observation (doc/actions.md, "Errors of actions"), and nothing is sent unless the whole request
 * is valid. */
#include "config.h"

#include <string.h>

#include "actions/action.h"
#include "actions/shell.h"
#include "base/fd.h"
#include "files/charset/charset.h"
#include "proto/channel.h"
#include "proto/obs.h"
#include "proto/python/repr.h"
#include "base/text/utf8.h"
#include "shell/split.h"

#define TRIES 32                /* maximum of keepers that may die during one action */
#define STATIC_TIMEOUT_MS 60000 /* ms for the start of a shell, not for its command */

static int
check_text(struct hr_span s, struct hr_buf *why)
{
	if (memchr(s.p, '\0', s.len) != NULL) {
		hr_buf_adds(why, "embedded null byte");
		return -1;
	}
	return hr_charset_check_text(s.p, s.len, why);
}

/* Fills the request. The contract checks the command's type before the limit's. `text` is a buffer
 * for the command of handrail's own interfaces. */
static int
request_fill(
    const struct hr_event *ev, struct hr_run_request *req, struct hr_buf *text, struct hr_buf *why)
{
	struct hr_arg command;
	struct hr_span given;

	hr_event_arg(ev, "command", &command);
	if (command.type != HR_PY_STR) {
		hr_buf_addf(
		    why, "'%s' object has no attribute 'strip'", hr_py_type_name(command.type));
		return -1;
	}
	/* the keeper trims it as well; positions in error texts count from here */
	given = command.text;
	hr_utf8_strip(&command.text.p, &command.text.len);
	if (check_text(command.text, why) < 0)
		return -1;
	req->is_input = hr_event_truth(ev, "is_input");
	/* Other callers have joined the text into one command. */
	if (ev->exact && !req->is_input) {
		if (hr_shell_add_one(text, given.p, given.len, false) < 0) {
			why->fail = text->fail != HR_OK ? text->fail : HR_E_NOMEM;
			return -1;
		}
		command.text = hr_span_of_buf(text);
	}
	req->command = command.text;
	req->blocking = hr_event_truth(ev, "blocking");
	req->hidden = hr_event_truth(ev, "hidden");
	req->whole = ev->whole_output;
	req->ready_s = ev->ready_s;
	return ev->timeout == NULL ? 0 : hr_py_float(ev->timeout, &req->timeout, why);
}

/* Refuses the action for now: the supervisor is dead and, if there is no shell, its keeper, too.
 * Nothing was done, and another supervisor will start. */
static int
refuse_for_now(struct hr_answer *ret, const struct hr_err *err)
{
	hr_answer_later(ret, err->msg);
	return -1;
}

/* Starts a new shell for this action alone. */
static int
static_open(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret,
    struct hr_buf *why)
{
	struct hr_channel_answer answer;
	struct hr_err err = {.code = HR_OK};
	struct hr_span dir = {"", 0};
	struct hr_arg cwd;

	hr_event_arg(ev, "cwd", &cwd);
	if (cwd.truth) {
		if (cwd.type != HR_PY_STR) {
			hr_buf_addf(why, "expected str, bytes or os.PathLike object, not %s",
			    hr_py_type_name(cwd.type));
			return -1;
		}
		dir = cwd.text;
		if (check_text(dir, why) < 0)
			return -1;
	}
	if (dir.len >= HR_CHANNEL_MAX) {
		hr_buf_adds(why, "[Errno 36] File name too long: ");
		hr_pyrepr_str(why, dir.p, dir.len);
		return -1;
	}
	if (hr_channel_ask(env->channel, HR_CHANNEL_STATIC, dir.p, dir.len,
		HR_CHANNEL_STATIC_ANSWER, STATIC_TIMEOUT_MS, &answer, &err) < 0) {
		hr_err_prefix(&err, "a new shell cannot be started");
		return refuse_for_now(ret, &err);
	}
	if (answer.fd < 0)
		hr_buf_add(why, answer.text, answer.len);
	return answer.fd;
}

static const char lost_text[] =
    "The command was started, but its result is lost: the processes that had it were killed. It is "
    "not run a second time.";

static const char silent_text[] = "The shell's keeper does not answer, so that the result is not "
				  "known. The command may have been "
				  "started; it is not run a second time.";

/* Connects to the keeper of the shell `at`, or starts a shell for this action alone if it is NULL.
 */
static int
shell_open(const struct hr_action_env *env, const struct hr_shell_place *at,
    const struct hr_event *ev, struct hr_answer *ret, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};
	int fd;

	if (at == NULL)
		return static_open(env, ev, ret, why);
	fd = hr_shell_connect(at, &err);
	if (fd < 0 && err.code == HR_E_NOTFOUND) {
		/* The action is unknown here: the shell in which it ran is gone. */
		hr_answer_detail(ret, env->again ? 500 : 404, env->again ? lost_text : err.msg);
		return -1;
	}
	return fd >= 0 ? fd : refuse_for_now(ret, &err);
}

static void
run_answer(struct hr_answer *ret, const struct hr_run_result *r, const char *session,
    const struct hr_arg *hidden)
{
	hr_answer_reset(ret);
	if (hr_obs_put_run(&ret->body, r, hidden) < 0)
		hr_answer_generic(ret);
	hr_answer_settle(ret);
	ret->note.error = r->is_error;
	ret->note.session = session;
	ret->note.clock = r->clock;
	ret->note.exit_code = r->exit_code;
	ret->note.output = r->content.len;
}

/* Returns true if the next keeper may be asked after one died during the action. If the command had
 * started, the next keeper continues it, or does not know it. */
static bool
try_next(const struct hr_action_env *env, struct hr_run_request *req, bool is_static)
{
	if (env->entry != NULL && !hr_journal_begun(env->entry))
		return true;
	req->again = !is_static && req->key.len > 0;
	return req->again;
}

/* Runs the command by a shell's keeper. A keeper that dies before the start leaves nothing behind,
 * so the next one is asked; likewise if a kept connection turns out to be closed. Returns -1 with
 * *err, or with `why` or ret (a status other than 200) filled. */
static int
run_somewhere(const struct hr_action_env *env, const struct hr_event *ev,
    struct hr_run_request *req, struct hr_buf *frame, struct hr_run_result *result,
    struct hr_answer *ret, struct hr_buf *why, struct hr_err *err)
{
	const struct hr_shell_place place = {
	    .run_dir = env->run_dir, .session = env->session, .limit_s = HR_SHELL_READY_S};
	bool is_static = hr_event_truth(ev, "is_static"), kept;
	const struct hr_shell_place *at = is_static ? NULL : &place;
	int tries = TRIES, fd, r;

	/* the shell has ended with the action, and no other process knows the result */
	if (env->again && is_static)
		return hr_err_set(err, HR_E_NOTFOUND, "a static session");
	req->stays = env->shell_fd != NULL && !is_static && !env->again;
	do {
		kept = req->stays && *env->shell_fd >= 0;
		fd = kept ? *env->shell_fd : shell_open(env, at, ev, ret, why);
		if (fd < 0)
			return -1;
		hr_buf_reset(frame);
		r = hr_shell_run(fd, at, kept, req, frame, result, err);
		if (req->stays)
			*env->shell_fd = r == 0 ? fd : -1;
		if (!req->stays || r != 0)
			hr_fd_close(&fd);
	} while (r > 0 ||
		 (r < 0 && err->code == HR_E_GONE && --tries > 0 && try_next(env, req, is_static)));
	if (r < 0 && err->code == HR_E_NOTFOUND && req->again && !env->again)
		err->code = HR_E_GONE; /* the action is lost with the keeper that had it */
	return r;
}

/* Returns 0 after answering, or -1 with the text of an error observation in `why`. */
static int
run(const struct hr_action_env *env, const struct hr_event *ev, const struct hr_arg *hidden,
    struct hr_answer *ret, struct hr_buf *why)
{
	struct hr_run_request req = {
	    .key = env->key, .again = env->again, .exact = env->rules == HR_RULES_OWN || ev->exact};
	struct hr_err err = {.code = HR_OK};
	struct hr_run_result result;
	HR_BUF(frame, HR_FRAME_MAX + HR_FRAME_HEADER + (64u << 10));
	HR_BUF(text, HR_FRAME_MAX);
	int r;

	if (request_fill(ev, &req, &text, why) < 0)
		return -1;
	if (env->entry != NULL)
		req.attempt = env->entry->attempt;
	r = run_somewhere(env, ev, &req, &frame, &result, ret, why, &err);
	/* the original's answers do not have the place of the output */
	if (r == 0 && !ev->whole_output)
		result.id = 0;
	if (r == 0)
		run_answer(ret, &result,
		    hr_event_truth(ev, "is_static") ? "static"
		    : env->session != NULL          ? env->session
						    : "default",
		    hidden);
	else if (err.code == HR_E_NOTFOUND)
		hr_answer_detail(ret, 500, lost_text);
	else if (err.code == HR_E_TIMEOUT)
		hr_answer_detail(ret, 500, silent_text);
	else if (err.code == HR_E_BUSY)
		(void)refuse_for_now(ret, &err);
	else if (err.code == HR_E_GONE)
		hr_buf_adds(why, "Bash session was likely interrupted...");
	else
		hr_buf_adds(why, err.msg);
	return r == 0 || ret->status != 200 ? 0 : -1;
}

static void
perform_run(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	struct hr_arg hidden;
	HR_BUF(why, HR_JSON_BODY_MAX);

	hr_event_arg(ev, "hidden", &hidden);
	hr_answer_reset(ret);
	if (hidden.given != NULL && hr_json_put(&ret->body, hidden.given) < 0) {
		/* the answer could not be written, so nothing runs */
		hr_answer_generic(ret);
		return;
	}
	if (run(env, ev, &hidden, ret, &why) < 0) {
		if (why.fail != HR_OK)
			hr_answer_generic(ret);
		else
			hr_action_error(ret, hr_buf_str(&why), why.len);
	}
}

const struct hr_action_ops hr_act_run = {"run", perform_run};
