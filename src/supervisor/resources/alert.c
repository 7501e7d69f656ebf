/* Manages alerts. Invariant: for an active alert either its timer is armed or its level is at the
 * threshold; otherwise no timer is armed. */
#include "config.h"

#include "supervisor/resources/alert.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/process/spawn.h"
#include "supervisor/settings/settings.h"

#define COMMAND_MS 10000
#define RETRY_FIRST_MS 100 /* ms after a failed start of the command; it doubles each time */
#define RETRY_LAST_MS 60000
#define TEXT_MAX 1024

static const struct {
	const char *metric;
	bool critical;
} kinds[HR_ALERTS] = {
    [HR_ALERT_MEM_HIGH] = {"mem_percent", false},
    [HR_ALERT_MEM_CRITICAL] = {"mem_percent", true},
    [HR_ALERT_OOM_KILL] = {"oom_kills", true},
    [HR_ALERT_PIDS_MAX] = {"forks_refused", false},
    [HR_ALERT_MEM_PRESSURE] = {"mem_stall_percent", false},
    [HR_ALERT_CPU_PRESSURE] = {"cpu_stall_percent", false},
    [HR_ALERT_DISK_HIGH] = {"disk_used_percent", false},
    [HR_ALERT_ERROR_RATE] = {"action_error_percent", false},
};

/* Appends an RFC 3339 time in quotes. */
static void
put_time(struct hr_buf *b, int64_t ns)
{
	char text[HR_WALL_TEXT];

	hr_wall_text(ns / 1000000, text);
	hr_buf_addf(b, "\"%s\"", text);
}

/* Appends the part common to the log, the command and the history. */
static void
put_change(struct hr_buf *b, unsigned kind, bool firing)
{
	hr_buf_addf(b, "{\"alert\":\"%s\",\"state\":\"%s\",\"severity\":\"%s\"",
	    hr_alert_names[kind], firing ? "firing" : "resolved",
	    kinds[kind].critical ? "critical" : "warning");
}

static void
put_metric(struct hr_buf *b, unsigned kind, uint64_t value, uint64_t threshold)
{
	hr_buf_addf(b, ",\"metric\":\"%s\",\"value\":%" PRIu64 ",\"threshold\":%" PRIu64,
	    kinds[kind].metric, value, threshold);
}

static void
put_alert(struct hr_buf *b, const struct hr_alerts *a, unsigned kind)
{
	const struct hr_alert *x = &a->v[kind];

	put_change(b, kind, x->firing);
	hr_buf_adds(b, ",\"sid\":null,\"runtime\":null");
	put_metric(b, kind, x->value, x->threshold);
	hr_buf_adds(b, ",\"since\":");
	put_time(b, x->since_ns);
	hr_buf_adds(b, ",\"ts\":");
	put_time(b, hr_wall_ns());
	hr_buf_addc(b, '}');
}

/* ---- the command ---- */

/* Starts the command; its stdout goes to the log, like its stderr. */
static int
command_start(struct hr_alerts *a, unsigned kind, struct hr_err *err)
{
	const char *argv[] = {"sh", "-c", "exec \"$0\" >&2", a->settings->alert_command, NULL};
	struct hr_spawn_fd in = {-1, 0};
	HR_BUF(text, TEXT_MAX);
	int r = -1;

	put_alert(&text, a, kind);
	hr_buf_addc(&text, '\n');
	if (hr_buf_check(&text, err) == 0)
		in.from = hr_fd_of_bytes(text.p, text.len, err);
	if (in.from >= 0)
		r = hr_child_start(&a->command,
		    &(const struct hr_spawn){.path = "/bin/sh",
			.argv = argv,
			.envp = a->envp,
			.fds = &in,
			.nfds = 1,
			.setsid = true,
			.pdeathsig = SIGKILL,
			.umask = -1},
		    0, err);
	hr_fd_close(&in.from);
	return r;
}

/* Delays the command's next start; any other change retries earlier. */
static void
command_later(struct hr_alerts *a, const struct hr_err *why)
{
	if (a->retry_ms == 0)
		hr_log(HR_LOG_ERROR, "cannot start alert_command, will try again: %s", why->msg);
	a->retry_ms = a->retry_ms == 0 ? RETRY_FIRST_MS : 2 * a->retry_ms;
	if (a->retry_ms > RETRY_LAST_MS)
		a->retry_ms = RETRY_LAST_MS;
	(void)hr_watch_arm(a->retry, a->retry_ms, NULL); /* the next change retries if this fails */
}

/* Starts the command for the next unreported change, with the present state. */
static void
command_next(struct hr_alerts *a)
{
	struct hr_err err = {0};
	unsigned kind;

	if (a->command.pid != 0 || !a->open || a->held)
		return;
	for (kind = 0; kind < HR_ALERTS; kind++) {
		if (a->v[kind].untold && a->settings->alert_command[0] != '\0')
			break;
		a->v[kind].untold = false;
	}
	if (kind == HR_ALERTS)
		return;
	if (hr_watch_arm(a->patience, COMMAND_MS, &err) < 0 || command_start(a, kind, &err) < 0) {
		hr_watch_disarm(a->patience);
		command_later(a, &err);
		return;
	}
	a->v[kind].untold = false;
	hr_watch_disarm(a->retry);
	a->retry_ms = 0;
}

static void
command_again(void *arg)
{
	command_next(arg);
}

static void
command_patience(void *arg)
{
	struct hr_alerts *a = arg;

	hr_log(HR_LOG_WARNING, "alert_command took too long and was killed");
	hr_child_signal_group(&a->command, SIGKILL);
}

