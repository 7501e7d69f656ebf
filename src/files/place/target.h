/* hr_target: resolves the place of a file that a client names, and checks that it is permitted.
 *
 * The contract joins directory and name as text, so a name may be absolute or begin with "..". It
 * may leave the directory only for a place beneath the server's working directory, which belongs to
 * the client, and then through no symbolic link. Links in the name are followed while they stay
 * beneath the directory. The directory itself is the client's choice and may be reached through
 * links. */
#ifndef HR_FILES_PLACE_TARGET_H
#define HR_FILES_PLACE_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"

#define HR_TARGET_TEXT_MAX (64u << 10)

struct hr_target {
	int dir;    /* directory of the file, O_PATH; -1: not open */
	char *leaf; /* the file's name in dir */
	bool exists;
	struct stat st; /* attributes of the existing file, which is a regular one */
	char *text;     /* directory and name joined, for messages */
};

/* Returns 0, or -1 with the contract's text in why. Call hr_target_close() in both cases. */
int hr_target_open(struct hr_target *t, const char *directory, const char *name,
    const char *work_dir, struct hr_buf *why);
void hr_target_close(struct hr_target *t);

/* Makes a directory with its parents, as Python's os.makedirs. *ret_made is the length of the
 * longest part of path that existed before, or of all of it if path existed. */
int hr_target_mkdirs(const char *path, size_t *ret_made, struct hr_buf *why);
/* Removes the directories that hr_target_mkdirs() made, as far as they are empty. */
void hr_target_rmdirs(const char *path, size_t made);

/* Returns why a file cannot replace the one of *st: 0, EISDIR, or EINVAL for a special file. */
int hr_target_refuses(const struct stat *st);

#endif
