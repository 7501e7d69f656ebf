/* hr_ready: makes the body of GET /ready. */
#ifndef HR_SUPERVISOR_READY_H
#define HR_SUPERVISOR_READY_H

#include <stdbool.h>

#include "base/buf.h"

struct hr_server;

/* Appends {"status":"ready"|"not ready","reason":null|text,"components":{...}}; each component has
 * a state and, if it has a problem, a reason. */
void hr_ready_json(struct hr_buf *b, const struct hr_server *s);
bool hr_ready_now(const struct hr_server *s); /* Returns true if everything works. */

#endif
