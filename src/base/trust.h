/* hr_trust: decides whether only the user could have written a file. That holds if the file and its
 * directory belong to the user (the effective one) or root and no others may write either: not the
 * world, nor a group, unless it is the owner's private group (of the owner's name, with no other
 * member) and no access control list grants more. All checks use open descriptors, so that the file
 * that is read is the file that was checked.
 *
 * A symbolic link is followed if it passes the same checks where it lies; its target must pass them
 * too. */
#ifndef HR_BASE_TRUST_H
#define HR_BASE_TRUST_H

#include <limits.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_trusted {
	int fd;                  /* the file, open for reading */
	int dir;                 /* directory of the file, O_PATH */
	char name[NAME_MAX + 1]; /* name in dir, not a link */
};

/* Accept only the user and root as owners. */
#define HR_TRUST_NOBODY ((uid_t)-1)
/* Returns the owner of the running program, who could have changed it; for files installed with
 * it. */
uid_t hr_trust_program_owner(void);

/* Opens a trusted file. Returns -1 with *t empty and HR_E_UNTRUSTED, whose message says what to do,
 * or the error of open (sys). Anything but a regular file is HR_E_UNTRUSTED, a directory EISDIR. */
int hr_trust_open(struct hr_trusted *t, const char *path, uid_t also, struct hr_err *err);
void hr_trusted_done(struct hr_trusted *t);

/* Appends the whole trusted file, at most the cap of b. */
int hr_trust_read(const char *path, uid_t also, struct hr_buf *b, struct hr_err *err);

/* Checks that only the user and root can write in a directory, for files created in it later. */
int hr_trust_directory(const char *path, struct hr_err *err);

#endif
