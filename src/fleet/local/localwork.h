/* Manages files of the engine "local": workspaces of sandboxes on this machine's file system, and
 * the remains of ended ones. */
#ifndef HR_FLEET_LOCAL_LOCALWORK_H
#define HR_FLEET_LOCAL_LOCALWORK_H

#include <stddef.h>

#include "base/err.h"

/* ---- `work` is the directory of workspaces; NULL: the back-end has none ---- */

/* Returns the path of a workspace, which the caller frees; NULL if there is none, or without
 * memory. */
char *hr_local_workspace(const char *work, const char *id);
/* Removes a workspace; succeeds if there is none. */
int hr_local_remove_workspace(const char *work, const char *id, struct hr_err *err);
/* Removes files without a sandbox: in the directory of records, and among the workspaces and the
 * sockets. */
int hr_local_tidy(const char *records, const char *work, const char *sockets, struct hr_err *err);

/* Gives the server's socket the name of the sandbox in the directory `sockets`. nginx connects to
 * that one: programs of the sandbox can replace only the name that the server has given it. Writes
 * "unix:PATH" to ret_at. hr_local_unlink() removes it. */
int hr_local_link(const char *sockets, const char *id, const char *socket, char *ret_at,
    size_t size, struct hr_err *err);
/* Does the same with the direct socket beside the server's, whose url is "unix:PATH", or removes
 * the name of an earlier server's. The box's root can put a link or another file in the socket's
 * place, which is not followed. */
void hr_local_link_direct(const char *sockets, const char *id, const char *url);
/* Removes both names; succeeds if there are none. */
int hr_local_unlink(const char *sockets, const char *id, struct hr_err *err);

#endif
