#include "config.h"

#include "base/clock.h"

#include <stdio.h>
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

void
hr_wall_text(int64_t wall_ms, char ret[HR_WALL_TEXT])
{
	time_t t = (time_t)(wall_ms / 1000);
	char text[32] = "1970-01-01T00:00:00";
	struct tm tm;

	if (gmtime_r(&t, &tm) != NULL)
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret, HR_WALL_TEXT, "%s.%03dZ", text, (int)(wall_ms % 1000));
}
