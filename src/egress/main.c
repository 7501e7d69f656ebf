/* handrail-egress: the way of a box to the network (handrail-egress(8)). The caller is
 * src/host/sidecar/egress.c. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "egress/broker.h"
#include "egress/edge.h"
#include "egress/keeper.h"
#include "egress/policy.h"

#define BOX 3 /* pidfd of the box's first process */

/* Records this process for the caller and for later ones. The record's lock, which standard output
 * has, is released after that. */
static int
record(struct hr_err *err)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "{\"pid\":%ld,\"started\":%llu}\n", (long)getpid(),
	    hr_pid_started(getpid()));

	if (hr_fd_write_full(STDOUT_FILENO, line, (size_t)n, err) < 0)
		return -1;
	hr_fd_close(&(int){STDOUT_FILENO});
	hr_fd_close(&(int){STDERR_FILENO});
	return hr_fd_open_stdio(err);
}

static int
open_box(struct egress_held *h, struct hr_err *err)
{
	struct egress_policy *p = egress_broker_policy(err);
	int r;

	if (p == NULL)
		return -1;
	h->box = BOX;
	r = hr_fd_cloexec(BOX, err) < 0 ? -1 : egress_keeper_open(h, p, err);
	egress_policy_free(p);
	return r;
}

/* Runs the keeper in the background, or as the process that was upgraded in place. */
static int
keep(const char *dir, bool upgraded, struct hr_err *err)
{
	static struct egress_held h = {.box = -1, .control = -1, .peer = -1};
	struct rlimit core;
	pid_t pid;

	(void)umask(077);
	/* A core file of any process here would have secrets. A limit of 0 does not keep the kernel
	 * from a program that takes cores; a limit of 1 may be more than the caller is allowed. */
	if (getrlimit(RLIMIT_CORE, &core) != 0)
		return hr_err_sys(err, errno, "the limit of core files");
	core.rlim_cur = core.rlim_max = core.rlim_max == 0 ? 0 : 1;
	if (setrlimit(RLIMIT_CORE, &core) != 0)
		return hr_err_sys(err, errno, "limit core files");
	if (chdir(dir) != 0)
		return hr_err_sys(err, errno, "enter %s", dir);
	if (!upgraded && open_box(&h, err) < 0)
		return -1;
	pid = upgraded ? 0 : fork();
	if (pid != 0)
		return pid > 0 ? 0 : hr_err_sys(err, errno, "fork");
	/* no other process of the account reads the secrets from memory */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return hr_err_sys(err, errno, "PR_SET_DUMPABLE");
	if (upgraded)
		return egress_keeper_inherit(&h, err) < 0 ? -1 : egress_keeper_run(&h, dir, err);
	if (setsid() < 0)
		return hr_err_sys(err, errno, "a session");
	return record(err) < 0 ? -1 : egress_keeper_run(&h, dir, err);
}

/* Makes the authority of the box, whose name is that of the directory above DIR. The process of a
 * killed caller may still do the same: the second one finds the files of the first. */
static int
prepare(const char *dir, struct hr_err *err)
{
	HR_FREE char *path = hr_path_absolute(dir, err);
	HR_CLOSE int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *end;

	if (path == NULL)
		return -1;
	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		return hr_err_sys(err, errno, "lock %s", dir);
	(void)umask(077);
	end = strrchr(path, '/');
	if (end != NULL)
		*end = '\0';
	return egress_authority_make(dir, hr_path_leaf(path), err);
}

int
main(int argc, char **argv)
{
	struct hr_err e = {0};
	const char *option = argc == 3 ? argv[1] : "", *dir = argc > 1 ? argv[argc - 1] : "";
	bool first = strcmp(option, "--prepare") == 0;
	bool upgraded = strcmp(option, EGRESS_UPGRADED) == 0;

	if (argc < 2 || argc > 3 || *dir != '/' || (argc == 3 && !first && !upgraded)) {
		(void)fputs("usage: handrail-egress DIR | --prepare DIR\nlibhandrail runs this for "
			    "the network of a box, with descriptors; DIR must be absolute\n",
		    stderr);
		return 2;
	}
	if ((first ? prepare(dir, &e) : keep(dir, upgraded, &e)) == 0)
		return 0;
	(void)fprintf(stderr, "%s\n", e.msg);
	return 1;
}
