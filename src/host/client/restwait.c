/* Waits between attempts. A file of its own, because tests that only need the decisions do not
 * wait. */
#include "config.h"

#include <poll.h>

#include "base/clock.h"
#include "host/client/rest.h"

bool
hr_rest_wait(int watch_fd, unsigned ms)
{
	struct pollfd p = {.fd = watch_fd, .events = POLLIN};
	int64_t end = hr_now_ms() + ms, left;

	while ((left = end - hr_now_ms()) > 0)
		if (poll(&p, watch_fd >= 0 ? 1 : 0, (int)left) > 0)
			return true;
	return false;
}
