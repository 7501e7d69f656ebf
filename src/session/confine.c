/* Sets limits of the shell. The counters of its control groups are read when a command starts and
 * when it has ended. */
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

#include "base/fd.h"
#include "base/path.h"

#define FILE_MAX 4096
#define GROUP_PATH_MAX 4096
/* names in memory.events (memory.oom_control in version 1) and in pids.events */
#define KILLS "oom_kill "
#define REFUSALS "max "

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

/* Sets a given score: this process's own score is set from outside, maybe later than this call. */
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
	if (lim.rlim_max > n) /* RLIM_INFINITY is the maximum */
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

/* Finds the number right after `name` in `text`; with "" the number at the start of `text`. */
static bool
number_in(const char *text, const char *name, uint64_t *ret)
{
	const char *at = strstr(text, name);

	if (at != NULL)
		at += strlen(name);
	if (at == NULL || *at < '0' || *at > '9')
		return false;
	*ret = strtoull(at, NULL, 10);
	return true;
}

static int
open_in(const char *group, const char *file)
{
	HR_FREE char *path = hr_path_join(group, file);

	return path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static bool
read_at(int fd, const char *name, uint64_t *ret)
{
	char text[FILE_MAX];
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;

	if (n <= 0)
		return false;
	text[n] = '\0';
	return number_in(text, name, ret);
}

static void
add_limit(struct hr_buf *out, const char *group, const char *const *files, unsigned shift,
    const char *text)
{
	uint64_t max = 0;
	bool known = false;

	for (; *files != NULL && !known; files++) {
		HR_CLOSE int fd = open_in(group, *files);

		known = read_at(fd, "", &max);
	}
	if (known)
		hr_buf_addf(out, text, max >> shift);
}

/* Returns true if the counter `name` of group i has risen since the last call. */
static bool
has_risen(struct hr_confine_counter *t, size_t i, const char *name)
{
	uint64_t now = 0, last = t->last[i];

	if (!read_at(t->fd[i], name, &now))
		return false;
	t->last[i] = now;
	return now > last;
}

/* Reads the initial counts, once. */
static void
start_looking(struct hr_confine *c)
{
	size_t i;

	c->looking = true;
	for (i = 0; i < c->ngroups; i++) {
		c->kills.fd[i] = open_in(c->groups[i], "memory.events");
		if (c->kills.fd[i] < 0)
			c->kills.fd[i] = open_in(c->groups[i], "memory.oom_control");
		c->refusals.fd[i] = open_in(c->groups[i], "pids.events");
		(void)has_risen(&c->kills, i, KILLS);
		(void)has_risen(&c->refusals, i, REFUSALS);
	}
}

void
hr_confine_begin(struct hr_confine *c)
{
	size_t i;

	if (c == NULL || c->ngroups == 0)
		return;
	if (!c->looking)
		start_looking(c);
	for (i = 0; i < c->ngroups; i++) {
		c->kills.earlier |= has_risen(&c->kills, i, KILLS);
		c->refusals.earlier |= has_risen(&c->refusals, i, REFUSALS);
	}
}

static bool
disk_full(const char *dir)
{
	struct statvfs fs;

	/* A file system without blocks of its own (proc, some network ones) is never full. */
	return statvfs(dir, &fs) == 0 && fs.f_blocks > 0 &&
	       (geteuid() == 0 ? fs.f_bavail == 0 : fs.f_bavail == 0 && fs.f_bfree > 0);
}

/* Returns true if the counter has risen in a group; *ret is the index of the last such group. */
static bool
rose(struct hr_confine *c, struct hr_confine_counter *t, const char *name, size_t *ret)
{
	bool any = false;
	size_t i;

	for (i = 0; i < c->ngroups; i++) {
		if (!has_risen(t, i, name))
			continue;
		*ret = i;
		any = true;
	}
	return any;
}

void
hr_confine_why(struct hr_confine *c, const char *dir, struct hr_buf *out)
{
	static const char *const memory[] = {"memory.max", "memory.limit_in_bytes", NULL},
				 *const pids[] = {"pids.max", NULL};
	size_t i = 0;

	if (c != NULL && c->looking) {
		if (rose(c, &c->kills, KILLS, &i)) {
			hr_buf_adds(
			    out, "\n[Out of memory: the system ended a process of the sandbox");
			add_limit(out, c->groups[i], memory, 20, " (limit %" PRIu64 " MB)");
			hr_buf_adds(out, ".]");
		} else if (c->kills.earlier) {
			hr_buf_adds(out, "\n[Out of memory: before this command began, the system "
					 "ended a process of the sandbox.]");
		}
		if (rose(c, &c->refusals, REFUSALS, &i)) {
			hr_buf_adds(out, "\n[Too many processes: the sandbox may have no more");
			add_limit(out, c->groups[i], pids, 0, " than %" PRIu64);
			hr_buf_adds(out, ".]");
		} else if (c->refusals.earlier) {
			hr_buf_adds(out,
			    "\n[Too many processes: before this command began, one was "
			    "refused in the sandbox.]");
		}
		c->kills.earlier = c->refusals.earlier = false;
	}
	if (dir != NULL && disk_full(dir))
		hr_buf_addf(out, "\n[No space is left on the disk of %s.]", dir);
}
