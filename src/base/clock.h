/* hr_clock: reads the current time. Neither clock can fail on Linux. */
#ifndef HR_BASE_CLOCK_H
#define HR_BASE_CLOCK_H

#include <stdint.h>

#define HR_NS_PER_S 1000000000

int64_t hr_now_ms(void); /* Returns CLOCK_MONOTONIC, for measuring durations. */
int64_t hr_now_ns(void);
int64_t hr_wall_ms(void); /* Returns CLOCK_REALTIME, since 1970, for people to read. */
int64_t hr_wall_ns(void);

/* Writes RFC 3339 in UTC, "2026-01-02T03:04:05.678Z", from milliseconds since 1970. */
#define HR_WALL_TEXT 40
void hr_wall_text(int64_t wall_ms, char ret[HR_WALL_TEXT]);
/* Writes the same without the fraction, from seconds. */
void hr_wall_text_s(int64_t wall_s, char ret[HR_WALL_TEXT]);

#endif
