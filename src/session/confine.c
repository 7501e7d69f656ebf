/* Limits of the shell. The files of a control group are read at most once a command, and only after
 * one that failed. */
#include "config.h"

#include "session/confine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/path.h"

#define FILE_MAX 4096
#define GROUP_PATH_MAX 4096

static void
join(const char *group)
{
	char path[GROUP_PATH_MAX];
	size_t len = strlen(group);
	int fd;

	if (len + sizeof("/cgroup.procs") > sizeof(path))
		return;
	memcpy(path, group, len);
	memcpy(path + len, "/cgroup.procs", sizeof("/cgroup.procs"));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	(void)close(fd);
}

/* Given as a number: our own score is set from outside, maybe later than this. */
static void
raise_oom_score(unsigned score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	char text[12];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + score % 10);
	while ((score /= 10) > 0);
	if (fd >= 0) {
		(void)!write(fd, text + at, sizeof(text) - at);
		(void)close(fd);
	}
}

void
hr_confine_enter(const struct hr_confine *c)
{
	size_t i;

	if (c->oom_score > 0)
		raise_oom_score(c->oom_score);

	for (i = 0; i < c->ngroups; i++)
		join(c->groups[i]);
}

static void
limit(int resource, uint64_t n)
{
	struct rlimit lim;

	if (n == 0 || getrlimit((__rlimit_resource_t)resource, &lim) != 0)
		return;
	if (lim.rlim_max > n) /* RLIM_INFINITY is the greatest */
		lim.rlim_max = n;
	if (lim.rlim_cur > lim.rlim_max)
		lim.rlim_cur = lim.rlim_max;
	(void)setrlimit((__rlimit_resource_t)resource, &lim);
}

void
hr_confine_limit(const struct hr_confine *c)
{
	limit(RLIMIT_AS, c->memory);
	limit(RLIMIT_NPROC, c->processes);
	limit(RLIMIT_NOFILE, c->files);
	if (c->no_new_privileges)
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* The number behind `name` in a file of a group; with "" the file's own. */
static bool
group_number(const char *group, const char *file, const char *name, uint64_t *ret)
{
	char *path = hr_path_join(group, file);
	struct hr_buf text;
	const char *at = NULL;

	hr_buf_init(&text, FILE_MAX);
	if (path != NULL && hr_path_read(path, &text, NULL) == 0)
		at = strstr(hr_buf_str(&text), name);
	if (at != NULL)
		at += strlen(name);
	if (at != NULL && *at >= '0' && *at <= '9')
		*ret = strtoull(at, NULL, 10);
	else
		at = NULL;
	hr_buf_done(&text);
	free(path);
	return at != NULL;
}

static bool
has_grown(uint64_t *last, bool known, uint64_t now)
{
	bool grown = known && now > *last;

	if (known)
		*last = now;
	return grown;
}

static bool
disk_full(const char *dir)
{
	struct statvfs fs;

	/* one without blocks of its own (proc, some network ones) is not full */
	return statvfs(dir, &fs) == 0 && fs.f_blocks > 0 &&
	       (geteuid() == 0 ? fs.f_bavail == 0 : fs.f_bavail == 0 && fs.f_bfree > 0);
}

void
hr_confine_why(struct hr_confine *c, const char *dir, struct hr_buf *out)
{
	uint64_t n = 0, max = 0;
	bool known;
	size_t i;

	for (i = 0; c != NULL && i < c->ngroups; i++) {
		const char *g = c->groups[i];

		known = group_number(g, "memory.events", "oom_kill ", &n) ||
			group_number(g, "memory.oom_control", "oom_kill ", &n);
		if (has_grown(&c->memory_kills, known, n)) {
			hr_buf_adds(
			    out, "\n[Out of memory: the system ended a process of the sandbox");
			if (group_number(g, "memory.max", "", &max) ||
			    group_number(g, "memory.limit_in_bytes", "", &max))
				hr_buf_addf(out, " (limit %" PRIu64 " MB)", max >> 20);
			hr_buf_adds(out, ".]");
		}
		known = group_number(g, "pids.events", "max ", &n);
		if (has_grown(&c->pids_refused, known, n)) {
			hr_buf_adds(out, "\n[Too many processes: the sandbox may have no more");
			if (group_number(g, "pids.max", "", &max))
				hr_buf_addf(out, " than %" PRIu64, max);
			hr_buf_adds(out, ".]");
		}
	}
	if (dir != NULL && disk_full(dir))
		hr_buf_addf(out, "\n[No space is left on the disk of %s.]", dir);
}
