/* hr_adopt: adopts the keeper of a killed predecessor. A keeper outlives its supervisor; the next
 * supervisor on the same run directory takes it over, so that shell, jobs and a running command
 * survive.
 *
 * A file (DIR/keeper for the default session) identifies the keeper: process id, start time (a
 * later process may have the same number) and a digest of its command line (with other settings it
 * cannot be used). */
#ifndef HR_SUPERVISOR_CHILDREN_ADOPT_H
#define HR_SUPERVISOR_CHILDREN_ADOPT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_rundir;

struct hr_adopt {
	pid_t pid; /* 0: there is no keeper */
	int pidfd; /* readable when the keeper has ended; -1: none */
};

/* Hashes a NULL-terminated argument vector. The hash is not cryptographic, since no other account
 * can write the file. */
uint64_t hr_adopt_digest(const char *const *argv);

/* Records a keeper before its program starts: until it is ready it dies with its supervisor, so a
 * living one is ready. A failure only costs the successor its session. */
int hr_adopt_record(
    const struct hr_rundir *r, const char *file, pid_t pid, uint64_t digest, struct hr_err *err);
/* Reads the record of a keeper. Returns false if there is no valid one; *ret_pid may be 0: no
 * process. Takes ownership of `path`, which may be NULL. */
bool hr_adopt_read(char *path, pid_t *ret_pid, unsigned long long *ret_start, uint64_t *ret_digest);

/* Finds the keeper that `file` records, if it lives and has `digest`; otherwise sets a->pid to 0.
 * Ends a living keeper with another digest: waits up to 5 s, then kills it. */
void
hr_adopt_find(struct hr_adopt *a, const struct hr_rundir *r, const char *file, uint64_t digest);

int hr_adopt_fd(const struct hr_adopt *a, int fd); /* Copies any of the keeper's descriptors. */
void hr_adopt_signal(const struct hr_adopt *a, int sig);
void hr_adopt_done(struct hr_adopt *a);

#endif
