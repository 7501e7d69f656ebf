/* Handles a shell that came back to its prompt without a report: its hook is lost. */
#include "config.h"

#include "session/core_int.h"
#include "session/view/view.h"

/* Intervals of looks at a running command grow, and finally looks happen only on request. */
#define WATCH_MS 100
#define WATCH_MAX_MS 15000
#define WORK_MS 10000 /* ms of processor time that no expected step takes */

void
core_watch(struct hr_core *c, int64_t now)
{
	c->s.watch_ms = WATCH_MS;
	c->s.watch_at = c->ops.look != NULL ? now + c->s.watch_ms : INT64_MAX;
}

int64_t
core_watch_at(const struct hr_core *c)
{
	return c->phase == PHASE_BUSY || (c->phase == PHASE_TYPED && c->s.takes_lines)
		   ? c->s.watch_at
		   : INT64_MAX;
}

static bool
is_due(struct hr_core *c, int64_t now)
{
	if (now < core_watch_at(c))
		return false;
	c->s.watch_ms *= 2;
	c->s.watch_at = c->s.watch_ms <= WATCH_MAX_MS ? now + c->s.watch_ms : INT64_MAX;
	return true;
}

/* Handles a prompt without a report: PROMPT_COMMAND was unset, or has no effect any more. A command
 * that reads a line with readline itself (read -e) looks the same; its text decides. */
void
core_suspect(struct hr_core *c, int64_t now)
{
	c->s.suspect_at = INT64_MAX;
	if (!hr_view_readline(c->view) || !c->ops.in_readline(c->arg))
		return;
	if (c->phase == PHASE_HEALING)
		hr_core_exited(c, 137, now); /* the shell executes nothing any more */
	else if (c->phase == PHASE_BUSY && !c->s.reads_line)
		core_type_heal(c, false, now);
}

/* Does the same if nothing at all was printed: in a terminal that readline considers dumb, or by
 * another bash. The command's text shows whether it waits for its rest. */
void
core_look(struct hr_core *c, int64_t now)
{
	enum hr_core_seen seen;

	if (!is_due(c, now))
		return;
	seen = c->ops.look(c->arg);
	if (seen == HR_SEEN_NOTHING || c->s.reads_line || !c->s.whole || hr_view_more(c->view) ||
	    c->s.suspect_at != INT64_MAX || c->interrupting)
		return;
	if (!c->s.takes_lines || !core_stop_giving(c, now))
		core_type_heal(c, seen == HR_SEEN_LINE, now);
}

bool
core_works(struct hr_core *c)
{
	int64_t ms = c->ops.works != NULL ? c->ops.works(c->arg) : -1;

	if (ms >= 0 && c->s.had_ms < 0)
		c->s.had_ms = ms;
	return ms >= 0 && ms - c->s.had_ms < WORK_MS;
}
