/* hr_outlog: keeps the last bytes that a terminal printed, with absolute offsets: the first byte of
 * the first shell is 0, and an offset never means another byte. Output that is not followed at once
 * is seldom read: all but the last piece is in an unnamed file, which the kernel can write to the
 * disk when memory runs short. Memory replaces the file if the directory is in memory itself
 * (tmpfs), or the file can no longer be written. */
#ifndef HR_SESSION_OUTLOG_H
#define HR_SESSION_OUTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HR_OUTLOG_NAME "output" /* temporary name in the directory */

struct hr_statedir;

#define HR_OUTLOG_PIECE ((size_t)32 << 10)

/* The struct is in memory that another process can continue with: see hr_outlog_resume(). */
struct hr_outlog {
	size_t cap;                   /* 0: there is no log */
	uint64_t end;                 /* offset after the last byte */
	uint64_t stored;              /* offset of the store's end: a multiple of the piece size */
	uint64_t first;               /* earlier bytes are lost */
	size_t size;                  /* bytes of the store: cap plus a part of a piece */
	struct hr_statedir *dir;      /* borrowed */
	int fd;                       /* the store if it is a file; otherwise -1 */
	char *memory;                 /* the store if it is in memory */
	int shared;                   /* descriptor of the memory; -1: not shareable */
	bool refused;                 /* no store could be made */
	char recent[HR_OUTLOG_PIECE]; /* bytes from offset `stored` on */
};

/* Initialises an empty log. dir: directory of the file, which is made when the first piece is half
 * full; NULL: memory only. */
void hr_outlog_init(struct hr_outlog *o, size_t cap, struct hr_statedir *dir);
/* Continues the log of an ended process with its two descriptors, of which it takes ownership; -1:
 * none. If the store is not available its bytes are lost. */
void hr_outlog_resume(struct hr_outlog *o, size_t cap, struct hr_statedir *dir, int fd, int shared);
void hr_outlog_done(struct hr_outlog *o); /* Accepts a zeroed struct. */
/* Appends bytes; cannot fail: the oldest bytes make room, in the worst case all stored ones. */
void hr_outlog_add(struct hr_outlog *o, const char *p, size_t len);
uint64_t hr_outlog_start(const struct hr_outlog *o); /* Returns the offset of the oldest byte. */
/* Returns contiguous bytes from an offset on, up to the end; valid until the next add or read.
 * *io_from is raised to the oldest byte if its byte is gone. *ret_len is 0 at the end only. */
const char *hr_outlog_read(struct hr_outlog *o, uint64_t *io_from, size_t *ret_len);

#endif
