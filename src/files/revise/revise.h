/* hr_revise: changes a text file and preserves everything else: line ends, charset, mode, owner and
 * all other bytes. The original's editor with its own rules is files/editor; handrail's own
 * interfaces use this one. */
#ifndef HR_FILES_REVISE_REVISE_H
#define HR_FILES_REVISE_REVISE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/span.h"
#include "files/place/commit.h"
#include "files/revise/plaintext.h"

/* The lines that a change put into a text, counted from 1; lines may be 0. */
struct hr_revised {
	size_t line, lines;
};

/* ---- pure functions ---- */

/* Appends the new text to `after`. Returns 0, or -1 with the reason in why, a sentence that begins
 * in lower case. Line ends of `new` become those of the lines around it.
 *
 * `old` must occur once; overlapping occurrences count as two. Its line feeds match any line end,
 * unless `old` has a carriage return and occurs literally. */
int hr_revise_replace(const struct hr_plaintext *t, struct hr_span old, struct hr_span new,
    struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why);
/* Inserts `new` as whole lines after that line; with 0, before all lines. */
int hr_revise_insert(const struct hr_plaintext *t, int64_t after_line, struct hr_span new,
    struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why);

/* ---- files ---- */

struct hr_revise {
	const char *path;               /* absolute path */
	const char *history_dir;        /* see files/history.h */
	uid_t owner;                    /* user and group of a new file, if this process is root */
	const struct hr_commit *commit; /* called before the change; NULL: none */
	struct hr_buf *before;          /* gets the text before the change; NULL: not needed */
};

/* Changes the file as a whole or not at all. Returns 0, or -1 with the reason in why. Blocks while
 * another handrail process changes a file. `now` is the file's text after the change. */
int hr_revise_file_replace(const struct hr_revise *r, struct hr_span old, struct hr_span new,
    struct hr_plaintext *now, struct hr_revised *ret, struct hr_buf *why);
int hr_revise_file_insert(const struct hr_revise *r, int64_t after_line, struct hr_span new,
    struct hr_plaintext *now, struct hr_revised *ret, struct hr_buf *why);
/* Undoes the last hr_revise_file_replace() or _insert(), unless the file has changed since. */
int hr_revise_file_undo(const struct hr_revise *r, struct hr_buf *why);
/* Writes these bytes to the file, and makes the directories above it. */
int hr_revise_file_write(const struct hr_revise *r, struct hr_span bytes, struct hr_buf *why);

/* Opens a regular file and reads it to its end, whatever size it reports, up to the cap of b.
 * Returns 0, or -1 with the reason in why. */
int hr_revise_load(const char *path, struct hr_buf *b, struct hr_buf *why);

#endif
