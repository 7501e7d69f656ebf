/* cli_branches: the tools "fork" and "end_branch" of "handrail mcp". The server in a sandbox cannot
 * fork its own sandbox, so the command on the host has these tools, for boxes. A client reaches the
 * branches that this process has started, and no other sandbox. */
#ifndef HR_CLI_MCP_BRANCHES_H
#define HR_CLI_MCP_BRANCHES_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"

struct hr_client;
struct json_object;

#define CLI_BRANCHES_MAX 16 /* branches at the same time */

struct cli_branches {
	struct cli *c;
	const struct cli_args *args; /* the arguments of "handrail mcp" */
	struct hr_sandbox *parent;
	pthread_mutex_t forking; /* one fork or end at a time */
	pthread_mutex_t lock;    /* guards v and n; taken for moments only */
	/* Ended branches stay until the end, because requests may use their clients. */
	struct cli_branch {
		struct hr_sandbox *s;
		bool ended;
	} * v;
	size_t n;
};

void cli_branches_init(
    struct cli_branches *b, struct cli *c, const struct cli_args *args, struct hr_sandbox *parent);
/* Frees the handles; with `ends` also ends the branches. Returns an exit status. */
int cli_branches_done(struct cli_branches *b, bool ends);

/* Returns true if the sandbox can be forked. */
bool cli_branches_can(const struct cli_branches *b);
/* Adds the tools, and the argument "sandbox" of all others, to the result of tools/list. Returns 0,
 * or -1 without memory. */
int cli_branches_list(struct json_object *result);
/* Takes the argument "sandbox" off the parameters of tools/call. Returns the client of that
 * sandbox, or NULL after it has composed the result. */
const struct hr_client *
cli_branches_choose(struct cli_branches *b, struct json_object *params, struct hr_buf *ret_result);
/* Runs a tool if it is one of these, and composes its result. Returns false for other tools. */
bool
cli_branches_call(struct cli_branches *b, struct json_object *params, struct hr_buf *ret_result);

#endif
