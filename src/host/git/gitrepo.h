/* hr_gitrepo: locates a repository and gives git in a sandbox access (doc/host.md, "Repositories").
 * The URL contains no token: a credential helper in the repository's configuration reads the
 * shell's variable. So the token is on no command line and in no file of the repository, and a
 * changed variable takes effect at once. */
#ifndef HR_HOST_GIT_GITREPO_H
#define HR_HOST_GIT_GITREPO_H

#include <stdbool.h>
#include <stddef.h>

#include "host/handle.h"

struct hr_gitrepo {
	struct hr_sandbox *s;
	const struct hr_git_provider *provider; /* NULL: the repository is a URL */
	char *base;                             /* such as "https://github.com"; NULL for a URL */
	char *url;
};

/* Accepts OWNER/NAME, or a URL without user and password. Returns 0, or -1 with *err set. */
int hr_gitrepo_check(const char *repository, struct hr_err *err);
/* Copies the last part of the name, without a URL's ".git": the directory of the clone. */
int hr_gitrepo_directory(const char *repository, char *ret, size_t cap, struct hr_err *err);

/* Searches OWNER/NAME at the providers for which there is a token, in the order of hr_token_names;
 * with `log` it logs their other answers. Returns 0, or -1 with *err set if none has it. The caller
 * calls hr_gitrepo_done() in both cases. */
int hr_gitrepo_find(struct hr_gitrepo *r, struct hr_sandbox *s, const char *repository, bool log,
    struct hr_err *err);
void hr_gitrepo_done(struct hr_gitrepo *r);

bool hr_gitrepo_is_gitlab(const struct hr_gitrepo *r);

/* Sets the variable that the helper reads. */
int hr_gitrepo_give_token(struct hr_gitrepo *r, struct hr_err *err);
/* Appends "git clone OPTIONS -- URL "; the caller appends the directory. */
void hr_gitrepo_put_clone(struct hr_buf *b, const struct hr_gitrepo *r, const char *options);

#endif
