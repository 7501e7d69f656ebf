/* Reads /proc for the server's processes. A process that ends meanwhile counts as 0. */
#include "config.h"

#include "worker/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/pid.h"

#define NS 1000000000
#define WINDOW_NS (NS / 10)

struct sums {
	uint64_t rss, vms, read_bytes, write_bytes;
	int64_t cpu_ns;
};

static uint64_t
line_value(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p != NULL ? strtoull(p + strlen(name), NULL, 10) : 0;
}

static int64_t
ticks_ns(unsigned long long ticks)
{
	return (int64_t)(ticks * (NS / (unsigned long)sysconf(_SC_CLK_TCK)));
}

static int64_t
cpu_of(pid_t pid)
{
	char text[HR_PID_STAT];
	const char *stat = hr_pid_stat(pid, text);

	return ticks_ns(
	    hr_pid_field(stat, HR_PID_USER_TIME) + hr_pid_field(stat, HR_PID_SYSTEM_TIME));
}

static void
sums_add(struct sums *s, int32_t pid)
{
	unsigned long long pages, resident;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char buf[1024];

	if (pid <= 0)
		return;
	hr_pid_read(pid, "statm", buf, sizeof(buf));
	if (sscanf(buf, "%llu %llu", &pages, &resident) == 2) {
		s->vms += pages * page;
		s->rss += resident * page;
	}
	s->cpu_ns += cpu_of(pid);
	hr_pid_read(pid, "io", buf, sizeof(buf));
	s->read_bytes += line_value(buf, "\nread_bytes: ");
	s->write_bytes += line_value(buf, "\nwrite_bytes: ");
}

#define DEPTH_MAX 32
#define CHILDREN_MAX 4096 /* maximum bytes, enough for some hundred pids */

static void
tree_add(struct hr_stats_tree *t, int32_t pid, int depth)
{
	char buf[CHILDREN_MAX], stat_text[HR_PID_STAT], name[40], *at, *end;
	unsigned long long pages = 0, in = 0, shared = 0;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const char *stat;
	long child;

	if (pid <= 0 || depth > DEPTH_MAX)
		return;
	hr_pid_read(pid, "statm", buf, sizeof(buf));
	if (sscanf(buf, "%llu %llu %llu", &pages, &in, &shared) != 3)
		return;
	t->processes++;
	t->resident += in * page;
	t->anonymous += (in - shared) * page;
	stat = hr_pid_stat(pid, stat_text);
	t->cpu_ns +=
	    ticks_ns(hr_pid_field(stat, HR_PID_USER_TIME) + hr_pid_field(stat, HR_PID_SYSTEM_TIME) +
		     hr_pid_field(stat, HR_PID_CHILDREN_USER_TIME) +
		     hr_pid_field(stat, HR_PID_CHILDREN_SYSTEM_TIME));
	(void)snprintf(name, sizeof(name), "task/%" PRId32 "/children", pid);
	hr_pid_read(pid, name, buf, sizeof(buf));
	for (at = buf; (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
		tree_add(t, (int32_t)child, depth + 1);
}

void
hr_stats_tree(int32_t pid, struct hr_stats_tree *ret)
{
	*ret = (struct hr_stats_tree){.processes = 0};
	tree_add(ret, pid, 0);
}

uint64_t
hr_stats_resident(int32_t pid)
{
	struct hr_stats_tree t;

	hr_stats_tree(pid, &t);
	return t.resident;
}

static double
one_decimal(double d)
{
	char buf[64];

	(void)snprintf(buf, sizeof(buf), "%.1f", d); /* rounds as Python's round(d, 1) does */
	return strtod(buf, NULL);
}

static double
cpu_percent(struct hr_stats *s, const struct hr_scoreboard *board, int64_t now, int64_t cpu_ns)
{
	int64_t wall, used;

	if (s->wall_ns == 0) {
		wall = hr_wall_ns() - atomic_load(&board->started_ns);
		used = cpu_ns;
	} else {
		wall = now - s->wall_ns;
		used = cpu_ns - s->cpu_ns;
	}
	s->wall_ns = now;
	s->cpu_ns = cpu_ns;
	/* the difference may be negative: the time of ended workers is gone */
	return wall > 0 && used > 0 ? one_decimal(100.0 * (double)used / (double)wall) : 0;
}

static void
sample_disk(struct hr_stats_now *ret)
{
	struct statvfs v;
	double user;

	if (statvfs("/", &v) < 0)
		return;
	ret->disk_total = (uint64_t)v.f_blocks * v.f_frsize;
	ret->disk_used = ret->disk_total - (uint64_t)v.f_bfree * v.f_frsize;
	ret->disk_free = (uint64_t)v.f_bavail * v.f_frsize;
	user = (double)(ret->disk_used + ret->disk_free);
	ret->disk_percent = user > 0 ? one_decimal((double)ret->disk_used / user * 100) : 0;
}

void
hr_stats_sample(struct hr_stats *s, const struct hr_scoreboard *board, struct hr_stats_now *ret)
{
	int64_t now = hr_now_ns();
	struct sums sums = {0};
	struct sysinfo si;
	size_t i;

	if (s->wall_ns != 0 && now - s->wall_ns < WINDOW_NS) {
		*ret = s->last;
		return;
	}
	memset(ret, 0, sizeof(*ret));
	sums_add(&sums, atomic_load(&board->supervisor_pid));
	sums_add(&sums, atomic_load(&board->session_pid));
	for (i = 0; i < HR_SCOREBOARD_SLOTS; i++)
		if (atomic_load(&board->slots[i].stage) != HR_STAGE_FREE)
			sums_add(&sums, atomic_load(&board->slots[i].pid));
	ret->cpu_percent = cpu_percent(s, board, now, sums.cpu_ns);
	sample_disk(ret);
	ret->rss = sums.rss;
	ret->vms = sums.vms;
	ret->read_bytes = sums.read_bytes;
	ret->write_bytes = sums.write_bytes;
	if (sysinfo(&si) == 0 && si.totalram > 0)
		ret->memory_percent = (double)sums.rss / ((double)si.totalram * si.mem_unit) * 100;
	s->last = *ret;
}
