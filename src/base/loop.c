/* Wraps libevent, as its only user. Invariant: a watch is in the event base exactly while it may
 * fire. */
#include "config.h"

#include "base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

struct hr_loop {
	struct event_base *base;
	bool stop;
};

struct hr_watch {
	struct event *ev;
	hr_watch_fn *fn;
	void *arg;
};

/* Returns a loop; `avoid` is a back end of libevent to leave out, or NULL. */
static struct hr_loop *
loop_new(const char *avoid, struct hr_err *err)
{
	struct hr_loop *loop = calloc(1, sizeof(*loop));
	struct event_config *config = event_config_new();

	/* Ignore EVENT_* variables, which choose a back end. libevent's coarse clock (its default)
	 * and the time it caches per iteration would fire timers up to 4 ms, or a long callback,
	 * too early. */
	if (loop != NULL && config != NULL &&
	    event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK |
					      EVENT_BASE_FLAG_PRECISE_TIMER |
					      EVENT_BASE_FLAG_NO_CACHE_TIME) == 0 &&
	    (avoid == NULL || event_config_avoid_method(config, avoid) == 0))
		loop->base = event_base_new_with_config(config);
	if (config != NULL)
		event_config_free(config);
	if (loop == NULL || loop->base == NULL) {
		(void)hr_err_set(err, HR_E_NOMEM, "event loop cannot be made");
		free(loop);
		return NULL;
	}
	return loop;
}

struct hr_loop *
hr_loop_new(struct hr_err *err)
{
	return loop_new(NULL, err);
}

struct hr_loop *
hr_loop_new_few(struct hr_err *err)
{
	return loop_new("epoll", err); /* libevent falls back to poll */
}

struct event_base *
hr_loop_base(struct hr_loop *loop)
{
	return loop->base;
}

void
hr_loop_free(struct hr_loop *loop)
{
	if (loop == NULL)
		return;
	event_base_free(loop->base);
	free(loop);
}

int
hr_loop_run(struct hr_loop *loop, struct hr_err *err)
{
	/* Run one iteration at a time: libevent forgets a break that comes before its loop
	 * starts. */
	while (!loop->stop) {
		if (event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) < 0)
			return hr_err_sys(err, errno, "event loop");
	}
	loop->stop = false;
	return 0;
}

void
hr_loop_stop(struct hr_loop *loop)
{
	loop->stop = true;
	(void)event_base_loopbreak(loop->base);
}

static void
watch_fire(evutil_socket_t fd, short what, void *arg)
{
	struct hr_watch *w = arg;

	(void)fd;
	(void)what;
	w->fn(w->arg);
}

static struct hr_watch *
watch_new(struct hr_loop *loop, int fd, short what, hr_watch_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_watch *w = calloc(1, sizeof(*w));

	if (w != NULL)
		w->ev = event_new(loop->base, fd, what, watch_fire, w);
	if (w == NULL || w->ev == NULL) {
		(void)hr_err_nomem(err);
		free(w);
		return NULL;
	}
	w->fn = fn;
	w->arg = arg;
	return w;
}

static struct hr_watch *
watch_active(
    struct hr_loop *loop, int fd, short what, hr_watch_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_watch *w = watch_new(loop, fd, what, fn, arg, err);

	if (w != NULL && event_add(w->ev, NULL) != 0) {
		(void)hr_err_sys(err, errno, "descriptor or signal %d cannot be watched", fd);
		hr_watch_free(w);
		return NULL;
	}
	return w;
}

struct hr_watch *
hr_loop_readable(struct hr_loop *loop, int fd, hr_watch_fn *fn, void *arg, struct hr_err *err)
{
	return watch_active(loop, fd, EV_READ | EV_PERSIST, fn, arg, err);
}

struct hr_watch *
hr_loop_writable(struct hr_loop *loop, int fd, hr_watch_fn *fn, void *arg, struct hr_err *err)
{
	return watch_active(loop, fd, EV_WRITE | EV_PERSIST, fn, arg, err);
}

struct hr_watch *
hr_loop_signal(struct hr_loop *loop, int signo, hr_watch_fn *fn, void *arg, struct hr_err *err)
{
	return watch_active(loop, signo, EV_SIGNAL | EV_PERSIST, fn, arg, err);
}

struct hr_watch *
hr_loop_timer(struct hr_loop *loop, hr_watch_fn *fn, void *arg, struct hr_err *err)
{
	return watch_new(loop, -1, EV_TIMEOUT, fn, arg, err);
}

int
hr_watch_arm(struct hr_watch *timer, int64_t timeout_ms, struct hr_err *err)
{
	struct timeval tv;

	if (timeout_ms < 0)
		timeout_ms = 0;
	tv.tv_sec = (time_t)(timeout_ms / 1000);
	tv.tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000);
	if (event_add(timer->ev, &tv) != 0)
		return hr_err_nomem(err);
	return 0;
}

void
hr_watch_disarm(struct hr_watch *timer)
{
	if (timer != NULL)
		(void)event_del(timer->ev);
}

bool
hr_watch_is_armed(const struct hr_watch *timer)
{
	return event_pending(timer->ev, EV_TIMEOUT, NULL) != 0;
}

void
hr_watch_free(struct hr_watch *w)
{
	if (w == NULL)
		return;
	event_free(w->ev); /* removes the watch from the current iteration's list too */
	free(w);
}

void
hr_watch_drop(struct hr_watch **io_w)
{
	hr_watch_free(*io_w);
	*io_w = NULL;
}
