/* hr_spool: a file that is being received. It has no name until it is whole, so that whatever
 * happens to us, nothing of it is left; where the file system knows no such files it has a name
 * that begins with a dot and goes with the spool. */
#ifndef HR_FILES_PLACE_SPOOL_H
#define HR_FILES_PLACE_SPOOL_H

#include <stddef.h>

#include "base/buf.h"
#include "files/place/target.h"

struct hr_spool {
	int fd;     /* for reading and writing; -1: not open */
	int dir;    /* of name */
	char *name; /* NULL: it has none */
};

void hr_spool_init(struct hr_spool *s);
/* In the directory, or in the nearest one above it that exists. 0 or -1 with errno. */
int hr_spool_open(struct hr_spool *s, const char *directory);
/* In an open directory (O_PATH will do), or, where we may not write, in $TMPDIR. 0 or -1. */
int hr_spool_open_at(struct hr_spool *s, int dir);
/* 0 or -1 with errno. */
int hr_spool_write(struct hr_spool *s, const char *p, size_t len);
/* Makes it the file of that target. 0, or -1 with the contract's text; the target is then as it
 * was. The spool stays open for reading either way. */
int hr_spool_place(struct hr_spool *s, const struct hr_target *t, struct hr_buf *why);
void hr_spool_close(struct hr_spool *s); /* what was not placed is gone */

#endif
