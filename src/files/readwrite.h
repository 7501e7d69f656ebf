/* hr_readwrite: implements the default form of the actions `read` and `write` (doc/files.md, "read"
 * and "write"). */
#ifndef HR_FILES_READWRITE_H
#define HR_FILES_READWRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "files/place/commit.h"
#include "base/span.h"

enum hr_rw_result {
	HR_RW_DONE,
	HR_RW_ERROR,  /* text is the text of an error observation */
	HR_RW_RAISED, /* text is the detail of a 500 */
	HR_RW_BINARY, /* nothing was appended */
	HR_RW_CWD,    /* the shell's directory is required: request it, and call again */
};

/* Longer files are refused as too large. */
#define HR_READ_MAX (256u << 20)

struct hr_read {
	struct hr_span path; /* normalised absolute path */
	struct hr_span cwd;  /* the shell's directory, for an error text; p NULL: not known yet */
	int64_t start, end;
	const double *float_start, *float_end; /* floats given for them; NULL: integers */
	bool text_only; /* refuse a binary file (doc/files.md, "Binary or not", b to f) */
};

/* Returns true if the name makes the file a data URL; start and end are then ignored. */
bool hr_rw_is_media(struct hr_span path);

/* Appends the content. */
enum hr_rw_result hr_rw_read(const struct hr_read *q, struct hr_buf *text);

#define HR_RW_UNSLICED "slice indices must be integers or None or have an __index__ method"

struct hr_write {
	struct hr_span path;    /* normalised absolute path */
	struct hr_span content; /* generalised UTF-8 */
	int64_t start, end;
	bool unsliced;                  /* start or end is no index: existing files fail */
	uid_t owner;                    /* user and group of a new file */
	const struct hr_commit *commit; /* called before the change of the file; NULL: none */
};

/* Writes the file; text only gets errors. The caller must serialise writers. */
enum hr_rw_result hr_rw_write(const struct hr_write *q, struct hr_buf *text);

/* Computes the slice of doc/files.md, "A slice of lines", as byte offsets into p. Pure. */
void hr_rw_slice(
    const char *p, size_t len, int64_t start, int64_t end, size_t *ret_from, size_t *ret_to);

/* Computes the new content (doc/files.md, "write", 3). old is NULL for a new file. Pure. */
void hr_rw_insert(struct hr_buf *b, const struct hr_span *old, struct hr_span content,
    int64_t start, int64_t end);

#endif
