/* hr_git_int: shared by the changes (git.c, v1.c) and the two sides of a file (diff.c). */
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

/* Cuts `path` at the nearest directory above that has a .git, a directory or, if `any`, a file as
 * in a work tree of `git worktree`; *ret_rest: the rest of the name. Returns false if there is
 * none. */
bool hr_git_closest(char *path, bool any, const char **ret_rest);
/* As realpath(), of a file that need not be there, nor its directories. The caller frees; NULL with
 * errno. */
char *hr_git_real(const char *path);
/* Appends text with Python's universal line ends, split by str.splitlines() and joined by LF. Pure.
 */
void hr_git_join_lines(struct hr_buf *b, const char *p, size_t len);
/* The reason, and -1. */
int hr_git_fail(struct hr_buf *why, const char *text);
/* JSON as json.dumps() prints it: ASCII only. */
void hr_git_put_ascii(struct hr_buf *json, const char *p, size_t len);

/* Each puts the revision into ref; false: there is none. prefix and name together are a name that
 * git knows. */
bool hr_git_is_ref(const char *repo, const char *prefix, const char *name, struct hr_buf *ref);
/* A commit by a name of the client's. */
bool hr_git_is_commit(const char *repo, const char *name, struct hr_buf *ref);
/* wanted, or, where that is NULL, what the work tree is compared with: the first that exists.
 * False also where this is no repository. */
bool hr_git_reference(const char *repo, const char *wanted, struct hr_buf *ref);

/* ---- changes.c: a list of changes in a buffer, whose `fail` says that memory is lacking ---- */

struct hr_git_change {
	char status;
	char *path; /* owned by the list */
};

/* Adds "prefix/path"; prefix may be NULL. */
void hr_git_changes_add(
    struct hr_buf *list, char status, const char *prefix, const char *path, size_t len);
/* Adds the output of diff --name-status -z: a status, and one name or two, each with its NUL. A
 * renamed file is one that is gone and a new one. A conflict is listed once, as 'U', if `conflicts`
 * is set; else as changes. */
void hr_git_changes_take(
    struct hr_buf *list, bool conflicts, const char *prefix, const struct hr_buf *out);
/* Drops each change that is_below() finds below one of `names`, which end with a NUL each. */
void hr_git_changes_drop(struct hr_buf *list, const struct hr_buf *names,
    bool (*is_below)(const char *path, const char *name));
/* Sorts the list by order(), which compares two struct hr_git_change, and appends it as JSON. */
void hr_git_changes_put(
    const struct hr_buf *list, int (*order)(const void *, const void *), struct hr_buf *json);
void hr_git_changes_done(struct hr_buf *list);

/* Returns true for `name` itself and all below it. */
bool hr_git_is_below(const char *path, const char *name);
/* Appends the names of direct, not hidden subdirectories that hold ".git", each with its NUL. */
void hr_git_nested(const char *directory, struct hr_buf *names);

#endif
