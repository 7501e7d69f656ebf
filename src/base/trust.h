/* hr_trust: whether a file is the word of whoever runs us, and nobody else's. It is if the file and
 * the directory that it is in belong to the user (the effective one) or root and others may write
 * neither: not the world, nor a group, unless it is the private one of the owner (of the owner's
 * name, with nobody else in it) and no access control list says more. All of it is looked at by
 * open descriptors, so that what is read is what was looked at.
 *
 * A symbolic link is followed if it is itself theirs and where only they can write; what it leads
 * to has to pass the same. */
#ifndef HR_BASE_TRUST_H
#define HR_BASE_TRUST_H

#include <limits.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_trusted {
	int fd;                  /* the file, for reading */
	int dir;                 /* its directory: O_PATH */
	char name[NAME_MAX + 1]; /* its name there, which is no link */
};

/* No owner besides the user and root. */
#define HR_TRUST_NOBODY ((uid_t)-1)
/* Who could have changed the program that runs; for what was installed with it. */
uid_t hr_trust_program_owner(void);

/* -1: *t holds nothing. The code is HR_E_UNTRUSTED with what to do about it in the message; else it
 * could not be opened (sys). What is no regular file is HR_E_UNTRUSTED, a directory EISDIR. */
int hr_trust_open(struct hr_trusted *t, const char *path, uid_t also, struct hr_err *err);
void hr_trusted_done(struct hr_trusted *t);

/* The whole of it, at most the cap of b. */
int hr_trust_read(const char *path, uid_t also, struct hr_buf *b, struct hr_err *err);

/* A directory in which only they can write, for all that is made in it later. */
int hr_trust_directory(const char *path, struct hr_err *err);

#endif
