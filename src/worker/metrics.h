/* hr_metrics: counts requests, and answers GET /metrics (Prometheus text format 0.0.4). */
#ifndef HR_WORKER_METRICS_H
#define HR_WORKER_METRICS_H

#include <stdint.h>

#include "proto/httperr.h"
#include "proto/scoreboard.h"

/* Counts an answered request. `ns` is the duration of its action; it is used only if the answer's
 * note names an action. */
void hr_metrics_count(struct hr_scoreboard *board, const struct hr_answer *a, int64_t ns);

#endif
