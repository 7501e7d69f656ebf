/* hr_token: what nginx answers to GET /vscode/connection_token: the file DIR/www/connection_token.
 *
 * The token is one for the life of a run directory, so that clients who keep it may: a server that
 * takes the directory over from a predecessor goes on with that one's (DIR/www/token, for us
 * alone), whether it was shown or not. The secret of the file viewer's address is kept in the same
 * way. */
#ifndef HR_SUPERVISOR_RUN_TOKEN_H
#define HR_SUPERVISOR_RUN_TOKEN_H

#include <stdbool.h>

#include "base/err.h"

struct hr_rundir;

#define HR_TOKEN_LEN 36 /* of a UUID */

struct hr_token {
	char text[HR_TOKEN_LEN + 1]; /* a random UUID of version 4 */
	bool shown;
};

/* Before the directory is made ready: the UUID that a predecessor kept in DIR/file, or a new one.
 * Nothing is written. Returns 0, or -1 with *err set. */
int hr_token_take(
    char ret[HR_TOKEN_LEN + 1], const struct hr_rundir *r, const char *file, struct hr_err *err);
/* Writes it there for a successor, readable by this process's account only. */
int
hr_token_keep(const char *text, const struct hr_rundir *r, const char *file, struct hr_err *err);

/* Before the directory is made ready: the predecessor's token, or a new one. Nothing is written. */
int hr_token_init(struct hr_token *t, const struct hr_rundir *r, struct hr_err *err);

/* Writes the file: the token, or null. Readable by nginx's account only; whole at any time. And the
 * one for a successor. */
int hr_token_show(struct hr_token *t, const struct hr_rundir *r, bool shown, struct hr_err *err);

#endif
