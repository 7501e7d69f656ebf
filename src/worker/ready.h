/* hr_ready_ask: what works, as the supervisor knows it. */
#ifndef HR_WORKER_READY_H
#define HR_WORKER_READY_H

#include "base/err.h"

struct hr_channel_answer;
struct hr_worker;

/* The JSON text of GET /ready. The supervisor looks at memory and processes meanwhile, and is told
 * how full the disk of the working directory is, so that the alerts on the scoreboard are those of
 * now. It never looks at that disk itself: a network file system may hang, and with it whoever
 * asks. Of the workers one at a time does; the others go without. Errors: hr_channel_ask()'s. */
int hr_ready_ask(
    struct hr_worker *w, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err);

#endif
