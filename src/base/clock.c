#include "config.h"

#include "base/clock.h"

#include <time.h>

static int64_t
read_ns(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * HR_NS_PER_S + ts.tv_nsec;
}

int64_t
hr_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t
hr_now_ms(void)
{
	return hr_now_ns() / 1000000;
}

int64_t
hr_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

int64_t
hr_wall_ms(void)
{
	return hr_wall_ns() / 1000000;
}
