/* Adopts keepers. Everything uses a pidfd: a process that is not a child of this one may end, and
 * its number be reused, at any time. */
#include "config.h"

#include "supervisor/children/adopt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "supervisor/run/rundir.h"

#define END_MS 5000

uint64_t
hr_adopt_digest(const char *const *argv)
{
	uint64_t h = HR_HASH;

	for (; *argv != NULL; argv++)
		h = hr_hash(h, *argv, strlen(*argv) + 1); /* {"ab","c"} differs from {"a","bc"} */
	return h;
}

int
hr_adopt_record(
    const struct hr_rundir *r, const char *file, pid_t pid, uint64_t digest, struct hr_err *err)
{
	HR_FREE char *path = hr_rundir_file(r, "%s", file);
	char text[96];
	int n;

	if (path == NULL)
		return hr_err_nomem(err);
	n = snprintf(text, sizeof(text), "%ld %llu %016" PRIx64 "\n", (long)pid,
	    hr_pid_started(pid), digest);
	return hr_path_write(path, text, (size_t)n, 0600, err);
}

bool
hr_adopt_read(char *path, pid_t *ret_pid, unsigned long long *ret_start, uint64_t *ret_digest)
{
	HR_BUF(b, 128);
	bool ok = false;
	char *at;

	if (path != NULL && hr_path_read(path, &b, NULL) == 0 && b.len > 0) {
		*ret_pid = (pid_t)strtol(b.p, &at, 10);
		*ret_start = strtoull(at, &at, 10);
		*ret_digest = strtoull(at, &at, 16);
		ok = *at == '\n';
	}
	free(path);
	return ok;
}

void
hr_adopt_signal(const struct hr_adopt *a, int sig)
{
	if (a->pidfd >= 0)
		(void)hr_pid_signal(a->pidfd, sig); /* fails if the keeper has ended */
}

void
hr_adopt_find(struct hr_adopt *a, const struct hr_rundir *r, const char *file, uint64_t digest)
{
	unsigned long long start;
	uint64_t its_digest;
	pid_t pid;

	a->pid = 0;
	a->pidfd = -1;
	if (!hr_adopt_read(hr_rundir_file(r, "%s", file), &pid, &start, &its_digest))
		return;
	a->pidfd = hr_pid_open(pid, start);
	if (a->pidfd < 0)
		return;
	if (hr_pid_wait(a->pidfd, 0)) {
		hr_adopt_done(a);
		return;
	}
	if (its_digest == digest) {
		a->pid = pid;
		return;
	}
	hr_log(HR_LOG_NOTICE,
	    "the shell of a killed predecessor (process %ld) was started with other settings: "
	    "ending it",
	    (long)pid);
	hr_adopt_signal(a, SIGTERM);
	if (!hr_pid_wait(a->pidfd, END_MS))
		hr_adopt_signal(a, SIGKILL);
	hr_adopt_done(a);
}

int
hr_adopt_fd(const struct hr_adopt *a, int fd)
{
	return (int)syscall(SYS_pidfd_getfd, a->pidfd, fd, 0u);
}

void
hr_adopt_done(struct hr_adopt *a)
{
	hr_fd_close(&a->pidfd);
	a->pid = 0;
}
