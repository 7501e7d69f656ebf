/* Answers GET /metrics. The figures come from shared memory and, for processes, from /proc, after
 * the supervisor has checked the resources: some control groups send no event for a memory
 * level. */
#include "config.h"

#include "worker/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "proto/channel.h"
#include "proto/evclass.h"
#include "worker/ready.h"
#include "worker/worker.h"

/* bounds in microseconds; most of the time is the command's own, so the range is wide */
static const uint64_t bounds[] = {500, 1000, 2500, 5000, 10000, 50000, 100000, 500000, 1000000,
    5000000, 10000000, 60000000, 300000000, 1800000000};

#define LOOK_TIMEOUT_MS 1000

#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

_Static_assert(BOUNDS < HR_METRICS_BUCKETS, "no room for the histogram");

static const char *const pool_names[HR_SCOREBOARD_POOLS] = {
    "control", "files", "action", "live", "page"};
static const char *const clock_names[HR_CLOCKS] = {NULL, "no_output", "hard"};
static const char *const restart_names[HR_RESTARTS] = {"worker", "session", "nginx"};

static void
count_plugin(struct hr_metrics *m, const struct hr_note *note)
{
	size_t i;

	if (note->plugin[0] == '\0')
		return;
	for (i = 0; i < HR_METRICS_PLUGINS; i++) {
		if (strcmp(m->plugins[i].name, note->plugin) != 0)
			continue;
		atomic_fetch_add(&m->plugins[i].actions, 1);
		atomic_fetch_add(&m->plugins[i].failed, note->plugin_failed);
		return;
	}
}

void
hr_metrics_count(struct hr_scoreboard *board, const struct hr_answer *a, int64_t ns)
{
	struct hr_metrics *m = &board->metrics;
	struct hr_action_metrics *am;
	uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
	size_t i = 0;

	if (a->status >= 100 && a->status < 600)
		atomic_fetch_add(&m->answers[a->status / 100], 1);
	count_plugin(m, &a->note);
	if (a->note.cls == NULL)
		return;
	hr_assert(hr_action_classes_n <= HR_METRICS_ACTIONS);
	hr_metrics_recent_add(m, hr_now_ns(), a->status != 200 || a->note.error);
	hr_metrics_minute_add(m, hr_now_ns(), a->status != 200 || a->note.error, us,
	    a->note.session != NULL ? a->note.output : 0);
	am = &m->actions[a->note.cls - hr_action_classes];
	atomic_fetch_add(a->status != 200 ? &am->failed : a->note.error ? &am->errors : &am->ok, 1);
	while (i < BOUNDS && us > bounds[i])
		i++;
	atomic_fetch_add(&am->buckets[i], 1);
	atomic_fetch_add(&am->microseconds, us);
	if (a->note.session == NULL || a->note.error)
		return;
	atomic_fetch_add(&m->output_bytes, a->note.output);
	atomic_fetch_add(&m->clocks[a->note.clock], 1);
	if (a->note.exit_code == -1)
		atomic_fetch_add(&m->still_running, 1);
	else
		atomic_fetch_add(
		    &m->exits[a->note.exit_code >= 0 && a->note.exit_code < HR_METRICS_EXITS - 1
				  ? (size_t)a->note.exit_code
				  : HR_METRICS_EXITS - 1],
		    1);
}

/* ---- the text ---- */

static void
put_type(struct hr_buf *b, const char *name, const char *type, const char *help)
{
	hr_buf_addf(b, "# HELP handrail_%s %s\n# TYPE handrail_%s %s\n", name, help, name, type);
}

static void
put_one(struct hr_buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
	put_type(b, name, type, help);
	hr_buf_addf(b, "handrail_%s %" PRIu64 "\n", name, v);
}

static void
put_labelled(struct hr_buf *b, const char *name, const char *label, const char *value, uint64_t v)
{
	hr_buf_addf(b, "handrail_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, value, v);
}

static uint64_t
action_total(const struct hr_action_metrics *am)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i <= BOUNDS; i++)
		sum += atomic_load(&am->buckets[i]);
	return sum;
}

static void
put_results(struct hr_buf *b, const struct hr_metrics *m)
{
	static const char *const results[] = {"ok", "error", "failed"};
	size_t i, k;

	put_type(b, "actions_total", "counter",
	    "Actions by type: an observation, an error observation, or an answer other than 200.");
	for (i = 0; i < hr_action_classes_n; i++) {
		const struct hr_action_metrics *am = &m->actions[i];
		const uint64_t v[] = {
		    atomic_load(&am->ok), atomic_load(&am->errors), atomic_load(&am->failed)};

		for (k = 0; k < 3; k++)
			if (v[k] > 0)
				hr_buf_addf(b,
				    "handrail_actions_total{action=\"%s\",result=\"%s\"} %" PRIu64
				    "\n",
				    hr_action_classes[i].type, results[k], v[k]);
	}
}

