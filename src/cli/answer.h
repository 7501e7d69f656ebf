/* cli_answer: implements subcommands that query a sandbox for a list in JSON. */
#ifndef HR_CLI_ANSWER_H
#define HR_CLI_ANSWER_H

#include "cli/cli.h"

struct hr_buf;
struct json_object;

/* Queries the sandbox. `what` is the first argument; NULL: none. The caller frees *ret_json. */
typedef int cli_ask_fn(struct hr_sandbox *s, const char *what, char **ret_json, struct hr_err *err);
/* Appends an entry without the end of its line. */
typedef void cli_line_fn(struct hr_buf *b, struct json_object *entry);

/* Prints the list as it is with --json, and otherwise a line for each entry. `name` is for an
 * error. Returns the exit status. */
int cli_answer(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, cli_ask_fn *ask,
    const char *name, cli_line_fn *line);

#endif
