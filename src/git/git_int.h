/* hr_git_int: declares the parts that the changes (git.c, v1.c) and the diff of a file (diff.c)
 * share. */
#ifndef HR_GIT_GIT_INT_H
#define HR_GIT_GIT_INT_H

#include <stdbool.h>

#include "base/buf.h"
#include "git/gitrun.h"

#define HR_GIT_OUTPUT_MAX (256u << 20)
#define HR_GIT_EMPTY_TREE "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#define HR_GIT_NO_COMMIT "there is no such commit in that repository"

#define HR_GIT_RUN(out, directory, ...)                                                            \
	hr_gitrun(directory, (const char *const[]){__VA_ARGS__, NULL}, out)
#define HR_GIT_RUN_EXACT(out, directory, ...)                                                      \
	hr_gitrun_exact(directory, (const char *const[]){__VA_ARGS__, NULL}, out)

/* Cuts `path` at the nearest directory above that has a .git: a directory or, if `any`, a file as
 * `git worktree` makes. *ret_rest is the rest of the name. Returns false if there is none. */
bool hr_git_closest(char *path, bool any, const char **ret_rest);
/* Resolves like realpath(), but the file and its directories may be missing. A file that is a link
 * itself stands for its target if `follow`. The caller frees the result; NULL with errno. */
char *hr_git_real(const char *path, bool follow);
/* Resolves the path as V1 does: a repository's own directory gets "/.", whose contents no commit
 * names. */
char *hr_git_real_file(const char *path);
/* Appends text with Python's universal newlines, split by str.splitlines() and joined by LF.
 * Pure. */
void hr_git_join_lines(struct hr_buf *b, const char *p, size_t len);
/* Sets the reason. Returns -1. */
int hr_git_fail(struct hr_buf *why, const char *text);
/* Appends JSON as json.dumps() prints it: ASCII only. */
void hr_git_put_ascii(struct hr_buf *json, const char *p, size_t len);

/* Returns false if git finds no repository in or above the directory, or cannot read it. */
bool hr_git_is_repository(const char *directory);
/* Puts the revision named by `prefix` and `name`, joined, into `ref`. Returns false if there is
 * none. */
bool hr_git_is_ref(const char *repo, const char *prefix, const char *name, struct hr_buf *ref);
/* Resolves a commit's name, which a client sent, into `ref`. Returns false if there is no such
 * commit. */
bool hr_git_is_commit(const char *repo, const char *name, struct hr_buf *ref);
/* Asks origin for the name of its default branch. Returns false if there is none. */
bool hr_git_remote_head(const char *repo, struct hr_buf *name);
/* Puts the revision to compare the work tree with into `ref`: `wanted` or, if it is NULL, the first
 * that exists of origin/BRANCH, the merge base with the default branch, that branch, and the empty
 * tree. Returns false if there is none, as outside a repository. */
bool hr_git_reference(const char *repo, const char *wanted, struct hr_buf *ref);

/* ---- changes.c: a list of changes in a buffer, whose `fail` means out of memory ---- */

struct hr_git_change {
	char status;
	char *path; /* owned by the list */
};

/* Adds "prefix/path"; prefix may be NULL. */
void hr_git_changes_add(
    struct hr_buf *list, char status, const char *prefix, const char *path, size_t len);
/* Adds the output of diff --name-status -z: a status, and one name or two, each with its NUL. A
 * renamed file becomes a deleted and a new one. A conflict is listed once, as 'U', if `conflicts`;
 * otherwise as changes. */
void hr_git_changes_take(
    struct hr_buf *list, bool conflicts, const char *prefix, const struct hr_buf *out);
/* Drops each change below one of the NUL-terminated `names`, as is_below() decides. */
void hr_git_changes_drop(struct hr_buf *list, const struct hr_buf *names,
    bool (*is_below)(const char *path, const char *name));
/* Compares two struct hr_git_change by path, then status: a file that is deleted from the index and
 * untracked is D, then A. */
int hr_git_by_path(const void *a, const void *b);
/* Sorts the list with order() (NULL: keeps git's order), which compares two struct hr_git_change,
 * and appends it as JSON. */
void hr_git_changes_put(
    const struct hr_buf *list, int (*order)(const void *, const void *), struct hr_buf *json);
void hr_git_changes_done(struct hr_buf *list);

/* Appends the names of direct, not hidden subdirectories that contain ".git", each with its NUL. */
void hr_git_nested(const char *directory, struct hr_buf *names);

#endif
