/* hr_git: finds the data of a client's "changes" view (doc/files.md, "What the changes view
 * shows"): the work tree against the branch it came from, as Python's json.dumps() prints it. Runs
 * git(1) in the process's environment; git never asks for a password. */
#ifndef HR_GIT_GIT_H
#define HR_GIT_GIT_H

#include <stdbool.h>

#include "base/buf.h"

#define HR_GIT_FILE_MAX (1u << 20) /* maximum bytes; a larger file has no diff */

/* Lists {"status","path"} for directory and the repositories right below it, or {"error"}: changes
 * against the commit `wanted` or, if NULL, against the branch that the work tree came from. Returns
 * 0, or -1 with the reason in why if the directory's repository has no such commit. */
int
hr_git_changes(const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why);
/* Lists changes of every kind: names with blanks or in any script, a file that became a link,
 * conflicts. A repository that git refuses to read is an {"error"}, not an empty list; only a
 * directory outside any repository has no changes. */
int hr_git_any_changes(
    const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why);

/* Appends {"modified","original"} for a file. Returns 0, or -1 with the reason in why. */
int hr_git_diff(const char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why);
/* Appends the reply of the agent server of OpenHands V1: null for the two sides outside any
 * repository, and the old side of a deleted file. */
int hr_git_v1_changes(
    const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why);
int hr_git_v1_diff(const char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why);
/* Appends {"commits","has_more"}: the latest commits, at most `limit`, from HEAD on. */
int
hr_git_v1_commits(const char *directory, unsigned limit, struct hr_buf *json, struct hr_buf *why);
/* Lists what a commit changed against its first parent. */
int hr_git_v1_commit_changes(
    const char *directory, const char *commit, struct hr_buf *json, struct hr_buf *why);
/* Appends the two sides of a file that a commit changed; the file may be deleted by now. Outside a
 * repository both sides are null for v1; otherwise that is a failure. */
int hr_git_commit_diff(
    const char *path, const char *commit, bool v1, struct hr_buf *json, struct hr_buf *why);

#endif
