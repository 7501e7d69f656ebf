/* handrail-mcp: runs as the plugin that offers the tools of MCP servers (handrail-plugin(5)). */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <event2/http.h>

#include "base/fd.h"
#include "base/log.h"
#include "plugins/mcp/hub.h"

#define PING_S 15
#define PING_MAX_S 3600

enum { READY_FD = 3, ACTION_FD = 4, HTTP_FD = 5 };

static void
on_term(evutil_socket_t signo, short what, void *arg)
{
	(void)signo;
	(void)what;
	(void)event_base_loopbreak(arg);
}

static int
open_hub(struct mcp_hub *hub, struct event **ret_term, struct hr_err *err)
{
	int fd;

	for (fd = READY_FD; fd <= HTTP_FD; fd++)
		if (hr_fd_cloexec(fd, err) < 0)
			return -1;
	hub->base = event_base_new();
	if (hub->base == NULL)
		return hr_err_nomem(err);
	*ret_term = evsignal_new(hub->base, SIGTERM, on_term, hub->base);
	if (*ret_term == NULL || event_add(*ret_term, NULL) != 0)
		return hr_err_nomem(err);
	if (mcp_update_open(hub, ACTION_FD, err) < 0)
		return -1;
	return mcp_http_open(hub, HTTP_FD, err);
}

static void
close_hub(struct mcp_hub *hub, struct event *term)
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
	if (hub->http != NULL)
		evhttp_free(hub->http);
	mcp_end_wait(hub);
	if (term != NULL)
		event_free(term);
	if (hub->base != NULL)
		event_base_free(hub->base);
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
	struct event *term = NULL;
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
	if (r == 0 && event_base_dispatch(hub.base) < 0)
		r = -1;
	close_hub(&hub, term);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
