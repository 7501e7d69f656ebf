/* Implements services. Invariant: the timer for the next start is armed only in DOWN and FAILED;
 * the readiness line is open only in STARTING. */
#include "config.h"

#include "supervisor/children/service.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"

#define END_MS 5000 /* ms for a failed process to end after SIGTERM */
/* ms added to the back-off after a start that failed for lack of resources */
#define RETRY_MS 50

#define BIT(state) (1u << HR_SERVICE_##state)
#define ENDS (BIT(STOPPING) | BIT(STOPPED))

static const unsigned follows[] = {
    /* a pool may have the previous image's workers */
    [HR_SERVICE_OFF] = BIT(WAITING) | BIT(STARTING) | BIT(READY) | BIT(UNAVAILABLE) | ENDS,
    [HR_SERVICE_WAITING] = BIT(STARTING) | BIT(DOWN) | BIT(FAILED) | ENDS,
    [HR_SERVICE_STARTING] = BIT(READY) | BIT(DOWN) | BIT(FAILED) | BIT(UNAVAILABLE) | ENDS,
    [HR_SERVICE_READY] = BIT(DOWN) | ENDS,
    /* a pool may have other workers, which end later */
    [HR_SERVICE_DOWN] = BIT(OFF) | BIT(STARTING) | BIT(DOWN) | ENDS,
    [HR_SERVICE_FAILED] = BIT(OFF) | BIT(STOPPED),
    [HR_SERVICE_UNAVAILABLE] = BIT(STOPPED),
    [HR_SERVICE_STOPPING] = BIT(STOPPED),
    [HR_SERVICE_STOPPED] = 0,
};

void
hr_service_move(struct hr_service *s, enum hr_service_state state)
{
	hr_assert((follows[s->state] & 1u << state) != 0);
	s->state = state;
	hr_watch_disarm(s->restart);
}

void
hr_service_set(struct hr_service *s, enum hr_service_state state)
{
	hr_service_move(s, state);
	s->ops->changed(s);
}

void
hr_service_because(struct hr_service *s, const char *why)
{
	(void)snprintf(s->reason, sizeof(s->reason), "%s", why);
}

bool
hr_service_runs(const struct hr_service *s)
{
	return s->child.pid != 0 || s->elsewhere;
}

bool
hr_service_ends(const struct hr_service *s)
{
	return s->state == HR_SERVICE_STOPPING || s->state == HR_SERVICE_STOPPED;
}

bool
hr_service_failing(const struct hr_service *s)
{
	return s->backoff.short_lives >= HR_BACKOFF_FAILING;
}

int64_t
hr_service_delay(struct hr_service *s, bool worked, const struct hr_exit *how)
{
	return hr_backoff_next(
	    &s->backoff, worked, how != NULL ? how->age_ms : INT64_MAX, hr_now_ms());
}

static void
service_signal(struct hr_service *s, int sig)
{
	if (s->elsewhere)
		s->ops->signal(s, sig);
	else if (s->ops->leads && sig == SIGKILL)
		hr_child_signal_group(&s->child, sig);
	else
		hr_child_signal(&s->child, sig);
}

void
hr_service_ready(struct hr_service *s)
{
	hr_watch_disarm(s->patience);
	s->reason[0] = '\0';
	if (s->ops->ready != NULL)
		s->ops->ready(s);
	hr_service_set(s, HR_SERVICE_READY);
}

static void
line_said(void *arg, bool ready, const char *reason)
{
	struct hr_service *s = arg;

	if (s->state != HR_SERVICE_STARTING)
		return;
	if (ready) {
		hr_service_ready(s);
		return;
	}
	s->never = s->line.never;
	if (strcmp(reason, HR_READYLINE_ENDED) != 0)
		/* otherwise the process's exit is more informative */
		hr_service_because(s, reason);
	service_signal(s, SIGTERM);
	(void)hr_watch_arm(s->patience, END_MS, NULL);
}

static void
child_ended(void *arg, const struct hr_exit *how)
{
	struct hr_service *s = arg;
	bool worked;

	/* the exit may be seen before the line */
	if (s->state == HR_SERVICE_STARTING)
		hr_readyline_look(&s->line);
	worked = s->state == HR_SERVICE_READY;
	hr_readyline_close(&s->line);
	hr_watch_disarm(s->patience);
	if (s->ops->ended != NULL)
		s->ops->ended(s, how);
	if (s->state == HR_SERVICE_STOPPING) {
		if (how != NULL)
			hr_child_tell_killed(s->child.name, how);
		hr_service_set(s, HR_SERVICE_STOPPED);
		return;
	}
	s->ops->lost(s, how, worked, hr_service_delay(s, worked, how));
}

