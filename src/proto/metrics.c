/* The counters that are more than a number. */
#include "config.h"

#include "proto/metrics.h"

const char *const hr_alert_names[HR_ALERTS] = {"mem_high", "mem_critical", "oom_kill", "pids_max",
    "mem_pressure", "cpu_pressure", "disk_high", "error_rate"};

/* In one word, so that no count of a minute is added to another one's: the minute, errors, all. */
#define COUNT_MAX 0xffffu

static uint64_t
minute_of(int64_t now_ns)
{
	return (uint64_t)(now_ns / 60000000000) & 0xffffffffu;
}

void
hr_metrics_recent_add(struct hr_metrics *m, int64_t now_ns, bool error)
{
	uint64_t minute = minute_of(now_ns), all, errors;
	_Atomic uint64_t *at = &m->recent[minute % HR_METRICS_MINUTES];
	uint64_t was = atomic_load(at);

	do {
		bool same = was >> 32 == minute;

		all = same ? was & COUNT_MAX : 0;
		errors = same ? was >> 16 & COUNT_MAX : 0;
		if (all == COUNT_MAX)
			return; /* more is not needed to know the share */
		all++;
		errors += error;
	} while (!atomic_compare_exchange_weak(at, &was, minute << 32 | errors << 16 | all));
}

void
hr_metrics_recent(
    const struct hr_metrics *m, int64_t now_ns, unsigned *ret_all, unsigned *ret_errors)
{
	uint64_t minute = minute_of(now_ns), word;
	unsigned i;

	*ret_all = *ret_errors = 0;
	for (i = 0; i < HR_METRICS_MINUTES; i++) {
		word = atomic_load(&m->recent[i]);
		if (minute - (word >> 32) >= HR_METRICS_MINUTES)
			continue;
		*ret_all += (unsigned)(word & COUNT_MAX);
		*ret_errors += (unsigned)(word >> 16 & COUNT_MAX);
	}
}
