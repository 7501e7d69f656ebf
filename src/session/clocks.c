/* The clocks of a request. */
#include "config.h"

#include <math.h>

#include "session/core_int.h"
#include "session/view.h"

/* To see whether the text has changed takes as long as to print it: a flood is looked at once in a
 * hundredth of the time that may pass without a change, and a change in it may be taken for so much
 * later. */
#define CHANGE_LOOKS 100

void
core_start_clocks(struct hr_core *c, const struct hr_run_request *r, int64_t now)
{
	double ms;

	c->start = c->last_change = now;
	c->generation = hr_view_generation(c->view);
	c->unseen = false;
	c->blocking = r->blocking;
	c->hard_at = INT64_MAX;
	c->timeout = r->timeout;
	if (r->timeout == 0 || isnan(r->timeout))
		return;
	ms = r->timeout * 1000.0;
	/* beyond some 100 years there is no difference to never */
	if (ms < 3.2e12)
		c->hard_at = now + (ms < 0 ? 0 : (int64_t)ms + ((double)(int64_t)ms < ms));
}

int64_t
core_no_change_at(const struct hr_core *c)
{
	return c->blocking ? INT64_MAX : c->last_change + c->config.no_change_ms;
}

void
core_see_change(struct hr_core *c)
{
	uint64_t generation;

	if (!c->unseen)
		return;
	c->unseen = false;
	generation = hr_view_generation(c->view);
	if (generation != c->generation && c->unseen_to > c->last_change)
		c->last_change = c->unseen_to;
	c->generation = generation;
}

void
core_feed(struct hr_core *c, const char *p, size_t len, int64_t now)
{
	if (c->unseen && now - c->unseen_from >= c->config.no_change_ms / CHANGE_LOOKS)
		core_see_change(c);
	hr_view_feed(c->view, p, len);
	if (!c->active || c->blocking)
		return;
	if (!c->unseen)
		c->unseen_from = now;
	c->unseen = true;
	c->unseen_to = now;
}
