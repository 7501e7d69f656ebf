/* hr_diff: makes the diff text of an edit (doc/files.md, "Diffs"): no context lines; the groups
 * come from the contract's matcher, which is Python's difflib. */
#ifndef HR_FILES_DIFF_H
#define HR_FILES_DIFF_H

#include "base/buf.h"
#include "base/span.h"

/* Appends the diff, or nothing if the texts are equal. Texts that repeat so many lines that the
 * matcher would take more than about a second get one group from the first to the last difference,
 * which is as true, only coarser. Returns -1 without memory. Pure. */
int hr_diff(struct hr_buf *b, struct hr_span old, struct hr_span new, struct hr_span path,
    struct hr_err *err);

#endif
