/* Keeps the clocks of a request, and the time limits for each step of the shell. */
#include "config.h"

#include "session/core_int.h"
#include "session/view/view.h"

/* Comparing the text takes as long as printing it: during a flood it is compared once per hundredth
 * of the no-change limit, and a change may be noticed that much later. */
#define CHANGE_LOOKS 100

/* An epoll on a PTY master was seen to miss the shell's last bytes on Linux 6.18, about once in 300
 * starts under load; a read finds them. The caller reads before each hr_core_timer(). */
#define LOOK_MS 30
#define BLIND_LOOK_MS 1 /* readline does not print to the terminal */
#define LOOKS_MS 900    /* the longest pause between two looks, which take a second in all */
#define READY_MS 2000
#define AGAIN_MAX 20 /* maximum repetitions of C-c */

#define NOT_READY                                                                                  \
	"ERROR: The shell is not ready: it is still busy with its start-up files. The command "    \
	"was "                                                                                     \
	"NOT executed; send it again."

void
core_limit(struct hr_core *c, double limit_s, int64_t now)
{
	double ms = limit_s * 1000.0;

	c->s.hard_at = INT64_MAX;
	/* a limit of more than some 100 years means no limit */
	if (limit_s != 0 && ms < 3.2e12)
		c->s.hard_at = now + (ms < 0 ? 0 : (int64_t)ms + ((double)(int64_t)ms < ms));
}

void
core_start_clocks(struct hr_core *c, const struct hr_run_request *r, int64_t now)
{
	c->s.start = c->s.last_change = now;
	c->generation = hr_view_generation(c->view);
	c->unseen = false;
	c->s.blocking = r->blocking;
	c->s.timeout = r->timeout;
	c->s.ready_s = r->ready_s;
	core_limit(c, c->s.timeout, now);
}

void
core_await_ready(struct hr_core *c, int64_t now)
{
	c->to_type = true;
	if (c->s.ready_s > 0)
		core_limit(c, c->s.ready_s, now);
}

int64_t
core_no_change_at(const struct hr_core *c)
{
	return c->s.blocking ? INT64_MAX : c->s.last_change + c->config.no_change_ms;
}

void
core_see_change(struct hr_core *c)
{
	uint64_t generation;

	if (!c->unseen)
		return;
	c->unseen = false;
	generation = hr_view_generation(c->view);
	if (generation != c->generation && c->unseen_to > c->s.last_change)
		c->s.last_change = c->unseen_to;
	c->generation = generation;
}

void
core_feed(struct hr_core *c, const char *p, size_t len, int64_t now)
{
	if (c->unseen && now - c->unseen_from >= c->config.no_change_ms / CHANGE_LOOKS)
		core_see_change(c);
	hr_view_feed(c->view, p, len);
	if (!c->s.active || c->s.blocking)
		return;
	if (!c->unseen)
		c->unseen_from = now;
	c->unseen = true;
	c->unseen_to = now;
}

/* ---- deadlines ---- */

int64_t
hr_core_deadline(const struct hr_core *c)
{
	int64_t at = c->s.phase_deadline < c->s.suspect_at ? c->s.phase_deadline : c->s.suspect_at;

	if (core_watch_at(c) < at)
		at = core_watch_at(c);
	if (c->s.active) {
		if (c->s.hard_at < at)
			at = c->s.hard_at;
		if (!c->to_type && core_no_change_at(c) < at)
			at = core_no_change_at(c);
	}
	return at;
}

void
core_look_again(struct hr_core *c, int64_t now)
{
	c->s.look_ms = c->s.marked ? LOOK_MS : BLIND_LOOK_MS;
	c->s.phase_deadline = now + c->s.look_ms;
}

void
core_await_readline(struct hr_core *c, int64_t now)
{
	core_set_phase(c, PHASE_PREPARING, INT64_MAX);
	core_look_again(c, now);
}

/* Handles a readline that did not appear after the hook. */
static void
prepare_overdue(struct hr_core *c, int64_t now)
{
	c->s.look_ms *= 2;
	if (c->ops.in_readline(c->arg)) {
		core_become_ready(c, false, now);
		return;
	}
	if (c->ops.give != NULL)
		(void)c->ops.give(c->arg, "", 0); /* sends a waiting readline to the terminal */
	if (c->s.look_ms < LOOKS_MS) {
		c->s.phase_deadline = now + c->s.look_ms;
	} else if (!c->to_type) {
		c->s.phase_deadline = INT64_MAX; /* nothing waits for readline */
	} else if (c->s.again++ == 0) {
		/* The cause may be a part of PROMPT_COMMAND after the hook that still runs; or the
		 * trace of the hook, which would run for every command. */
		if (!c->s.tracing) {
			hr_view_expect_line(c->view);
			c->ops.type(c->arg, "\003", 1, false);
		}
		c->s.phase_deadline = now + READY_MS;
	} else if (core_works(c)) {
		c->s.phase_deadline = now + READY_MS;
	} else {
		hr_core_exited(c, 137, now);
	}
}

/* Handles a shell that does not take the expected step. The commands it runs in the foreground are
 * never judged here. */
static void
phase_overdue(struct hr_core *c, int64_t now)
{
	if (c->interrupting) {
		if (c->s.again++ < AGAIN_MAX)
			core_type_interrupt(c, now);
		else
			core_set_phase(c, c->phase, INT64_MAX); /* the shell ignores C-c */
		return;
	}
	switch (c->phase) {
	case PHASE_PREPARING: prepare_overdue(c, now); break;
	case PHASE_TYPED:
		if ((c->s.takes_lines && c->ops.away != NULL && c->ops.away(c->arg)) ||
		    core_works(c)) {
			c->s.phase_deadline = now + READY_MS; /* a trap came first */
			break;
		}
		if (c->s.takes_lines ? c->ops.take_back(c->arg) : c->ops.in_readline(c->arg)) {
			/* the keys are bound to other functions, so give the shell up */
			hr_core_exited(c, 137, now);
			break;
		}
		hr_view_end_echo(c->view); /* the mark was missed */
		core_set_phase(c, PHASE_BUSY, INT64_MAX);
		break;
	case PHASE_HEALING:
	case PHASE_EDITING:
		if (core_works(c)) {
			c->s.phase_deadline = now + READY_MS;
			break;
		}
		/* fall through */
	case PHASE_STARTING: hr_core_exited(c, 137, now); break;
	default: c->s.phase_deadline = INT64_MAX; break;
	}
}

void
hr_core_timer(struct hr_core *c, int64_t now)
{
	if (now >= c->s.suspect_at)
		core_suspect(c, now);
	if (now >= c->s.phase_deadline)
		phase_overdue(c, now);
	core_look(c, now);
	if (!c->s.active)
		return;
	if (!c->to_type && now >= core_no_change_at(c))
		core_see_change(c);
	if (c->to_type) {
		if (now >= c->s.hard_at)
			core_answer_error(c, NOT_READY, sizeof(NOT_READY) - 1);
	} else if (now >= core_no_change_at(c)) {
		core_answer_no_change(c);
	} else if (now >= c->s.hard_at) {
		core_answer_timeout(c);
	}
}
