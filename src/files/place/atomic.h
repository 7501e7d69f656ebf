/* hr_atomic: gives a user's file new bytes, all of them or none (doc/files.md, "A file that is
 * replaced").
 *
 * files/place/spool.h describes the replacement, and which attributes of the old file stay. A
 * symbolic link stays and its target is replaced; the target of a dangling link is created.
 *
 * New content survives a kill of any handrail process at once, and a power failure once the kernel
 * has written it: nothing here waits for the disk. */
#ifndef HR_FILES_PLACE_ATOMIC_H
#define HR_FILES_PLACE_ATOMIC_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "files/place/commit.h"
#include "files/place/spool.h"

struct hr_atomic {
	struct hr_spool spool; /* the caller writes and reads its fd; -1: not open */
	int dir;               /* directory of the file */
	int old;               /* the file to be replaced, open for writing; -1: there is none */
	char *name;            /* name of the file in dir, all links followed */
	const struct hr_commit *commit; /* set by the caller; NULL: none */
};

/* Opens path for replacement. A new file gets `mode` without the umask's bits (and the group and
 * access lists that its directory prescribes). Fails wherever open(path, "w") would, with the same
 * errno in err->sys: a directory, no permission, a missing parent. A device or a FIFO is
 * HR_E_UNSUPPORTED: no file can replace it. */
int hr_atomic_open(struct hr_atomic *a, const char *path, mode_t mode, struct hr_err *err);

/* Makes the bytes written to a->spool.fd the file's content. Afterwards a is as after
 * hr_atomic_abort(). */
int hr_atomic_commit(struct hr_atomic *a, struct hr_err *err);

/* Discards the new bytes; the old file stays. Does nothing if a is not open. */
void hr_atomic_abort(struct hr_atomic *a);

/* Replaces the file by bytes in memory. Devices and FIFOs are written to without blocking. */
int hr_atomic_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err);
/* Does the same as hr_atomic_write(), but calls commit before the change. */
int hr_atomic_write_telling(const char *path, const void *p, size_t len, mode_t mode,
    const struct hr_commit *commit, struct hr_err *err);

#endif
