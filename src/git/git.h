/* hr_git: what the "changes" view of a client shows (doc/files.md, "What the changes view shows"):
 * the work tree against the branch it came from, as JSON that Python's json.dumps() would print.
 * Runs git(1), in the environment of the process; it never asks for a password. */
#ifndef HR_GIT_GIT_H
#define HR_GIT_GIT_H

#include <stdbool.h>

#include "base/buf.h"

#define HR_GIT_FILE_MAX (1u << 20) /* a larger file has no diff */

/* The list of {"status","path"} for directory and the repositories right below it, or {"error"}.
 * Against the commit `wanted`, or, if it is NULL, the branch that it came from. 0; -1 with the
 * reason in why: the directory's repository has no such commit. */
int
hr_git_changes(const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why);
/* The same with whatever names and changes there are: names with blanks or in any script, a file
 * that became a link, conflicts. A repository that git refuses to read is an {"error"}, not an
 * empty list, and only a directory that is in none has no changes. */
int hr_git_any_changes(
    const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why);

/* {"modified","original"} for a file. 0, or -1 with the reason in why. */
int hr_git_diff(const char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why);
/* Both as the agent server of OpenHands V1 answers: with null for the two sides outside of any
 * repository, and the old side of a file that is gone. */
int hr_git_v1_changes(
    const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why);
int hr_git_v1_diff(const char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why);
/* The same of what a commit changed; the file need not be there any more. Outside of a repository
 * both sides are null for v1, which is a failure otherwise. */
int hr_git_commit_diff(
    const char *path, const char *commit, bool v1, struct hr_buf *json, struct hr_buf *why);

#endif