void
hr_service_ended(struct hr_service *s)
{
	s->elsewhere = false;
	child_ended(s, NULL);
}

void
hr_service_down(struct hr_service *s, enum hr_service_state state, int64_t delay_ms)
{
	hr_service_set(s, state);
	if (s->state == state && hr_watch_arm(s->restart, delay_ms, NULL) != 0)
		hr_log(
		    HR_LOG_ERROR, "no memory for a timer: %s is not started again", s->child.name);
}

static void
restart_due(void *arg)
{
	struct hr_service *s = arg;

	if (s->state == HR_SERVICE_DOWN || s->state == HR_SERVICE_FAILED)
		s->ops->again(s);
}

void
hr_service_retry(struct hr_service *s, const struct hr_err *why)
{
	hr_service_because(s, why->msg);
	hr_log(HR_LOG_ERROR, "%s: %s", s->child.name, why->msg);
	(void)hr_watch_arm(
	    s->restart, hr_backoff_next(&s->backoff, false, 0, hr_now_ms()) + RETRY_MS, NULL);
}

/* Kills a process that is too slow to get ready, or to end. */
static void
patience_over(void *arg)
{
	struct hr_service *s = arg;

	if (s->state == HR_SERVICE_STARTING && s->reason[0] == '\0')
		(void)snprintf(s->reason, sizeof(s->reason), "it was not ready after %lld s",
		    (long long)s->patience_ms / 1000);
	hr_log(HR_LOG_ERROR, "%s is killed: %s", s->child.name,
	    s->state == HR_SERVICE_STARTING ? s->reason : "it does not end");
	service_signal(s, SIGKILL);
}

int
hr_service_start(struct hr_service *s, int64_t patience_ms, struct hr_err *err)
{
	int ready = -1, r = 0;

	if (s->ops->says_ready)
		r = hr_readyline_open(&s->line, s->child.kids->loop, line_said, s, &ready, err);
	if (r == 0)
		r = s->ops->spawn(s, ready, err);
	hr_fd_close(&ready);
	if (r != 0) {
		hr_readyline_close(&s->line);
		return -1;
	}
	s->patience_ms = patience_ms;
	if (patience_ms > 0)
		(void)hr_watch_arm(s->patience, patience_ms, NULL);
	hr_service_set(s, HR_SERVICE_STARTING);
	return 0;
}

void
hr_service_stop(struct hr_service *s, int sig, int64_t patience_ms)
{
	hr_watch_disarm(s->patience);
	hr_readyline_close(&s->line);
	if (!hr_service_runs(s)) {
		if (s->state != HR_SERVICE_STOPPED)
			hr_service_move(s, HR_SERVICE_STOPPED);
		return;
	}
	if (s->state != HR_SERVICE_STOPPING)
		hr_service_move(s, HR_SERVICE_STOPPING);
	service_signal(s, sig);
	if (patience_ms > 0)
		(void)hr_watch_arm(s->patience, patience_ms, NULL);
}

const char *
hr_service_state_text(const struct hr_service *s)
{
	switch (s->state) {
	case HR_SERVICE_READY: return "ready";
	case HR_SERVICE_WAITING:
	case HR_SERVICE_STARTING: return "starting";
	case HR_SERVICE_OFF:
	case HR_SERVICE_DOWN:
	case HR_SERVICE_FAILED: return "restarting";
	default: return "stopping";
	}
}

void
hr_service_init(
    struct hr_service *s, const struct hr_service_ops *ops, void *owner, struct hr_children *kids)
{
	memset(s, 0, sizeof(*s));
	s->ops = ops;
	s->owner = owner;
	s->line.fd = -1;
	s->child.kids = kids;
	s->child.arg = s;
	s->child.on_exit = child_ended;
}

int
hr_service_open(struct hr_service *s, struct hr_err *err)
{
	s->restart = hr_loop_timer(s->child.kids->loop, restart_due, s, err);
	s->patience = hr_loop_timer(s->child.kids->loop, patience_over, s, err);
	return s->restart != NULL && s->patience != NULL ? 0 : -1;
}

void
hr_service_done(struct hr_service *s)
{
	hr_watch_drop(&s->restart);
	hr_watch_drop(&s->patience);
	hr_readyline_close(&s->line);
}
