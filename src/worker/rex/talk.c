/* Handles interactive programs: starts them without waiting for their end, types, waits for
 * expected output, interrupts. Their output is followed in the shell's log. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "actions/command.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/text/utf8.h"
#include "worker/rex/expect.h"
#include "worker/rex/rex.h"

#define FRAME_MAX (2u << 20)
#define SEEN_MAX ((size_t)8 << 20) /* maximum bytes of output to search */
#define OVERLAP 4096               /* bytes before new output where a match may start */
#define TRIES 32                   /* times that a keeper may die during one request */
#define BEGIN_S 0.05               /* seconds for a program to start; then it is followed */
#define KEY_MAX 64
#define RETRIES_MAX 50
#define STOP_MS 1000 /* milliseconds to wait after a stop key */
#define DEAD_MS 5000 /* milliseconds to wait after SIGKILL */
#define KILL_S 5

/* Kills only the last stopped job; bash reports the end of a foreground job. */
const char hr_rex_kill_text[] = "[[ $(jobs -s) ]] && kill -9 %+ && fg %+";

/* ---- following ---- */

enum met { MET_EXPECT, MET_END, MET_TIME, MET_ERROR, MET_STEPS };

struct follow {
	const struct hr_shell_place *place;
	struct hr_rex_expect *expect;
	struct hr_command_state command;
	uint64_t from;    /* offset of the first byte in `seen` */
	int64_t until_ms; /* 0: no deadline */
	struct hr_buf seen;
	size_t searched;
	int which;     /* index of the matched expression */
	size_t length; /* bytes of `seen` before the match */
	struct hr_err err;
};

static void
follow_init(struct follow *f, const struct hr_shell_place *place, struct hr_rex_expect *e)
{
	memset(f, 0, sizeof(*f));
	f->place = place;
	f->expect = e;
	hr_buf_init(&f->seen, SEEN_MAX + FRAME_MAX);
}

static void
follow_done(struct follow *f)
{
	hr_buf_done(&f->seen);
}

/* Returns true if fd is readable, or false at the deadline. */
static bool
wait_for(int fd, int64_t until_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t left;
	int n;

	do {
		left = until_ms == 0 ? 3600000 : until_ms - hr_now_ms();
		if (left <= 0)
			return false;
		n = poll(&p, 1, left > 3600000 ? 3600000 : (int)left);
	} while (n == 0 || (n < 0 && errno == EINTR));
	return true;
}

/* Searches the output. Returns MET_ERROR if nothing matches yet. */
static enum met
met(struct follow *f)
{
	const char *p = hr_buf_str(&f->seen);
	size_t from = f->searched > OVERLAP ? f->searched - OVERLAP : 0;
	int i;

	for (i = 0; i < 3 && from > 0 && ((unsigned char)p[from] & 0xC0) == 0x80; i++)
		from--; /* move to the start of a character */
	f->which = hr_rex_expect_match(f->expect, p, f->seen.len, from, f->until_ms, &f->length);
	f->searched = f->seen.len;
	return f->which >= 0 ? MET_EXPECT : f->which == -1 ? MET_ERROR : MET_STEPS;
}

/* Follows until the connection ends. Returns MET_ERROR then, though the command may still run. */
static enum met
follow_once(struct follow *f)
{
	const struct hr_follow_request req = {
	    .offset = f->from + f->seen.len, .stays = true, .command = f->command.id};
	struct hr_output_piece piece;
	HR_BUF(frame, FRAME_MAX);
	enum met r = MET_ERROR;
	size_t used;
	HR_CLOSE int fd = hr_shell_follow(f->place, &req, &f->err);

	if (fd < 0)
		return MET_ERROR;
	while (r == MET_ERROR) {
		/* check the time for a program that never stops printing, too */
		if ((f->until_ms != 0 && hr_now_ms() >= f->until_ms) ||
		    (!hr_frame_waits(&frame) && !wait_for(fd, f->until_ms))) {
			r = MET_TIME;
			break;
		}
		if (hr_shell_piece(fd, &frame, &piece, &used, &f->err) <= 0)
			break;
		if (f->seen.len > SEEN_MAX || piece.offset != f->from + f->seen.len) {
			/* the buffer is full or old output was dropped: continue with the newer
			 * part */
			hr_buf_reset(&f->seen);
			f->from = piece.offset;
			f->searched = 0;
		}
		hr_buf_add(&f->seen, piece.bytes.p, piece.bytes.len);
		hr_buf_drop_front(&frame, used);
		r = met(f);
	}
	return r;
}

