/* Sends a request to the server itself. Only the status line of the response is read. */
#include "config.h"

#include "supervisor/edge/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"

static void
probe_tell(struct hr_probe *p, bool ok, const char *answer)
{
	hr_probe_stop(p);
	p->fn(p->arg, ok, answer);
}

static void
probe_timeout(void *arg)
{
	probe_tell(arg, false, "no answer in time");
}

static void
probe_readable(void *arg)
{
	struct hr_probe *p = arg;
	ssize_t n = hr_fd_read(p->fd, p->text + p->len, sizeof(p->text) - 1 - p->len);
	char *end;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		p->len += (size_t)n;
	p->text[p->len] = '\0';
	end = strpbrk(p->text, "\r\n");
	if (end == NULL && n > 0 && p->len < sizeof(p->text) - 1)
		return;
	if (end != NULL)
		*end = '\0';
	probe_tell(p, strncmp(p->text, p->want, strlen(p->want)) == 0,
	    p->len > 0 ? p->text : "the connection was closed");
}

int
hr_probe_start(struct hr_probe *p, struct hr_loop *loop, const struct sockaddr_storage *to,
    socklen_t len, const char *path, const char *want, int timeout_ms, hr_probe_fn *fn, void *arg,
    struct hr_err *err)
{
	char request[128];
	int n = snprintf(request, sizeof(request),
	    "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);

	hr_assert(n > 0 && (size_t)n < sizeof(request));

	memset(p, 0, sizeof(*p));
	p->want = want;
	p->fn = fn;
	p->arg = arg;
	/* a blocking connect() to a Unix socket whose queue is full waits for an accept() */
	p->fd = socket(to->ss_family,
	    SOCK_STREAM | SOCK_CLOEXEC | (to->ss_family == AF_UNIX ? SOCK_NONBLOCK : 0), 0);
	if (p->fd < 0)
		return hr_err_sys(err, errno, "socket");
	if (connect(p->fd, (const struct sockaddr *)to, len) != 0) {
		(void)hr_err_sys(err, errno, "connect");
	} else if (hr_fd_write_full(p->fd, request, (size_t)n, err) == 0 &&
		   hr_fd_nonblock(p->fd, true, err) == 0) {
		p->watch = hr_loop_readable(loop, p->fd, probe_readable, p, err);
		p->timer = p->watch != NULL ? hr_loop_timer(loop, probe_timeout, p, err) : NULL;
		if (p->timer != NULL && hr_watch_arm(p->timer, timeout_ms, err) == 0)
			return 0;
	}
	hr_probe_stop(p);
	return -1;
}

void
hr_probe_stop(struct hr_probe *p)
{
	hr_watch_drop(&p->watch);
	hr_watch_drop(&p->timer);
	if (p->fd > STDERR_FILENO)
		hr_fd_close(&p->fd);
	p->fd = -1;
}
