/* hr_statedir: the directory of the files that the keeper shares with its shell.
 *
 * The keeper may be root and the shell may not be. Whoever can write in a directory can make a
 * root that creates, gives away or removes files there by name do so elsewhere: a symbolic or hard
 * link in place of the file is enough. So the directory is the keeper's own, others may only pass
 * through it (mode 0711), and every file is made anew by descriptor, with O_EXCL and without
 * following links; what the shell needs of it is given to its user afterwards. */
#ifndef HR_SESSION_STATEDIR_H
#define HR_SESSION_STATEDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_statedir {
	int fd;    /* -1: not open */
	uid_t uid; /* of the shell */
	gid_t gid;
	bool give; /* the shell's user is not ours */
};

void hr_statedir_init(struct hr_statedir *d);

/* An existing directory. One that belongs to the shell's user is taken from it. Refused: a symbolic
 * link, somebody else's directory, one that others may write in. */
int hr_statedir_open(
    struct hr_statedir *d, const char *path, uid_t uid, gid_t gid, bool give, struct hr_err *err);
int hr_statedir_pass(struct hr_statedir *d, struct hr_err *err); /* its mode, once more */
void hr_statedir_close(struct hr_statedir *d);                   /* what is in it stays */

/* Opened both ways and non-blocking, so that neither end ever waits for the other to open it or
 * sees an end of file. HR_STATEDIR_USER: for the shell's user alone; HR_STATEDIR_ANYBODY: everybody
 * may write, child shells of other users as well, and nobody but us may read. */
enum hr_statedir_use { HR_STATEDIR_USER, HR_STATEDIR_ANYBODY };
int hr_statedir_fifo(
    struct hr_statedir *d, const char *name, enum hr_statedir_use use, struct hr_err *err);

/* Whether the name still leads to what was made so, open as fd, with the owner and mode it was
 * given: who has our account can remove it, the shell's user change the mode of what is theirs. */
bool hr_statedir_is_fifo(
    const struct hr_statedir *d, const char *name, int fd, enum hr_statedir_use use);

/* A file that the shell's user may read and nobody else; HR_STATEDIR_ANYBODY: everybody may. An
 * earlier one of the name is replaced. */
int hr_statedir_put(struct hr_statedir *d, const char *name, const void *p, size_t len,
    enum hr_statedir_use use, struct hr_err *err);

/* A file of our own, both ways, that is gone with its descriptor: it bears the name for a moment
 * only (O_TMPFILE is not to be had everywhere). */
int hr_statedir_unnamed(struct hr_statedir *d, const char *name, struct hr_err *err);

void hr_statedir_remove(struct hr_statedir *d, const char *name); /* gone already: nothing */
/* Everything whose name begins with one of the list: what a killed predecessor left. */
void hr_statedir_sweep(struct hr_statedir *d, const char *const *prefixes, size_t n);

#endif
