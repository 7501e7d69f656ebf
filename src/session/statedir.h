/* hr_statedir: manages the directory of the files that the keeper shares with its shell. The keeper
 * may be root and the shell not. An account that can write in a directory can trick a root process
 * that creates, gives away or removes files there by name into doing so elsewhere: a symbolic or
 * hard link in place of the file suffices. So the directory belongs to the keeper, others can only
 * traverse it (mode 0711), and every file is created by descriptor, with O_EXCL and without
 * following links; then the shell's user gets the files that the shell needs. */
#ifndef HR_SESSION_STATEDIR_H
#define HR_SESSION_STATEDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_statedir {
	int fd;    /* -1: not open */
	uid_t uid; /* the shell's user */
	gid_t gid;
	bool give; /* true: the shell's user differs from this process's */
};

void hr_statedir_init(struct hr_statedir *d);

/* Opens an existing directory and takes it from the shell's user. Refuses a symbolic link, another
 * account's directory, and one that others can write in. */
int hr_statedir_open(
    struct hr_statedir *d, const char *path, uid_t uid, gid_t gid, bool give, struct hr_err *err);
/* Sets the directory's mode again. */
int hr_statedir_pass(struct hr_statedir *d, struct hr_err *err);
void hr_statedir_close(struct hr_statedir *d); /* Closes the directory and keeps its content. */

/* The FIFOs are opened for reading and writing and non-blocking, so that neither end ever waits for
 * the other to open it or sees an end of file. HR_STATEDIR_USER: for the shell's user alone;
 * HR_STATEDIR_ANYBODY: everybody may write, including child shells of other users, and only the
 * keeper may read. */
enum hr_statedir_use { HR_STATEDIR_USER, HR_STATEDIR_ANYBODY };
int hr_statedir_fifo(
    struct hr_statedir *d, const char *name, enum hr_statedir_use use, struct hr_err *err);

/* Returns true if the name still refers to the FIFO open as fd, with its original owner and mode: a
 * process of the keeper's account can remove the FIFO, and the shell's user can change the mode of
 * the user's FIFOs. */
bool hr_statedir_is_fifo(
    const struct hr_statedir *d, const char *name, int fd, enum hr_statedir_use use);

/* Creates a file that only the shell's user can read, or everybody with HR_STATEDIR_ANYBODY.
 * Replaces an earlier file of that name. */
int hr_statedir_put(struct hr_statedir *d, const char *name, const void *p, size_t len,
    enum hr_statedir_use use, struct hr_err *err);

/* Creates a private file for reading and writing that vanishes with its descriptor: it has the name
 * for an instant only (O_TMPFILE does not work everywhere). */
int hr_statedir_unnamed(struct hr_statedir *d, const char *name, struct hr_err *err);

/* Removes a file; a missing file is no error. */
void hr_statedir_remove(struct hr_statedir *d, const char *name);
/* Removes every file with one of these prefixes: leftovers of a killed predecessor. */
void hr_statedir_sweep(struct hr_statedir *d, const char *const *prefixes, size_t n);

#endif
