/* hr_dirpage: the entries of a directory, one page at a time, for those who look on: its memory is
 * bounded by the page and not by the directory. Directories come first, each part in the order of
 * bytes. No link is followed. */
#ifndef HR_FILES_DIRPAGE_H
#define HR_FILES_DIRPAGE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_DIRPAGE_MAX 1000

/* Takes fd, of a directory, and appends `"entries":[...],"next":...,"unnamed":N` to b. `after`: the
 * name that the last page ended with, a directory's with its '/', or "". next: that of this page,
 * null if nothing is behind it. unnamed: how many names are no UTF-8, which are left out. `limit`
 * is from 1 to HR_DIRPAGE_MAX. -1: HR_E_TOOLARGE (millions of entries), HR_E_SYS, HR_E_NOMEM. */
int hr_dirpage_put(struct hr_buf *b, int fd, const char *after, size_t limit, struct hr_err *err);

#endif
