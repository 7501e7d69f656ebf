/* hr_atomic: a user's file gets new bytes, whole or not at all (doc/files.md, "A file that is
 * replaced").
 *
 * How the old file is replaced, and what stays of it: files/place/spool.h. A symbolic link stays
 * one and its target is replaced; a dangling link gets its target.
 *
 * What is new survives a kill of any process of ours at once, and a power failure when the kernel
 * has written it: nothing here waits for the disk. */
#ifndef HR_FILES_PLACE_ATOMIC_H
#define HR_FILES_PLACE_ATOMIC_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "files/place/commit.h"
#include "files/place/spool.h"

struct hr_atomic {
	struct hr_spool spool; /* its fd is to be written and read by the caller; -1: not open */
	int dir;               /* of the file */
	int old;               /* the file to be replaced, open for writing; -1: there is none */
	char *name;            /* of the file in dir, all links followed */
	const struct hr_commit *commit; /* for the caller to set; NULL: none */
};

/* Opens path for replacement. A new file gets `mode` without the umask's bits (and what its
 * directory says of groups and access lists). Whatever open(path, "w") would refuse is refused
 * here, with its errno in err->sys: a directory, no permission, a missing parent. A file that is no
 * regular one (a device, a FIFO) is HR_E_UNSUPPORTED: nothing can take its place. */
int hr_atomic_open(struct hr_atomic *a, const char *path, mode_t mode, struct hr_err *err);

/* What was written to a->spool.fd is the file now. In any case a is as after hr_atomic_abort(). */
int hr_atomic_commit(struct hr_atomic *a, struct hr_err *err);

/* The old file stays, the new bytes are gone. Nothing on one that is not open. */
void hr_atomic_abort(struct hr_atomic *a);

/* All of it for bytes in memory. Devices and FIFOs are written to, and never waited for. */
int hr_atomic_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err);
/* The same, and tells when it begins. */
int hr_atomic_write_telling(const char *path, const void *p, size_t len, mode_t mode,
    const struct hr_commit *commit, struct hr_err *err);

#endif
