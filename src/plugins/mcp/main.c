/* handrail-mcp: runs as the plugin that offers the tools of MCP servers (handrail-plugin(5)). */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "http/serve.h"
#include "plugins/mcp/hub.h"

#define PING_S 15
#define PING_MAX_S 3600

enum { READY_FD = 3, ACTION_FD = 4, HTTP_FD = 5 };

static void
on_term(void *arg)
{
	hr_loop_stop(arg);
}

static int
open_hub(struct mcp_hub *hub, struct hr_watch **ret_term, struct hr_err *err)
{
	int fd;

	for (fd = READY_FD; fd <= HTTP_FD; fd++)
		if (hr_fd_cloexec(fd, err) < 0)
			return -1;
	hub->loop = hr_loop_new(err);
	if (hub->loop == NULL)
		return -1;
	*ret_term = hr_loop_signal(hub->loop, SIGTERM, on_term, hub->loop, err);
	if (*ret_term == NULL || mcp_update_open(hub, ACTION_FD, err) < 0)
		return -1;
	return mcp_http_open(hub, HTTP_FD, err);
}

static void
close_hub(struct mcp_hub *hub, struct hr_watch *term)
{
	struct mcp_session *s;
	struct mcp_child *c;

	while ((s = TAILQ_FIRST(&hub->sessions)) != NULL)
		mcp_session_free(s);
	while ((c = TAILQ_FIRST(&hub->children)) != NULL) {
		TAILQ_REMOVE(&hub->children, c, entry);
		mcp_child_free(c);
	}
	mcp_update_done(hub);
	hr_serve_close(hub->http);
	mcp_end_wait(hub);
	hr_watch_free(term);
	hr_loop_free(hub->loop);
}

/* Returns the interval of comments, which keep proxies from closing an idle connection. */
static int
ping_seconds(void)
{
	const char *text = getenv("HANDRAIL_MCP_PING_SECONDS");
	char *end;
	long n;

	if (text == NULL || text[0] == '\0')
		return PING_S;
	n = strtol(text, &end, 10);
	if (*end == '\0' && n >= 1 && n <= PING_MAX_S)
		return (int)n;
	hr_log(HR_LOG_WARNING, "HANDRAIL_MCP_PING_SECONDS must be from 1 to %d: using %d",
	    PING_MAX_S, PING_S);
	return PING_S;
}

int
main(void)
{
	struct mcp_hub hub = {.mounted = false};
	struct hr_watch *term = NULL;
	struct hr_err err = {0};
	char text[300] = "ready\n";
	int ready = READY_FD, r;

	hr_log_setup("mcp", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	hub.ping_s = ping_seconds();
	TAILQ_INIT(&hub.children);
	LIST_INIT(&hub.ending);
	TAILQ_INIT(&hub.sessions);
	LIST_INIT(&hub.updating);
	r = open_hub(&hub, &term, &err);
	if (r != 0)
		(void)snprintf(text, sizeof(text), "failed %.240s\n", err.msg);
	(void)hr_fd_write_full(ready, text, strlen(text), NULL);
	hr_fd_close(&ready);
	if (r == 0)
		r = hr_loop_run(hub.loop, &err);
	close_hub(&hub, term);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
