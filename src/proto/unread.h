/* hr_unread: keeps actions of requests without a key whose answers may not have been read, on the
 * scoreboard. A client whose connection was cut sends such a request again; the repetition finds
 * the first one here, and by its name in the journal (journal.h) gets its answer. A place is taken
 * when the action starts. It becomes free when the answer is with an nginx that still has the
 * client's connection. Otherwise the place is kept for HR_UNREAD_MS. While all places are taken an
 * action gets none, and a repetition of it is another action. `board` is the scoreboard's
 * descriptor; -1: there is none and no process waits. The worker that has a place holds a lock of
 * that file, which its death releases: fcntl(2), so the process must not close another descriptor
 * of the file meanwhile. */
#ifndef HR_PROTO_UNREAD_H
#define HR_PROTO_UNREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/peer.h"

#define HR_UNREAD 64       /* number of places */
#define HR_UNREAD_ID 32    /* characters of nginx' $request_id */
#define HR_UNREAD_MS 60000 /* milliseconds that an answer waits for its client */

struct hr_unread_action {
	uint64_t client;       /* digest of all that distinguishes the client from others */
	uint64_t digest;       /* digest of client and request, never 0 */
	char id[HR_UNREAD_ID]; /* nginx' $request_id of the action's request; no NUL */
	struct hr_peer peer;   /* connection that gets the answer */
	pid_t pid;             /* pid of the worker */
};

/* `word` has a number, used once, and a state; writers change it by compare-and-exchange only. */
struct hr_unread_place {
	_Atomic uint64_t word;    /* 0: the place is free */
	_Atomic int64_t ended_ms; /* CLOCK_MONOTONIC of the action's end */
	struct hr_unread_action action;
};

struct hr_unread {
	_Atomic uint64_t numbers; /* the last number used */
	struct hr_unread_place v[HR_UNREAD];
};

/* A place that a worker holds, with the word that it found or wrote there. */
struct hr_unread_hold {
	struct hr_unread_place *place; /* NULL: this holds no place */
	uint64_t word;
};

/* Finds the next place at or after *i with an action of that client: returns a copy of the action,
 * and in *ret the argument for hr_unread_take(). Skips expired ones. Returns false if there is
 * none. */
bool hr_unread_find(struct hr_unread *u, uint64_t client, int64_t now_ms, size_t *i,
    struct hr_unread_action *ret_action, struct hr_unread_hold *ret);
/* Returns true if the place's worker is sending the answer to a client that is connected. */
bool hr_unread_is_answering(const struct hr_unread_hold *h);
/* Takes the found place for this worker and `action`. Returns false if the place has changed
 * since. */
bool hr_unread_take(struct hr_unread *u, int board, struct hr_unread_hold *found,
    const struct hr_unread_action *action);
/* Takes a free place. Returns false if there is none. */
bool hr_unread_add(struct hr_unread *u, int board, const struct hr_unread_action *action,
    int64_t now_ms, struct hr_unread_hold *ret);
/* Blocks until the place's worker has kept or freed it, or is dead. */
void hr_unread_wait(int board, const struct hr_unread_hold *found);

/* Marks the place as being answered to a client that is connected. Does nothing if another worker
 * has taken the place since. */
void hr_unread_answering(struct hr_unread_hold *h);
/* Keeps the place: the answer was not read. Does nothing if another worker has taken the place
 * since. */
void hr_unread_keep(int board, struct hr_unread_hold *h, int64_t now_ms);
/* Frees the place: the answer was read. Returns false if another worker has taken the place
 * since. */
bool hr_unread_free(int board, struct hr_unread_hold *h);

/* Keeps the place of a dead worker's action. An answer that was being sent counts as read, since
 * nginx itself asks another worker if it was not. */
void hr_unread_bury(struct hr_unread *u, pid_t pid, int64_t now_ms);

#endif
