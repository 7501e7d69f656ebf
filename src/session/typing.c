/* Types into the terminal, and sets the step that the shell must take next, with its time limit. */
#include "config.h"

#include "session/core_int.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "session/prompt/hook.h"
#include "session/view/view.h"
#include "shell/split.h"

#define PASTE_BEGIN "\033[200~"
#define PASTE_END "\033[201~"
#define HEAL_MS 2000
/* milliseconds; readline reads a line at some 2.3 us per byte */
#define TAKE_MS 4000
#define TAKE_BYTES_PER_MS 50
#define REDRAW_BYTES_PER_MS 5000
#define QUOTED_MAX 8
#define WHOLE_MAX 1024 /* bytes that the keeper writes to the terminal at once */
/* milliseconds until C-c is typed again. Readline records a C-c that comes after it has taken the
 * terminal and before it has set its signal handlers, but acts on it only at the next key. */
#define AGAIN_MS 50

/* Returns the number of bytes that can be pasted unchanged: up to a CR, which readline would turn
 * into an LF, or to the mark that ends a paste. */
static size_t
pasteable(const char *p, size_t len)
{
	const char *cr = memchr(p, '\r', len);
	const char *end =
	    memmem(p, cr != NULL ? (size_t)(cr - p) : len, PASTE_END, strlen(PASTE_END));

	return end != NULL ? (size_t)(end - p) : cr != NULL ? (size_t)(cr - p) : len;
}

/* Returns true if the terminal's line discipline would interpret one of the bytes as a control
 * character. */
static bool
has_control(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
			return true;
	}
	return false;
}

/* Counts the C-v that quoting needs. */
static size_t
count_quoted(const char *p, size_t len)
{
	size_t n, count = 0;

	while ((n = pasteable(p, len)) < len) {
		p += n + 1;
		len -= n + 1;
		count++;
	}
	return count;
}

/* Types a paste in one write, since each write wakes the terminal's reader; the usual command fits.
 * Returns false for a text that is too long, or must be quoted. */
static bool
type_whole(struct hr_core *c, const char *p, size_t len, bool literal)
{
	static const char begin[] = PASTE_BEGIN, end[] = PASTE_END "\r";
	char text[WHOLE_MAX];
	size_t n = sizeof(begin) - 1;

	if (len == 0 || len > sizeof(text) - sizeof(begin) - sizeof(end) || pasteable(p, len) < len)
		return false;
	memcpy(text, begin, n);
	memcpy(text + n, p, len);
	n += len;
	memcpy(text + n, end, sizeof(end) - 1);
	c->ops.type(c->arg, text, n + sizeof(end) - 1, literal);
	return true;
}

/* Types text for readline as a paste: newlines and tabs are kept and several lines are run as one.
 * Bytes that cannot be pasted are typed between two pastes, quoted by C-v. */
static void
type_paste(struct hr_core *c, const char *p, size_t len)
{
	bool literal = has_control(p, len);
	size_t n;

	if (type_whole(c, p, len, literal))
		return;
	for (;;) {
		n = pasteable(p, len);
		if (n > 0) {
			c->ops.type(c->arg, PASTE_BEGIN, strlen(PASTE_BEGIN), literal);
			c->ops.type(c->arg, p, n, literal);
			c->ops.type(c->arg, PASTE_END, strlen(PASTE_END), literal);
		}
		if (n == len)
			break;
		c->ops.type(c->arg, "\026", 1, literal);
		c->ops.type(c->arg, p + n, 1, literal);
		p += n + 1;
		len -= n + 1;
	}
	c->ops.type(c->arg, "\r", 1, literal);
}

/* Types the text as one word for eval: readline draws the whole line after each paste, which takes
 * seconds for a text with many carriage returns. */