static void
put_histogram(struct hr_buf *b, const struct hr_action_metrics *am, const char *type)
{
	uint64_t sum = 0, us = atomic_load(&am->microseconds);
	size_t i;

	for (i = 0; i < BOUNDS; i++) {
		sum += atomic_load(&am->buckets[i]);
		hr_buf_addf(b,
		    "handrail_action_duration_seconds_bucket{action=\"%s\",le=\"%g\"} %" PRIu64
		    "\n",
		    type, (double)bounds[i] / 1e6, sum);
	}
	sum += atomic_load(&am->buckets[BOUNDS]);
	hr_buf_addf(b,
	    "handrail_action_duration_seconds_bucket{action=\"%s\",le=\"+Inf\"} %" PRIu64
	    "\nhandrail_action_duration_seconds_sum{action=\"%s\"} %" PRIu64 ".%06" PRIu64
	    "\nhandrail_action_duration_seconds_count{action=\"%s\"} %" PRIu64 "\n",
	    type, sum, type, us / 1000000, us % 1000000, type, sum);
}

static void
put_actions(struct hr_buf *b, const struct hr_metrics *m)
{
	size_t i;

	put_results(b, m);
	put_type(b, "action_duration_seconds", "histogram",
	    "From the request read to its answer made, in a worker.");
	for (i = 0; i < hr_action_classes_n; i++)
		if (action_total(&m->actions[i]) > 0)
			put_histogram(b, &m->actions[i], hr_action_classes[i].type);
}

static void
put_commands(struct hr_buf *b, const struct hr_metrics *m)
{
	size_t i;
	uint64_t n;
	char code[8];

	put_type(b, "command_exits_total", "counter", "Commands that ended, by exit code.");
	for (i = 0; i < HR_METRICS_EXITS; i++) {
		n = atomic_load(&m->exits[i]);
		(void)snprintf(code, sizeof(code), i == HR_METRICS_EXITS - 1 ? "other" : "%zu", i);
		if (n > 0)
			put_labelled(b, "command_exits_total", "code", code, n);
	}
	put_type(b, "clock_fired_total", "counter",
	    "Answers that came because a clock ran out, by clock.");
	for (i = 1; i < HR_CLOCKS; i++)
		put_labelled(
		    b, "clock_fired_total", "clock", clock_names[i], atomic_load(&m->clocks[i]));
	put_one(b, "command_still_running_total", "counter", "Answers while a command still runs.",
	    atomic_load(&m->still_running));
	put_one(b, "command_output_bytes_total", "counter", "Output in observations.",
	    atomic_load(&m->output_bytes));
}

static void
put_server(struct hr_buf *b, struct hr_scoreboard *board)
{
	static const char *const classes[] = {NULL, "1xx", "2xx", "3xx", "4xx", "5xx"};
	size_t i;

	put_type(b, "answers_total", "counter", "Answers of workers, by class of status.");
	for (i = 2; i < sizeof(classes) / sizeof(classes[0]); i++)
		put_labelled(b, "answers_total", "status", classes[i],
		    atomic_load(&board->metrics.answers[i]));
	put_type(b, "workers", "gauge", "Worker processes, by pool.");
	for (i = 0; i < HR_SCOREBOARD_POOLS; i++)
		put_labelled(
		    b, "workers", "pool", pool_names[i], atomic_load(&board->pools[i].size));
	put_type(b, "requests_in_flight", "gauge",
	    "Requests that workers are busy with, waiting for the shell included, by pool.");
	for (i = 0; i < HR_SCOREBOARD_POOLS; i++)
		put_labelled(b, "requests_in_flight", "pool", pool_names[i],
		    atomic_load(&board->pools[i].busy));
	put_type(b, "restarts_total", "counter",
	    "Processes that exited unexpectedly and were replaced.");
	for (i = 0; i < HR_RESTARTS; i++)
		put_labelled(b, "restarts_total", "process", restart_names[i],
		    atomic_load(&board->metrics.restarts[i]));
	put_type(b, "sessions", "gauge", "Shells, by kind.");
	put_labelled(b, "sessions", "kind", "default", atomic_load(&board->session_pid) != 0);
	put_labelled(b, "sessions", "kind", "static", atomic_load(&board->static_sessions));
	put_labelled(b, "sessions", "kind", "named", atomic_load(&board->named_sessions));
}

