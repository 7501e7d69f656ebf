/* hr_token: writes the file DIR/www/connection_token, which nginx serves at GET
 * /vscode/connection_token. The token lasts for the life of a run directory, so clients may keep
 * it: a server that takes over the directory keeps the predecessor's token (DIR/www/token,
 * private), whether it was published or not. The secret of the file viewer's address is kept in the
 * same way. */
#ifndef HR_SUPERVISOR_RUN_TOKEN_H
#define HR_SUPERVISOR_RUN_TOKEN_H

#include <stdbool.h>

#include "base/err.h"

struct hr_rundir;

#define HR_TOKEN_LEN 36 /* length of a UUID */

struct hr_token {
	char text[HR_TOKEN_LEN + 1]; /* a random UUID of version 4 */
	bool shown;
};

/* Reads a predecessor's UUID from DIR/file, or makes a new one; call before the directory is
 * prepared. Writes nothing. Returns 0, or -1 with *err set. */
int hr_token_take(
    char ret[HR_TOKEN_LEN + 1], const struct hr_rundir *r, const char *file, struct hr_err *err);
/* Writes the UUID to DIR/file for a successor, readable by this process's account only. */
int
hr_token_keep(const char *text, const struct hr_rundir *r, const char *file, struct hr_err *err);

/* Reads the predecessor's token, or makes one; call before the directory is prepared. Writes
 * nothing. */
int hr_token_init(struct hr_token *t, const struct hr_rundir *r, struct hr_err *err);

/* Writes the file with the token, or null. It is readable by nginx's account only, and complete at
 * any time. Also saves the token for a successor. */
int hr_token_show(struct hr_token *t, const struct hr_rundir *r, bool shown, struct hr_err *err);

#endif
