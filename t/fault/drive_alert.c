/* Alerts: the command that is told of them, and what watches control groups, which are made up.
 * Whatever fails, each alert is told, no process is left, and what cannot be watched is seen when
 * somebody looks. */
#include "config.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"
#include "supervisor/resources/alert.h"
#include "supervisor/run/cgroup.h"
#include "supervisor/resources/monitor.h"
#include "supervisor/settings/settings.h"

#define PATIENCE_MS 5000 /* a start is tried again much sooner */
#define TURNS 6          /* of patience, for a slow machine */

static struct hr_loop *loop;
static struct hr_children kids;
static struct hr_settings settings;
static struct hr_metrics metrics;
static struct hr_alerts alerts;
static struct hr_monitor monitor;
static struct hr_watch *child_watch, *guard;
static unsigned turns;

static bool
all_told(void)
{
	unsigned kind;

	for (kind = 0; kind < HR_ALERTS; kind++) {
		if (alerts.v[kind].untold)
			return false;
	}
	return alerts.command.pid == 0;
}

static void
on_child(void *arg)
{
	(void)arg;
	hr_children_reap(&kids);
	if (all_told())
		hr_loop_stop(loop);
}

/* Without memory for a timer nothing is tried again by itself, but with the next change. */
static void
on_guard(void *arg)
{
	(void)arg;
	if (++turns == TURNS) {
		fault_wrong("an alert is not told");
		hr_loop_stop(loop);
		return;
	}
	(void)hr_watch_arm(guard, PATIENCE_MS, NULL);
	if (turns == 1)
		hr_alert_event(&alerts, HR_ALERT_CPU_PRESSURE, 1, 1);
}

/* With nothing failing. */
static int
prepare(struct hr_err *err)
{
	static const char line[] = "#!/bin/sh\nexec cat >>\"${0%/*}/told\"\n";
	char script[128];

	memset(&metrics, 0, sizeof(metrics));
	memset(&alerts, 0, sizeof(alerts));
	hr_monitor_init(&monitor);
	turns = 0;
	(void)snprintf(script, sizeof(script), "%s/command", fault_dir());
	if (hr_settings_init(&settings, err) != 0)
		return -1;
	free(settings.alert_command);
	settings.alert_command = strdup(script);
	settings.alert_clear_seconds = 1000;
	loop = hr_loop_new(err);
	if (settings.alert_command == NULL || loop == NULL ||
	    hr_path_write(script, line, sizeof(line) - 1, 0755, err) != 0)
		return -1;
	hr_children_init(&kids, loop);
	child_watch = hr_loop_signal(loop, SIGCHLD, on_child, NULL, err);
	guard = hr_loop_timer(loop, on_guard, NULL, err);
	return child_watch != NULL && guard != NULL ? hr_watch_arm(guard, PATIENCE_MS, err) : -1;
}

static void
release(void)
{
	hr_monitor_close(&monitor);
	hr_alerts_close(&alerts);
	if (alerts.command.pid != 0)
		fault_wrong("a process is left");
	hr_watch_free(child_watch);
	hr_watch_free(guard);
	child_watch = guard = NULL;
	hr_loop_free(loop);
	loop = NULL;
	hr_settings_done(&settings);
}

static int
alerts_open(struct hr_err *err)
{
	static char *envp[] = {NULL};

	return hr_alerts_open(&alerts, loop, &kids, &settings, &metrics, envp, err);
}

/* How many lines the command was given of an alert. */
static unsigned
lines_of(const char *alert)
{
	char path[128], name[64];
	const char *at;
	HR_BUF(b, 65536);
	unsigned n = 0;

	(void)snprintf(path, sizeof(path), "%s/told", fault_dir());
	(void)snprintf(name, sizeof(name), "{\"alert\":\"%s\",", alert);
	if (hr_path_read(path, &b, NULL) == 0) {
		for (at = strstr(hr_buf_str(&b), name); at != NULL; at = strstr(at + 1, name))
			n++;
	}
	return n;
}