/* Updates the command's state. Returns false if the keeper does not know the command. */
static bool
update_state(struct follow *f)
{
	struct hr_command_state list[HR_COMMANDS_MAX];
	HR_BUF(frame, HR_FRAME_MAX);
	size_t n = 0, i;
	bool found = false;

	if (hr_shell_commands(f->place, &frame, list, &n, &f->err) < 0)
		n = 0;
	for (i = 0; i < n && !found; i++)
		found = list[i].id == f->command.id && list[i].started == f->command.started;
	if (found) {
		f->command = list[i - 1];
		f->command.key = f->command.text = (struct hr_span){"", 0};
	}
	return found;
}

static enum met
follow(struct follow *f)
{
	enum met r = met(f);
	int tries = TRIES;

	while (r == MET_ERROR && tries-- > 0) {
		r = follow_once(f);
		if (r == MET_ERROR && update_state(f) && f->command.end != HR_COMMAND_RUNNING)
			return MET_END; /* all of the command's output was read before */
	}
	return r;
}

/* Appends all output, or only the part before the match. */
static void
put_seen(const struct follow *f, bool whole, struct hr_buf *out)
{
	hr_rex_clean(out, hr_buf_str(&f->seen), whole ? f->seen.len : f->length);
}

/* ---- answers ---- */

static struct hr_span
pattern(const struct follow *f)
{
	struct hr_span s;

	s.p = hr_json_str(hr_json_entry(f->expect->list, (size_t)f->which), &s.len);
	return s;
}

/* Computes output.lstrip().removeprefix(command).strip(). */
static struct hr_span
bare(struct hr_span out, struct hr_span command)
{
	hr_utf8_strip(&out.p, &out.len);
	if (out.len >= command.len && memcmp(out.p, command.p, command.len) == 0) {
		out.p += command.len;
		out.len -= command.len;
	}
	hr_utf8_strip(&out.p, &out.len);
	return out;
}

static void
raise_steps(struct hr_rex_call *c)
{
	hr_rex_raisef(c->ret, "builtins.RuntimeError",
	    "the expressions of expect took too many steps (%d); use simpler ones. The command "
	    "continues",
	    HR_REX_EXPECT_STEPS);
}

static void
answer(struct hr_rex_call *c, struct follow *f, enum met how)
{
	static const int64_t zero = 0;
	bool quits = hr_rex_true(c, "is_interactive_quit"),
	     talks = hr_rex_true(c, "is_interactive_command");
	struct hr_span text;
	HR_BUF(out, HR_ANSWER_MAX);

	put_seen(f, how != MET_EXPECT, &out);
	(void)hr_shell_returned(f->place, f->from + f->seen.len);
	text = hr_span_of_buf(&out);
	if (talks && !quits)
		text = bare(text, hr_rex_str(c, "command"));
	if (out.fail != HR_OK)
		hr_answer_generic(c->ret);
	else if (how == MET_TIME)
		hr_rex_late(c, text);
	else if (how == MET_STEPS)
		raise_steps(c);
	else if (how == MET_ERROR)
		hr_rex_raisef(c->ret, "builtins.RuntimeError",
		    "the command was started, but its result is unknown: %s", f->err.msg);
	else if (how == MET_EXPECT) /* the command still runs and has no exit code */
		hr_rex_observe(c, text, talks || quits ? &zero : NULL, pattern(f));
	else if (talks || quits)
		hr_rex_observe(c, text, &zero, hr_span_of(HR_REX_PROMPT));
	else
		hr_rex_completed(c, text, f->command.exit_code);
}

/* ---- starting and typing ---- */

/* Returns 1 with the running command, 0 if there is none, or -1 after sending an error. */
static int
running(struct hr_rex_call *c, const struct hr_shell_place *place, struct hr_command_state *ret,
    struct hr_buf *frame)
{
	int r;

	hr_buf_reset(frame);
	r = hr_command_find(place, (struct hr_span){"", 0}, frame, ret);
	if (r < 0)
		hr_answer_later(c->ret, "the shell cannot be asked; nothing was done");
	return r;
}

static void
set_limit(struct follow *f, double limit_s)
{
	f->until_ms = limit_s > 0 && limit_s < 1e9 ? hr_now_ms() + (int64_t)(limit_s * 1000) : 0;
}

/* Waits for the prompt, then up to BEGIN_S for the command. `key` has KEY_MAX bytes and is set to
 * the command's key. Returns false after raising an exception. */
static bool
begin(struct hr_rex_call *c, struct follow *f, struct hr_span text, char *key,
    struct hr_rex_result *result)
{
	double limit_s = hr_rex_limit_s(c);
	char id[17];