static void
put_alerts(struct hr_buf *b, struct hr_metrics *m)
{
	size_t i;

	put_type(b, "alert", "gauge", "1 while something is wrong with a resource.");
	for (i = 0; i < HR_ALERTS; i++)
		put_labelled(
		    b, "alert", "alert", hr_alert_names[i], atomic_load(&m->alerts[i].firing));
	put_type(b, "alerts_total", "counter", "How often that began.");
	for (i = 0; i < HR_ALERTS; i++)
		put_labelled(b, "alerts_total", "alert", hr_alert_names[i],
		    atomic_load(&m->alerts[i].total));
}

static uint64_t
plugin_value(const struct hr_plugin_metrics *p, int what)
{
	switch (what) {
	case 0: return atomic_load(&p->ends);
	case 1: return atomic_load(&p->actions);
	case 2: return atomic_load(&p->failed);
	default: return hr_stats_resident(atomic_load(&p->pid));
	}
}

static void
put_plugins(struct hr_buf *b, const struct hr_metrics *m)
{
	static const struct {
		const char *name, *type, *help;
	} rows[] = {{"plugin_ends_total", "counter", "Unexpected exits of a plugin's process."},
	    {"plugin_actions_total", "counter", "Actions sent to a plugin."},
	    {"plugin_failures_total", "counter", "Actions that a plugin did not answer correctly."},
	    {"plugin_resident_memory_bytes", "gauge", "Of a plugin and its child processes."}};
	size_t i, k;

	if (m->plugins[0].name[0] == '\0')
		return;
	put_type(b, "plugin_info", "gauge", "1, with the state of a plugin.");
	for (i = 0; i < HR_METRICS_PLUGINS && m->plugins[i].name[0] != '\0'; i++)
		hr_buf_addf(b, "handrail_plugin_info{plugin=\"%s\",state=\"%s\"} 1\n",
		    m->plugins[i].name, hr_plugin_states[atomic_load(&m->plugins[i].state)]);
	for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		put_type(b, rows[k].name, rows[k].type, rows[k].help);
		for (i = 0; i < HR_METRICS_PLUGINS && m->plugins[i].name[0] != '\0'; i++)
			put_labelled(b, rows[k].name, "plugin", m->plugins[i].name,
			    plugin_value(&m->plugins[i], (int)k));
	}
}

static void
put_seconds(struct hr_buf *b, const char *name, const char *help, int64_t ns)
{
	put_type(b, name, "gauge", help);
	hr_buf_addf(b, "handrail_%s %" PRId64 ".%03" PRId64 "\n", name, ns / 1000000000,
	    ns / 1000000 % 1000);
}

static void
put_resources(struct hr_buf *b, const struct hr_stats_now *s)
{
	put_one(b, "resident_memory_bytes", "gauge",
	    "Of the supervisor, the keeper of the shell and the workers.", s->rss);
	put_one(b, "virtual_memory_bytes", "gauge", "Of the same.", s->vms);
	put_type(b, "cpu_percent", "gauge",
	    "Of the same, in percent of one processor, since the last measurement.");
	hr_buf_addf(b, "handrail_cpu_percent %.1f\n", s->cpu_percent);
	put_one(b, "disk_total_bytes", "gauge", "Of the file system of \"/\".", s->disk_total);
	put_one(b, "disk_free_bytes", "gauge", "Of the same.", s->disk_free);
}

void
hr_handle_metrics(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_buf *b = &ret->body;
	struct hr_channel_answer state;
	struct hr_stats_now s;

	(void)r;
	/* if the supervisor is gone the figures are those of its last check */
	(void)hr_ready_ask(w, LOOK_TIMEOUT_MS, &state, NULL);
	hr_stats_sample(&w->stats, w->board, &s);
	ret->content_type = "text/plain; version=0.0.4; charset=utf-8";
	put_type(b, "build_info", "gauge", "1, with the version.");
	hr_buf_adds(b, "handrail_build_info{version=\"" PACKAGE_VERSION "\"} 1\n");
	put_one(b, "ready", "gauge", "Whether everything answers.",
	    atomic_load(&w->board->ready) != 0 ? 1 : 0);
	put_seconds(b, "start_time_seconds", "When the server started, since 1970.",
	    atomic_load(&w->board->started_ns));
	put_seconds(b, "last_action_time_seconds", "When the last action came; 0: none yet.",
	    atomic_load(&w->board->last_execution_ns));
	put_actions(b, &w->board->metrics);
	put_commands(b, &w->board->metrics);
	put_server(b, w->board);
	put_plugins(b, &w->board->metrics);
	put_alerts(b, &w->board->metrics);
	put_resources(b, &s);
}
