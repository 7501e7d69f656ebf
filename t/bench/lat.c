/* Every sample is kept: percentiles are exact, and 100,000 of them are less than 1 MB. */
#include "config.h"

#include "lat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t
bench_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void
bench_lat_init(struct bench_lat *l)
{
	l->v = NULL;
	l->n = l->cap = 0;
}

void
bench_lat_done(struct bench_lat *l)
{
	free(l->v);
	bench_lat_init(l);
}

void
bench_lat_add(struct bench_lat *l, uint64_t ns)
{
	size_t cap;
	uint64_t *v;

	if (l->n == l->cap) {
		cap = l->cap > 0 ? 2 * l->cap : 4096;
		v = reallocarray(l->v, cap, sizeof(*v));
		if (v == NULL) {
			perror("bench: samples");
			exit(1);
		}
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = ns;
}

static int
lat_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nearest rank: the smallest sample that `share` of all do not exceed. */
static double
lat_at(const struct bench_lat *l, double share)
{
	size_t rank = (size_t)(share * (double)l->n + 0.999999);

	if (l->n == 0)
		return 0;
	if (rank < 1)
		rank = 1;
	return (double)l->v[(rank > l->n ? l->n : rank) - 1] / 1e3;
}

void
bench_lat_print(struct bench_lat *l, double seconds, const char *more)
{
	double sum = 0;
	size_t i;

	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), lat_compare);
	for (i = 0; i < l->n; i++)
		sum += (double)l->v[i];
	(void)printf("{\"n\":%zu,\"seconds\":%.6f,\"p50\":%.2f,\"p90\":%.2f,\"p99\":%.2f,"
		     "\"max\":%.2f,\"min\":%.2f,\"mean\":%.2f%s}\n",
	    l->n, seconds, lat_at(l, 0.5), lat_at(l, 0.9), lat_at(l, 0.99), lat_at(l, 1),
	    lat_at(l, 0), l->n > 0 ? sum / (double)l->n / 1e3 : 0, more);
	(void)fflush(stdout);
}
