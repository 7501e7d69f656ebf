/* hr_stats: measures resources of the server for GET /server_info (doc/http.md, "GET
 * /server_info"). The contract's "server process" is the sum of the supervisor, the keeper of the
 * default session and all workers on the scoreboard; nginx is not counted. */
#ifndef HR_WORKER_STATS_H
#define HR_WORKER_STATS_H

#include <stdint.h>

#include "proto/scoreboard.h"

struct hr_stats_now {
	double cpu_percent; /* rounded to one decimal */
	uint64_t rss, vms;
	double memory_percent;
	uint64_t disk_total, disk_used, disk_free;
	double disk_percent; /* rounded to one decimal */
	uint64_t read_bytes, write_bytes;
};

struct hr_stats {
	/* ---- the last sample of this process, with its times ---- */
	int64_t wall_ns; /* CLOCK_MONOTONIC; 0: there is no sample yet */
	int64_t cpu_ns;
	struct hr_stats_now last;
};

/* Samples the figures without sleeping: cpu_percent covers the time since the previous sample, or
 * since the server's start. Calls within 0.1 s return the same figures, because each sample reads
 * three files per worker in /proc. An unreadable figure is 0. */
void
hr_stats_sample(struct hr_stats *s, const struct hr_scoreboard *board, struct hr_stats_now *ret);

/* A process and its descendants. */
struct hr_stats_tree {
	unsigned processes;
	uint64_t resident;  /* bytes; shared pages count once for each process */
	uint64_t anonymous; /* bytes neither backed by a file nor shared */
	int64_t cpu_ns;     /* including ended children that were waited for */
};

/* Sets all members to 0 if the process does not exist. */
void hr_stats_tree(int32_t pid, struct hr_stats_tree *ret);

/* Returns the resident bytes of a process and its descendants, or 0 if the process does not
 * exist. */
uint64_t hr_stats_resident(int32_t pid);

#endif
