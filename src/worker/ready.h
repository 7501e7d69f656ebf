/* hr_ready_ask: fetches the readiness of the components from the supervisor. */
#ifndef HR_WORKER_READY_H
#define HR_WORKER_READY_H

#include "base/err.h"

struct hr_channel_answer;
struct hr_worker;

/* Fetches the JSON text of GET /ready. Meanwhile the supervisor checks memory and processes, and
 * gets the disk usage of the working directory from us, so that the alerts on the scoreboard are
 * current. It never checks that disk itself: a network file system may hang and block its caller.
 * One worker at a time reads it; the others leave the figure out. Fails like hr_channel_ask(). */
int hr_ready_ask(
    struct hr_worker *w, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err);

#endif
