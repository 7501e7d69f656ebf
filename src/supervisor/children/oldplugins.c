/* Plugins of a predecessor. A number may have been used again: only who started when it says
 * counts.
 */
#include "config.h"

#include "supervisor/children/oldplugins.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/spawn.h"
#include "supervisor/children/adopt.h"
#include "supervisor/run/rundir.h"

#define TERM_MS 3000 /* what a plugin keeps may need two to say goodbye */
#define KILL_MS 1000
#define OLD_MAX 64
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP 4u /* <linux/pidfd.h> of Linux 6.9 */
#endif

struct old {
	pid_t pid;
	int pidfd;
};

static char *
note_path(const struct hr_rundir *r, const char *name)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "plugin/%s.pid", name);
	return hr_rundir_file(r, text);
}

int
hr_oldplugins_note(
    const struct hr_rundir *r, const char *name, pid_t pid, bool keeps, struct hr_err *err)
{
	char *path = note_path(r, name), text[64];
	int n, ok;

	if (path == NULL)
		return hr_err_nomem(err);
	n = snprintf(text, sizeof(text), "%ld %llu %d\n", (long)pid, hr_adopt_start_time(pid),
	    keeps ? 1 : 0);
	ok = hr_path_write(path, text, (size_t)n, 0600, err);
	free(path);
	return ok;
}

void
hr_oldplugins_forget(const struct hr_rundir *r, const char *name)
{
	char *path = note_path(r, name);

	if (path != NULL)
		(void)unlink(path);
	free(path);
}

/* Takes path, which may be NULL. */
static bool
read_note(char *path, pid_t *ret_pid, unsigned long long *ret_start, bool *ret_keeps)
{
	struct hr_buf b;
	bool ok = false;
	char *at;

	hr_buf_init(&b, 128);
	if (path != NULL && hr_path_read(path, &b, NULL) == 0 && b.len > 0) {
		*ret_pid = (pid_t)strtol(b.p, &at, 10);
		*ret_start = strtoull(at, &at, 10);
		*ret_keeps = strtol(at, &at, 10) == 1;
		ok = *at == '\n';
	}
	hr_buf_done(&b);
	free(path);
	return ok;
}

bool
hr_oldplugins_lost(const struct hr_rundir *r, const char *name)
{
	unsigned long long start;
	bool keeps;
	pid_t pid;

	return r->inherited && read_note(note_path(r, name), &pid, &start, &keeps) && keeps;
}

static bool
find(struct old *o, const char *dir, const char *file)
{
	unsigned long long start;
	bool keeps;

	o->pidfd = -1;
	if (read_note(hr_path_join(dir, file), &o->pid, &start, &keeps) && o->pid > 1)
		o->pidfd = hr_pidfd_open(o->pid);
	/* after that: from now on it cannot be another */
	if (o->pidfd >= 0 && (start == 0 || hr_adopt_start_time(o->pid) != start))
		hr_fd_close(&o->pidfd);
	return o->pidfd >= 0;
}

static size_t
find_all(struct old *all, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	const char *dot;
	size_t n = 0;

	while (d != NULL && n < OLD_MAX && (e = readdir(d)) != NULL) {
		dot = strrchr(e->d_name, '.');
		if (dot != NULL && strcmp(dot, ".pid") == 0 && find(&all[n], dir, e->d_name))
			n++;
	}
	if (d != NULL)
		(void)closedir(d);
	return n;
}

/* What it started ends with it. By the number alone it is the group of whoever has that now: Linux
 * 6.9 and later take the group that was this process's, ended or not. */
static void
end_group(const struct old *o)
{
	long r =
	    syscall(SYS_pidfd_send_signal, o->pidfd, SIGKILL, NULL, PIDFD_SIGNAL_PROCESS_GROUP);

	if (r != 0 && errno == EINVAL)
		(void)kill(-o->pid, SIGKILL);
}

/* Until all have ended or the moment has come; each one's group ends at once with it. p has an
 * entry for each, its fd -1 once that is done. */
static void
wait_until(const struct old *all, struct pollfd *p, size_t n, int64_t end_ms)
{
	size_t i, left = 0;
	int64_t ms;

	for (i = 0; i < n; i++)
		left += p[i].fd >= 0;
	while (left > 0) {
		ms = end_ms - hr_now_ms();
		if (poll(p, n, ms > 0 ? (int)ms : 0) < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		for (i = 0; i < n; i++) {
			if (p[i].fd < 0 || p[i].revents == 0)
				continue;
			end_group(&all[i]);
			p[i].fd = -1;
			left--;
		}
		if (ms <= 0)
			return;
	}
}

void
hr_oldplugins_end(const struct hr_rundir *r)
{
	char *dir = hr_rundir_file(r, "plugin");
	struct pollfd p[OLD_MAX];
	struct old all[OLD_MAX];
	size_t n = dir != NULL && r->inherited ? find_all(all, dir) : 0, i;

	for (i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = all[i].pidfd, .events = POLLIN};
		(void)syscall(SYS_pidfd_send_signal, all[i].pidfd, SIGTERM, NULL, 0u);
	}
	wait_until(all, p, n, hr_now_ms() + TERM_MS);
	for (i = 0; i < n; i++) {
		if (p[i].fd < 0)
			continue;
		hr_log(
		    HR_LOG_WARNING, "a plugin of before (process %ld) is killed", (long)all[i].pid);
		end_group(&all[i]);
	}
	wait_until(all, p, n, hr_now_ms() + KILL_MS);
	for (i = 0; i < n; i++)
		hr_fd_close(&all[i].pidfd);
	free(dir);
}
