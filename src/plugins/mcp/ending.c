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
#include "base/loop.h"
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
	struct hr_watch *ended, *timer;
};

static void
ending_free(struct mcp_ending *e)
{
	if (e->out != NULL)
		bufferevent_free(e->out);
	hr_watch_free(e->ended);
	hr_watch_free(e->timer);
	hr_fd_close(&e->pidfd);
	free(e->name);
	free(e);
}

static void
ending_over(void *arg)
{
	struct mcp_ending *e = arg;
	struct mcp_hub *hub = e->hub;
	struct mcp_child *c;

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
	if (hub->closes)
		hr_loop_stop(hub->loop);
}

static void
ending_late(void *arg)
{
	struct mcp_ending *e = arg;

	(void)kill(-e->pid, e->termed ? SIGKILL : SIGTERM);
	if (!e->termed)
		(void)hr_watch_arm(e->timer, STEP_MS, NULL);
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
	struct mcp_ending *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return false;
	e->hub = hub;
	e->pid = pid;
	e->name = strdup(name);
	e->pidfd = hr_pidfd_open(pid);
	e->timer = hr_loop_timer(hub->loop, ending_late, e, NULL);
	if (e->pidfd >= 0)
		e->ended = hr_loop_readable(hub->loop, e->pidfd, ending_over, e, NULL);
	if (e->name == NULL || e->timer == NULL || e->ended == NULL ||
	    hr_watch_arm(e->timer, STEP_MS, NULL) != 0) {
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
	hub->closes = true;
	while (!LIST_EMPTY(&hub->ending) && hr_loop_run(hub->loop, NULL) == 0)
		;
}