static void
type_eval(struct hr_core *c, const char *p, size_t len)
{
	HR_BUF(line, 2 * CORE_COMMAND_CAP);

	hr_buf_adds(&line, "\\builtin eval $'");
	for (; len > 0; p++, len--) {
		if (*p == '\r')
			hr_buf_adds(&line, "\\r");
		else if (*p == '\033')
			hr_buf_adds(&line, "\\e");
		else if (*p == '\'' || *p == '\\')
			hr_buf_addf(&line, "\\%c", *p);
		else
			hr_buf_addc(&line, *p);
	}
	hr_buf_adds(&line, "'");
	if (line.fail == HR_OK)
		type_paste(c, line.p, line.len);
	else
		/* no part of the command may run, so run a command that fails instead */
		type_paste(c, "false # out of memory", 21);
}

static int64_t
take_deadline(const char *p, size_t len, int64_t now)
{
	int64_t redraw_ms = 1 + (int64_t)(len / REDRAW_BYTES_PER_MS);

	return now + TAKE_MS + (int64_t)(len / TAKE_BYTES_PER_MS) +
	       (int64_t)count_quoted(p, len) * redraw_ms;
}

/* Types a text for a readline that marks the end of its echo. */
static void
type_line(struct hr_core *c, const char *p, size_t len, int64_t now)
{
	hr_view_expect_echo(c->view, p, len);
	type_paste(c, p, len);
	core_set_phase(c, PHASE_TYPED, take_deadline(p, len, now));
}

/* Types C-c; bash in readline must come back with a new prompt. */
void
core_type_interrupt(struct hr_core *c, int64_t now)
{
	c->ops.type(c->arg, "\003", 1, false);
	c->s.phase_deadline = now + AGAIN_MS;
	c->interrupting = true;
}

/* Types a key at an idle prompt if it brings a new prompt, or ends the shell. Any other key would
 * only edit the empty line, and its effect (a search, an old line, half a key sequence) would
 * become part of the next command. */
static void
type_key(struct hr_core *c, int64_t now)
{
	switch (c->key[0]) {
	case '\003':
		core_set_phase(c, PHASE_BUSY, INT64_MAX);
		core_type_interrupt(c, now);
		break;
	case '\004':
	case '\n':
	case '\r':
		core_set_phase(c, PHASE_BUSY, INT64_MAX);
		c->ops.type(c->arg, c->key, c->key_len, false);
		break;
	default: core_answer_completed(c); break;
	}
}

/* Returns true if a command may be `read -e` or `read -re`, which show something like a prompt. */
static bool
uses_readline(const char *p, size_t len)
{
	const char *end = p + len;

	if (memmem(p, len, "read", 4) == NULL)
		return false;
	while ((p = memchr(p, '-', (size_t)(end - p))) != NULL) {
		for (p++; p < end && isalpha((unsigned char)*p); p++) {
			if (*p == 'e')
				return true;
		}
	}
	return false;
}

/* Sends a command to a readline that waits for ops.give. Keys and long texts are typed instead. */
static void
give_command(struct hr_core *c, const char *p, size_t len, int64_t now)
{
	if (c->key_len == 0 && len <= HR_HOOK_LINE_MAX) {
		core_begun(c, p, len);
		if (c->ops.give(c->arg, p, len)) {
			hr_view_expect_more(c->view);
			core_set_phase(c, PHASE_TYPED, now + TAKE_MS);
			return;
		}
		c->retyped = true;
	}
	c->s.takes_lines = false;
	core_await_ready(c, now);
	core_await_readline(c, now);
	/* if that fails, too, readline does not appear and the shell is replaced */
	(void)c->ops.give(c->arg, "", 0);
}

void
core_type_command(struct hr_core *c, int64_t now)
{
	HR_BUF(text, CORE_COMMAND_CAP);
	const char *p;
	size_t len;

	if (c->s.exact) /* V0 sends the bytes unchanged */
		hr_shell_add_unix(&text, hr_buf_str(&c->command), c->command.len);
	if (text.fail != HR_OK) {
		core_answer_error(c, "out of memory", 13);
		return;
	}
	p = c->s.exact ? hr_buf_str(&text) : hr_buf_str(&c->command);
	len = c->s.exact ? text.len : c->command.len;
	c->to_type = false;
	c->s.last_change = now;
	if (c->s.ready_s > 0)
		core_limit(c, c->s.timeout, now);
	core_watch(c, now);
	c->s.reads_line = false;
	c->s.again = 0;
	if (c->s.takes_lines) {
		c->s.reads_line = uses_readline(p, len);
		give_command(c, p, len, now);
		return;
	}
	if (c->key_len > 0) {
		type_key(c, now);
		return;
	}
	core_begun(c, p, len);
	c->s.reads_line = uses_readline(p, len);
	if (c->s.marked) {
		hr_view_expect_echo(c->view, p, len);
		core_set_phase(c, PHASE_TYPED, take_deadline(p, len, now));
	} else {
		c->s.echoed = !c->ops.blind(c->arg);
		core_set_phase(c, PHASE_BUSY, INT64_MAX);
	}
	if (count_quoted(p, len) > QUOTED_MAX)
		type_eval(c, p, len);
	else
		type_paste(c, p, len);
}

