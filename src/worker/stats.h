/* hr_stats: resources of the server for GET /server_info (doc/http.md, "GET /server_info").
 *
 * "The server process" of the contract is here the sum over the supervisor, the keeper of the
 * default session and all workers that the scoreboard names; nginx is not counted. */
#ifndef HR_WORKER_STATS_H
#define HR_WORKER_STATS_H

#include <stdint.h>

#include "proto/scoreboard.h"

struct hr_stats_now {
	double cpu_percent; /* one decimal */
	uint64_t rss, vms;
	double memory_percent;
	uint64_t disk_total, disk_used, disk_free;
	double disk_percent; /* one decimal */
	uint64_t read_bytes, write_bytes;
};

struct hr_stats {
	/* the last sample of this process, and what it gave */
	int64_t wall_ns; /* CLOCK_MONOTONIC; 0: none yet */
	int64_t cpu_ns;
	struct hr_stats_now last;
};

/* Never sleeps: cpu_percent is over the time since the sample before, or since the server's start
 * at the first. Calls closer than 0.1 s get the same figures again: one look at /proc costs three
 * files of every worker. What cannot be read is 0. */
void
hr_stats_sample(struct hr_stats *s, const struct hr_scoreboard *board, struct hr_stats_now *ret);

/* Resident bytes of a process and of what it has started. 0: it is not there. */
uint64_t hr_stats_resident(int32_t pid);

#endif
