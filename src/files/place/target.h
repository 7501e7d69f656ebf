/* hr_target: where a file that a client names is to go, and that it may go there.
 *
 * The contract joins directory and name as text, so a name may be absolute or begin with "..". It
 * may not leave the directory for any place: only for one beneath the server's working directory,
 * which is the client's own, and then through no symbolic link. Links in the name are followed
 * while they stay beneath the directory. The directory itself is the client's choice and may be
 * reached through links. */
#ifndef HR_FILES_PLACE_TARGET_H
#define HR_FILES_PLACE_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"

#define HR_TARGET_TEXT_MAX (64u << 10)

struct hr_target {
	int dir;    /* the directory that will have it (O_PATH); -1: none */
	char *leaf; /* its name there */
	bool exists;
	struct stat st; /* of the file that is there; a regular one */
	char *text;     /* directory and name joined, for messages */
};

/* 0, or -1 with the text of the contract in why. hr_target_close() in any case. */
int hr_target_open(struct hr_target *t, const char *directory, const char *name,
    const char *work_dir, struct hr_buf *why);
void hr_target_close(struct hr_target *t);

/* Makes a directory with its parents, as Python's os.makedirs, if nothing is there. *ret_made: the
 * length of the longest part of path that was there before; all of it if it was. */
int hr_target_mkdirs(const char *path, size_t *ret_made, struct hr_buf *why);
/* Takes back what hr_target_mkdirs() made, as far as it is empty. */
void hr_target_rmdirs(const char *path, size_t made);

/* Why a file cannot be put on what *st describes: 0, EISDIR, or EINVAL for what is no file. */
int hr_target_refuses(const struct stat *st);

#endif
