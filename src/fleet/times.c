/* Counts durations, for the metrics. */
#include "config.h"

#include "fleet/fleet_int.h"

#include <inttypes.h>

#include "base/clock.h"

static const int64_t bounds_ms[HR_FLEET_BUCKETS - 1] = {
    10, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000};
static const char *const names[HR_PHASES] = {
    [HR_PHASE_QUEUE] = "queue",
    [HR_PHASE_CREATE] = "create",
    [HR_PHASE_CLAIM] = "claim",
    [HR_PHASE_PAUSE] = "pause",
    [HR_PHASE_RESUME] = "resume",
    [HR_PHASE_STOP] = "stop",
};

void
hr_fleet_took(struct hr_fleet *f, enum hr_fleet_phase phase, int64_t since_ms)
{
	struct hr_fleet_times *t = &f->times[phase];
	int64_t ms = hr_now_ms() - since_ms;
	size_t i = 0;

	while (i < HR_FLEET_BUCKETS - 1 && ms > bounds_ms[i])
		i++;
	__atomic_add_fetch(&t->buckets[i], 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&t->ms, (uint64_t)ms, __ATOMIC_RELAXED);
}

void
hr_fleet_put_head(struct hr_buf *b, const char *name, const char *type, const char *help)
{
	hr_buf_addf(b, "# HELP handrail_fleet_%s %s\n# TYPE handrail_fleet_%s %s\n", name, help,
	    name, type);
}

void
hr_fleet_put_times(const struct hr_fleet *f, struct hr_buf *b)
{
	size_t p;

	hr_fleet_put_head(b, "phase_seconds", "histogram", "What each step of a sandbox took.");
	for (p = 0; p < HR_PHASES; p++) {
		uint64_t n = 0;
		size_t i;

		for (i = 0; i < HR_FLEET_BUCKETS - 1; i++) {
			n += __atomic_load_n(&f->times[p].buckets[i], __ATOMIC_RELAXED);
			hr_buf_addf(b,
			    "handrail_fleet_phase_seconds_bucket{phase=\"%s\",le=\"%g\"} %" PRIu64
			    "\n",
			    names[p], (double)bounds_ms[i] / 1000, n);
		}
		n += __atomic_load_n(&f->times[p].buckets[HR_FLEET_BUCKETS - 1], __ATOMIC_RELAXED);
		hr_buf_addf(b,
		    "handrail_fleet_phase_seconds_bucket{phase=\"%s\",le=\"+Inf\"} %" PRIu64
		    "\nhandrail_fleet_phase_seconds_sum{phase=\"%s\"} %.3f\n"
		    "handrail_fleet_phase_seconds_count{phase=\"%s\"} %" PRIu64 "\n",
		    names[p], n, names[p],
		    (double)__atomic_load_n(&f->times[p].ms, __ATOMIC_RELAXED) / 1000, names[p], n);
	}
}
