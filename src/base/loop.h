/* hr_loop: one thread's wait for descriptors, signals and timers, over libevent_core.
 *
 * Nothing here polls: with no timer armed the process sleeps until a descriptor or a signal wakes
 * it. All callbacks run from hr_loop_run, one at a time. */
#ifndef HR_BASE_LOOP_H
#define HR_BASE_LOOP_H

#include <stdint.h>

#include "base/err.h"

struct hr_loop;
struct hr_watch; /* one descriptor, signal or timer */

typedef void hr_watch_fn(void *arg);

struct hr_loop *hr_loop_new(struct hr_err *err);
/* For a few descriptors that come and go, and timers that move with every event: each turn is one
 * system call, a watch or a timer none. */
struct hr_loop *hr_loop_new_few(struct hr_err *err);
void hr_loop_free(struct hr_loop *loop); /* after all its watches; NULL: nothing */

/* Returns after hr_loop_stop(), with 0; -1 if waiting itself fails. */
int hr_loop_run(struct hr_loop *loop, struct hr_err *err);
void hr_loop_stop(struct hr_loop *loop); /* the other callbacks of this turn wait */

/* Active from now on, level-triggered; the descriptor stays the caller's and must outlive the
 * watch. NULL with *err set on failure. */
struct hr_watch *
hr_loop_readable(struct hr_loop *loop, int fd, hr_watch_fn *fn, void *arg, struct hr_err *err);
struct hr_watch *
hr_loop_writable(struct hr_loop *loop, int fd, hr_watch_fn *fn, void *arg, struct hr_err *err);
struct hr_watch *
hr_loop_signal(struct hr_loop *loop, int signo, hr_watch_fn *fn, void *arg, struct hr_err *err);
/* Not armed. Fires once per arming. */
struct hr_watch *
hr_loop_timer(struct hr_loop *loop, hr_watch_fn *fn, void *arg, struct hr_err *err);
int hr_watch_arm(struct hr_watch *timer, int64_t timeout_ms, struct hr_err *err); /* replaces */
void hr_watch_disarm(struct hr_watch *timer); /* NULL: nothing */

/* Any time, from its own callback as well: it is not called again. NULL: nothing. */
void hr_watch_free(struct hr_watch *w);

#endif
