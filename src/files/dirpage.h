/* hr_dirpage: lists the entries of a directory for viewers, one page at a time: its memory is
 * bounded by the page and not by the directory. Directories come first; each part is in the order
 * of bytes. No link is followed. */
#ifndef HR_FILES_DIRPAGE_H
#define HR_FILES_DIRPAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_DIRPAGE_MAX 10000

/* Takes fd, of a directory, and appends `"entries":[...],"next":...,"unnamed":N` to b. `after` is
 * the last name of the previous page (a directory's with its '/'), or "". "next" is this page's
 * last name, null on the last page; "unnamed" is the number of names left out: longer than 255
 * bytes, or not UTF-8. With `encoded` these are given, too: all names are percent-encoded, and
 * "encoded" is true. `limit` is from 1 to HR_DIRPAGE_MAX. Returns -1 with HR_E_TOOLARGE (millions
 * of entries), HR_E_SYS or HR_E_NOMEM. */
int hr_dirpage_put(
    struct hr_buf *b, int fd, const char *after, size_t limit, bool encoded, struct hr_err *err);

#endif
