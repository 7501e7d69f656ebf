/* Implements the counters that are more than one number. */
#include "config.h"

#include "proto/metrics.h"

#include <inttypes.h>

#include "base/buf.h"

const char *const hr_alert_names[HR_ALERTS] = {"mem_high", "mem_critical", "oom_kill", "pids_max",
    "mem_pressure", "cpu_pressure", "disk_high", "error_rate"};

/* One word holds the minute, the errors and all answers, so that counts of different minutes never
 * mix. */
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
			return; /* the share is known precisely enough */
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

void
hr_metrics_minute_add(
    struct hr_metrics *m, int64_t now_ns, bool error, uint64_t us, uint64_t output_bytes)
{
	uint64_t minute = (uint64_t)(now_ns / 60000000000) + 1, was;
	struct hr_metrics_minute *at = &m->minutes[minute % HR_METRICS_HOUR];

	was = atomic_load(&at->minute);
	if (was != minute && atomic_compare_exchange_strong(&at->minute, &was, minute)) {
		atomic_store(&at->actions, 0);
		atomic_store(&at->errors, 0);
		atomic_store(&at->microseconds, 0);
		atomic_store(&at->output_bytes, 0);
	}
	atomic_fetch_add(&at->actions, 1);
	atomic_fetch_add(&at->errors, error);
	atomic_fetch_add(&at->microseconds, us);
	atomic_fetch_add(&at->output_bytes, output_bytes);
}

void
hr_metrics_put_minutes(struct hr_buf *b, const struct hr_metrics *m, int64_t now_ns, int64_t now_s)
{
	uint64_t now = (uint64_t)(now_ns / 60000000000) + 1, us, minute;
	const char *between = "";
	unsigned back;

	hr_buf_addc(b, '[');
	for (back = HR_METRICS_HOUR - 1; back < HR_METRICS_HOUR; back--) {
		const struct hr_metrics_minute *at;

		if (now <= back)
			continue; /* that minute is before the machine's start */
		minute = now - back;
		at = &m->minutes[minute % HR_METRICS_HOUR];
		if (atomic_load(&at->minute) != minute)
			continue;
		us = atomic_load(&at->microseconds);
		hr_buf_addf(b,
		    "%s[%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ".%06" PRIu64 ",%" PRIu64 "]",
		    between, now_s - now_s % 60 - 60 * (int64_t)back, atomic_load(&at->actions),
		    atomic_load(&at->errors), us / 1000000, us % 1000000,
		    atomic_load(&at->output_bytes));
		between = ",";
	}
	hr_buf_addc(b, ']');
}
