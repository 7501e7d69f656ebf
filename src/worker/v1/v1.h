/* hr_v1: what the clients of an OpenHands V1 agent server ask of a workspace, as one more door to
 * the same shells and files (doc/agents.md, "OpenHands V1"). A command has a shell of its own that
 * is kept for its result; nothing is remembered between two requests but what that shell has. */
#ifndef HR_WORKER_V1_V1_H
#define HR_WORKER_V1_V1_H

#include "worker/rex/rex.h"

#define HR_V1_ID 37 /* of a command: a UUID with its NUL */

extern const struct hr_rex_model hr_v1_bash_model;

/* ---- bash.c; the body is checked by that model ---- */
void hr_v1_start(struct hr_rex_call *c);
void hr_v1_execute(struct hr_rex_call *c);
/* Drops the results of all commands that have ended. */
void hr_v1_clear(struct hr_rex_call *c);
/* id: as the path has it */
void hr_v1_stop(struct hr_rex_call *c, struct hr_span id);

/* Runs it to its end in a shell that goes with it. out: what it wrote to stdout, which is an
 * error if it has no room for it. False: answered. */
bool hr_v1_run(struct hr_rex_call *c, struct hr_span command, struct hr_span cwd, double timeout_s,
    struct hr_buf *out, int64_t *ret_code);

/* ---- events.c, by the query ---- */
void hr_v1_search(struct hr_rex_call *c);

#endif
