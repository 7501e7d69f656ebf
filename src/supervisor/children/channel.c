/* Serves channels. A worker may block for its answer; the supervisor never blocks for a worker. */
#include "config.h"

#include "supervisor/children/channel.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "proto/channel.h"

static void
channel_readable(void *arg)
{
	struct hr_channel *c = arg;
	char packet[HR_CHANNEL_MAX];
	struct hr_err err = {0};
	ssize_t n = hr_fd_recv(c->fd, packet, sizeof(packet), NULL, &err);

	if (n < 0 && err.sys == EAGAIN)
		return;
	if (n > 0 && c->fn(c->arg, packet, (size_t)n))
		return;
	/* the worker then ends after its request and is replaced */
	if (n > 0)
		hr_log(HR_LOG_ERROR, "%s sent an unexpected message of %zd bytes (type 0x%02x)",
		    c->name, n, (unsigned char)packet[0]);
	hr_channel_close(c);
}

int
hr_channel_open(struct hr_channel *c, struct hr_loop *loop, int *ret_child, struct hr_err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return hr_err_sys(err, errno, "channel");
	if (hr_fd_nonblock(pair[0], true, err) == 0 &&
	    hr_channel_adopt(c, loop, pair[0], err) == 0) {
		*ret_child = pair[1];
		return 0;
	}
	hr_fd_close(&pair[0]);
	hr_fd_close(&pair[1]);
	return -1;
}

int
hr_channel_adopt(struct hr_channel *c, struct hr_loop *loop, int fd, struct hr_err *err)
{
	c->watch = hr_loop_readable(loop, fd, channel_readable, c, err);
	if (c->watch == NULL)
		return -1;
	c->fd = fd;
	return 0;
}

void
hr_channel_close(struct hr_channel *c)
{
	hr_watch_drop(&c->watch);
	hr_fd_close(&c->fd);
}

/* Answers; `text` may have failed, which is then logged. */
void
hr_channel_give(struct hr_channel *c, char type, const struct hr_buf *text, int fd)
{
	struct hr_err err = {0};
	HR_BUF(b, HR_CHANNEL_ANSWER_MAX);

	hr_buf_addc(&b, type);
	hr_buf_add(&b, hr_buf_str(text), text->len);
	if (hr_buf_check(text, &err) < 0 || hr_buf_check(&b, &err) < 0 ||
	    hr_fd_send(c->fd, b.p, b.len, fd, &err) < 0)
		hr_log(HR_LOG_WARNING, "%s: answer '%c': %s", c->name, type, err.msg);
}

void
hr_channel_give_static(struct hr_channel *c, int sock, const char *reason)
{
	HR_BUF(text, HR_CHANNEL_ANSWER_MAX);

	hr_buf_adds(&text, reason != NULL ? reason : "");
	hr_channel_give(c, HR_CHANNEL_STATIC_ANSWER, &text, reason == NULL ? sock : -1);
}
