/* Reads the readiness line. Invariant: fn is called at most once, and only while the pipe is
 * open. */
#include "config.h"

#include "supervisor/children/readyline.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"

static void
readyline_tell(struct hr_readyline *r, bool ended)
{
	static const char failed[] = "failed ", never[] = "unavailable ";
	char text[sizeof(r->text)];
	char *end;

	memcpy(text, r->text, r->len);
	text[r->len] = '\0';
	end = strchr(text, '\n');
	if (end != NULL)
		*end = '\0';
	hr_readyline_close(r);
	r->never = strncmp(text, never, sizeof(never) - 1) == 0;
	if (end != NULL && strcmp(text, "ready") == 0)
		r->fn(r->arg, true, NULL);
	else if (strncmp(text, failed, sizeof(failed) - 1) == 0)
		r->fn(r->arg, false, text + sizeof(failed) - 1);
	else if (r->never)
		r->fn(r->arg, false, text + sizeof(never) - 1);
	else if (ended)
		r->fn(r->arg, false, HR_READYLINE_ENDED);
	else
		r->fn(r->arg, false, "its first line is not a readiness line");
}

static void
readyline_readable(void *arg)
{
	struct hr_readyline *r = arg;
	ssize_t n = hr_fd_read(r->fd, r->text + r->len, sizeof(r->text) - 1 - r->len);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		r->len += (size_t)n;
	if (n <= 0 || r->len == sizeof(r->text) - 1 || memchr(r->text, '\n', r->len) != NULL)
		readyline_tell(r, n <= 0);
}

void
hr_readyline_look(struct hr_readyline *r)
{
	ssize_t n;

	if (r->watch == NULL)
		return;
	n = hr_fd_read(r->fd, r->text + r->len, sizeof(r->text) - 1 - r->len);
	if (n <= 0)
		return;
	r->len += (size_t)n;
	if (memchr(r->text, '\n', r->len) != NULL)
		readyline_tell(r, false);
}

int
hr_readyline_open(struct hr_readyline *r, struct hr_loop *loop, hr_readyline_fn *fn, void *arg,
    int *ret_child, struct hr_err *err)
{
	int p[2];

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	r->fn = fn;
	r->arg = arg;
	if (pipe2(p, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "pipe");
	r->fd = p[0];
	if (hr_fd_nonblock(p[0], true, err) == 0)
		r->watch = hr_loop_readable(loop, p[0], readyline_readable, r, err);
	if (r->watch == NULL) {
		hr_fd_close(&r->fd);
		hr_fd_close(&p[1]);
		return -1;
	}
	*ret_child = p[1];
	return 0;
}

void
hr_readyline_close(struct hr_readyline *r)
{
	hr_watch_drop(&r->watch);
	if (r->fd > STDERR_FILENO) /* a zeroed struct was never opened */
		hr_fd_close(&r->fd);
	r->fd = -1;
}
