/* Answers GET /metrics: the figures of the sandbox as its processes see them. */
#include "config.h"

#include "worker/e2b/e2b.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"

#define FILE_CAP 65536

/* Returns a figure of /proc/meminfo in bytes. */
static uint64_t
memory(const struct hr_buf *info, const char *name)
{
	const char *p = strstr(hr_buf_str(info), name);
	unsigned long long n = 0;

	if (p != NULL)
		(void)sscanf(p + strlen(name), " %llu", &n);
	return n * 1024;
}

/* Returns the use of the processors since the last call of this process, in percent. */
static double
processors(void)
{
	static unsigned long long last_busy, last_all;
	unsigned long long v[8] = {0}, all = 0, busy, idle;
	HR_BUF(text, FILE_CAP * 16);
	double used = 0;
	size_t i;

	if (hr_path_read("/proc/stat", &text, NULL) < 0 ||
	    sscanf(hr_buf_str(&text), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
		&v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) < 4)
		return 0;
	for (i = 0; i < 8; i++)
		all += v[i];
	idle = v[3] + v[4];
	busy = all - idle;
	if (all > last_all && busy >= last_busy)
		used = 100.0 * (double)(busy - last_busy) / (double)(all - last_all);
	last_all = all;
	last_busy = busy;
	return used;
}

void
hr_e2b_metrics(struct hr_e2b_call *c)
{
	uint64_t total, used, cache, disk, disk_used;
	struct statvfs fs = {0};
	HR_BUF(info, FILE_CAP);

	(void)hr_path_read("/proc/meminfo", &info, NULL);
	(void)statvfs("/", &fs);
	total = memory(&info, "MemTotal:");
	cache = memory(&info, "\nCached:");
	used = total - memory(&info, "MemAvailable:");
	disk = (uint64_t)fs.f_blocks * fs.f_frsize;
	disk_used = disk - (uint64_t)fs.f_bfree * fs.f_frsize;
	hr_answer_header(c->ret, "Cache-Control", "no-store");
	hr_buf_addf(&c->ret->body,
	    "{\"ts\":%lld,\"cpu_count\":%ld,\"cpu_used_pct\":%.2f,\"mem_total_mib\":%" PRIu64
	    ",\"mem_used_mib\":%" PRIu64 ",\"mem_total\":%" PRIu64 ",\"mem_used\":%" PRIu64
	    ",\"mem_cache\":%" PRIu64 ",\"disk_used\":%" PRIu64 ",\"disk_total\":%" PRIu64 "}",
	    (long long)time(NULL), sysconf(_SC_NPROCESSORS_ONLN), processors(), total >> 20,
	    used >> 20, total, used, cache, disk_used, disk);
}
