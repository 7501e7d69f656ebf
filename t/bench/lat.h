/* bench_lat: the latencies of one measurement, in nanoseconds, and how they are reported. */
#ifndef BENCH_LAT_H
#define BENCH_LAT_H

#include <stddef.h>
#include <stdint.h>

struct bench_lat {
	uint64_t *v;
	size_t n, cap;
};

uint64_t bench_now(void); /* CLOCK_MONOTONIC, ns */

void bench_lat_init(struct bench_lat *l);
void bench_lat_done(struct bench_lat *l);
void bench_lat_add(struct bench_lat *l, uint64_t ns); /* out of memory ends the program */

/* One JSON object on standard output, microseconds with decimals: n, seconds, p50, p90, p99, max,
 * min, mean; then `more`, which is "" or begins with a comma. Sorts l. */
void bench_lat_print(struct bench_lat *l, double seconds, const char *more);

#endif
