/* hr_vscode: composes the VS Code server's port, base path and command line. Pure. The rules are
 * those of the original's plugin. */
#ifndef HR_PLUGINS_VSCODE_WORDS_H
#define HR_PLUGINS_VSCODE_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Returns true if this user's session may have an editor; `extra` (or NULL) is one more name. */
bool hr_vscode_user_ok(const char *user, const char *extra);

/* Parses a port as Python's int(); 0 if it is invalid. text may be NULL. */
int hr_vscode_port(const char *text);

/* Appends the base path: `wanted` with one leading slash and no trailing one; without `wanted`,
 * /ID/vscode if the URL's path begins with /ID; otherwise nothing. Each may be NULL. */
void hr_vscode_base_path(
    struct hr_buf *b, const char *wanted, const char *runtime_url, const char *runtime_id);

/* Appends a line of the server's output with the token removed. */
void hr_vscode_line(struct hr_buf *b, const char *line, const char *token);

#endif