	if (hr_random_hex(id, sizeof(id) - 1, &f->err) < 0)
		return hr_answer_generic(c->ret);
	/* the key is random: a keeper repeats its old answer to a known key */
	(void)snprintf(key, KEY_MAX, "swerex:start:%s", id);
	return hr_rex_run(c, f->place->session, NULL, text, BEGIN_S,
	    limit_s > 0 ? limit_s : HR_SHELL_READY_S, hr_span_of(key), result);
}

static void
start(struct hr_rex_call *c, struct follow *f, struct hr_span text)
{
	HR_CLEAN(hr_rex_result_done) struct hr_rex_result result = {0};
	char key[KEY_MAX];
	HR_BUF(frame, HR_FRAME_MAX);

	set_limit(f, hr_rex_limit_s(c));
	if (!begin(c, f, text, key, &result))
		return;
	if (result.refused) {
		hr_rex_busy(c);
	} else if (hr_command_find(f->place, hr_span_of(key), &frame, &f->command) <= 0) {
		hr_rex_raisef(c->ret, "builtins.RuntimeError",
		    "the command was started, but its result is unknown");
	} else {
		f->from = f->command.log_start;
		answer(c, f, follow(f));
	}
}

/* Asks the keeper to press a key or send a signal to the command. Returns false after raising an
 * exception. */
static bool
ask_press(struct hr_rex_call *c, struct follow *f, struct hr_press_request req)
{
	struct hr_session_state state;
	HR_BUF(frame, HR_FRAME_MAX);

	req.command = f->command.id;
	if (hr_shell_press(f->place, &req, &frame, &state, &f->err) < 0)
		return hr_rex_raisef(c->ret, "builtins.RuntimeError",
		    "it is not known whether it was typed: %s", f->err.msg);
	/* a reason means that the command has ended, which follow() detects, or is only the shell's
	 * own work */
	return true;
}

static bool
press(struct hr_rex_call *c, struct follow *f, enum hr_press_what what, struct hr_span text)
{
	return ask_press(c, f, (struct hr_press_request){.what = what, .text = text});
}

/* Sends SIGKILL to the foreground and follows. Returns false after raising an exception. */
static bool
press_kill(struct hr_rex_call *c, struct follow *f, bool spares, enum met *how)
{
	f->until_ms = hr_now_ms() + DEAD_MS;
	if (!ask_press(c, f,
		(struct hr_press_request){
		    .what = HR_PRESS_SIGNAL, .signal = SIGKILL, .spares = spares, .text = {"", 0}}))
		return false;
	*how = follow(f);
	return true;
}

static void
type(struct hr_rex_call *c, struct follow *f, struct hr_span command)
{
	struct hr_session_state state;
	HR_BUF(frame, HR_FRAME_MAX);
	HR_BUF(line, HR_JSON_BODY_MAX + 1);

	hr_buf_add(&line, command.p, command.len);
	hr_buf_addc(&line, '\n');
	set_limit(f, hr_rex_limit_s(c));
	if (hr_buf_check(&line, NULL) < 0) {
		hr_answer_generic(c->ret);
	} else if (hr_shell_state(f->place, &frame, &state, &f->err) < 0) {
		hr_rex_raisef(c->ret, "builtins.RuntimeError", "nothing was typed: %s", f->err.msg);
	} else {
		f->from = state.log_end;
		if (press(c, f, HR_PRESS_TEXT, hr_span_of_buf(&line)))
			answer(c, f, follow(f));
	}
}

/* Compiles the expected expressions. Returns false after raising an exception. */
static bool
expect_init(struct hr_rex_call *c, struct hr_rex_expect *e)
{
	HR_BUF(why, 1024);

	return hr_rex_expect_init(e, hr_json_at(c->body, "expect"), &why) == 0 ||
	       hr_rex_raise(c->ret, "re.error", &why, "");
}

void
hr_rex_talk(struct hr_rex_call *c, const struct hr_shell_place *place, struct hr_span text)
{
	HR_CLEAN(hr_rex_expect_done) struct hr_rex_expect e = {0};
	HR_CLEAN(follow_done) struct follow f;
	HR_BUF(frame, HR_FRAME_MAX);
	int runs = 0;

	follow_init(&f, place, &e);
	if (memchr(text.p, '\0', text.len) != NULL) {
		hr_rex_raisef(c->ret, "builtins.ValueError", "embedded null byte");
	} else if (expect_init(c, &e) && hr_rex_enter(c)) {
		/* the choice between typing and starting is covered by the journal, too */
		if (hr_rex_true(c, "is_interactive_command") ||
		    hr_rex_true(c, "is_interactive_quit"))
			runs = running(c, place, &f.command, &frame);
		if (runs > 0)
			type(c, &f, text);
		else if (runs == 0)
			start(c, &f, text);
		hr_rex_leave(c);
	}
}

/* ---- interrupt ---- */

