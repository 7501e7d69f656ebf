/* Builds the observations: content from the view, prefixes and suffixes literally as clients know
 * them. */
#include "config.h"

#include "session/core_int.h"

#include <ctype.h>
#include <string.h>

#include "base/text/floatrepr.h"
#include "session/prompt/hook.h"
#include "session/view/view.h"
#include "shell/text.h"

#define ADVICE                                                                                     \
	"You may wait longer to see additional output by sending empty command '', send other "    \
	"commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to " \
	"interrupt/kill the previous command before sending your new command, or use the timeout " \
	"parameter in execute_bash for future commands."
#define CONTINUED "[Below is the output of the previous command.]\n"

static void
send_result(struct hr_core *c, const struct hr_run_result *r)
{
	c->s.active = c->to_type = false;
	c->ops.result(c->arg, r);
}

bool
core_answer_error(struct hr_core *c, const char *text, size_t len)
{
	const struct hr_run_result r = {.is_error = true,
	    .hidden = c->s.hidden,
	    .exit_code = -1,
	    .pid = -1,
	    .content = {text, len}};

	send_result(c, &r);
	return false;
}

void
core_answer_nothing(struct hr_core *c, const char *text)
{
	const struct hr_run_result r = {
	    .hidden = c->s.hidden, .exit_code = -1, .pid = -1, .content = hr_span_of(text)};

	send_result(c, &r);
}

static size_t
count_lines(const struct hr_buf *b)
{
	const char *p = hr_buf_str(b), *end = p + b->len;
	size_t n = b->len > 0;

	while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		n++;
		p++;
	}
	return n;
}

static void
truncate_content(struct hr_buf *content)
{
	struct hr_buf cut = {.cap = content->cap};
	size_t head, tail;

	if (content->len == 0 || !hr_shell_truncation(content->p, content->len, &head, &tail))
		return;
	hr_buf_add(&cut, content->p, head);
	hr_buf_adds(&cut, hr_shell_truncated_mark);
	hr_buf_add(&cut, content->p + tail, content->len - tail);
	hr_buf_done(content);
	*content = cut; /* the content includes the error, if there is one */
}

/* Returns the command as requested, without the blank of hr_core_request(). */
static struct hr_span
command_text(const struct hr_core *c)
{
	struct hr_span command = hr_span_of_buf(&c->command);

	if (command.len > 0 && command.p[0] == ' ') {
		command.p++;
		command.len--;
	}
	return command;
}

/* Takes content and prefix of a run observation. */
static int
take_content(struct hr_core *c, struct hr_buf *content, struct hr_buf *prefix, bool completed,
    struct hr_err *err)
{
	/* only the original's clients get the preceding white space removed */
	const struct hr_span echoed = !c->s.echoed ? (struct hr_span){NULL, 0}
				      : c->s.exact ? hr_span_of_buf(&c->command)
						   : command_text(c);
	const char *trace = completed && c->s.traced ? c->config.hook->prompt_command : NULL;
	bool lost;
	int r;

	if (c->s.exact)
		r = hr_view_take_exact(c->view, echoed.p, echoed.len, trace, content, &lost, err);
	else
		r = hr_view_take(c->view, echoed.p, echoed.len, trace, content, &lost, err);
	if (r < 0)
		return -1;
	if (lost)
		hr_buf_addf(prefix,
		    "[Previous command outputs are truncated. Showing the last %zu lines of the "
		    "output below.]\n",
		    count_lines(content));
	if (!completed && c->s.observations > 0)
		hr_buf_adds(prefix, CONTINUED);
	if (!c->s.hidden && !c->s.exact)
		truncate_content(content);
	return hr_buf_check(content, err) < 0 ? -1 : hr_buf_check(prefix, err);
}

