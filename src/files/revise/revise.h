/* hr_revise: changes of one text file that do what they are asked for and nothing else: line ends,
 * charset, mode, owner and all bytes that were not named stay. The editor of the original with its
 * rules is files/editor; the interfaces of handrail's own use this one. */
#ifndef HR_FILES_REVISE_REVISE_H
#define HR_FILES_REVISE_REVISE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/span.h"
#include "files/place/commit.h"
#include "files/revise/plaintext.h"

/* The lines that a change has put into a text, from 1; lines may be 0. */
struct hr_revised {
	size_t line, lines;
};

/* ---- pure ---- */

/* Each appends the new text to `after`. Returns 0, or -1 with the reason in why, in a sentence that
 * begins in lower case. Line ends of `new` become those of the lines around it.
 *
 * `old` must occur once; occurrences that overlap are two. A line feed in it fits each line end,
 * unless `old` has a carriage return and occurs as it is. */
int hr_revise_replace(const struct hr_plaintext *t, struct hr_span old, struct hr_span new,
    struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why);
/* Puts `new` as whole lines after that line; 0: before all. */
int hr_revise_insert(const struct hr_plaintext *t, int64_t after_line, struct hr_span new,
    struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why);

/* ---- files ---- */

struct hr_revise {
	const char *path;               /* absolute */
	const char *history_dir;        /* see files/history.h */
	uid_t owner;                    /* of a new file, user and group, where we are root */
	const struct hr_commit *commit; /* of the change; NULL: none */
	struct hr_buf *before;          /* gets the text before the change; NULL: nobody asks */
};

/* Each changes the file whole or not at all. Returns 0, or -1 with the reason in why. Waits while
 * another process of ours changes a file. `now` is the file's text after the change. */
int hr_revise_file_replace(const struct hr_revise *r, struct hr_span old, struct hr_span new,
    struct hr_plaintext *now, struct hr_revised *ret, struct hr_buf *why);
int hr_revise_file_insert(const struct hr_revise *r, int64_t after_line, struct hr_span new,
    struct hr_plaintext *now, struct hr_revised *ret, struct hr_buf *why);
/* Takes the last change by one of the two above back, unless the file has changed since. */
int hr_revise_file_undo(const struct hr_revise *r, struct hr_buf *why);
/* Makes the file hold these bytes, with the directories above it. */
int hr_revise_file_write(const struct hr_revise *r, struct hr_span bytes, struct hr_buf *why);

/* Opens a regular file and reads it to its end, whatever its size is said to be, at most the cap of
 * b. Returns 0, or -1 with the reason in why. */
int hr_revise_load(const char *path, struct hr_buf *b, struct hr_buf *why);

#endif
