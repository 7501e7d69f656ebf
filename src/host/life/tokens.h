/* hr_tokens: how git's providers know the user (doc/host.md, "Tokens"). Tokens come from the
 * variables GITHUB_TOKEN, GITLAB_TOKEN, BITBUCKET_TOKEN and ENTERPRISE_SSO_TOKEN; they are
 * variables of the same names in a sandbox, also in its user's ~/.bashrc, which others may then not
 * read, and nowhere else: not in a record, a log, an error or a command line. */
#ifndef HR_HOST_LIFE_TOKENS_H
#define HR_HOST_LIFE_TOKENS_H

#include "host/handle.h"

enum { HR_GITHUB, HR_GITLAB, HR_BITBUCKET, HR_ENTERPRISE_SSO, HR_PROVIDERS };

extern const char *const hr_token_names[HR_PROVIDERS]; /* "GITHUB_TOKEN" */

/* The user's, NULL for none; borrowed from s. */
const char *hr_token(const struct hr_sandbox *s, int provider);

/* s->tokens from s->environ, without those that are not set. */
void hr_tokens_init(struct hr_sandbox *s);

/* Before a command: the tokens it mentions are given to the sandbox, as they are now. Where
 * WEB_HOST is set they are asked for there. A failure is logged. */
void hr_tokens_refresh(struct hr_sandbox *s, const char *command);

/* "https://HOST" of what a user calls a host; "http://" only for this machine. The caller frees. */
char *hr_tokens_base(const char *name, const char *host, struct hr_err *err);

#endif
