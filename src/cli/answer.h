/* cli_answer: subcommands that ask a sandbox for something in JSON: with --json it is given out as
 * it is, otherwise shown. */
#ifndef HR_CLI_ANSWER_H
#define HR_CLI_ANSWER_H

#include "cli/cli.h"

struct hr_buf;
struct json_object;

/* what: the first argument, NULL for none. *ret_json is the caller's. */
typedef int cli_ask_fn(struct hr_sandbox *s, const char *what, char **ret_json, struct hr_err *err);
/* An exit status; what is wrong is said. */
typedef int cli_show_fn(const char *what, const char *json);

int cli_answer(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, cli_ask_fn *ask,
    cli_show_fn *show);

/* Writes a line for each entry of a list; line() appends it without its end. name is for the error.
 */
int cli_lines(
    const char *json, const char *name, void (*line)(struct hr_buf *b, struct json_object *entry));

/* A member's text, "" for none; borrowed. */
const char *cli_text(struct json_object *o, const char *name);

#endif
