/* hr_gitrun: runs git(1) once and collects its output. */
#ifndef HR_GIT_GITRUN_H
#define HR_GIT_GITRUN_H

#include "base/buf.h"

#define HR_GIT_ARGS 512 /* maximum number of arguments, with the last NULL */

/* Runs `git -C directory --no-pager args...` (NULL-terminated). Returns 0 with git's stdout in out,
 * white space at both ends removed, or -1 if it failed, with the contract's error text in out. Too
 * much output also fails: see out->fail. */
int hr_gitrun(const char *directory, const char *const *args, struct hr_buf *out);
/* Works as hr_gitrun(), but keeps all white space. */
int hr_gitrun_exact(const char *directory, const char *const *args, struct hr_buf *out);

#endif