void
core_await_command(struct hr_core *c, int64_t now)
{
	core_set_phase(c, PHASE_READY, INT64_MAX);
	c->s.marked = true;
	c->s.takes_lines = true;
	if (c->to_type)
		core_type_command(c, now);
}

bool
core_stop_giving(struct hr_core *c, int64_t now)
{
	c->s.takes_lines = false;
	c->s.marked = true;
	if (c->phase != PHASE_TYPED || !c->ops.take_back(c->arg))
		return false;
	c->retyped = true;
	core_type_command(c, now);
	return true;
}

/* Types text for the program that has the terminal, or for bash if it waits for the rest of a
 * command. */
void
core_type_input(struct hr_core *c, int64_t now)
{
	const char *p = hr_buf_str(&c->command);
	bool unfinished = c->phase == PHASE_TYPED && hr_view_readline(c->view), busy;

	c->s.again = 0;
	if (c->key_len > 0 && c->key[0] == '\003') {
		/* the reading of a line, or of the rest of a command, is aborted */
		c->s.reads_line = false;
		c->s.whole = true;
	}
	if (c->phase != PHASE_TYPED && c->phase != PHASE_BUSY) {
		/* the program has ended: continue as if the prompt had been there already */
		c->s.special = false;
		return;
	}
	if (unfinished && c->key_len == 0) {
		type_line(c, p, c->command.len, now);
		return;
	}
	if (unfinished && c->key[0] == '\003') {
		core_type_interrupt(c, now);
		return;
	}
	if (c->key_len > 0) {
		if (c->key[0] != '\003' || !hr_core_withdraw(c, 128 + SIGINT, &busy) || busy)
			c->ops.type(c->arg, c->key, c->key_len, false);
		return;
	}
	c->s.echoed = c->ops.echoes(c->arg);
	c->ops.type(c->arg, p, c->command.len, false);
	c->ops.type(c->arg, "\r", 1, false);
}

void
core_type_heal(struct hr_core *c, bool plain, int64_t now)
{
	HR_BUF(line, CORE_COMMAND_CAP);

	hr_hook_heal(c->config.hook, &line);
	if (plain)
		hr_buf_addc(&line, '\n');
	if (line.fail == HR_OK && plain) {
		hr_view_expect_line(c->view);
		c->ops.type(c->arg, line.p, line.len, false);
	} else if (line.fail == HR_OK) {
		type_line(c, line.p, line.len, now);
	}
	if (line.fail == HR_OK)
		core_set_phase(c, PHASE_HEALING, now + HEAL_MS);
}

/* Types an empty line, which changes nothing in the shell and brings its next prompt. */
void
core_type_nothing(struct hr_core *c, int64_t now)
{
	hr_view_expect_line(c->view);
	c->ops.type(c->arg, "\r", 1, false);
	core_set_phase(c, PHASE_EDITING, now + HEAL_MS);
}

/* Turns readline on: without it no command could be longer than a line of the terminal. */
void
core_type_editing(struct hr_core *c, int64_t now)
{
	HR_BUF(line, CORE_FIELD_CAP);

	hr_hook_editing(c->s.exit_code, &line);
	if (line.fail == HR_OK) {
		hr_view_expect_line(c->view);
		c->ops.type(c->arg, line.p, line.len, false);
		core_set_phase(c, PHASE_EDITING, now + HEAL_MS);
	}
}
