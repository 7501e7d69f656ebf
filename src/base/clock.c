#include "config.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
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
hr_wall_text_s(int64_t wall_s, char ret[HR_WALL_TEXT])
{
	time_t t = (time_t)wall_s;
	struct tm tm;

	(void)snprintf(ret, HR_WALL_TEXT, "1970-01-01T00:00:00Z");
	if (gmtime_r(&t, &tm) != NULL)
		(void)strftime(ret, HR_WALL_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void
hr_wall_text(int64_t wall_ms, char ret[HR_WALL_TEXT])
{
	char text[HR_WALL_TEXT];

	hr_wall_text_s(wall_ms / 1000, text);
	(void)snprintf(
	    ret, HR_WALL_TEXT, "%.*s.%03dZ", (int)strcspn(text, "Z"), text, (int)(wall_ms % 1000));
}
