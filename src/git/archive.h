/* hr_git_archive: archives a directory on stdout as the agent server of OpenHands V1 does. */
#ifndef HR_GIT_ARCHIVE_H
#define HR_GIT_ARCHIVE_H

#include <stdbool.h>

#include "git/git_int.h"

#define HR_ARCHIVE_PATTERNS 200 /* maximum number of patterns */

/* Writes one line, a JSON object, and then the archive. The object has "name", which is the file's
 * name, and the headers of the answer; or "status" and "detail" if there is no archive. The format
 * is "git-delta" or "tar.gz", wanted the base of the former (NULL: found as the original does), and
 * libexec the directory of handrail's modules. patterns ends with NULL. Returns 0, or -1 if the
 * archive is not whole. */
int hr_git_v1_archive(const char *format, const char *directory, const char *wanted,
    const char *const *patterns, const char *libexec);

#endif
