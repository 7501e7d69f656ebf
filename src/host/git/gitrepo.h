/* hr_gitrepo: where a repository is, and how git in a sandbox is let in (doc/host.md,
 * "Repositories"). Its URL has no token: git asks a helper for it, which is in the repository's
 * configuration and reads the shell's variable. So it is on no command line and in no file of the
 * repository, and a new one is used as soon as the variable has it. */
#ifndef HR_HOST_GIT_GITREPO_H
#define HR_HOST_GIT_GITREPO_H

#include <stdbool.h>
#include <stddef.h>

#include "host/handle.h"

struct hr_gitrepo {
	struct hr_sandbox *s;
	const struct hr_git_provider *provider; /* NULL: a URL was given */
	char *base;                             /* "https://github.com"; NULL with a URL */
	char *url;
};

/* Is it OWNER/NAME, or a URL without user and password? */
int hr_gitrepo_check(const char *repository, struct hr_err *err);
/* The last part of its name, without ".git" of a URL: the directory it is cloned to. */
int hr_gitrepo_directory(const char *repository, char *ret, size_t cap, struct hr_err *err);

/* OWNER/NAME is asked for at the providers whose token there is, in the order of hr_token_names;
 * log: also what they answer otherwise. -1: nobody has it. hr_gitrepo_done() in both cases. */
int hr_gitrepo_find(struct hr_gitrepo *r, struct hr_sandbox *s, const char *repository, bool log,
    struct hr_err *err);
void hr_gitrepo_done(struct hr_gitrepo *r);

bool hr_gitrepo_is_gitlab(const struct hr_gitrepo *r);

/* The variable that the helper reads. */
int hr_gitrepo_give_token(struct hr_gitrepo *r, struct hr_err *err);
/* Appends "git clone OPTIONS -- URL "; the directory is left to the caller. */
void hr_gitrepo_put_clone(struct hr_buf *b, const struct hr_gitrepo *r, const char *options);

#endif