/* Returns true for bash's exit codes of a job stopped by a key or by itself, as pagers do; bash
 * adds no signal for a pipeline whose first part had ended. */
static bool
is_stopped(int64_t code)
{
	return code == 128 || code == 128 + SIGTSTP || code == 128 + SIGSTOP ||
	       code == 128 + SIGTTIN || code == 128 + SIGTTOU;
}

/* Kills the job that bash has stopped. Returns false after raising an exception. */
static bool
kill_stopped(struct hr_rex_call *c, struct follow *f)
{
	HR_CLEAN(hr_rex_result_done) struct hr_rex_result result = {0};

	if (!hr_rex_run(c, f->place->session, NULL, hr_span_of(hr_rex_kill_text), KILL_S,
		HR_SHELL_READY_S, hr_span_of("swerex:kill"), &result))
		return false;
	return result.exit_code >= 0 ||
	       hr_rex_raisef(c->ret, "pexpect.exceptions.TIMEOUT",
		   "Failed to interrupt session: what was stopped was not killed");
}

/* Stops and kills the program, or only kills it if it cannot be stopped. Returns false after
 * raising an exception. */
static bool
kill_program(struct hr_rex_call *c, struct follow *f, enum met *how)
{
	static const char stop[] = "C-z"; /* the size includes the NUL */
	struct hr_rex_expect *expected = f->expect, nothing = {0};

	f->until_ms = hr_now_ms() + STOP_MS;
	if (!press(c, f, HR_PRESS_KEYS, (struct hr_span){stop, sizeof(stop)}))
		return false;
	f->expect = &nothing; /* waits only for the end */
	*how = follow(f);
	/* The program may have ended, and a shell that is slow to report this has the terminal. Its
	 * variables and jobs are lost only if it is still at it much later. */
	if (*how == MET_TIME && !press_kill(c, f, true, how))
		return false;
	f->expect = expected;
	/* a program that ended by itself left no stopped job: other jobs are the user's */
	if (*how == MET_END)
		return !is_stopped(f->command.exit_code) || kill_stopped(c, f);
	return *how != MET_TIME || press_kill(c, f, false, how);
}

static void
interrupt(struct hr_rex_call *c, struct follow *f)
{
	static const char key[] = "C-c"; /* the size includes the NUL */
	static const int64_t zero = 0;
	double n = hr_rex_number(c, "n_retry", 3), wait_s = hr_rex_number(c, "timeout", 0.2);
	enum met how = MET_TIME;
	struct hr_span text;
	HR_BUF(out, HR_ANSWER_MAX);
	int i, tries = n >= RETRIES_MAX ? RETRIES_MAX : n > 0 ? (int)n : 0;

	for (i = 0; i < tries && how == MET_TIME; i++) {
		if (!press(c, f, HR_PRESS_KEYS, (struct hr_span){key, sizeof(key)}))
			return;
		f->until_ms = hr_now_ms() + (wait_s > 60     ? 60000
						: wait_s > 0 ? (int64_t)(wait_s * 1000)
							     : 1);
		how = follow(f);
	}
	if (how == MET_TIME && !kill_program(c, f, &how))
		return;
	put_seen(f, how != MET_EXPECT, &out);
	(void)hr_shell_returned(f->place, f->from + f->seen.len);
	text = hr_span_of_buf(&out);
	hr_utf8_strip(&text.p, &text.len);
	if (how == MET_TIME || how == MET_ERROR)
		hr_rex_raisef(c->ret, "pexpect.exceptions.TIMEOUT", "Failed to interrupt session");
	else if (how == MET_STEPS)
		raise_steps(c);
	else if (out.fail != HR_OK)
		hr_answer_generic(c->ret);
	else
		hr_rex_observe(
		    c, text, &zero, how == MET_EXPECT ? pattern(f) : hr_span_of(HR_REX_PROMPT));
}

void
hr_rex_interrupt(struct hr_rex_call *c, const struct hr_shell_place *place)
{
	static const int64_t zero = 0;
	HR_CLEAN(hr_rex_expect_done) struct hr_rex_expect e = {0};
	HR_CLEAN(follow_done) struct follow f;
	HR_BUF(frame, HR_FRAME_MAX);
	int runs;

	follow_init(&f, place, &e);
	if (expect_init(c, &e) && hr_rex_enter(c)) {
		runs = running(c, place, &f.command, &frame);
		if (runs > 0) {
			f.from = f.command.log_start;
			interrupt(c, &f);
		} else if (runs == 0) {
			hr_rex_observe(
			    c, (struct hr_span){"", 0}, &zero, hr_span_of(HR_REX_PROMPT));
		}
		hr_rex_leave(c);
	}
}
