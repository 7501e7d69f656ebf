/* hr_readwrite: the default implementation of the actions `read` and `write` (doc/files.md, "read"
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
	HR_RW_ERROR,  /* text is that of an error observation */
	HR_RW_RAISED, /* text is the detail of a 500 */
	HR_RW_BINARY, /* nothing was appended */
	HR_RW_CWD,    /* the directory of the shell is needed: ask for it, and call again */
};

/* Longer files are refused as too large. */
#define HR_READ_MAX (256u << 20)

struct hr_read {
	struct hr_span path; /* normalised and absolute */
	struct hr_span cwd;  /* of the shell, for the text of an error; p NULL: not asked for yet */
	int64_t start, end;
	bool text_only; /* a binary file is not read (doc/files.md, "Binary or not", b to f) */
};

/* Whether the file is shown as a data URL, by its name; start and end then mean nothing. */
bool hr_rw_is_media(struct hr_span path);

/* Appends the content. */
enum hr_rw_result hr_rw_read(const struct hr_read *q, struct hr_buf *text);

struct hr_write {
	struct hr_span path;    /* normalised and absolute */
	struct hr_span content; /* generalised UTF-8 */
	int64_t start, end;
	uid_t owner;                    /* of a new file, user and group */
	const struct hr_commit *commit; /* of the change; directories above the file may be made
					   before. NULL: none */
};

/* text only gets errors. The caller sees to it that nobody else of us writes at the same time. */
enum hr_rw_result hr_rw_write(const struct hr_write *q, struct hr_buf *text);

/* The slice of doc/files.md, "A slice of lines" as byte offsets into a text of lines. Pure. */
void hr_rw_slice(
    const char *p, size_t len, int64_t start, int64_t end, size_t *ret_from, size_t *ret_to);

/* The new content (doc/files.md, "write", 3): old is NULL for a new file. Pure. */
void hr_rw_insert(struct hr_buf *b, const struct hr_span *old, struct hr_span content,
    int64_t start, int64_t end);

#endif
