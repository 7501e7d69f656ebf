/* Keeps alerts for the operator: raised where the fault is noticed; present and past ones stay in
 * memory, bounded. The console's streams learn of each change. */
#include "config.h"

#include "fleet/fleet_int.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "proto/json.h"

#define ENGINE_FAILS 3 /* number of consecutive failed calls */

static const char *const names[] = {
    [HR_ALERT_STORE] = "store",
    [HR_ALERT_ENGINE] = "engine",
    [HR_ALERT_ROOM] = "room",
    [HR_ALERT_QUOTA] = "quota",
    [HR_ALERT_POOL_EMPTY] = "pool_empty",
    [HR_ALERT_POOL_FAILING] = "pool_failing",
};

static void
changed(struct hr_fleet *f, const struct hr_fleet_alert_at *a, bool firing)
{
	struct hr_fleet_alerts *all = &f->alerts;

	if (all->past_n == HR_FLEET_ALERTS_PAST)
		memmove(all->past, all->past + 1, --all->past_n * sizeof(*all->past));
	all->past[all->past_n] = *a;
	all->past[all->past_n].at = (int64_t)time(NULL);
	all->past[all->past_n++].firing = firing;
	all->changes++;
	(void)pthread_cond_broadcast(&f->changed);
	hr_log(firing ? HR_LOG_WARNING : HR_LOG_NOTICE, "alert %s%s: %s", names[a->what],
	    firing ? "" : " is over", a->detail);
}

void
hr_fleet_alert(struct hr_fleet *f, enum hr_fleet_alert what, const char *of, const char *detail)
{
	struct hr_fleet_alerts *all = &f->alerts;
	struct hr_fleet_alert_at *a, new = {.what = what, .at = (int64_t)time(NULL)};
	size_t i = 0;

	while (i < all->now_n &&
	       (all->now[i].what != what || strncmp(all->now[i].of, of, sizeof(new.of) - 1) != 0))
		i++;
	a = &all->now[i];
	if (i < all->now_n && detail == NULL) {
		changed(f, a, false);
		memmove(a, a + 1, (--all->now_n - i) * sizeof(*a));
	} else if (i == all->now_n && i < HR_FLEET_ALERTS && detail != NULL) {
		*a = new;
		(void)snprintf(a->of, sizeof(a->of), "%s", of);
		(void)snprintf(a->detail, sizeof(a->detail), "%s", detail);
		all->now_n++;
		changed(f, a, true);
	}
}

/* Notes the result of a call. A single failure may come from an impossible request; repeated ones
 * mean that the engine is unwell. */
void
hr_fleet_alert_engine(struct hr_fleet *f, const char *why)
{
	f->engine_failed = why == NULL ? 0 : f->engine_failed + 1;
	if (why == NULL || f->engine_failed == ENGINE_FAILS)
		hr_fleet_alert(f, HR_ALERT_ENGINE, "", why);
}

void
hr_fleet_alert_room(struct hr_fleet *f, int64_t key)
{
	char of[32];

	(void)snprintf(of, sizeof(of), "%lld", (long long)key);
	hr_fleet_alert(f, HR_ALERT_QUOTA, of, NULL);
	hr_fleet_alert(f, HR_ALERT_ROOM, "", NULL);
}

void
hr_fleet_alert_start(struct hr_fleet *f, const struct hr_fleet_key *k,
    const struct hr_fleet_row *row, enum hr_fleet_result r, const struct hr_err *err)
{
	char of[32], detail[200];

	(void)snprintf(of, sizeof(of), "%lld", (long long)k->id);
	(void)snprintf(detail, sizeof(detail),
	    "a start was refused: the quota of key %s, %s, is used up", of, k->name);
	if (r == HR_FLEET_OK)
		hr_fleet_alert_room(f, k->id);
	if (r == HR_FLEET_OK && row->at[0] == '\0')
		hr_fleet_pool_missed(f, row->shape);
	if (r == HR_FLEET_QUOTA)
		hr_fleet_alert(f, HR_ALERT_QUOTA, of, detail);
	if (r == HR_FLEET_NO_ROOM)
		hr_fleet_alert(f, HR_ALERT_ROOM, "",
		    "a start was refused: --max-sandboxes or --max-factors is reached");
	if (r == HR_FLEET_OK || r == HR_FLEET_BROKEN)
		hr_fleet_alert(f, HR_ALERT_STORE, "", r == HR_FLEET_BROKEN ? err->msg : NULL);
}

static void
put(struct hr_buf *b, const struct hr_fleet_alert_at *a)
{
	hr_json_put_comma(b);
	hr_buf_addc(b, '{');
	hr_json_put_named(b, "alert", names[a->what]);
	hr_json_put_named(b, "detail", a->detail);
}

void
hr_fleet_put_alerts(const struct hr_fleet *f, struct hr_buf *b)
{
	const struct hr_fleet_alerts *all = &f->alerts;
	size_t i;

	hr_buf_adds(b, "\"alerts\":[");
	for (i = 0; i < all->now_n; i++) {
		put(b, &all->now[i]);
		hr_buf_addf(b, ",\"since\":%lld}", (long long)all->now[i].at);
	}
	hr_buf_adds(b, "],\"history\":[");
	for (i = 0; i < all->past_n; i++) {
		put(b, &all->past[i]);
		hr_buf_addf(b, ",\"state\":\"%s\",\"ts\":%lld}",
		    all->past[i].firing ? "firing" : "resolved", (long long)all->past[i].at);
	}
	hr_buf_addc(b, ']');
}
