/* hr_history: keeps the editor's undo history (doc/files.md, "Undo"): a stack of at most ten older
 * texts for each normalised path. It outlives the worker that made an entry, since another worker
 * may serve the next request; the server removes it when it ends. The history is a directory of the
 * server (mode 0700) with one file per entry. Opening it also takes the lock that makes `edit` and
 * `write` one editor, as the contract describes: every change of a file happens between open and
 * close, one at a time over all workers. */
#ifndef HR_FILES_HISTORY_H
#define HR_FILES_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define HR_HISTORY_UNDO "undo" /* name in the run directory */
#define HR_HISTORY_DEPTH 10
/* bytes of all texts; beyond this the oldest half is removed, whatever its path */
#define HR_HISTORY_BYTES (256u << 20)

struct hr_history {
	int dir;  /* -1: not open */
	int lock; /* the lock file, which holds the bytes of all entries */
	uint64_t limit;
};

/* Makes the directory if it is missing. Blocks until the lock is free. */
int hr_history_open(struct hr_history *h, const char *dir, struct hr_err *err);
void hr_history_close(struct hr_history *h);

/* Saves a text. On failure the path loses its history: undo must not skip the last change. */
int hr_history_push(
    struct hr_history *h, struct hr_span path, const char *text, size_t len, struct hr_err *err);

/* Appends the newest text. Returns 1; 0: there is none; -1: an error. */
int
hr_history_peek(struct hr_history *h, struct hr_span path, struct hr_buf *text, struct hr_err *err);
/* Removes the newest text. */
int hr_history_drop(struct hr_history *h, struct hr_span path, struct hr_err *err);

#endif
