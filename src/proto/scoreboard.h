/* hr_scoreboard: state that the supervisor, the workers and the keepers of one server share, in one
 * memory file (memfd). Every process reads; each field has one kind of writer. There are no locks:
 * all fields are read and written with atomic operations. */
#ifndef HR_PROTO_SCOREBOARD_H
#define HR_PROTO_SCOREBOARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/tempfiles.h"
#include "proto/metrics.h"
#include "proto/journal.h"
#include "proto/signin.h"
#include "proto/unread.h"

#define HR_SCOREBOARD_VERSION 7u
#define HR_SCOREBOARD_SLOTS 1024 /* workers of all pools together */
#define HR_SCOREBOARD_POOLS 5
#define HR_SCOREBOARD_ACTION 2 /* index of the pool of actions */

enum hr_worker_stage {
	HR_STAGE_FREE = 0, /* no process in this slot (written by the supervisor) */
	HR_STAGE_STARTING, /* spawned (supervisor) */
	HR_STAGE_IDLE,     /* waiting in accept (worker) */
	HR_STAGE_READING,  /* reading the request (worker) */
	HR_STAGE_RUNNING,  /* performing the request (worker) */
	HR_STAGE_WRITING,  /* answering (worker) */
};

struct hr_worker_slot {
	_Atomic int32_t pid;       /* written by the supervisor */
	_Atomic uint32_t pool;     /* written by the supervisor: index into pools */
	_Atomic uint32_t stage;    /* enum hr_worker_stage */
	_Atomic uint32_t requests; /* written by the worker: requests answered so far */
	/* written by the worker: when the stage last changed, by CLOCK_MONOTONIC */
	_Atomic int64_t since_ns;
};

struct hr_pool_counts {
	_Atomic uint32_t size; /* written by the supervisor: number of processes */
	/* written by workers: +1 when a request is accepted, -1 when answered; the supervisor
	 * subtracts for a worker that died busy */
	_Atomic uint32_t busy;
};

struct hr_scoreboard {
	_Atomic uint32_t version;
	_Atomic uint32_t ready;         /* written by the supervisor: 1 while all parts answer */
	_Atomic int32_t supervisor_pid; /* written by the supervisor */
	/* written by the supervisor: keeper of the default session, 0 if none */
	_Atomic int32_t session_pid;
	_Atomic int32_t nginx_pid; /* written by the supervisor: nginx master, 0 if none */
	/* written by the supervisor: CLOCK_REALTIME of the server's construction */
	_Atomic int64_t started_ns;
	/* written by action workers: CLOCK_REALTIME of the last valid action */
	_Atomic int64_t last_execution_ns;
	_Atomic uint32_t static_sessions; /* written by the supervisor */
	_Atomic uint32_t named_sessions;  /* written by the supervisor */
	/* written by a worker: its pid while it checks how full the disk is, which may block for
	 * ever; the supervisor clears that of a dead worker */
	_Atomic int32_t disk_looker;
	struct hr_metrics metrics;
	struct hr_journal_counts journal; /* written by workers */
	struct hr_signins signins;        /* written by workers */
	struct hr_unread unread; /* written by workers, and by the supervisor for dead ones */
	struct hr_pool_counts pools[HR_SCOREBOARD_POOLS];
	struct hr_worker_slot slots[HR_SCOREBOARD_SLOTS];
	/* written by workers: pages of slots that never wrote a file use no memory */
	struct hr_tempfiles scraps[HR_SCOREBOARD_SLOTS];
};

/* Creates a zeroed board in a sealed memfd (close-on-exec). Returns NULL with *err set on
 * failure. */
struct hr_scoreboard *hr_scoreboard_create(int *ret_fd, struct hr_err *err);
/* Maps the board of fd, which stays the caller's; checks size and version. */
struct hr_scoreboard *hr_scoreboard_attach(int fd, struct hr_err *err);
/* Resets the counters for a new supervisor of the workers that use the board. */
void hr_scoreboard_renew(struct hr_scoreboard *sb);
void hr_scoreboard_detach(struct hr_scoreboard *sb); /* Unmaps the board; does nothing with NULL. */

#endif
