/* hr_sessions: manages named sessions: shells besides the default one that clients create and end
 * (doc/live.md). Each has a keeper that is supervised as the default session's.
 * DIR/session/NAME.dir holds the directory that it was created with (empty until it is ready), and
 * shows a killed supervisor's successor that the session exists; NAME.keeper is for hr_adopt,
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
	const struct hr_pools *pools; /* pools of the requesting workers */
	LIST_HEAD(hr_named_list, hr_named) list;
	unsigned count;
	bool stopping;
	struct hr_watch *reap; /* armed if ended sessions must be freed */
};

void
hr_sessions_init(struct hr_sessions *all, struct hr_context *ctx, const struct hr_pools *pools);
/* Finds a predecessor's sessions; call before creating anything in the run directory. */
int hr_sessions_find(struct hr_sessions *all, struct hr_err *err);
/* Applies hr_session_renew() to each session; failures are logged. */
void hr_sessions_renew(struct hr_sessions *all);
/* Continues the sessions found, with a new shell where the old one is gone. */
int hr_sessions_open(struct hr_sessions *all, struct hr_err *err);

/* Handle the text of a message of w (proto/PROTOCOL), which is answered at once or when the work is
 * done. */
void
hr_sessions_new(struct hr_sessions *all, struct hr_pool_worker *w, const char *text, size_t len);
void
hr_sessions_kill(struct hr_sessions *all, struct hr_pool_worker *w, const char *text, size_t len);
void hr_sessions_list(const struct hr_sessions *all, struct hr_buf *ret);

void hr_sessions_stop(struct hr_sessions *all, bool fast);
/* Returns true if a worker waits for an answer. */
bool hr_sessions_asked(const struct hr_sessions *all);
int hr_sessions_hand_over(const struct hr_sessions *all, struct hr_handover *h, struct hr_err *err);
bool hr_sessions_gone(const struct hr_sessions *all);
/* Frees the sessions; their files are removed with the run directory. */
void hr_sessions_done(struct hr_sessions *all);

#endif
