/* What the changes (git.c) and the two sides of a file (diff.c) share. */
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

#endif
