/* Ends a predecessor's plugins. Their numbers may have been reused: the recorded start time must
 * match. */
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
#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "supervisor/children/adopt.h"
#include "supervisor/run/rundir.h"

/* ms until SIGKILL: a plugin's child may need two seconds to exit cleanly */
#define TERM_MS 3000
#define KILL_MS 1000
#define OLD_MAX 64
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP 4u /* as in <linux/pidfd.h> of Linux 6.9 */
#endif

int
hr_oldplugins_note(
    const struct hr_rundir *r, const char *name, pid_t pid, unsigned what, struct hr_err *err)
{
	char file[96];

	(void)snprintf(file, sizeof(file), "plugin/%s.pid", name);
	return hr_adopt_record(r, file, pid, what, err);
}

void
hr_oldplugins_forget(const struct hr_rundir *r, const char *name)
{
	hr_rundir_remove(r, "plugin/%s.pid", name);
}

unsigned
hr_oldplugins_known(const struct hr_rundir *r, const char *name)
{
	unsigned long long start;
	uint64_t what;
	pid_t pid;

	return r->inherited &&
		       hr_adopt_read(hr_rundir_file(r, "plugin/%s.pid", name), &pid, &start, &what)
		   ? (unsigned)what
		   : 0;
}

static bool
find(struct hr_adopt *o, uint64_t *what, const char *dir, const char *file)
{
	unsigned long long start;

	o->pidfd = -1;
	if (hr_adopt_read(hr_path_join(dir, file), &o->pid, &start, what))
		o->pidfd = hr_pid_open(o->pid, start);
	return o->pidfd >= 0;
}

static size_t
find_all(struct hr_adopt *all, uint64_t *what, const char *dir)
{
	HR_CLOSEDIR DIR *d = opendir(dir);
	struct dirent *e;
	const char *dot;
	size_t n = 0;

	while (d != NULL && n < OLD_MAX && (e = readdir(d)) != NULL) {
		dot = strrchr(e->d_name, '.');
		if (dot != NULL && strcmp(dot, ".pid") == 0 &&
		    find(&all[n], &what[n], dir, e->d_name))
			n++;
	}
	return n;
}

/* Kills a plugin's children with it. By number alone this could hit a new group: since Linux 6.9 a
 * pidfd names the process's own group, even after its exit. */
static void
end_group(const struct hr_adopt *o)
{
	long r =
	    syscall(SYS_pidfd_send_signal, o->pidfd, SIGKILL, NULL, PIDFD_SIGNAL_PROCESS_GROUP);

	if (r != 0 && errno == EINVAL)
		(void)kill(-o->pid, SIGKILL);
}

/* Waits until all have ended or the deadline; kills the group of each as soon as that ends. p has
 * an entry for each, with fd -1 once it is done. */
static void
wait_until(const struct hr_adopt *all, struct pollfd *p, size_t n, int64_t end_ms)
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
	HR_FREE char *dir = hr_rundir_file(r, "plugin");
	struct pollfd p[OLD_MAX];
	struct hr_adopt all[OLD_MAX];
	uint64_t what[OLD_MAX];
	size_t n = dir != NULL && r->inherited ? find_all(all, what, dir) : 0, i;

	for (i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = all[i].pidfd, .events = POLLIN};
		hr_adopt_signal(&all[i], (what[i] & HR_OLDPLUGIN_OUTLIVES) != 0 ? SIGHUP : SIGTERM);
	}
	wait_until(all, p, n, hr_now_ms() + TERM_MS);
	for (i = 0; i < n; i++) {
		if (p[i].fd < 0)
			continue;
		hr_log(HR_LOG_WARNING, "killing a plugin of the previous handraild (process %ld)",
		    (long)all[i].pid);
		end_group(&all[i]);
	}
	wait_until(all, p, n, hr_now_ms() + KILL_MS);
	for (i = 0; i < n; i++)
		hr_fd_close(&all[i].pidfd);
}
