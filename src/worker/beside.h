/* hr_beside: runs commands as processes beside the shells for the MCP endpoint. v1/beside.c
 * implements it: the processes are commands of the V1 API. */
#ifndef HR_WORKER_BESIDE_H
#define HR_WORKER_BESIDE_H

#include "mcp/env.h"
#include "worker/worker.h"

/* Needs a struct hr_worker as `server`. */
extern const struct hr_mcp_beside hr_beside;

/* Implements hr_mcp_env.start() for the request r; `key` may be empty. */
void hr_beside_start(struct hr_worker *w, const struct hr_request *r, struct hr_span command,
    struct hr_span directory, struct hr_span key, struct hr_answer *ret);

#endif
