#include "config.h"

#include "base/flush.h"

#include <errno.h>
#include <sys/socket.h>

int
hr_flush(int sock, const struct hr_buf *b, size_t *io_sent)
{
	ssize_t n;

	while (*io_sent < b->len) {
		n = send(sock, b->p + *io_sent, b->len - *io_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			*io_sent += (size_t)n;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return -1;
	}
	return 1;
}
