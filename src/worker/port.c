/* Decides for nginx which loopback address a request to /port/N/ goes to. */
#include "config.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clean.h"
#include "base/fd.h"
#include "worker/worker.h"

/* Returns true if a program listens at that port of 127.0.0.1, also by a socket of both versions of
 * IP. The address is not free then. No connection is made, which the program would notice. */
static bool
is_taken(unsigned port)
{
	const struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	HR_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	/* connections that ended a moment ago do not count */
	return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	       bind(fd, (const struct sockaddr *)&a, sizeof(a)) != 0;
}

void
hr_handle_port(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(port, 16);

	(void)w;
	ret->content_type = NULL;
	ret->status = 204;
	if (hr_request_query(r, "port", &port) &&
	    !is_taken((unsigned)strtoul(hr_buf_str(&port), NULL, 10)))
		ret->status = 403;
}