static void
answer_run(struct hr_core *c, bool completed, enum hr_clock clock, struct hr_buf *suffix)
{
	HR_BUF(content, CORE_COMMAND_CAP);
	HR_BUF(prefix, CORE_FIELD_CAP);
	struct hr_err err = {0};
	struct hr_run_result r = {
	    .hidden = c->s.hidden, .exit_code = -1, .pid = -1, .clock = clock};

	if (take_content(c, &content, &prefix, completed, &err) < 0 ||
	    hr_buf_check(suffix, &err) < 0) {
		core_answer_error(c, err.msg, strlen(err.msg));
		return;
	}
	r.command = command_text(c);
	r.content = hr_span_of_buf(&content);
	r.prefix = hr_span_of_buf(&prefix);
	r.suffix = hr_span_of_buf(suffix);
	if (completed) {
		r.has_metadata = true;
		r.exit_code = c->s.exit_code;
		r.pid = c->s.job;
		r.username = hr_span_of_buf(&c->username);
		r.hostname = hr_span_of(c->config.hostname);
		r.working_dir = hr_span_of_buf(&c->cwd);
		r.py_path = hr_span_of_buf(&c->py_path);
	}
	send_result(c, &r);
}

void
core_answer_completed(struct hr_core *c)
{
	HR_BUF(suffix, CORE_FIELD_CAP);

	hr_buf_addf(&suffix, "\n[The command completed with exit code %d.", c->s.exit_code);
	if (c->s.special && c->command.len == 3)
		hr_buf_addf(&suffix, " CTRL+%c was sent.", toupper((unsigned char)c->command.p[2]));
	hr_buf_adds(&suffix, "]");
	if (c->ops.why != NULL)
		c->ops.why(c->arg, c->s.exit_code, &suffix);
	hr_buf_add(&suffix, hr_buf_str(&c->notice), c->notice.len);
	if (c->notice.len > 0)
		c->texts++;
	hr_buf_reset(&c->notice);
	c->s.running = c->s.ended = false;
	answer_run(c, true, HR_CLOCK_NONE, &suffix);
	c->s.observations = 0;
	hr_view_reset(c->view, !c->s.is_session);
}

/* Answers while the command still runs, and marks the output as seen. clock: the limit that caused
 * the answer. */
static void
answer_unfinished(struct hr_core *c, enum hr_clock clock, struct hr_buf *suffix)
{
	struct hr_err err = {0};

	answer_run(c, false, clock, suffix);
	c->s.running = true;
	c->s.observations++;
	/* a failure makes the next observation repeat the text, which is better than none */
	(void)hr_view_mark(c->view, &err);
}

void
core_answer_no_change(struct hr_core *c)
{
	HR_BUF(suffix, CORE_FIELD_CAP);

	hr_buf_addf(&suffix, "\n[The command has no new output after %lld seconds. " ADVICE "]",
	    (long long)(c->config.no_change_ms / 1000));
	answer_unfinished(c, HR_CLOCK_NO_OUTPUT, &suffix);
}

void
core_answer_timeout(struct hr_core *c)
{
	HR_BUF(suffix, CORE_FIELD_CAP);

	hr_buf_adds(&suffix, "\n[The command timed out after ");
	hr_float_repr(&suffix, c->s.timeout);
	hr_buf_adds(&suffix, " seconds. " ADVICE "]");
	answer_unfinished(c, HR_CLOCK_HARD, &suffix);
}

void
core_answer_refused(struct hr_core *c)
{
	const struct hr_span command = command_text(c);
	HR_BUF(suffix, CORE_COMMAND_CAP);

	hr_buf_adds(&suffix, "\n[Your command \"");
	hr_buf_add(&suffix, command.p, command.len);
	hr_buf_adds(&suffix,
	    "\" is NOT executed. The previous command is still running - You CANNOT send new "
	    "commands until the previous command is completed. By setting `is_input` to `true`, "
	    "you can interact with the current process: " ADVICE "]");
	answer_unfinished(c, HR_CLOCK_NONE, &suffix);
}
