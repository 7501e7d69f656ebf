/* hr_v1_follow: follows the commands of the V1 API, whose state is files, with inotify(7). */
#ifndef HR_WORKER_V1_FOLLOW_H
#define HR_WORKER_V1_FOLLOW_H

#include "base/loop.h"
#include "worker/v1/command.h"

struct hr_v1_follow;

/* Reports a new event. `id` is that of hr_v1_get_event(); NULL: hr_v1_follow_error() has the reason
 * why no further event will be reported. */
typedef void hr_v1_event_fn(void *arg, const char *id);

/* Starts with the events that there are, which are not reported. `c` needs its worker alone.
 * Returns NULL with *err set. */
struct hr_v1_follow *hr_v1_follow_new(
    struct hr_rex_call *c, struct hr_loop *loop, hr_v1_event_fn *fn, void *arg, struct hr_err *err);
void hr_v1_follow_free(struct hr_v1_follow *f); /* Does nothing with NULL. */
/* Returns the reason why events are missing, which holds until hr_v1_follow_free(); NULL: none. */
const struct hr_err *hr_v1_follow_error(const struct hr_v1_follow *f);
/* Reports each event so far to fn, oldest first. */
void hr_v1_follow_all(const struct hr_v1_follow *f, hr_v1_event_fn *fn, void *arg);

#endif
