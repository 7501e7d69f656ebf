/* hr_gitrun: one call of git(1), and what it printed. */
#ifndef HR_GIT_GITRUN_H
#define HR_GIT_GITRUN_H

#include "base/buf.h"

/* Runs `git -C directory --no-pager args...` (NULL-terminated). 0: out holds what it wrote on
 * stdout, white space at both ends removed; -1: it failed, out holds the text of the contract. What
 * does not fit into out is no answer either: out->fail says so. */
int hr_gitrun(const char *directory, const char *const *args, struct hr_buf *out);
/* The same with all white space. */
int hr_gitrun_exact(const char *directory, const char *const *args, struct hr_buf *out);

#endif
