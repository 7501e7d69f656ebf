/* Locks files with a bound for the wait. */
#include "config.h"

#include "host/common/lock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>

#include "base/clock.h"

#define PAUSE_MS 20

int
hr_lock_in_time(int fd, int how, int patience_ms)
{
	int64_t until = hr_now_ms() + patience_ms;

	while (flock(fd, how | LOCK_NB) != 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || hr_now_ms() >= until))
			return errno;
		(void)poll(NULL, 0, PAUSE_MS);
	}
	return 0;
}
