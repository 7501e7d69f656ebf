/* hr_e2b_entry: writes the facts about a file as filesystem.EntryInfo. */
#ifndef HR_E2B_ENTRY_H
#define HR_E2B_ENTRY_H

#include <sys/stat.h>

#include "base/buf.h"

#define HR_E2B_XATTR "user.e2b." /* prefix of metadata among the extended attributes */

/* Appends {"name":...,"path":path,...}. `fd` is the entry itself (O_PATH | O_NOFOLLOW), `target`
 * what it leads to if it is a link (O_PATH; -1: nothing): type, mode and metadata are the target's,
 * the rest is the link's own. Returns 0, or -1 with errno. */
int hr_e2b_entry_put(struct hr_buf *b, const char *path, int fd, int target);

/* Appends Go's text of a mode, such as "-rw-r--r--", "dtrwxrwxrwx" or "Lrwxrwxrwx". */
void hr_e2b_entry_mode(struct hr_buf *b, mode_t mode);

/* Appends Go's text of an errno: "no such file or directory". */
void hr_e2b_entry_errno(struct hr_buf *b, int sys);

#endif
