/* cli_answer: subcommands that query a sandbox for JSON: with --json it is printed verbatim,
 * otherwise formatted. */
#ifndef HR_CLI_ANSWER_H
#define HR_CLI_ANSWER_H

#include "cli/cli.h"

struct hr_buf;
struct json_object;

/* Queries the sandbox. what: the first argument, NULL: none. The caller owns *ret_json. */
typedef int cli_ask_fn(struct hr_sandbox *s, const char *what, char **ret_json, struct hr_err *err);
/* Prints the answer. Returns an exit status, after it has reported any error. */
typedef int cli_show_fn(const char *what, const char *json);

int cli_answer(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, cli_ask_fn *ask,
    cli_show_fn *show);

/* Writes a line for each entry of a list; line() appends it without its end. name: used in
 * errors. */
int cli_lines(
    const char *json, const char *name, void (*line)(struct hr_buf *b, struct json_object *entry));

/* Returns a member's text, borrowed; "" if none. */
const char *cli_text(struct json_object *o, const char *name);

#endif
