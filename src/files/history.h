/* hr_history: the editor's undo history (doc/files.md, "Undo"): for each normalised path a stack of
 * at most ten older texts. It outlives the worker that made an entry, since the next request may go
 * to another one; the server removes it at its end.
 *
 * It is a directory of the server's own (mode 0700), one file per entry. Holding it open also is
 * the turn of the one editor that the contract describes: whoever changes files by `edit` or
 * `write` does so between open and close, one at a time over all workers. */
#ifndef HR_FILES_HISTORY_H
#define HR_FILES_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define HR_HISTORY_UNDO "undo" /* its name in the run directory */
#define HR_HISTORY_DEPTH 10
/* All texts together; beyond it the oldest half goes, of whatever path. */
#define HR_HISTORY_BYTES (256u << 20)

struct hr_history {
	int dir;  /* -1: not open */
	int lock; /* its content: the bytes of all entries */
	uint64_t limit;
};

/* Makes the directory if it is missing. Waits for its turn. */
int hr_history_open(struct hr_history *h, const char *dir, struct hr_err *err);
void hr_history_close(struct hr_history *h);

/* On failure the path has no history: undo must not restore an older text than the last. */
int hr_history_push(
    struct hr_history *h, struct hr_span path, const char *text, size_t len, struct hr_err *err);

/* Appends the newest text. 1; 0: there is none; -1. */
int
hr_history_peek(struct hr_history *h, struct hr_span path, struct hr_buf *text, struct hr_err *err);
/* Removes it. */
int hr_history_drop(struct hr_history *h, struct hr_span path, struct hr_err *err);

#endif
