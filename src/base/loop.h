/* hr_loop: waits for descriptors, signals and timers in one thread, over libevent_core. Nothing
 * here polls: with no timer armed the process sleeps until a descriptor or a signal wakes it. All
 * callbacks run from hr_loop_run, one at a time. */
#ifndef HR_BASE_LOOP_H
#define HR_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct event_base;
struct hr_loop;
struct hr_watch; /* a descriptor, signal or timer */

typedef void hr_watch_fn(void *arg);

struct hr_loop *hr_loop_new(struct hr_err *err);
/* Returns a loop for a few descriptors that come and go and timers that move with every event: an
 * iteration costs one system call, a watch or a timer none. */
struct hr_loop *hr_loop_new_few(struct hr_err *err);
/* Returns libevent's part, borrowed, for its server of HTTP. */
struct event_base *hr_loop_base(struct hr_loop *loop);
/* Frees the loop, after all watches; does nothing with NULL. */
void hr_loop_free(struct hr_loop *loop);

/* Runs until hr_loop_stop() and returns 0, or -1 if waiting fails. */
int hr_loop_run(struct hr_loop *loop, struct hr_err *err);
/* Stops the loop after this callback; the other callbacks of the iteration are postponed. */
void hr_loop_stop(struct hr_loop *loop);

/* Returns a level-triggered watch, active at once; or NULL with *err set. The descriptor stays the
 * caller's and must outlive the watch. */
struct hr_watch *
hr_loop_readable(struct hr_loop *loop, int fd, hr_watch_fn *fn, void *arg, struct hr_err *err);
struct hr_watch *
hr_loop_writable(struct hr_loop *loop, int fd, hr_watch_fn *fn, void *arg, struct hr_err *err);
struct hr_watch *
hr_loop_signal(struct hr_loop *loop, int signo, hr_watch_fn *fn, void *arg, struct hr_err *err);
/* Returns a timer that is not armed. It fires once per arming. */
struct hr_watch *
hr_loop_timer(struct hr_loop *loop, hr_watch_fn *fn, void *arg, struct hr_err *err);
int hr_watch_arm(struct hr_watch *timer, int64_t timeout_ms,
    struct hr_err *err);                      /* Arms the timer and replaces an earlier arming. */
void hr_watch_disarm(struct hr_watch *timer); /* Does nothing with NULL. */
bool hr_watch_is_armed(const struct hr_watch *timer);

/* Frees the watch at any time, even in its own callback; the callback is not called again. NULL: no
 * effect. */
void hr_watch_free(struct hr_watch *w);
/* Frees the watch and sets it to NULL. */
void hr_watch_drop(struct hr_watch **io_w);

#endif
