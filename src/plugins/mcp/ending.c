/* Ends a server as MCP prescribes: closes stdin, then sends SIGTERM and SIGKILL, each after some
 * time in which it can save its state. Only mcp_end_wait() waits for that. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/fd.h"
#include "base/process/spawn.h"
#include "plugins/mcp/hub.h"

#define STEP_MS 1500 /* ms to end without stdin, and again after SIGTERM */

struct mcp_ending {
	LIST_ENTRY(mcp_ending) entry;
	struct mcp_hub *hub;
	char *name; /* name of the server */
	pid_t pid;
	int pidfd;
	bool termed;
	struct bufferevent *out; /* read to its end: a blocked write must not kill the server */
	struct event *ended, *timer;
};

static void
ending_free(struct mcp_ending *e)
{
	if (e->out != NULL)
		bufferevent_free(e->out);
	if (e->ended != NULL)
		event_free(e->ended);
	if (e->timer != NULL)
		event_free(e->timer);
	hr_fd_close(&e->pidfd);
	free(e->name);
	free(e);
}

static void
ending_over(evutil_socket_t fd, short what, void *arg)
{
	struct mcp_ending *e = arg;
	struct mcp_hub *hub = e->hub;
	struct mcp_child *c;

	(void)fd;
	(void)what;
	/* the group id stays valid until the leader is waited for */
	(void)kill(-e->pid, SIGKILL);
	(void)hr_spawn_end(e->pid, NULL);
	LIST_REMOVE(e, entry);
	ending_free(e);
	TAILQ_FOREACH(c, &hub->children, entry)
	{
		if (c->due)
			mcp_child_start(c);
	}
	mcp_update_changed(hub);
}

static void
ending_late(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval more = {
	    .tv_sec = STEP_MS / 1000, .tv_usec = (suseconds_t)(STEP_MS % 1000) * 1000};
	struct mcp_ending *e = arg;

	(void)fd;
	(void)what;
	(void)kill(-e->pid, e->termed ? SIGKILL : SIGTERM);
	if (!e->termed)
		(void)evtimer_add(e->timer, &more);
	e->termed = true;
}

static void
ending_reads(struct bufferevent *b, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(b);

	(void)arg;
	(void)evbuffer_drain(in, evbuffer_get_length(in));
}

static void
ending_closed(struct bufferevent *b, short what, void *arg)
{
	struct mcp_ending *e = arg;

	(void)what;
	bufferevent_free(b);
	e->out = NULL;
}

static bool
ending_begin(struct mcp_hub *hub, const char *name, pid_t pid, struct bufferevent *out)
{
	const struct timeval limit = {
	    .tv_sec = STEP_MS / 1000, .tv_usec = (suseconds_t)(STEP_MS % 1000) * 1000};
	struct mcp_ending *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return false;
	e->hub = hub;
	e->pid = pid;
	e->name = strdup(name);
	e->pidfd = hr_pidfd_open(pid);
	e->timer = evtimer_new(hub->base, ending_late, e);
	if (e->pidfd >= 0)
		e->ended = event_new(hub->base, e->pidfd, EV_READ, ending_over, e);
	if (e->name == NULL || e->timer == NULL || e->ended == NULL ||
	    event_add(e->ended, NULL) != 0 || evtimer_add(e->timer, &limit) != 0) {
		ending_free(e);
		return false;
	}
	e->out = out;
	if (e->out != NULL) {
		bufferevent_setcb(e->out, ending_reads, NULL, ending_closed, e);
		(void)bufferevent_enable(e->out, EV_READ);
	}
	LIST_INSERT_HEAD(&hub->ending, e, entry);
	return true;
}

void
mcp_end_process(struct mcp_hub *hub, const char *name, pid_t pid, struct bufferevent *out)
{
	if (ending_begin(hub, name, pid, out))
		return;
	if (out != NULL)
		bufferevent_free(out);
	(void)kill(-pid, SIGTERM);
	(void)kill(-pid, SIGKILL);
	(void)hr_spawn_end(pid, NULL);
}

bool
mcp_ends(const struct mcp_hub *hub, const char *name)
{
	const struct mcp_ending *e;

	LIST_FOREACH(e, &hub->ending, entry)
	{
		if (strcmp(e->name, name) == 0)
			return true;
	}
	return false;
}

void
mcp_end_wait(struct mcp_hub *hub)
{
	while (!LIST_EMPTY(&hub->ending) && event_base_loop(hub->base, EVLOOP_ONCE) == 0)
		;
}