static int
tell(struct hr_err *err)
{
	int r;

	if (alerts_open(err) != 0)
		return -1;
	hr_alert_event(&alerts, HR_ALERT_OOM_KILL, 1, 1);
	hr_alert_level(&alerts, HR_ALERT_DISK_HIGH, 95, 90);
	r = all_told() ? 0 : hr_loop_run(loop, err);
	/* where the loop itself failed, the supervisor would end */
	failcalls_spare(true);
	if (r != 0)
		(void)hr_loop_run(loop, NULL);
	fault_tell("%u %u", lines_of("oom_kill"), lines_of("disk_high"));
	failcalls_spare(false);
	return r;
}

static int
command(struct hr_err *err)
{
	int r;

	hr_log_setup("fault", HR_LOG_TEXT, HR_LOG_ERROR);
	hr_log_set_fd(-1);
	failcalls_spare(true);
	r = prepare(err);
	failcalls_spare(false);
	if (r == 0)
		r = tell(err);
	release();
	return r;
}

/* ---- control groups ---- */

static int
write_file(const char *dir, const char *name, const char *text, struct hr_err *err)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return hr_path_write(path, text, strlen(text), 0644, err);
}

struct made_up {
	const char *name, *text, *later;
};

static const struct made_up version_one[] = {{"memory.usage_in_bytes", "1000\n", "900000000\n"},
    {"memory.stat", "total_inactive_file 0\n", "total_inactive_file 5\n"},
    {"memory.oom_control", "oom_kill 0\n", "oom_kill 1\n"}, {"pids.events", "max 0\n", "max 1\n"},
    {NULL, NULL, NULL}};

static const struct made_up version_two[] = {{"memory.current", "1000\n", "900000000\n"},
    {"memory.stat", "inactive_file 0\n", "inactive_file 5\n"},
    {"memory.events", "oom_kill 0\n", "oom_kill 1\n"}, {"cgroup.events", "populated 1\n", ""},
    {"pids.events", "max 0\n", "max 1\n"}, {NULL, NULL, NULL}};

static int
make_up(const char *dir, const struct made_up *f, bool later, struct hr_err *err)
{
	if (hr_path_mkdirs(dir, 0755, NULL, err) != 0)
		return -1;
	for (; f->name != NULL; f++) {
		if (write_file(dir, f->name, later ? f->later : f->text, err) != 0)
			return -1;
	}
	return 0;
}

/* Twice, as at a reload. */
static int
watch(const struct made_up *files, const struct hr_cgroup *groups, struct hr_err *err)
{
	HR_BUF(missing, 4096);
	unsigned kind;
	int r;

	if (alerts_open(err) != 0)
		return -1;
	hr_monitor_open(&monitor, loop, &alerts, &settings, groups, fault_dir(), &missing);
	failcalls_spare(true);
	r = make_up(groups->dirs[0], files, true, err);
	failcalls_spare(false);
	hr_monitor_close(&monitor);
	hr_monitor_open(&monitor, loop, &alerts, &settings, groups, fault_dir(), &missing);
	hr_buf_done(&missing);
	/* a file that could not be read keeps the state: whoever looks again sees it */
	hr_monitor_look(&monitor);
	failcalls_spare(true);
	hr_monitor_look(&monitor);
	failcalls_spare(false);
	for (kind = 0; kind < HR_ALERTS; kind++)
		fault_tell("%d", kind == HR_ALERT_DISK_HIGH ? 0 : (int)alerts.v[kind].firing);
	return r;
}

static int
monitor_of(const struct made_up *files, struct hr_err *err)
{
	struct hr_cgroup groups = {.n = 1};
	char dir[128];
	int r;

	hr_log_set_fd(-1);
	(void)snprintf(dir, sizeof(dir), "%s/box", fault_dir());
	groups.dirs[0] = dir;
	failcalls_spare(true);
	r = prepare(err);
	settings.max_memory_gb = 1;
	settings.max_processes = 5;
	settings.alert_memory = 50;
	settings.alert_command[0] = '\0';
	if (r == 0)
		r = make_up(dir, files, false, err);
	failcalls_spare(false);
	if (r == 0)
		r = watch(files, &groups, err);
	release();
	return r;
}

static int
groups_one(struct hr_err *err)
{
	return monitor_of(version_one, err);
}

static int
groups_two(struct hr_err *err)
{
	return monitor_of(version_two, err);
}

const struct fault_scenario fault_scenarios[] = {{"alert command", command, 0},
    {"control groups of version 1", groups_one, 0}, {"control groups of version 2", groups_two, 0},
    {NULL, NULL, 0}};
