/* hr_unread: actions of requests without a name whose answers may not have been read, on the
 * scoreboard. A client whose connection was cut sends such a request again; the repetition finds
 * the first one here, and by its name in the journal (journal.h) gets its answer.
 *
 * A place is taken when the action begins. It becomes free when the answer is in the hands of an
 * nginx that still has the client's connection. Otherwise the place is kept for HR_UNREAD_MS. With
 * all places taken an action has none, and a repetition of it is another action.
 *
 * `board` is the scoreboard's descriptor, -1: there is none and nobody waits. The worker that has a
 * place holds a lock of that file, which its death ends: fcntl(2), so the process must not close
 * another descriptor of the file meanwhile. */
#ifndef HR_PROTO_UNREAD_H
#define HR_PROTO_UNREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/peer.h"

#define HR_UNREAD 64       /* places */
#define HR_UNREAD_ID 32    /* characters of nginx' $request_id */
#define HR_UNREAD_MS 60000 /* how long an answer waits for its client */

struct hr_unread_action {
	uint64_t client;       /* digest of all that tells the client from others */
	uint64_t digest;       /* the same with the request, never 0 */
	char id[HR_UNREAD_ID]; /* nginx' name of the request that began the action; no NUL */
	struct hr_peer peer;   /* where the answer goes */
	pid_t pid;             /* the worker */
};

/* `word` is a number that is given once, and a state; whoever changes either compares and exchanges
 * both. */
struct hr_unread_place {
	_Atomic uint64_t word;    /* 0: free */
	_Atomic int64_t ended_ms; /* CLOCK_MONOTONIC, of an action that is over */
	struct hr_unread_action action;
};

struct hr_unread {
	_Atomic uint64_t numbers; /* the last one */
	struct hr_unread_place v[HR_UNREAD];
};

/* A place that a worker has, by the word it found or made there. */
struct hr_unread_hold {
	struct hr_unread_place *place; /* NULL: none */
	uint64_t word;
};

/* Finds the next place at or after *i of an action of that client: a copy of it, and in *ret what
 * hr_unread_take() needs. Passes over those whose time is over. Returns false if there is none. */
bool hr_unread_find(struct hr_unread *u, uint64_t client, int64_t now_ms, size_t *i,
    struct hr_unread_action *ret_action, struct hr_unread_hold *ret);
/* Returns true if the place's worker is giving the answer to a client that was there. */
bool hr_unread_is_answering(const struct hr_unread_hold *h);
/* Makes the place that was found this worker's, for `action`. Returns false if the place has
 * changed since. */
bool hr_unread_take(struct hr_unread *u, int board, struct hr_unread_hold *found,
    const struct hr_unread_action *action);
/* Takes a free place. Returns false if there is none. */
bool hr_unread_add(struct hr_unread *u, int board, const struct hr_unread_action *action,
    int64_t now_ms, struct hr_unread_hold *ret);
/* Blocks until the worker that has the place has kept or freed it, or is dead. */
void hr_unread_wait(int board, const struct hr_unread_hold *found);

/* Each does nothing where another worker has taken the place since. */
void hr_unread_answering(struct hr_unread_hold *h); /* the client is there and gets the answer */
/* The answer was not read. */
void hr_unread_keep(int board, struct hr_unread_hold *h, int64_t now_ms);
/* The answer was read. Returns false if another worker has taken the place since. */
bool hr_unread_free(int board, struct hr_unread_hold *h);

/* The worker is dead: keeps what it was doing. What it was answering counts as read, since nginx
 * itself asks another worker where it was not. */
void hr_unread_bury(struct hr_unread *u, pid_t pid, int64_t now_ms);

#endif
