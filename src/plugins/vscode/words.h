/* hr_vscode: what the VS Code server is told: its port, its base path and its command line. Pure.
 *
 * The rules are those of the original's plugin. */
#ifndef HR_PLUGINS_VSCODE_WORDS_H
#define HR_PLUGINS_VSCODE_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Whose session may have an editor; `extra` (may be NULL) is a further name. */
bool hr_vscode_user_ok(const char *user, const char *extra);

/* A port as Python's int() reads it; 0: it is none. text may be NULL. */
int hr_vscode_port(const char *text);

/* Appends the base path: `wanted` with one slash before and none behind it; without that
 * /ID/vscode where the path of the URL begins with /ID; else nothing. Each may be NULL. */
void hr_vscode_base_path(
    struct hr_buf *b, const char *wanted, const char *runtime_url, const char *runtime_id);

/* Appends a line of the server's output without the token. */
void hr_vscode_line(struct hr_buf *b, const char *line, const char *token);

#endif
