/* Keeps figures for the plots: the minutes of the last hour. */
#include "config.h"

#include "fleet/fleet_int.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "proto/json.h"

static void
count(void *arg, const struct hr_fleet_row *row)
{
	struct hr_fleet_level *l = arg;

	l->states[row->state]++;
	l->factors += row->factor;
}

static int
look(struct hr_fleet *f, int64_t when, struct hr_fleet_level *ret, struct hr_err *err)
{
	const struct hr_fleet_pool *p;

	*ret = (struct hr_fleet_level){.time = when};
	for (p = f->pools; p != NULL; p = p->next)
		ret->wanted += p->size;
	return f->store->ops->each(f->store, 0, true, count, ret, err);
}

void
hr_fleet_history_keep(struct hr_fleet *f)
{
	struct hr_fleet_history *h = &f->history;
	int64_t now = (int64_t)time(NULL), minute = now - now % 60;
	struct hr_err err = {0};

	if (h->minute == 0)
		h->minute = minute; /* there is no minute before the first */
	if (minute == h->minute)
		return;
	/* after the clock was set back, drop the entries that lie in the future */
	if (minute < h->minute)
		h->minute = minute;
	while (h->n > 0 && h->v[h->n - 1].time >= h->minute)
		h->n--;
	if (h->n == HR_FLEET_HISTORY)
		memmove(h->v, h->v + 1, --h->n * sizeof(*h->v));
	if (look(f, h->minute, &h->v[h->n], &err) == 0)
		h->n++;
	else
		hr_log(HR_LOG_ERROR, "cannot add to the history of the plots: %s", err.msg);
	h->minute = minute;
}

static void
put(struct hr_buf *b, const struct hr_fleet_level *l)
{
	const int64_t *n = l->states;

	hr_json_put_comma(b);
	hr_buf_addf(b,
	    "{\"time\":%" PRId64 ",\"running\":%" PRId64 ",\"paused\":%" PRId64
	    ",\"changing\":%" PRId64 ",\"warming\":%" PRId64 ",\"warm\":%" PRId64
	    ",\"wanted\":%" PRId64 ",\"factors\":%" PRId64 "}",
	    l->time, n[HR_FLEET_RUNNING], n[HR_FLEET_PAUSED],
	    n[HR_FLEET_STARTING] + n[HR_FLEET_PAUSING] + n[HR_FLEET_RESUMING] +
		n[HR_FLEET_STOPPING],
	    n[HR_FLEET_WARMING], n[HR_FLEET_WARM], l->wanted, l->factors);
}

int
hr_fleet_put_history(struct hr_fleet *f, struct hr_buf *b, struct hr_err *err)
{
	struct hr_fleet_level now;
	size_t i;

	hr_fleet_history_keep(f);
	if (look(f, (int64_t)time(NULL), &now, err) != 0)
		return -1;
	hr_buf_addf(b,
	    "\"limits\":{\"sandboxes\":%" PRId64 ",\"factors\":%" PRId64 "},\"minutes\":[",
	    f->set.limits.sandboxes, f->set.limits.factors);
	for (i = 0; i < f->history.n; i++)
		put(b, &f->history.v[i]);
	put(b, &now);
	hr_buf_addc(b, ']');
	return 0;
}
