/* Sends questions to the supervisor. The socket is blocking, but every wait has a limit, so that a
 * stopped supervisor costs its worker one answer and not its life. */
#include "config.h"

#include "proto/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/clock.h"

static bool
is_name(char c, bool first)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (!first && (c == '_' || c == '.' || c == '-'));
}

bool
hr_session_name_fits(const char *p, size_t len)
{
	size_t i;

	if (len == 0 || len > HR_SESSION_NAME_MAX || (len >= 6 && memcmp(p, "static", 6) == 0) ||
	    (len == 7 && memcmp(p, "default", 7) == 0))
		return false;
	for (i = 0; i < len; i++)
		if (!is_name(p[i], i == 0))
			return false;
	return true;
}

void
hr_channel_tell(int fd, enum hr_channel_type type)
{
	char c = (char)type;

	/* the message may be dropped: see channel.h */
	(void)send(fd, &c, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Waits until fd is ready and returns 0. */
static int
channel_wait(int fd, short events, int64_t deadline, struct hr_err *err)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t left;
	int n;

	for (;;) {
		left = deadline - hr_now_ms();
		n = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (n > 0)
			return 0;
		if (n == 0)
			return hr_err_set(err, HR_E_TIMEOUT, "the supervisor does not answer");
		if (errno != EINTR)
			return hr_err_sys(err, errno, "poll");
	}
}

static int
channel_recv(int fd, struct hr_channel_answer *ret, struct hr_err *err)
{
	ssize_t n;

	n = hr_fd_recv(fd, ret->text, sizeof(ret->text), &ret->fd, err);
	if (n == 0)
		return hr_err_set(err, HR_E_GONE, "the supervisor is gone");
	if (n < 0)
		return -1;
	ret->len = (size_t)n;
	return 0;
}

static void
channel_drain(int fd)
{
	struct hr_channel_answer old;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0) {
		if (channel_recv(fd, &old, NULL) < 0)
			return;
		hr_fd_close(&old.fd);
	}
}

int
hr_channel_ask(int fd, enum hr_channel_type type, const char *p, size_t len,
    enum hr_channel_type want, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err)
{
	int64_t deadline = hr_now_ms() + timeout_ms;
	struct hr_channel_answer answer;
	char packet[HR_CHANNEL_MAX];

	if (fd < 0)
		return hr_err_set(err, HR_E_GONE, "this worker has no supervisor");
	if (len > sizeof(packet) - 1)
		return hr_err_set(err, HR_E_TOOLARGE,
		    "a message of %zu bytes is too long for the supervisor", len);
	packet[0] = (char)type;
	if (len > 0)
		memcpy(packet + 1, p, len);
	channel_drain(fd);
	if (channel_wait(fd, POLLOUT, deadline, err) < 0 ||
	    hr_fd_send(fd, packet, len + 1, -1, err) < 0 ||
	    channel_wait(fd, POLLIN, deadline, err) < 0 || channel_recv(fd, &answer, err) < 0)
		return -1;
	if (answer.text[0] != (char)want) {
		hr_fd_close(&answer.fd);
		return hr_err_set(err, HR_E_PROTO, "the supervisor answered another request");
	}
	ret->fd = answer.fd;
	ret->len = answer.len - 1;
	memcpy(ret->text, answer.text + 1, ret->len);
	ret->text[ret->len] = '\0';
	return 0;
}
