/* hr_tokens: handles the user's credentials for git's providers (doc/host.md, "Tokens"). Tokens
 * come from the variables GITHUB_TOKEN, GITLAB_TOKEN, BITBUCKET_TOKEN and ENTERPRISE_SSO_TOKEN. A
 * sandbox gets them as variables of the same names, also in its user's ~/.bashrc, which becomes
 * private. They appear nowhere else: in no record, log, error or command line. */
#ifndef HR_HOST_LIFE_TOKENS_H
#define HR_HOST_LIFE_TOKENS_H

#include "host/handle.h"

enum { HR_GITHUB, HR_GITLAB, HR_BITBUCKET, HR_ENTERPRISE_SSO, HR_PROVIDERS };

extern const char *const hr_token_names[HR_PROVIDERS]; /* "GITHUB_TOKEN" */

/* Returns the user's token, or NULL; borrowed from s. */
const char *hr_token(const struct hr_sandbox *s, int provider);

/* Fills s->tokens from s->environ, without unset ones. */
void hr_tokens_init(struct hr_sandbox *s);

/* Decides whether the tokens stay outside the sandbox. They do where its network has rules: the
 * broker puts them into requests. Call it once connected. */
void hr_tokens_place(struct hr_sandbox *s);
/* Sets the tokens as variables of the sandbox, unless they stay outside. */
int hr_tokens_give(struct hr_sandbox *s, struct hr_err *err);

/* Updates the tokens that a command mentions in the sandbox before it runs; if WEB_HOST is set, it
 * requests the current ones there. Logs a failure. */
void hr_tokens_refresh(struct hr_sandbox *s, const char *command);

/* Returns "https://HOST" for a user's spelling of a host; "http://" only for this machine. The
 * caller frees it. */
char *hr_tokens_base(const char *name, const char *host, struct hr_err *err);

#endif
