/* hr_outlog: the last bytes that a terminal printed, with absolute offsets: the first byte of the
 * first shell is 0, and no offset ever means another byte.
 *
 * What is not followed at once is seldom read: but for the last piece it lies in a file without a
 * name, which the kernel may write to the disk when memory runs short. Where the directory is in
 * memory itself (tmpfs), or the file can be no longer written, memory takes its place. */
#ifndef HR_SESSION_OUTLOG_H
#define HR_SESSION_OUTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HR_OUTLOG_NAME "output" /* for a moment, in the directory */

struct hr_statedir;

#define HR_OUTLOG_PIECE ((size_t)32 << 10)

/* In memory that another process may go on with: see hr_outlog_resume(). */
struct hr_outlog {
	size_t cap;                   /* 0: nothing is kept */
	uint64_t end;                 /* offset behind the last byte */
	uint64_t stored;              /* where the store ends: a multiple of its pieces */
	uint64_t first;               /* what is before it was lost */
	size_t size;                  /* of the store: cap and a part of a piece */
	struct hr_statedir *dir;      /* borrowed */
	int fd;                       /* the store, if it is a file, */
	char *memory;                 /* or if it is not */
	int shared;                   /* a descriptor of the memory; -1: nobody else can have it */
	bool refused;                 /* there can be neither */
	char recent[HR_OUTLOG_PIECE]; /* from `stored` on */
};

/* dir: where the file is made, when the first piece is half full; NULL: in memory. */
void hr_outlog_init(struct hr_outlog *o, size_t cap, struct hr_statedir *dir);
/* After the end of the process that had it: with its two descriptors, which are taken; -1: none.
 * Where the store cannot be had its bytes are lost. */
void hr_outlog_resume(struct hr_outlog *o, size_t cap, struct hr_statedir *dir, int fd, int shared);
void hr_outlog_done(struct hr_outlog *o); /* also of one that is all zero */
/* Cannot fail: the oldest bytes make room; should there be no other, all that are stored. */
void hr_outlog_add(struct hr_outlog *o, const char *p, size_t len);
uint64_t hr_outlog_start(const struct hr_outlog *o); /* of the oldest byte that is kept */
/* Bytes from an offset on, not beyond the end, that lie in one piece; valid until the next add or
 * read. *io_from grows to the oldest byte if that one is gone. *ret_len is 0 at the end only. */
const char *hr_outlog_read(struct hr_outlog *o, uint64_t *io_from, size_t *ret_len);

#endif
