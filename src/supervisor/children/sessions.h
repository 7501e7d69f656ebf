/* hr_sessions: named sessions: shells beside the default one that clients make and end
 * (doc/live.md). Each has a keeper that is watched as that of the default session is.
 *
 * DIR/session/NAME.dir, the directory it was made with (empty until it is ready), says that there
 * is one, to a supervisor that starts after another was killed; NAME.keeper is for hr_adopt,
 * NAME.sock for workers. */
#ifndef HR_SUPERVISOR_CHILDREN_SESSIONS_H
#define HR_SUPERVISOR_CHILDREN_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_handover;
struct hr_context;
struct hr_watch;
struct hr_pool_worker;
struct hr_pools;

struct hr_sessions {
	struct hr_context *ctx;
	const struct hr_pools *pools; /* whose workers ask */
	LIST_HEAD(hr_named_list, hr_named) list;
	unsigned count;
	bool stopping;
	struct hr_watch *reap; /* armed: some have ended */
};

void
hr_sessions_init(struct hr_sessions *all, struct hr_context *ctx, const struct hr_pools *pools);
/* Those of a predecessor; before anything else is made in the run directory. */
int hr_sessions_find(struct hr_sessions *all, struct hr_err *err);
/* Goes on with those that were found, with a new shell where the old one is gone. */
/* As hr_session_renew(), of each; one that cannot be renewed is reported to the log. */
void hr_sessions_renew(struct hr_sessions *all);
int hr_sessions_open(struct hr_sessions *all, struct hr_err *err);

/* Text of a message of w (proto/PROTOCOL), which is answered at once or when it is done. */
void
hr_sessions_new(struct hr_sessions *all, struct hr_pool_worker *w, const char *text, size_t len);
void
hr_sessions_kill(struct hr_sessions *all, struct hr_pool_worker *w, const char *text, size_t len);
void hr_sessions_list(const struct hr_sessions *all, struct hr_buf *ret);

void hr_sessions_stop(struct hr_sessions *all, bool fast);
bool hr_sessions_asked(const struct hr_sessions *all); /* a worker waits for one */
int hr_sessions_hand_over(const struct hr_sessions *all, struct hr_handover *h, struct hr_err *err);
bool hr_sessions_gone(const struct hr_sessions *all);
void hr_sessions_done(struct hr_sessions *all); /* their files go with the run directory */

#endif