static void
command_ended(void *arg, const struct hr_exit *how)
{
	struct hr_alerts *a = arg;

	hr_watch_disarm(a->patience);
	if (a->open && (how->killed || how->code != 0))
		hr_log(HR_LOG_WARNING, "alert_command failed: %s", hr_exit_text(how));
	command_next(a);
}

/* ---- the alerts ---- */

static void
change(struct hr_alerts *a, unsigned kind, bool firing)
{
	struct hr_alert *x = &a->v[kind];
	HR_BUF(text, TEXT_MAX);

	x->firing = firing;
	x->since_ns = hr_wall_ns();
	a->past[a->changes++ % HR_ALERTS_PAST] = (struct hr_alert_change){.kind = kind,
	    .firing = firing,
	    .value = x->value,
	    .threshold = x->threshold,
	    .at_ns = x->since_ns};
	atomic_store(&a->metrics->alerts[kind].firing, firing);
	if (firing)
		atomic_fetch_add(&a->metrics->alerts[kind].total, 1);
	put_alert(&text, a, kind);
	hr_log_from("alert", getpid(), kinds[kind].critical ? HR_LOG_ERROR : HR_LOG_WARNING,
	    hr_buf_str(&text), text.len);
	x->untold = true;
	command_next(a);
}

static void
alert_over(void *arg)
{
	struct hr_alert *x = arg;

	x->clearing = false;
	change(x->of, (unsigned)(x - x->of->v), false);
}

static void
clear_later(struct hr_alert *x)
{
	const struct hr_settings *c = x->of->settings;

	x->clearing = hr_watch_arm(x->clear, c->alert_clear_seconds * 1000, NULL) == 0;
}

void
hr_alert_event(struct hr_alerts *a, enum hr_alert_kind kind, uint64_t value, uint64_t threshold)
{
	struct hr_alert *x = &a->v[kind];

	if (!a->open)
		return;
	x->value = value;
	x->threshold = threshold;
	if (!x->firing)
		change(a, kind, true);
	clear_later(x);
}

void
hr_alert_level(struct hr_alerts *a, enum hr_alert_kind kind, uint64_t value, uint64_t threshold)
{
	struct hr_alert *x = &a->v[kind];
	bool high = threshold > 0 && value >= threshold;

	if (!a->open || (!high && !x->firing))
		return;
	x->value = value;
	x->threshold = threshold;
	if (!high) {
		if (!x->clearing)
			clear_later(x);
		return;
	}
	hr_watch_disarm(x->clear);
	x->clearing = false;
	if (!x->firing)
		change(a, kind, true);
}

void
hr_alerts_json(struct hr_buf *b, const struct hr_alerts *a)
{
	const char *comma = "";
	unsigned kind;

	hr_buf_addc(b, '[');
	for (kind = 0; kind < HR_ALERTS; kind++) {
		if (!a->v[kind].firing)
			continue;
		hr_buf_addf(b, "%s{\"alert\":\"%s\",\"since\":", comma, hr_alert_names[kind]);
		put_time(b, a->v[kind].since_ns);
		hr_buf_addc(b, '}');
		comma = ",";
	}
	hr_buf_addc(b, ']');
}

void
hr_alerts_history(struct hr_buf *b, const struct hr_alerts *a)
{
	unsigned first = a->changes > HR_ALERTS_PAST ? a->changes - HR_ALERTS_PAST : 0, i;

	hr_buf_adds(b, "{\"alerts\":");
	hr_alerts_json(b, a);
	hr_buf_adds(b, ",\"history\":[");
	for (i = first; i < a->changes; i++) {
		const struct hr_alert_change *c = &a->past[i % HR_ALERTS_PAST];

		hr_buf_adds(b, i > first ? "," : "");
		put_change(b, c->kind, c->firing);
		put_metric(b, c->kind, c->value, c->threshold);
		hr_buf_adds(b, ",\"ts\":");
		put_time(b, c->at_ns);
		hr_buf_addc(b, '}');
	}
	hr_buf_adds(b, "]}");
}

int
hr_alerts_open(struct hr_alerts *a, struct hr_loop *loop, struct hr_children *kids,
    const struct hr_settings *settings, struct hr_metrics *metrics, char *const *envp,
    struct hr_err *err)
{
	unsigned kind;

	memset(a, 0, sizeof(*a));
	a->settings = settings;
	a->metrics = metrics;
	a->envp = envp;
	a->command.kids = kids;
	a->command.arg = a;
	a->command.on_exit = command_ended;
	(void)snprintf(a->command.name, sizeof(a->command.name), "alert-command");
	a->patience = hr_loop_timer(loop, command_patience, a, err);
	a->retry = hr_loop_timer(loop, command_again, a, err);
	a->open = a->patience != NULL && a->retry != NULL;
	for (kind = 0; kind < HR_ALERTS && a->open; kind++) {
		a->v[kind].of = a;
		a->v[kind].clear = hr_loop_timer(loop, alert_over, &a->v[kind], err);
		a->open = a->v[kind].clear != NULL;
	}
	if (a->open)
		return 0;
	hr_alerts_close(a);
	return -1;
}

void
hr_alerts_hold(struct hr_alerts *a, bool on)
{
	a->held = on;
	command_next(a);
}

void
hr_alerts_close(struct hr_alerts *a)
{
	unsigned kind;

	a->open = false;
	hr_child_signal_group(&a->command, SIGKILL);
	hr_watch_drop(&a->patience);
	hr_watch_drop(&a->retry);
	for (kind = 0; kind < HR_ALERTS; kind++)
		hr_watch_drop(&a->v[kind].clear);
}
