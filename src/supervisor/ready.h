/* hr_ready: the body of GET /ready. */
#ifndef HR_SUPERVISOR_READY_H
#define HR_SUPERVISOR_READY_H

#include <stdbool.h>

#include "base/buf.h"

struct hr_server;

/* {"status":"ready"|"not ready","reason":null|text,"components":{...}}; each component has a state
 * and, where it is not well, a reason. */
void hr_ready_json(struct hr_buf *b, const struct hr_server *s);
bool hr_ready_now(const struct hr_server *s); /* everything answers */

#endif
