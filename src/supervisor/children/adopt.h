/* hr_adopt: the keeper of a predecessor that was killed. It outlives its supervisor; the next one
 * on the same run directory goes on with it, so that shell, jobs and a running command are still
 * there.
 *
 * A file (DIR/keeper for the default session) says who it is: process id, start time (so that a
 * later process of the same number is not mistaken for it) and a digest of its command line (with
 * other settings it is of no use). */
#ifndef HR_SUPERVISOR_CHILDREN_ADOPT_H
#define HR_SUPERVISOR_CHILDREN_ADOPT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_rundir;

struct hr_adopt {
	pid_t pid; /* 0: nobody */
	int pidfd; /* readable when it has ended; -1 */
};

/* Of a NULL-terminated list of words. Not cryptographic: nobody forges our own file. */
uint64_t hr_adopt_digest(const char *const *argv);

/* Notes a keeper before its program starts: until it is ready it dies with its supervisor, so one
 * that lives is ready. A failure only costs the successor its session. */
int hr_adopt_record(
    const struct hr_rundir *r, const char *file, pid_t pid, uint64_t digest, struct hr_err *err);
/* What such a file says; pid 0: of nobody. Takes path, which may be NULL. */
bool hr_adopt_read(char *path, pid_t *ret_pid, unsigned long long *ret_start, uint64_t *ret_digest);
/* A handle of the process if it is the one that started then; else -1. */
int hr_adopt_open(pid_t pid, unsigned long long start);

/* The recorded keeper if it lives and has that digest. One that lives but was started otherwise is
 * ended first (waits up to 5 s, then kills). a->pid is 0 if there is none. */
void
hr_adopt_find(struct hr_adopt *a, const struct hr_rundir *r, const char *file, uint64_t digest);

/* A copy of its listening socket if the kernel lets us have it, else -1. */
int hr_adopt_socket(const struct hr_adopt *a, int fd);
int hr_adopt_fd(const struct hr_adopt *a, int fd); /* of any of its descriptors */
void hr_adopt_signal(const struct hr_adopt *a, int sig);
void hr_adopt_done(struct hr_adopt *a);

#endif
