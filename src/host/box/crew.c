/* Shares tasks between processes. */
#include "config.h"

#include "host/box/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process/spawn.h"

#define BESIDE 2 /* processes more than processors, for those that wait */
#define CREW_MAX 32

/* Memory that all processes share. */
struct crew {
	_Atomic size_t next;
	_Atomic bool failed, reported;
	struct hr_err err; /* complete when `reported` is set */
};

static void
fail(struct crew *c, const struct hr_err *e)
{
	if (atomic_exchange(&c->failed, true))
		return;
	c->err = *e;
	/* the class is a constant at the same place in all processes */
	atomic_store(&c->reported, true);
}

static void
work(struct crew *c, size_t n, hr_crew_task *fn, void *arg)
{
	struct hr_err e = {0};
	size_t i;

	while (!atomic_load(&c->failed) && (i = atomic_fetch_add(&c->next, 1)) < n)
		if (fn(arg, i, &e) < 0)
			fail(c, &e);
}

/* Starts a process that works, or returns -1: the others do its part. */
static pid_t
hire(struct crew *c, size_t n, hr_crew_task *fn, void *arg)
{
	const pid_t caller = getpid();
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != caller)
		_exit(1);
	work(c, n, fn, arg);
	_exit(0);
}

int
hr_crew_run(size_t first, size_t n, hr_crew_task *fn, void *arg, struct hr_err *err)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = processors > 0 ? (size_t)processors + BESIDE : 1 + BESIDE, i, hired = 0;
	struct crew *c =
	    mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[CREW_MAX];
	int status, r = 0;

	if (c == MAP_FAILED)
		return hr_err_sys(err, errno, "share memory");
	atomic_store(&c->next, first);
	most = most < CREW_MAX ? most : CREW_MAX;
	for (i = first + 1; i < n && hired + 1 < most; i++) {
		pids[hired] = hire(c, n, fn, arg);
		if (pids[hired] < 0)
			break;
		hired++;
	}
	work(c, n, fn, arg);
	for (i = 0; i < hired; i++)
		if (hr_spawn_end(pids[i], &status) < 0 || status != 0)
			r = -1;
	if (atomic_load(&c->reported))
		r = hr_err_pass(err, &c->err);
	else if (r < 0)
		(void)hr_err_set(err, HR_E_RUNTIME, "a process that made branches was killed");
	(void)munmap(c, sizeof(*c));
	return r;
}
